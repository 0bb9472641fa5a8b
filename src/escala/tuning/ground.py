"""What searched scores are tried on: a part of the past, and copies of it in which jobs come somewhat earlier or
later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.policies.schedulers import Scheduler
from escala.policy import name_of
from escala.tuning.choice import REFERENCE, value
from escala.tuning.measures import Figures, Floats, Jobs, figures
from escala.tuning.promise import Promise
from escala.tuning.replays import Replays
from escala.tuning.split import WEEK_S
from escala.workload import Workload
from escala.workload.shapes import submitted

JITTER_S = (600.0, 3600.0)
"""In each copy every submission moves by up to so much, either way: a score that fits one order of arrivals alone is no
good score."""
MOST_JOBS = 25_000
"""Of a longer part of the past the last jobs are searched on."""
COPIES_SEED = 1234
EXCESS = 5.0
"""What a broken promise counts: a little more than kept is worth little, a little less is worth nothing."""


@dataclass(frozen=True)
class Copy:
    """One log that scores are tried on. week: of each job; easy: waits under the reference, s, [jobs]; found: of what
    promises name."""

    log: Workload
    jobs: Jobs
    week: NDArray[np.int64]
    easy: Floats
    found: dict[str, Figures]


@dataclass(frozen=True)
class Ground:
    """A part of the past as it was (its last jobs, where it is long), copies of it, and how schedulers are valued
    there."""

    copies: list[Copy]
    figure: str
    promise: Promise
    replays: Replays

    def cost(self, scheduler: Scheduler, turn: int) -> float:
        """The value, and the excess over the promise many times (see `choice.Tried`), on the copy whose turn it is."""
        copy = self.copies[turn % len(self.copies)]
        waits = self.replays.waits(copy.log, copy.jobs, scheduler)
        excess = self.promise.excess(figures(copy.jobs, waits), copy.found)
        return value(copy.jobs, waits, copy.easy, self.figure, copy.week) + EXCESS * excess


def ground(
    replays: Replays,
    past: Workload,
    span: tuple[float, float],
    baselines: Sequence[Any],
    wanted: tuple[str, Promise],
    most: int = MOST_JOBS,
) -> Ground | None:
    """The ground of the jobs submitted in a span [s, s); None without any. baselines: what a promise can name; wanted:
    figure, promise;
    most: jobs, the last ones."""
    jobs = past.jobs.filter(pl.col("submit_s").is_between(*span, closed="left"))
    if jobs.is_empty():
        return None
    last, random = jobs.tail(most), np.random.default_rng(COPIES_SEED)
    logs = [past.with_jobs(last), *(_moved(past, last, most, random) for most in JITTER_S)]
    return Ground([_copy(replays, log, baselines) for log in logs], *wanted, replays)


def _moved(past: Workload, jobs: pl.DataFrame, most_s: float, random: np.random.Generator) -> Workload:
    """The jobs with other submissions, in their order."""
    submit = jobs["submit_s"].to_numpy()
    moved = np.maximum(submit + random.uniform(-most_s, most_s, len(submit)), submit[0])
    return past.with_jobs(submitted(jobs, pl.lit(pl.Series(moved))).sort("submit_s", maintain_order=True))


def _copy(replays: Replays, log: Workload, baselines: Sequence[Any]) -> Copy:
    jobs = replays.jobs(log)
    waits = {name_of(one): replays.waits(log, jobs, one) for one in baselines}
    week = np.asarray((jobs.submit_s - jobs.submit_s[0]) // WEEK_S, np.int64)
    return Copy(log, jobs, week, waits[REFERENCE], {name: figures(jobs, each) for name, each in waits.items()})
