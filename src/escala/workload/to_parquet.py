"""Workloads as tables in Parquet, whole, or piece by piece of a log that need not fit into memory."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.parquet import KEPT
from escala.reading import guarded
from escala.workload.clean import clean
from escala.workload.columns import column_types
from escala.workload.ignored import DROPPED, Tally
from escala.workload.known_ids import KnownIds
from escala.workload.ordering import AT, PLACE, cut, sorted_on_disk
from escala.workload.pieces import PIECE, placed
from escala.workload.records import OPTIONS, Records
from escala.workload.shapes import BEGIN
from escala.workload.slurm import together
from escala.workload.table import Workload
from escala.workload.transform import of_whole

__all__ = ["OPTIONS", "Converted", "convert", "write_parquet"]

CLOCKED = ("submit_s", BEGIN)
"""Columns that are moments on the clock of the workload."""


@dataclass(frozen=True)
class Converted:
    """A log that was written as a table: jobs, the time between its first and last submission, and what a `Workload`
    says of itself."""

    jobs: int
    span_s: float
    origin_s: float
    max_cores: int | None
    cleaning: dict[str, int]
    first_cleaned: dict[str, str]
    ignored: dict[str, dict[str, int]]


def write_parquet(workload: Workload, path: str | Path) -> None:
    """Write the table of jobs, and beside it, as metadata of the file, when the log began (`origin_s`), how large its
    machine was (`max_cores`) and what no replay looks at (`ignored`), which `read_workload` takes from there."""
    workload.jobs.write_parquet(path, metadata=_kept(workload.origin_s, workload.max_cores, workload.ignored))


def convert(
    path: str | Path,
    out: Path,
    *,
    first: int | None = None,
    hash_names: bool = False,
    jobs: int = PIECE,
    **options: Any,
) -> Converted:
    """Write the table that `write_parquet` would write of `read_workload(path, **options)`, with some `jobs` jobs in
    memory at a time.

    path: any log that `read_workload` reads. options: `OPTIONS`. first: only so many jobs, all of which are read and
    counted. hash_names: see `Workload.hash_names`. Temporary files take a few times the room of the table. EscalaError
    for other formats, and for work in flops.
    """
    where = Path(path)
    with guarded(where, "a log of jobs"), TemporaryDirectory(prefix="escala-convert-") as folder:
        records, key = Records(where, jobs, True, options, Path(folder)), secrets.token_hex() if hash_names else None
        log = _Log(records, Path(folder), jobs, key)
        return log.write(out, first)


def _kept(origin_s: float, max_cores: int | None, ignored: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    known = {"max_cores": max_cores, "ignored": ignored}
    return {KEPT: json.dumps({"origin_s": origin_s, **{name: value for name, value in known.items() if value}})}


class _Log:
    """The jobs of a log in tables of a folder, and what only all of them tell."""

    def __init__(self, records: Records, folder: Path, jobs: int, key: str | None) -> None:
        self._records, self._folder, self._rows, self._key = records, folder, jobs, key
        self._ids, self._tally = KnownIds(), Tally()
        self._jobs = 0
        self._spans: list[tuple[float, float]] = []  # first and last submission of each table
        self._columns: set[str] = set()

    def write(self, out: Path, first: int | None) -> Converted:
        """Clean the records in the order of the file, as `read_workload` does; sort the tables where they are in
        another order."""
        for frame in self._in_order():
            self._take(frame)
        self._records.close(empty=not self._jobs)
        tables = sorted((self._folder / "jobs").iterdir())
        if any(before[1] > after[0] for before, after in zip(self._spans, self._spans[1:], strict=False)):
            tables = self._sorted(tables)
        about, begin = self._records.about, min(low for low, _ in self._spans)
        assert about is not None
        shift = begin if about.shift else 0.0
        table = pl.concat(self._plain(table, shift) for table in tables)
        table = table if first is None else table.head(first)
        origin = about.origin_s(begin) + shift
        ignored = self._tally.ignored(about)
        ignored = of_whole(ignored) if first is not None and first < self._jobs else ignored
        table.sink_parquet(out, metadata=_kept(origin, about.max_cores, ignored))
        jobs, low, high = (
            pl.scan_parquet(out)
            .select(pl.len(), low=pl.col("submit_s").min(), high=pl.col("submit_s").max())
            .collect()
            .row(0)
        )
        records = self._records
        return Converted(jobs, high - low, origin, about.max_cores, records.cleaning, records.firsts, ignored)

    def _in_order(self) -> Iterator[pl.DataFrame]:
        """Records for `clean` in the order of the file."""
        if self._records.begin() != "slurm":
            yield from (found.frame for found in self._records)
            return
        at_once, by_place = self._made("instants"), self._made("places")
        whole = cut(sorted_on_disk(placed(self._numbered()), at_once, self._rows), self._rows)
        frames = (joined.rename({PLACE: AT}) for joined in self._together(whole))
        yield from (frame.drop(AT) for frame in sorted_on_disk(frames, by_place, self._rows))

    def _numbered(self) -> Iterator[pl.DataFrame]:
        count = 0
        for found in self._records:
            height = found.frame.height
            yield found.frame.with_columns(pl.int_range(count, count + height).cast(pl.Float64).alias(PLACE))
            count += height

    def _together(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for frame in frames:
            log = together(frame.drop(AT))
            self._records.count(log.counts, log.firsts)
            yield log.frame

    def _take(self, frame: pl.DataFrame) -> None:
        """Records as the next table of jobs, sorted, on the clock of the file."""
        cleaned = clean(frame, self._records.rules, self._ids.earlier)
        self._records.count(cleaned.counts, cleaned.firsts)
        if cleaned.jobs.is_empty():
            return
        self._tally.note(cleaned.jobs)
        log = Workload.from_jobs(cleaned.jobs.drop(name for name in DROPPED if name in cleaned.jobs.columns))
        if log.needs_speed():
            batsim = self._records.kind == "batsim"
            way = "the flop/s of a core, --speed 1e9" if batsim else "a column runtime_s in their place"
            raise EscalaError(f"gives work in flops and no run times: give {way}")
        jobs = (log if self._key is None else log.hash_names(self._key)).jobs
        self._spans.append((float(jobs["submit_s"][0]), float(jobs["submit_s"][-1])))
        self._columns.update(jobs.columns)
        jobs.write_parquet(self._made("jobs") / f"{len(self._spans):08d}.parquet")
        self._jobs += len(jobs)

    def _sorted(self, tables: list[Path]) -> list[Path]:
        """Tables in the order of submission; jobs of one instant stay in the order of the file."""
        frames = (pl.read_parquet(table).with_columns(pl.col("submit_s").alias(AT)) for table in tables)
        made = list[Path]()
        for frame in sorted_on_disk(frames, self._made("runs"), self._rows):
            made.append(self._made("sorted") / f"{len(made):08d}.parquet")
            frame.drop(AT).write_parquet(made[-1])
        return made

    def _plain(self, table: Path, shift: float) -> pl.LazyFrame:
        """The columns that the whole log has, in their order; `shift` becomes time 0."""
        frame = pl.scan_parquet(table)
        there = frame.collect_schema().names()
        if "limited" in self._columns:  # where a table does not tell it, its jobs are
            frame = frame.with_columns(
                limited=pl.col("limited").fill_null(True) if "limited" in there else pl.lit(True)
            )
        if shift:
            frame = frame.with_columns(pl.col(name) - shift for name in CLOCKED if name in there)
        return frame.select(list(column_types(self._columns - set(self._tally.said_nothing()))))

    def _made(self, name: str) -> Path:
        (self._folder / name).mkdir(exist_ok=True)
        return self._folder / name
