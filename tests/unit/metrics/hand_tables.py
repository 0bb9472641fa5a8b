"""The columns of a Result's jobs table, and such tables from a few numbers."""

from __future__ import annotations

from typing import Any

import polars as pl

JOBS_SCHEMA = {
    "job_id": pl.String,
    "submit_s": pl.Float64,
    "start_s": pl.Float64,
    "finish_s": pl.Float64,
    "wait_s": pl.Float64,
    "cores": pl.Int64,
    "walltime_s": pl.Float64,
    "runtime_s": pl.Float64,
    "user": pl.String,
    "state": pl.String,
    "nodes": pl.String,
}


def job_table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """rows: (submit, start, finish, cores, walltime, state); the other columns follow."""
    out = []
    for i, (submit, start, finish, cores, walltime, state) in enumerate(rows):
        wait = None if start is None else start - submit
        run = None if finish is None else finish - start
        out.append((f"j{i}", submit, start, finish, wait, cores, walltime, run, "u", state, None))
    return pl.DataFrame(out, schema=JOBS_SCHEMA, orient="row")
