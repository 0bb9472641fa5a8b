"""A log read in pieces: for logs that do not fit into memory. SWF, and tables in Parquet with Escala's own columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.errors import EscalaError
from escala.parquet import refuse_damaged_file
from escala.reading import file_name, guarded
from escala.workload.clean import CleaningRules, clean
from escala.workload.layouts import ESCALA
from escala.workload.shapes import clocked
from escala.workload.swf import note_of, origin, swf_pieces
from escala.workload.table import Workload
from escala.workload.tabular import records

PIECE = 100_000  # jobs, about
NEEDED = ("submit_s", "runtime_s", "cores")


def read_pieces(path: str | Path, jobs: int = PIECE, rules: CleaningRules | None = None) -> Iterator[Workload]:
    """The jobs of a log as workloads of about `jobs` jobs each, one behind the other, all on the clock that `read_workload` gives them: a
    table's own, and for SWF that whose 0 is the first submission. What one instant submits stays together. `Workload.cleaning` counts what
    was cleaned in each.

    EscalaError where the log is of another format, or not in the order of submission: a stream sees a piece at a time.
    """
    from escala.workload.read import detect

    where = Path(path)
    with guarded(where, "a log of jobs"):
        kind, header = detect(where), dict[str, list[str]]()
        if kind not in ("swf", "parquet"):
            raise EscalaError(f"{where}: is read as {kind}; in pieces SWF and Parquet are read: escala workload convert writes both")
        frames = swf_pieces(where, header) if kind == "swf" else _tables(where, jobs)
        rest, first, emitted, counts = pl.DataFrame(), None, -np.inf, dict[str, int]()
        for frame in frames:
            cleaned = clean(frame, rules or CleaningRules())
            counts = {name: counts.get(name, 0) + cleaned.counts.get(name, 0) for name in {**counts, **cleaned.counts}}
            rest = pl.concat([rest, cleaned.jobs], how="diagonal")
            if rest.height <= jobs:
                continue
            rest = rest.sort("submit_s", maintain_order=True)
            first = first if first is not None else float(rest["submit_s"][0]) if kind == "swf" else 0.0
            while (ready := _whole_instants(rest["submit_s"], jobs)) > 0:
                yield _piece(where, rest.head(ready), first, emitted, header, counts, note_of(header) if kind == "swf" else ESCALA.name)
                emitted, counts, rest = float(rest["submit_s"][ready - 1]), {}, rest.tail(rest.height - ready)
        if rest.height:
            rest = rest.sort("submit_s", maintain_order=True)
            first = first if first is not None else float(rest["submit_s"][0]) if kind == "swf" else 0.0
            yield _piece(where, rest, first, emitted, header, counts, note_of(header) if kind == "swf" else ESCALA.name)


def _whole_instants(submit: pl.Series, jobs: int) -> int:
    """How many of the first jobs, about `jobs`, make a piece: all that an instant submits; 0: more must be read first."""
    if len(submit) <= jobs:
        return 0
    before = int(submit.search_sorted(submit[jobs], side="left"))
    ready = before if before > 0 else int(submit.search_sorted(submit[jobs], side="right"))
    return ready if ready < len(submit) else 0


def _tables(path: Path, jobs: int) -> Iterator[pl.DataFrame]:
    """A table in Parquet, so many rows at a time."""
    refuse_damaged_file(path, jobs)
    scan = pl.scan_parquet(path)
    names = scan.collect_schema().names()
    if missing := [name for name in NEEDED if name not in names]:
        raise EscalaError(f"{path}: has no column {missing[0]}: in pieces a table needs the columns {', '.join(NEEDED)}, times in seconds")
    layout = ESCALA.of(names)
    rows = scan.select(pl.len()).collect().item()
    for at in range(0, rows, jobs):
        frame = records(scan.select(layout.columns.values()).slice(at, jobs).collect(), layout, {}, None, path)
        numbers = {} if "job_id" in layout.columns else {"job_id": pl.int_range(at + 1, at + 1 + frame.height).cast(pl.String)}
        yield frame.with_columns(**numbers)


def _piece(path: Path, jobs: pl.DataFrame, first_s: float, emitted: float, header: Any, counts: dict[str, int], note: str) -> Workload:
    """One piece, on the clock of the log."""
    if float(jobs["submit_s"][0]) <= emitted:
        raise EscalaError(
            f"{path}: job {jobs['job_id'][0]!r} is not submitted after the jobs of an earlier piece: sort the log by submission first "
            "(escala workload convert), or read it whole"
        )
    from escala.workload.read import stem

    if "limited" in jobs.columns:
        jobs = jobs.with_columns(pl.col("limited").fill_null(True))
    placed, own = jobs.with_columns(clocked(jobs) - first_s), not header and first_s == 0.0
    return Workload.from_jobs(
        placed,
        name=stem(path),
        source=f"{file_name(path)}: {note}",
        origin_s=0.0 if own else origin(header, first_s) + first_s,
        cleaning=counts,
    )
