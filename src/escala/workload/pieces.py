"""A log read in pieces: for logs that do not fit into memory, by the readers that read them whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from escala.reading import file_name, guarded
from escala.workload.clean import clean
from escala.workload.columns import SCHEMA
from escala.workload.ignored import AMOUNTS, LABELS, Tally
from escala.workload.known_ids import KnownIds
from escala.workload.ordering import AT, cut, sorted_on_disk
from escala.workload.read import stem
from escala.workload.records import OPTIONS, Records
from escala.workload.shapes import BEGIN, MOST_S, OF_NODES, clocked
from escala.workload.slurm import together
from escala.workload.table import Workload

__all__ = ["OPTIONS", "PIECE", "Pieces", "placed"]

PIECE = 100_000  # jobs, about
BY_END = ("slurm", "pbs", "oar")
"""Formats that list jobs as they end, or in any order."""
COUNTED = tuple(name for name in (*AMOUNTS, *LABELS) if name not in SCHEMA)
"""Columns that are counted, and then dropped."""
UNSEEN = {"dependency": "waits_for", "priority": "rank"}
"""Columns that the scheduler slurm alone looks at, which takes no stream, and as which of `COUNTED` they count."""


class Pieces:
    """The jobs of a log as workloads of some `jobs` jobs each, one behind the other, once, as `read_workload` reads
    them with these options (`OPTIONS`), on the same clock. What one instant submits stays together. After the last,
    `cleaning` and `firsts` tell of all.

    keeps: which of `columns.NAMED` stay. on_disk: sort the records by way of a temporary folder, as is always done with
    formats that are in another order: else a log that is not nearly in the order of submission is
    `ordering.OutOfOrder`. scratch: where that folder is made; by default where temporary files are. EscalaError for
    other formats.
    """

    def __init__(
        self,
        path: str | Path,
        jobs: int = PIECE,
        *,
        keeps: Collection[str] = (),
        on_disk: bool = False,
        scratch: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.path, self.jobs, self.keeps, self.on_disk, self.scratch = Path(path), jobs, keeps, on_disk, scratch
        self._records = Records(self.path, jobs, False, options, None if scratch is None else Path(scratch))
        self._first_s, self._tally = 0.0, Tally()

    @property
    def cleaning(self) -> dict[str, int]:
        """Rule -> number of records touched until now."""
        return self._records.cleaning

    @property
    def firsts(self) -> dict[str, str]:
        """Rule -> the first of them, in words."""
        return self._records.firsts

    @property
    def ignored(self) -> dict[str, dict[str, int]]:
        """What no replay looks at, as of a workload."""
        return self._tally.ignored(self._records.about)

    @property
    def read_as(self) -> dict[str, Any]:
        """How the log was read, as of a workload."""
        return self._records.read_as

    def __iter__(self) -> Iterator[Workload]:
        with guarded(self.path, "a log of jobs"):
            kind, ids = self._records.begin(), KnownIds()  # which go with the last piece
            sort = self.on_disk or kind in BY_END
            with TemporaryDirectory(prefix="escala-sort-", dir=self.scratch) if sort else nullcontext("") as folder:
                frames = placed(found.frame if kind == "slurm" else self._seen(found.frame) for found in self._records)
                none = True
                for frame in cut(sorted_on_disk(frames, Path(folder), self.jobs) if sort else frames, self.jobs):
                    piece = self._workload(frame.drop(AT), kind, ids, none)
                    if piece is not None:
                        none = False
                        yield piece
            self._records.close(none)

    def _workload(self, frame: pl.DataFrame, kind: str, ids: KnownIds, is_first: bool) -> Workload | None:
        """Records of whole instants as jobs on the clock of the log; None where none is left."""
        if kind == "slurm":
            log = together(frame)
            self._records.count(log.counts, log.firsts)
            frame = self._seen(log.frame)
        cleaned = clean(frame, self._records.rules, ids.earlier)
        self._records.count(cleaned.counts, cleaned.firsts)
        about = self._records.about
        if cleaned.jobs.is_empty() or about is None:
            return None
        if is_first:
            self._first_s = float(cleaned.jobs["submit_s"].min())  # type: ignore[arg-type]
        self._tally.note(cleaned.jobs)
        origin, first = about.origin_s(self._first_s), self._first_s if about.shift else 0.0
        jobs = cleaned.jobs.drop((name for name in COUNTED if name not in self.keeps), strict=False)
        jobs = jobs.with_columns(clocked(jobs) - first)
        source = f"{file_name(self.path)}: {about.note}"
        return Workload.from_jobs(
            jobs, name=stem(self.path), source=source, origin_s=origin + first, max_cores=about.max_cores
        )

    def _seen(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns at which a stream looks, and those that it counts alone."""
        known = (*SCHEMA, "limited", "flops", BEGIN, *OF_NODES, "line", *COUNTED, *self.keeps)
        frame = frame.with_columns(
            pl.col(name).cast(pl.String).alias(counted)
            for name, counted in UNSEEN.items()
            if name in frame.columns and counted not in frame.columns
        )
        return frame.select(name for name in frame.columns if name in known or name.startswith("demand_"))


def placed(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Records with `AT`."""
    submit = pl.col("submit_s").cast(pl.Float64)
    at = pl.when(submit.is_between(0.0, MOST_S)).then(submit).forward_fill().backward_fill().fill_null(0.0).alias(AT)
    return (frame.with_columns(at) for frame in frames)
