"""Waits of a schedule in numbers: over all jobs, and week by week."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.admit import admit_jobs
from escala.kernel.clock import SECOND
from escala.metrics.jobs import BOUND_S
from escala.options import Options
from escala.platform import Platform
from escala.workload import Workload

Floats = NDArray[np.float64]
Figures = dict[str, float]
"""Each of `FIGURES` -> its value."""

FIGURES = (
    "bounded_slowdown",
    "mean_wait_s",
    "median_wait_s",
    "p95_wait_s",
    "p99_wait_s",
    "longest_wait_s",
    "area_weighted_wait_s",
)
OBJECTIVES = {
    "slowdown": "bounded_slowdown",
    "wait": "mean_wait_s",
    "area-wait": "area_weighted_wait_s",
    "p95-wait": "p95_wait_s",
}
"""What can be made small: its name on the command line -> the figure."""
PERCENTILES = {"median_wait_s": 50.0, "p95_wait_s": 95.0, "p99_wait_s": 99.0, "longest_wait_s": 100.0}


class Jobs(NamedTuple):
    """The jobs of a log that can run, in its order; arrays [jobs]."""

    row: NDArray[np.int64]  # place in the log's table
    submit_s: Floats
    runtime_s: Floats  # what ran: at most the walltime
    cores: Floats
    user: pl.Series  # null: not known
    queue: pl.Series

    def part(self, chosen: NDArray[np.bool_]) -> Jobs:
        """Those of a mask [jobs]."""
        mask = pl.Series(chosen)
        return Jobs(
            self.row[chosen],
            self.submit_s[chosen],
            self.runtime_s[chosen],
            self.cores[chosen],
            self.user.filter(mask),
            self.queue.filter(mask),
        )


def jobs_of(log: Workload, platform: Platform, options: Options) -> Jobs:
    """The jobs of a log as they run on a platform; EscalaError for jobs that can never run (unless they are to be
    dropped)."""
    admitted = admit_jobs(log, platform, options)
    order = np.argsort(admitted.rows, kind="stable")
    row = np.asarray(admitted.rows)[order]
    table = log.jobs[row]
    cores = table["cores"].to_numpy().astype(np.float64)
    return Jobs(
        row, table["submit_s"].to_numpy(), admitted.runtime_us[order] / SECOND, cores, table["user"], table["queue"]
    )


def slowdowns(jobs: Jobs, waits: Floats) -> Floats:
    """Bounded slowdown of each job."""
    return np.maximum((waits + jobs.runtime_s) / np.maximum(jobs.runtime_s, BOUND_S), 1.0)


def figures(jobs: Jobs, waits: Floats) -> Figures:
    """The figures of a schedule; NaN without jobs. waits: s, [jobs]."""
    if not len(waits):
        return dict.fromkeys(FIGURES, float("nan"))
    percentiles = np.percentile(waits, list(PERCENTILES.values()))
    area = jobs.runtime_s * jobs.cores
    found = {name: float(value) for name, value in zip(PERCENTILES, percentiles, strict=True)}
    found |= {"bounded_slowdown": float(slowdowns(jobs, waits).mean()), "mean_wait_s": float(waits.mean())}
    found["area_weighted_wait_s"] = float(waits @ area / area.sum())
    return {name: found[name] for name in FIGURES}


def weekly(jobs: Jobs, waits: Floats, figure: str, week: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(numerator, denominator) of a mean figure in each week, [weeks]: sums over the weeks make the figure of all."""
    area = jobs.runtime_s * jobs.cores
    ones = np.ones(len(waits))
    each, weight = {
        "bounded_slowdown": (slowdowns(jobs, waits), ones),
        "mean_wait_s": (waits, ones),
        "area_weighted_wait_s": (waits * area, area),
    }[figure]
    n = int(week.max(initial=-1)) + 1
    return np.bincount(week, each, n).astype(np.float64), np.bincount(week, weight, n).astype(np.float64)


def in_weeks(jobs: Jobs, waits: Floats, figure: str, week: NDArray[np.int64]) -> Floats:
    """A figure of each week that has jobs, [weeks with jobs]."""
    if figure in PERCENTILES:
        parts = np.split(waits, np.flatnonzero(np.diff(week)) + 1)
        return np.array([np.percentile(part, PERCENTILES[figure]) for part in parts])
    above, below = weekly(jobs, waits, figure, week)
    counts = np.bincount(week)
    return np.asarray(above[counts > 0] / below[counts > 0])
