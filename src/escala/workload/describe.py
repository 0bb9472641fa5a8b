"""What a workload is like: sizes, times, use of the machine, and bursts of submissions.

The analysis is that of table 2 and figure 11 of R. B. Casagrande's dissertation (2020): a submission is *sequential* if
it comes less than 5 min after the previous one; days are grouped by the share of sequential submissions among those
that have a predecessor on that day (this reading gives the printed share of days where all are sequential; with the
day's first job counted there could be none); days with fewer than two jobs are dropped.
"""

from __future__ import annotations

import datetime
import math
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.workload.table import Workload

DAY_S = 86400.0
SEQUENTIAL_S = 300.0
GROUPS = {"#1 [0, 25) %": 0.0, "#2 [25, 50) %": 0.25, "#3 [50, 75) %": 0.5, "#4 [75, 100) %": 0.75, "#5 100 %": 1.0}
"""Group of days -> least share of sequential submissions."""
QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}
YEAR_S = 365 * DAY_S

Row = tuple[str, Any, str]


class HasCores(Protocol):
    """A machine, such as a Platform."""

    @property
    def total_cores(self) -> int:
        """Number of cores."""


class Description(dict[str, Any]):
    """The figures as a plain dict of numbers, texts and dicts (JSON-able; None where a figure does not exist), and
    `rows()` to print them."""

    def rows(self) -> list[Row]:
        """(label, value, unit) of each figure, in reading order; figures that do not exist are left out."""
        rows: list[Row] = [(label, self[key], unit) for key, (label, unit) in _LABELS.items()]
        rows += [(f"days in group {group}", days, "days") for group, days in self["day_groups"].items()]
        for year, shares in self["years"].items():
            rows += [(f"{year}: {name}", value, "" if name == "jobs" else "share") for name, value in shares.items()]
        for quantity, quantiles in self["quantiles"].items():
            unit = _QUANTITY_UNITS[quantity]
            rows += [
                (f"{quantity.removesuffix('_s').replace('_', ' ')} {name}", value, unit)
                for name, value in quantiles.items()
            ]
        return [row for row in rows if row[1] is not None]


_LABELS = {
    "name": ("workload", ""),
    "source": ("source", ""),
    "jobs": ("jobs", ""),
    "users": ("users", ""),
    "cores": ("cores of the machine", ""),
    "largest_job": ("largest job", "cores"),
    "first": ("first submission", "UTC"),
    "last": ("last submission", "UTC"),
    "period_days": ("period", "days"),
    "jobs_per_day": ("jobs a day", ""),
    "utilisation": ("utilisation", "share"),
    "sequential_share": ("sequential submissions (< 5 min after the previous)", "share"),
    "error_share": ("ended in error", "share"),
    "at_walltime_share": ("reached the requested time", "share"),
    "one_core_share": ("jobs of one core", "share"),
    "days": ("days with at least two jobs", "days"),
    "days_dropped": ("days with a single job", "days"),
}
_QUANTITY_UNITS = {
    "runtime_s": "s",
    "walltime_s": "s",
    "cores": "",
    "runtime_over_walltime": "",
    "interarrival_s": "s",
    "wait_s": "s",
}


def describe(workload: Workload, platform: HasCores | None = None) -> Description:
    """The figures of a workload, on the machine `platform` or else on that of `workload.max_cores`.

    A workload in flops gets the speed of `platform`. period_days: from the first submission to the last end that the
    log knows (submission + wait, if logged, + run time). utilisation: sum(cores x run time) / (cores of the machine x
    period), run times cut at the walltime.
    error_share: share of the jobs with a known status that is not COMPLETED. years: calendar years of the submissions
    (UTC), or year 1, 2, ... where the log has no absolute time. at_walltime_share and the quantiles of requests: of the
    jobs with a request. days: split at midnight UTC. Shares are fractions.
    """
    speed = getattr(platform, "speed", None)
    if workload.needs_speed() and speed is not None:
        workload = workload.at_speed(speed)
    if workload.needs_speed():
        about = f"workload {workload.name!r} ({workload.source})" if workload.source else f"workload {workload.name!r}"
        raise EscalaError(
            f"{about} holds work in flops and no run times; give the flop/s of a core, workload.at_speed(1e9) "
            "(--speed 1e9)"
        )
    jobs = workload.jobs
    asked = jobs.filter("limited") if "limited" in jobs.columns else jobs
    submit = jobs["submit_s"].to_numpy()
    run = np.minimum(jobs["runtime_s"].to_numpy(), jobs["walltime_s"].to_numpy())
    gap = np.diff(submit)
    cores = platform.total_cores if platform is not None else workload.max_cores
    end = submit + jobs["wait_s"].fill_null(0.0).to_numpy() + run
    period_s = float(end.max() - submit[0]) if len(submit) else 0.0
    return Description(
        name=workload.name,
        source=workload.source or None,
        jobs=len(submit),
        users=jobs["user"].drop_nulls().n_unique() or None,
        cores=cores,
        largest_job=int(jobs["cores"].to_numpy().max()) if len(submit) else None,
        first=_date(workload, 0),
        last=_date(workload, -1),
        period_days=period_s / DAY_S,
        jobs_per_day=len(submit) / (period_s / DAY_S) if period_s > 0 else None,
        utilisation=float(jobs["cores"].to_numpy() @ run) / (cores * period_s) if cores and period_s > 0 else None,
        sequential_share=_mean(gap < SEQUENTIAL_S),
        error_share=_error_share(jobs["status"]),
        at_walltime_share=_mean(asked["runtime_s"].to_numpy() >= asked["walltime_s"].to_numpy()),
        one_core_share=_mean(jobs["cores"].to_numpy() == 1),
        **_days(workload, submit, gap),
        years=_years(workload, submit, gap),
        quantiles={
            "runtime_s": _quantiles(jobs["runtime_s"]),
            "walltime_s": _quantiles(asked["walltime_s"]),
            "cores": _quantiles(jobs["cores"]),
            "runtime_over_walltime": _quantiles(asked["runtime_s"] / asked["walltime_s"]),
            "interarrival_s": _quantiles(pl.Series(gap)),
            "wait_s": _quantiles(jobs["wait_s"].drop_nulls()),
        },
    )


