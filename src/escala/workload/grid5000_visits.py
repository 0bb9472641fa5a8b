"""The pieces of the Grid'5000-like model: at which pace users submit, and what their jobs are like.

The numbers are rounded figures of the public days of the Taurus cluster (45 724 jobs in 1 362 days), which the author
of the dissertation behind `grid5000_clusters` released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def cumulative(weight: Floats) -> Floats:
    """Cumulative probability of each value from weights."""
    total = np.cumsum(weight)
    return np.asarray(total / total[-1], np.float64)


@dataclass(frozen=True)
class Pace:
    """How a visit goes on: log-normal gaps (s) and a number of jobs with log-normal weights, each by median and log
    standard deviation.

    With probability `watched` a gap counts from the end of the job before (were it started at once), else from its
    submission.
    """

    gap_median: float
    gap_spread: float
    watched: float
    size_median: float
    size_spread: float
    most: int

    @cached_property
    def _sizes(self) -> Floats:
        n = np.arange(1, self.most + 1)
        return cumulative(np.exp(-0.5 * (np.log(n / self.size_median) / self.size_spread) ** 2) / n)

    @property
    def mean(self) -> float:
        """Mean number of jobs of a visit."""
        return float(np.diff(self._sizes, prepend=0.0) @ np.arange(1, self.most + 1))

    def sizes(self, quantile: Floats) -> Ints:
        """Number of jobs at each quantile."""
        return (np.searchsorted(self._sizes, quantile, side="right") + 1).astype(np.int64)


@dataclass(frozen=True)
class Work:
    """What jobs ask for and how they end: at their walltime, failed, or done; the run time of the last two is walltime
    x Beta(a, b)."""

    walltimes: tuple[tuple[int, float], ...]  # (minutes, share), ascending
    at_limit: float
    failed: float
    failed_beta: tuple[float, float]
    done_beta: tuple[float, float]

    @property
    def _minutes(self) -> Floats:
        return np.array([minutes for minutes, _ in self.walltimes], np.float64)

    @cached_property
    def _shares(self) -> Floats:
        return cumulative(np.array([share for _, share in self.walltimes]))

    @property
    def mean_s(self) -> float:
        """Mean run time, s."""
        (a, b), (c, d) = self.failed_beta, self.done_beta
        ratio = self.at_limit + self.failed * a / (a + b) + (1 - self.at_limit - self.failed) * c / (c + d)
        return 60.0 * float(np.diff(self._shares, prepend=0.0) @ self._minutes) * ratio

    def walltime_s(self, quantile: Floats) -> Floats:
        """Requested time at each quantile, s."""
        return np.asarray(60.0 * self._minutes[np.searchsorted(self._shares, quantile, side="right")], np.float64)

    def ends(self, walltime_s: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.str_]]:
        """Run time, whole s >= 1, and status of jobs with these walltimes (of at least 2 s)."""
        runtime, status = walltime_s.copy(), np.full(len(walltime_s), "TIMEOUT", dtype="<U9")
        end = rng.random(len(walltime_s))
        failed, done = end < self.failed, end >= self.failed + self.at_limit
        for jobs, (a, b), name in ((failed, self.failed_beta, "FAILED"), (done, self.done_beta, "COMPLETED")):
            share = rng.beta(a, b, int(jobs.sum()))
            runtime[jobs] = np.clip(np.ceil(walltime_s[jobs] * share), 1.0, walltime_s[jobs] - 1.0)
            status[jobs] = name
        return runtime, status


# 92 % of the gaps below 5 min
QUICK = Pace(gap_median=50.0, gap_spread=1.3, watched=0.0, size_median=4.5, size_spread=1.15, most=400)
SLOW = Pace(gap_median=600.0, gap_spread=1.5, watched=0.7, size_median=2.2, size_spread=0.9, most=60)
NIGHT = Pace(gap_median=600.0, gap_spread=1.5, watched=1.0, size_median=1.0, size_spread=0.6, most=8)

LIGHT = Work(
    walltimes=((10, 0.06), (20, 0.30), (30, 0.08), (60, 0.36), (120, 0.14), (180, 0.02), (360, 0.04)),
    at_limit=0.24, failed=0.40, failed_beta=(0.4, 5.0), done_beta=(0.7, 1.8),
)  # fmt: skip
HEAVY = Work(
    walltimes=(
        (60, 0.08), (120, 0.10), (180, 0.06), (240, 0.07), (300, 0.03), (360, 0.48), (480, 0.04), (600, 0.04),
        (720, 0.06), (840, 0.04),
    ),
    at_limit=0.47, failed=0.25, failed_beta=(0.3, 3.0), done_beta=(2.0, 1.5),
)  # fmt: skip
LONG = Work(
    walltimes=((840, 0.15), (1440, 0.30), (3720, 0.42), (10080, 0.13)),
    at_limit=0.47, failed=0.25, failed_beta=(0.3, 3.0), done_beta=(2.0, 1.5),
)  # fmt: skip

HOURS = np.array(
    [25, 26, 25, 18, 19, 18, 19, 30, 35, 75, 96, 80, 51, 54, 52, 51, 50, 54, 42, 55, 39, 32, 27, 27], np.float64
)  # fmt: skip
"""Share of submissions in each hour of the day, 1/1000."""
EVENING = 0.8  # share of the visits of the pace NIGHT that begin between EVENING_HOURS; the others at any time
EVENING_HOURS = (17.0, 22.0)
WEEKDAYS = np.array([1.1, 1.1, 1.15, 1.1, 1.05, 0.75, 0.75])
"""Level of each day of the week; day 0 is a Monday."""
WEEK_SHAPE = 4.0  # gamma shape of a week's level: relative standard deviation 1/2

SUBNODE = 0.12  # share of requests below a node: half of them one core, the rest a third of a node
SAME_REQUEST = 0.75  # a job of a visit repeats the request of the visit
FAVOURITE = 0.6  # a visit's request is the user's favourite
# users at one time; the k-th place makes visits with probability ~ 1/k and changes hands after USER_DAYS
USER_PLACES = 40
USER_DAYS = 90.0
