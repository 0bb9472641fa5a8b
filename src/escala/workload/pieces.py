"""A log read in pieces: for logs that do not fit into memory. SWF, sacct text, PBS accounting, CSV and Parquet, by the readers that read
them whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.reading import file_name, guarded, read_head
from escala.workload.clean import ABSURD_SIZE, CleaningRules, clean, remarks
from escala.workload.filters import Filters, Keep, every
from escala.workload.found import Found
from escala.workload.known_ids import KnownIds
from escala.workload.ordering import AT, cut, sorted_on_disk
from escala.workload.read import chosen_kind, noted_size, nothing_left, refuse_touched, stem
from escala.workload.shapes import BEGIN, MOST_S, clocked
from escala.workload.slurm import together
from escala.workload.table import SCHEMA, Workload

PIECE = 100_000  # jobs, about
BY_END = ("slurm", "pbs")
"""Formats that list jobs as they end, or in any order."""
FILTERS = ("partition", "user", "account", "since", "until")
OPTIONS = ("format", "columns", "units", "unit", "select", "cores", "submission", "rules", "strict", *FILTERS)
"""Of `read_workload`, what pieces take."""


class Pieces:
    """The jobs of a log as workloads of some `jobs` jobs each, one behind the other, once, as `read_workload` reads them with these options
    (`OPTIONS`), on the same clock. What one instant submits stays together. After the last, `cleaning` and `firsts` tell of all.

    on_disk: sort the records by way of a temporary folder, as is always done with formats that are in another order: else a log that is not
    nearly in the order of submission is `ordering.OutOfOrder`. scratch: where that folder is made; by default where temporary files are.
    EscalaError for other formats.
    """

    def __init__(
        self, path: str | Path, jobs: int = PIECE, *, on_disk: bool = False, scratch: str | Path | None = None, **options: Any
    ) -> None:
        for name in options:
            if name not in OPTIONS:
                raise EscalaError(f"{path}: the option {name} is not known where a log is read in pieces; known: {', '.join(OPTIONS)}")
        given = {name: value for name, value in options.items() if value is not None}
        self._ruled = {"rules": asdict(given["rules"])} if "rules" in given else {}
        self.path, self.jobs, self.on_disk, self.scratch = Path(path), jobs, on_disk, scratch
        self.rules, self.strict = given.pop("rules", None) or CleaningRules(), given.pop("strict", False)
        self._keep = Filters(**{name: given.pop(name) for name in FILTERS if name in given})
        self._format = given.pop("format", None)
        self._options: Mapping[str, Any] = given
        self.read_as: dict[str, Any] = {}
        self.cleaning: dict[str, int] = {}
        self.firsts: dict[str, str] = {}
        self._ids, self._first_s = KnownIds(), 0.0
        self._about: Found | None = None

    def __iter__(self) -> Iterator[Workload]:
        with guarded(self.path, "a log of jobs"):
            kind = chosen_kind(self.path, self._format, self._options.get("columns"), self._options)
            self.read_as = {"path": os.path.abspath(self.path), "format": kind, **self._options, **self._keep.given, **self._ruled}
            keep: Keep = every
            if self._keep.given:
                for _ in self._found(kind, self._keep.look):
                    pass
                keep = self._keep.part
            sort = self.on_disk or kind in BY_END
            with TemporaryDirectory(prefix="escala-sort-", dir=self.scratch) if sort else nullcontext("") as folder:
                frames = self._records(kind, keep)
                none = True
                for frame in cut(sorted_on_disk(frames, Path(folder), self.jobs) if sort else frames, self.jobs):
                    piece = self._workload(frame.drop(AT), kind, none)
                    if piece is not None:
                        none = False
                        yield piece
            if self._keep.given:
                self._keep.close()
            self._count(self._keep.counts, {})
            if none:
                raise nothing_left(self.path, remarks(self.cleaning, self.firsts, self.rules))

    def _records(self, kind: str, keep: Keep) -> Iterator[pl.DataFrame]:
        """The records as they stand in the file, with `AT`; what no replay looks at is left out."""
        submit = pl.col("submit_s").cast(pl.Float64)
        at = pl.when(submit.is_between(0.0, MOST_S)).then(submit).forward_fill().backward_fill().fill_null(0.0).alias(AT)
        for found in self._found(kind, keep):
            found = noted_size(found)
            self._about = self._about or found
            self._count(found.counts, found.firsts)
            frame = found.frame if kind == "slurm" else found.frame.select(_kept(found.frame))
            yield frame.with_columns(at)

    def _found(self, kind: str, keep: Keep) -> Iterator[Found]:
        """What the reader of the format makes of the parts of the file."""
        how = self._options
        cores, submission = how.get("cores", "allocated"), how.get("submission", "submit")
        if kind == "swf":
            from escala.workload.swf import found_of, swf_pieces

            yield from map(found_of, swf_pieces(self.path, cores, keep, self._keep.given != {}))
        elif kind == "pbs":
            from escala.workload.pbs import NOTE, pbs_pieces

            yield from (Found(frame, {}, True, NOTE) for frame in pbs_pieces(self.path, cores, submission, keep))
        elif kind == "slurm" and not read_head(self.path).lstrip().startswith(b"{"):
            from escala.workload.slurm import NOTE, slurm_pieces

            for log in slurm_pieces(self.path, how.get("columns"), cores, submission, keep):
                yield Found(log.frame, log.counts, True, NOTE, firsts=log.firsts)
        elif kind in ("csv", "parquet"):
            from escala.workload.tabular import table_pieces

            given = how.get("columns"), how.get("units"), how.get("unit"), how.get("select")
            for table in table_pieces(self.path, *given, keep, self.jobs):
                yield Found(table.frame, table.counts, table.shift, table.layout, firsts=table.firsts)
        else:
            raise EscalaError(
                f"{self.path}: is read as {kind}, which is read whole: write it as a table first, with as much memory as that takes "
                "(escala workload convert LOG --out NAME.parquet), and read that in pieces"
            )

    def _workload(self, frame: pl.DataFrame, kind: str, is_first: bool) -> Workload | None:
        """Records of whole instants as jobs on the clock of the log; None where none is left."""
        if kind == "slurm":
            log = together(frame)
            self._count(log.counts, log.firsts)
            frame = log.frame.select(_kept(log.frame))
        cleaned = clean(frame, self.rules, self._ids.earlier)
        self._count(cleaned.counts, cleaned.firsts)
        if self.strict:
            refuse_touched(self.path, self.cleaning, self.firsts, self.rules)
        about = self._about
        if cleaned.jobs.is_empty() or about is None:
            return None
        if is_first:
            self._first_s = float(cleaned.jobs["submit_s"].min())  # type: ignore[arg-type]
        origin, first = about.origin_s(self._first_s), self._first_s if about.shift else 0.0
        jobs = cleaned.jobs.with_columns(clocked(cleaned.jobs) - first)
        source = f"{file_name(self.path)}: {about.note}"
        return Workload.from_jobs(jobs, name=stem(self.path), source=source, origin_s=origin + first, max_cores=about.max_cores)

    def _count(self, counts: Mapping[str, int], firsts: Mapping[str, str]) -> None:
        for rule, count in counts.items():
            self.cleaning[rule] = 1 if rule == ABSURD_SIZE else self.cleaning.get(rule, 0) + count
        self.firsts = {**firsts, **self.firsts}


def _kept(frame: pl.DataFrame) -> list[str]:
    """The columns at which a stream looks."""
    known = (*SCHEMA, "limited", "flops", BEGIN, "line")
    return [name for name in frame.columns if name in known or name.startswith("demand_")]