def day_group(day: Workload) -> int:
    """Group of a day (a workload of one day), 1 to 5, by the share of sequential submissions among its jobs but the
    first: [0, 25), [25, 50), [50, 75), [75, 100) and 100 % (R3, section 4.2). EscalaError for a day with fewer than two
    jobs, which has no group."""
    if len(day) < 2:
        raise EscalaError(f"workload {day.name!r}: has {len(day)} jobs; a day needs two to have a group")
    return int(_group(float(np.mean(np.diff(day.jobs["submit_s"].to_numpy()) < SEQUENTIAL_S)))) + 1


def _group(share: Any) -> Any:
    """Place among GROUPS."""
    return np.searchsorted(list(GROUPS.values()), share, side="right") - 1


def _days(workload: Workload, submit: NDArray[np.float64], gap: NDArray[np.float64]) -> dict[str, Any]:
    """Days with at least two jobs, in groups by their share of sequential submissions; days with one."""
    day = np.floor((submit + workload.origin_s % DAY_S) / DAY_S)
    _, index, counts = np.unique(day, return_inverse=True, return_counts=True)
    inside = np.diff(day) == 0
    sequential = np.bincount(index[1:], weights=inside & (gap < SEQUENTIAL_S), minlength=len(counts))[counts > 1]
    share = sequential / (counts[counts > 1] - 1)
    return {
        "days": int((counts > 1).sum()),
        "days_dropped": int((counts == 1).sum()),
        "day_groups": dict(zip(GROUPS, np.bincount(_group(share), minlength=len(GROUPS)).tolist())),
    }


def _years(workload: Workload, submit: NDArray[np.float64], gap: NDArray[np.float64]) -> dict[str, dict[str, Any]]:
    """Year -> jobs, sequential share, share that ended in error, and that share of the sequential submissions and of
    the others.

    The share of sequential submissions is over the jobs that have a predecessor (all but the log's first), here as in
    the whole: the shares of the years, weighted by those jobs, give the share of the log.
    """
    if workload.origin_s > 0:
        years = pl.from_epoch(pl.Series(submit + workload.origin_s).cast(pl.Int64)).dt.year().cast(pl.String)
    else:
        years = pl.Series([f"year {1 + int(at // YEAR_S)}" for at in submit], dtype=pl.String)
    # no value: no predecessor
    sequential = pl.Series([None, *(gap < SEQUENTIAL_S).tolist()][: len(submit)], dtype=pl.Boolean)
    table: dict[str, dict[str, Any]] = {}
    for year in years.unique(maintain_order=True):
        mine = years == year
        of = {"error": mine, "error_of_sequential": mine & sequential, "error_of_others": mine & ~sequential}
        errors = {name: _error_share(workload.jobs["status"].filter(jobs)) for name, jobs in of.items()}
        table[year] = {"jobs": int(mine.sum()), "sequential": _number(sequential.filter(mine).mean()), **errors}
    return table


def _error_share(status: pl.Series) -> float | None:
    """Share of the known statuses that is not COMPLETED."""
    known = status.drop_nulls()
    return float((known != "COMPLETED").mean()) if len(known) else None  # type: ignore[arg-type]


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None


def _quantiles(values: pl.Series) -> dict[str, float | None]:
    """Mean and quantiles (nearest value below: a figure that some job has)."""
    found: dict[str, float | None] = {"mean": _number(values.mean())}
    return found | {name: _number(values.quantile(q, interpolation="lower")) for name, q in QUANTILES.items()}


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _date(workload: Workload, row: int) -> str | None:
    """Date and time of a submission, UTC, or None where the log has no absolute time."""
    if not len(workload) or workload.origin_s <= 0:
        return None
    at = workload.origin_s + float(workload.jobs["submit_s"][row])
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
