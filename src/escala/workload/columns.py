"""Rows or columns of jobs as a table in Escala's types: defaults added, nothing lost in a cast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.workload.shapes import SHAPES, with_cores

SCHEMA: dict[str, pl.DataType] = {
    "job_id": pl.String(),  # as in the log; unique
    "submit_s": pl.Float64(),  # submission, s
    # actual runtime, s, > 0 on a clock of microseconds; NaN where `flops` is given and no speed is known yet
    "runtime_s": pl.Float64(),
    "walltime_s": pl.Float64(),  # requested time, s, > 0; NaN where `flops` is given and the log has no request
    "cores": pl.Int64(),  # requested cores, >= 1
    "user": pl.String(),
    "load": pl.Float64(),  # how hard a core works while computing, 0..1
    "single_node": pl.Boolean(),  # True: all demands on one node
    "status": pl.String(),  # one of STATUSES, or null
    "wait_s": pl.Float64(),  # the wait that the log recorded, s, >= 0, or null
    "queue": pl.String(),
}


NAMED = ("group", "account", "partition", "qos", "job_name", "executable")
"""Optional columns of names that are known when a job is submitted; predictions (`escala.prediction`) go by them."""


HOSTS, MEASURED = "hosts", "measured_joules"


OPTIONAL: dict[str, pl.DataType] = {
    "flops": pl.Float64(),  # work of one core, flop, or null
    # False: no limit is known, the job runs to its end; without the column every job has its walltime as limit
    "limited": pl.Boolean(),
    **dict.fromkeys(NAMED, pl.String()),
    **SHAPES,
    # where the log ran it, a host list; one that stands there n times gave n shares; no replay looks at it
    HOSTS: pl.String(),
    MEASURED: pl.Float64(),  # what its nodes drew while it ran, J, > 0, as the log has it; no replay looks at it
}


ESTIMATE = "estimate_"
"""How the names of columns begin that hold a length expected of each job, s, > 0: for the option `estimate`."""


REQUIRED = ("submit_s", "runtime_s", "cores")


Columns = Mapping[str, Any]  # column -> list, array or series


def _frame(jobs: pl.DataFrame | Columns | Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows or columns as a data frame."""
    if isinstance(jobs, pl.DataFrame):
        return jobs
    try:
        if isinstance(jobs, Mapping):
            columns = dict(jobs)
        else:
            rows = [dict(row) for row in jobs]
            columns = {
                name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)
            }
        return pl.DataFrame({name: _series(name, values) for name, values in columns.items()})
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise EscalaError(
            f"jobs are not a table ({reason}): give a list of dicts, or a dict of columns of one length"
        ) from error


def _series(name: str, values: Any) -> pl.Series:
    """One column; a list that mixes whole and fractional numbers is one of floats."""
    if (
        SCHEMA.get(name) == pl.Float64()
        and isinstance(values, list | tuple)
        and any(isinstance(value, float) for value in values)
    ):
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64())
    if name == "job_id" and isinstance(values, list | tuple | range):
        return pl.Series(name, [str(value) for value in values], dtype=pl.String())
    return pl.Series(name, values)


def _completed(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Default columns added; and how many jobs had a null walltime."""
    frame = with_cores(frame)
    have = set(frame.columns)
    missing = [name for name in REQUIRED if name not in have and not (name == "runtime_s" and "flops" in have)]
    if missing:
        raise EscalaError(
            f"jobs lack the column {missing[0]!r}: needed are submit_s, cores, and runtime_s or flops; there are "
            f"{sorted(have)}"
        )
    frame = _numeric(frame)
    runtime = pl.col("runtime_s") if "runtime_s" in have else pl.lit(math.nan)
    if "flops" in have:
        runtime = pl.when(pl.col("flops").is_not_null()).then(pl.lit(math.nan)).otherwise(runtime)
    frame = frame.with_columns(runtime_s=runtime)
    unasked = frame["walltime_s"].null_count() if "walltime_s" in have else 0
    if unasked or "walltime_s" not in have:
        limited = pl.col("limited") if "limited" in have else pl.lit(True)
        frame = frame.with_columns(
            limited=limited & pl.col("walltime_s").is_not_null() if "walltime_s" in have else pl.lit(False)
        )
    walltime = pl.col("walltime_s") if "walltime_s" in have else pl.lit(None, dtype=pl.Float64)
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).cast(pl.String)
    frame = frame.with_columns(
        walltime_s=walltime.fill_null(pl.col("runtime_s")),
        job_id=pl.col("job_id").cast(pl.String) if "job_id" in have else number,
        load=pl.col("load") if "load" in have else pl.lit(1.0),
        single_node=pl.col("single_node") if "single_node" in have else pl.lit(False),
    )
    absent = [
        pl.lit(None, dtype=SCHEMA[name]).alias(name)
        for name in ("user", "status", "wait_s", "queue")
        if name not in have
    ]
    return frame.with_columns(absent), unasked


def _numeric(frame: pl.DataFrame) -> pl.DataFrame:
    """Times as floats, before anything is reckoned with them."""
    times = [name for name in ("runtime_s", "walltime_s", "flops") if name in frame.columns]
    return frame.with_columns([_cast(frame[name], pl.Float64()) for name in times])


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns in the order and the types of the schema; unknown or missing columns and lossy casts are errors."""
    if not isinstance(frame, pl.DataFrame):
        raise EscalaError(
            f"a workload needs a polars DataFrame, not {type(frame).__name__}: use Workload.from_jobs(...)"
        )
    extra = [
        name
        for name in frame.columns
        if name not in (*SCHEMA, *OPTIONAL) and not name.startswith((ESTIMATE, "demand_"))
    ]
    if extra:
        known = ", ".join((*SCHEMA, *OPTIONAL))
        raise EscalaError(
            f"workload: unknown column {extra[0]!r}: known are {known}, {ESTIMATE}<name> and demand_<kind>"
        )
    missing = [name for name in SCHEMA if name not in frame.columns]
    if missing:
        raise EscalaError(
            f"workload: column {missing[0]!r} is missing: use Workload.from_jobs(...), which fills the optional ones"
        )
    return frame.select([_cast(frame[name], dtype) for name, dtype in column_types(frame.columns).items()])


def column_types(columns: Iterable[str]) -> dict[str, pl.DataType]:
    """The columns of a workload that has these optional ones, in their order."""
    further = sorted(columns)
    wanted: dict[str, pl.DataType] = {**SCHEMA, **{name: dtype for name, dtype in OPTIONAL.items() if name in further}}
    wanted |= {name: pl.Float64() for name in further if name.startswith(ESTIMATE)}
    return wanted | {name: pl.Int64() for name in further if name.startswith("demand_")}


def _cast(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The column in its type, without loss."""
    if column.dtype == dtype:
        return column
    fractional = column.dtype.is_float() and dtype == pl.Int64()
    if fractional and not bool((column.drop_nulls() % 1 == 0).all()):
        raise EscalaError(f"workload: column {column.name!r} has fractions or NaN: whole numbers are needed")
    try:
        if (
            (column.dtype == pl.String()) != (dtype == pl.String())
            and column.null_count() < len(column)
            and not column.dtype.is_integer()
        ):
            raise TypeError
        return column.cast(dtype)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise EscalaError(
            f"workload: column {column.name!r} is {column.dtype}, needed is {dtype}: convert it first"
        ) from error
