"""Job metrics: what a schedule did to each job, and how that is distributed.

Every function reads the `jobs` table of a Result (docs/design.md, section 3). Only jobs that ran to their end
(COMPLETED or KILLED) have a turnaround, so only these enter means; `counts` says how many there are of every other
kind, and is always printed beside them. "Runtime" is what ran, min(runtime, walltime). Notation: r submission, s start,
f finish, p runtime, q cores, w walltime; all times in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from escala.errors import EscalaError

FINISHED = ("COMPLETED", "KILLED")
BOUND_S = 10.0
"""The usual floor of the bounded slowdown, s (Feitelson and Rudolph 1998)."""
THETA = 0.5
"""The quality-of-service threshold of R3: a job is delayed once it has waited this fraction of its walltime."""

_LOOKED_AT = ("state", "submit_s", "start_s", "finish_s", "runtime_s", "walltime_s", "cores")
_WAIT = pl.col("start_s") - pl.col("submit_s")
_TURNAROUND = pl.col("finish_s") - pl.col("submit_s")
_P = pl.col("runtime_s")
_W = pl.col("walltime_s")


def require(table: pl.DataFrame, *columns: str, name: str = "jobs") -> None:
    """Raise EscalaError where a column is missing."""
    missing = [c for c in columns if c not in table.columns]
    if missing:
        raise EscalaError(
            f"the {name} table lacks the column {missing[0]!r} (it has {', '.join(table.columns)}); pass a table of a "
            "Result"
        )


def finished(jobs: pl.DataFrame) -> pl.DataFrame:
    """The rows of the jobs that ran to their end, by completion or by being killed at their walltime."""
    require(jobs, *_LOOKED_AT)
    return jobs.filter(pl.col("state").is_in(FINISHED))


def _measure(jobs: pl.DataFrame, expression: pl.Expr, name: str) -> pl.Series:
    return finished(jobs).select(expression.cast(pl.Float64).alias(name)).to_series()


def wait(jobs: pl.DataFrame) -> pl.Series:
    """s - r of each finished job, s."""
    return _measure(jobs, _WAIT, "wait_s")


def turnaround(jobs: pl.DataFrame) -> pl.Series:
    """f - r of each finished job, s. Taken from the finish, not as wait + p, so that the identity between the three can
    be checked."""
    return _measure(jobs, _TURNAROUND, "turnaround_s")


def slowdown(jobs: pl.DataFrame) -> pl.Series:
    """max((f - r) / p, 1) of each finished job."""
    return _measure(jobs, _slowdown(), "slowdown")


def bounded_slowdown(jobs: pl.DataFrame, *, bound_s: float = BOUND_S) -> pl.Series:
    """max((f - r) / max(p, bound), 1) of each finished job (Feitelson and Rudolph 1998)."""
    return _measure(jobs, _bounded(bound_s), "bounded_slowdown")


def pp_slowdown(jobs: pl.DataFrame) -> pl.Series:
    """Per-processor slowdown max((f - r) / (q p), 1) of each finished job (R3)."""
    return _measure(jobs, _per_processor(), "pp_slowdown")


def stretch(jobs: pl.DataFrame) -> pl.Series:
    """(s - r) / w of each finished job (R3)."""
    return _measure(jobs, _WAIT / _W, "stretch")


def delay(jobs: pl.DataFrame, *, theta: float = THETA) -> pl.Series:
    """wait - theta w where wait / w >= theta, else 0, of each finished job, s (R3, equation 5.1)."""
    return _measure(jobs, _delay(theta), "delay_s")


def _slowdown() -> pl.Expr:
    return (_TURNAROUND / _P).clip(lower_bound=1.0)


def _bounded(bound_s: float) -> pl.Expr:
    return (_TURNAROUND / _P.clip(lower_bound=bound_s)).clip(lower_bound=1.0)


def _per_processor() -> pl.Expr:
    return (_TURNAROUND / (_P * pl.col("cores"))).clip(lower_bound=1.0)


def _delay(theta: float) -> pl.Expr:
    return pl.when((_WAIT / _W).ge(theta)).then(_WAIT - theta * _W).otherwise(0.0)


def measures(
    jobs: pl.DataFrame, *, bound_s: float = BOUND_S, theta: float = THETA, only: Iterable[str] | None = None
) -> pl.DataFrame:
    """All measures at once: one row per finished job, in the order of the table, with `job_id` kept where the table has
    it. only: these measures alone, and no `job_id`."""
    told = {
        "wait_s": _WAIT,
        "turnaround_s": _TURNAROUND,
        "runtime_s": _P,
        "slowdown": _slowdown(),
        "bounded_slowdown": _bounded(bound_s),
        "pp_slowdown": _per_processor(),
        "stretch": _WAIT / _W,
        "delay_s": _delay(theta),
    }
    keep = [c for c in ("job_id", "user") if c in jobs.columns and only is None]
    require(jobs, *_LOOKED_AT)
    return finished(jobs.select(*keep, *_LOOKED_AT)).select(
        *keep, *(told[name].alias(name) for name in (told if only is None else only))
    )


def counts(jobs: pl.DataFrame) -> dict[str, int]:
    """How many jobs there are of each kind. `n_unfinished` = running + queued when a cut run ended."""
    require(jobs, "state")
    tally = dict(jobs.group_by("state").len().iter_rows())
    running, queued = tally.get("RUNNING", 0), tally.get("QUEUED", 0)
    return {
        "n_jobs": jobs.height,
        "n_completed": tally.get("COMPLETED", 0),
        "n_killed": tally.get("KILLED", 0),
        "n_rejected": tally.get("REJECTED", 0),
        "n_running": running,
        "n_queued": queued,
        "n_unfinished": running + queued,
    }


def makespan(jobs: pl.DataFrame) -> float:
    """max f - min r, s: from the first submission (of a job that was not rejected) to the last finish; NaN where no job
    finished."""
    require(jobs, "state", "submit_s", "finish_s")
    state = jobs["state"]
    first = jobs["submit_s"].filter(state != "REJECTED").min()
    last = jobs["finish_s"].filter((state == FINISHED[0]) | (state == FINISHED[1])).max()
    return float("nan") if first is None or last is None else float(last) - float(first)  # type: ignore[arg-type]


def distribution(values: ArrayLike | pl.Series) -> dict[str, float]:
    """Mean, standard deviation (of the population), median, 95th percentile (linear), maximum, and n. NaN without
    values."""
    x: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return {"mean": np.nan, "sd": np.nan, "median": np.nan, "p95": np.nan, "max": np.nan, "n": 0}
    median, p95 = np.percentile(x, (50.0, 95.0))
    return {
        "mean": float(x.mean()),
        "sd": float(x.std()),
        "median": float(median),
        "p95": float(p95),
        "max": float(x.max()),
        "n": int(x.size),
    }


def interarrival(jobs: pl.DataFrame) -> pl.Series:
    """Seconds between each finished job's submission and the one before it (of any job, in the order of the table);
    null for the first."""
    require(jobs, "submit_s", "state")
    gaps = jobs.with_columns(interarrival_s=pl.col("submit_s").diff())
    return gaps.filter(pl.col("state").is_in(FINISHED)).get_column("interarrival_s")


def interarrival_classes(jobs: pl.DataFrame, edges_s: Sequence[float] = (300.0, 600.0, 1800.0, 3600.0)) -> pl.Series:
    """The class of each finished job by inter-arrival time, as text like "[0, 5) min" (R3, figure 22)."""
    marks = [0.0, *edges_s]
    names = [f"[{a / 60:g}, {b / 60:g}) min" for a, b in pairwise(marks)] + [f">= {marks[-1] / 60:g} min"]
    return _classes(interarrival(jobs), edges_s, names, side="right").alias("interarrival_class")


def slowdown_classes(values: pl.Series, edges: Sequence[float] = (1.0, 5.0, 10.0)) -> pl.Series:
    """The class of each slowdown, as text "1", "(1, 5]", ... (R3, figure 25 has four such classes)."""
    names = [f"{edges[0]:g}"] + [f"({a:g}, {b:g}]" for a, b in pairwise(edges)] + [f"> {edges[-1]:g}"]
    return _classes(values, edges, names, side="left").alias("slowdown_class")


def _classes(
    values: pl.Series, edges: Sequence[float], names: Sequence[str], *, side: Literal["left", "right"]
) -> pl.Series:
    """The interval between edges that holds each value, null for null, as an Enum; an edge is in the lower class with
    side "left"."""
    place = np.searchsorted(np.asarray(edges), values.fill_null(0.0).to_numpy(), side=side)
    return pl.select(
        pl.when(values.is_not_null()).then(pl.Series(names, dtype=pl.Enum(names)).gather(place))
    ).to_series()


def by_class(values: pl.Series, classes: pl.Series) -> pl.DataFrame:
    """The distribution of the values in each class, in the order of the classes: columns class, n, share, mean, sd,
    median, p95, max.

    Rows without a class are left out; shares are of all values.
    """
    if values.len() != classes.len():
        raise EscalaError(f"{values.len()} values but {classes.len()} classes; take both from the same jobs table")
    rows = [
        {"class": str(name), "share": part.height / values.len(), **distribution(part.get_column("value"))}
        for (name,), part in pl.DataFrame({"value": values, "class": classes})
        .drop_nulls("class")
        .sort("class")
        .group_by("class", maintain_order=True)
    ]
    schema = {
        "class": pl.String,
        "n": pl.Int64,
        "share": pl.Float64,
        **dict.fromkeys(("mean", "sd", "median", "p95", "max"), pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema)


def boxes_by_class(values: pl.Series, classes: pl.Series, reach: float = 1.5) -> pl.DataFrame:
    """Quartiles of the values in each class, in the order of the classes: columns class, n, low, q1, median, q3, high,
    beyond, mean.

    low, high: least and largest value within `reach` times the distance of the quartiles (Tukey 1977); beyond: share of
    the class outside;
    mean: of the values inside. Rows without a class are left out.
    """
    if values.len() != classes.len():
        raise EscalaError(f"{values.len()} values but {classes.len()} classes; take both from the same jobs table")
    rows = []
    for (name,), part in (
        pl.DataFrame({"value": values, "class": classes})
        .drop_nulls("class")
        .sort("class")
        .group_by("class", maintain_order=True)
    ):
        column = part.get_column("value").to_numpy()
        q1, median, q3 = np.percentile(column, (25, 50, 75))
        inside = column[(column >= q1 - reach * (q3 - q1)) & (column <= q3 + reach * (q3 - q1))]
        rows.append({
            "class": str(name), "n": len(column), "low": float(inside.min()), "q1": float(q1), "median": float(median),
            "q3": float(q3),
            "high": float(inside.max()), "beyond": 1.0 - len(inside) / len(column), "mean": float(inside.mean()),
        })  # fmt: skip
    names = ("low", "q1", "median", "q3", "high", "beyond", "mean")
    return pl.DataFrame(rows, schema={"class": pl.String, "n": pl.Int64, **dict.fromkeys(names, pl.Float64)})


def size_classes(cores: NDArray[np.float64]) -> pl.Series:
    """The class of each job by its cores: 1, 2-4, 5-16, 17-64, ..."""
    power = np.ceil(np.log(np.maximum(cores, 1.0)) / np.log(4.0) - 1e-9).astype(np.int64)
    names = ["1", *(f"{4 ** (k - 1) + 1}-{4**k}" for k in range(1, int(power.max(initial=0)) + 1))]
    return pl.Series([names[k] for k in power], dtype=pl.String)
