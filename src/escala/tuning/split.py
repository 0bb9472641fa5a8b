"""Where the past of a log ends, and its weeks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.workload import Workload
from escala.workload.transform import share_of

DAY_S = 86400.0
WEEK_S = 7 * DAY_S
LEAST_WEEKS = 3
FIT_SHARE = 0.6
"""Of the past, what comes first: what is searched there is judged on the rest of the past."""
LEAST_VALIDATION_WEEKS = 3


@dataclass(frozen=True)
class Split:
    """The instant that parts the past of a log from its later weeks. Times in s on the log's clock."""

    first_s: float
    at_s: float
    last_s: float

    def past(self, log: Workload) -> Workload:
        """The jobs submitted before."""
        return log.with_jobs(log.jobs.filter(pl.col("submit_s") < self.at_s))

    @property
    def fit_until_s(self) -> float:
        """The instant that parts the past: searches see what is before, and are judged on the weeks from there to the
        split."""
        return self.first_s + FIT_SHARE * (self.at_s - self.first_s)

    @property
    def halves(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The two halves of the past, each [s, s)."""
        middle = 0.5 * (self.first_s + self.at_s)
        return (self.first_s, middle), (middle, self.at_s)

    @property
    def validates(self) -> bool:
        """Has the past weeks enough to judge a search by?"""
        return self.at_s - self.fit_until_s >= LEAST_VALIDATION_WEEKS * WEEK_S

    def fit(self, log: Workload) -> Workload:
        """The jobs of the first part of the past."""
        return log.with_jobs(log.jobs.filter(pl.col("submit_s") < self.fit_until_s))

    def validation_weeks(self, submit_s: NDArray[np.float64]) -> NDArray[np.int64]:
        """The week of each job of the validation part, counted from its beginning."""
        return np.asarray((submit_s - self.fit_until_s) // WEEK_S, np.int64)

    def past_weeks(self, submit_s: NDArray[np.float64]) -> NDArray[np.int64]:
        """The week of each job of the past, counted from the first submission."""
        return np.asarray((submit_s - self.first_s) // WEEK_S, np.int64)

    def later_weeks(self, submit_s: NDArray[np.float64]) -> NDArray[np.int64]:
        """The week of each later job, counted from the split."""
        return np.asarray((submit_s - self.at_s) // WEEK_S, np.int64)


def split_of(log: Workload, after: str | float) -> Split:
    """The split of a log; EscalaError where it is shorter than three weeks, or a part shorter than one."""
    share, days = share_of(after), log.span_s / DAY_S
    if days < 7 * LEAST_WEEKS:
        raise EscalaError(
            f"workload {log.name!r}: its jobs are submitted within {days:.1f} days; a rule is chosen and judged by "
            f"weeks: give a log of at least {LEAST_WEEKS} weeks"
        )
    first, last = float(log.jobs["submit_s"][0]), float(log.jobs["submit_s"][-1])
    split = Split(first, first + share * (last - first), last)
    if min(split.at_s - first, last - split.at_s) < WEEK_S:
        raise EscalaError(
            f"after={quoted(after)} (--after): of the {days:.1f} days of workload {log.name!r} that leaves less than "
            "a week before or after: give a share that leaves a week on both sides"
        )
    return split
