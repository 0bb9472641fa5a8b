"""The records of a log as its reader finds them, in the order of the file, of a file that need not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.workload.clean import ABSURD_SIZE, CleaningRules, remarks
from escala.workload.filters import Filters, Keep, every
from escala.workload.found import Found
from escala.workload.read import chosen_kind, noted_size, nothing_left, refuse_touched

FILTERS = ("partition", "user", "account", "since", "until")
OPTIONS = ("format", "columns", "units", "unit", "select", "cores", "submission", "speed", "rules", "strict", *FILTERS)
"""Of `read_workload`, what is known where a log is read in pieces."""


class Records:
    """What the reader makes of the parts of a file: some `jobs` rows of Parquet, or some megabytes of text. A filter
    reads the file twice.

    exact: of SWF, what only all lines show (`swf.swf_pieces`) is looked for ahead. scratch: where temporary files are.
    kind: the format. read_as: how it was read, as `Workload.read_as`. about: the last part. cleaning, firsts: as of a
    workload; the rules of `clean` are counted by whoever cleans.
    """

    def __init__(
        self, path: Path, jobs: int, exact: bool, options: Mapping[str, Any], scratch: Path | None = None
    ) -> None:
        for name in options:
            if name not in OPTIONS:
                raise EscalaError(
                    f"{path}: the option {name} is not known where a log is read in pieces; known: {', '.join(OPTIONS)}"
                )
        given = {name: value for name, value in options.items() if value is not None}
        self._ruled = {"rules": asdict(given["rules"])} if "rules" in given else {}
        self.path, self._jobs, self._exact, self._scratch = path, jobs, exact, scratch
        self.rules, self._strict = given.pop("rules", None) or CleaningRules(), given.pop("strict", False)
        self._keep = Filters(**{name: given.pop(name) for name in FILTERS if name in given})
        self._format = given.pop("format", None)
        self._options: Mapping[str, Any] = given
        self.kind, self.read_as = "", dict[str, Any]()
        self.cleaning: dict[str, int] = {}
        self.firsts: dict[str, str] = {}
        self.about: Found | None = None

    def begin(self) -> str:
        """The format, found from the content where it was not given; EscalaError where an option means nothing
        there."""
        self.kind = chosen_kind(self.path, self._format, self._options.get("columns"), self._options)
        self.read_as = {
            "path": os.path.abspath(self.path),
            "format": self.kind,
            **self._options,
            **self._keep.given,
            **self._ruled,
        }
        return self.kind

    def __iter__(self) -> Iterator[Found]:
        keep: Keep = every
        if self._keep.given:
            for _ in self._found(self._keep.look, _none):
                pass
            keep = self._keep.part
        exact = self._exact or self._keep.given
        for found in self._found(keep, self._keep.chosen if exact else None):
            self.about = found = noted_size(found)
            self.count(found.counts, found.firsts)
            yield found

    def close(self, empty: bool) -> None:
        """After the last part. EscalaError where no record is kept, or no job is left (`empty`)."""
        if self._keep.given:
            self._keep.close()
        self.count(self._keep.counts, {})
        if empty:
            raise nothing_left(self.path, remarks(self.cleaning, self.firsts, self.rules))

    def count(self, counts: Mapping[str, int], firsts: Mapping[str, str]) -> None:
        """What a rule touched in a part."""
        for rule, count in counts.items():
            self.cleaning[rule] = 1 if rule == ABSURD_SIZE else self.cleaning.get(rule, 0) + count
        self.firsts = {**firsts, **self.firsts}
        if self._strict:
            refuse_touched(self.path, self.cleaning, self.firsts, self.rules)

    def _found(self, keep: Keep, look: Keep | None) -> Iterator[Found]:
        how = self._options
        cores, submission = how.get("cores", "allocated"), how.get("submission", "submit")
        if self.kind == "swf":
            from escala.workload import swf

            yield from map(swf.found_of, swf.swf_pieces(self.path, cores, keep, look))
        elif self.kind == "pbs":
            from escala.workload.pbs import NOTE, pbs_pieces

            yield from (Found(frame, {}, True, NOTE) for frame in pbs_pieces(self.path, cores, submission, keep))
        elif self.kind == "slurm":
            from escala.workload.slurm import NOTE, slurm_pieces

            for log in slurm_pieces(self.path, how.get("columns"), cores, submission, keep):
                yield Found(log.frame, log.counts, True, NOTE, firsts=log.firsts)
        elif self.kind == "oar":
            from escala.workload.oar import NOTE, oar_pieces

            for jobs in oar_pieces(self.path, cores, submission, keep):
                yield Found(jobs.frame, jobs.counts, True, NOTE, firsts=jobs.firsts)
        elif self.kind == "google":
            from escala.workload import google

            for events in google.google_pieces(self.path, keep, self._jobs, self._scratch):
                yield google.found_of(events)
        elif self.kind == "batsim":
            from escala.workload.batsim import found_of
            from escala.workload.batsim_pieces import batsim_pieces

            yield from map(found_of, batsim_pieces(self.path, how.get("speed"), keep, self._jobs))
        else:
            from escala.workload import tabular

            given = how.get("columns"), how.get("units"), how.get("unit"), how.get("select")
            yield from map(tabular.found_of, tabular.table_pieces(self.path, *given, keep, self._jobs))


def _none(frame: pl.DataFrame, origin_s: float | None = None) -> pl.DataFrame:
    return frame.head(0)
