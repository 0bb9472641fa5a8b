"""Has a log become another one? Its later weeks beside its past, feature by feature, and what a policy still gives
there.

A week's distance is that of Kolmogorov and Smirnov: the largest difference of two distribution functions, the week's
and that of all the past (of a week of the past: of all others). A later week is unlike the past where its distance is
beyond what 95 % of the past's own weeks have. The log has drifted in a feature where at least three of the last four
weeks are unlike in it.

A policy has its own evidence: what its weeks of the past gave beside EASY, and what its folder says that its later
weeks gave (`ratio_to_easy` in `policy.toml`). It does worse where at least three of the last four weeks are beyond
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.options import Options, with_options
from escala.platform import read_platform
from escala.policies.run import simulate
from escala.policies.tuned import promise_in
from escala.policy import name_of
from escala.tuning.measures import Floats, jobs_of, weekly
from escala.tuning.split import WEEK_S, Split, split_of
from escala.workload import Workload

FEATURES = {
    "request": "requested times",
    "runtime": "run times",
    "cores": "cores of jobs",
    "gap": "times between submissions",
}
LEAST_JOBS = 20
"""A week with fewer jobs says nothing."""
LEAST_WEEKS = 5
"""Of the past: fewer do not tell what is usual."""
LAST, UNLIKE = 4, 3
USUAL = 0.95
REFERENCE = "easy"


@dataclass(frozen=True)
class Week:
    """A later week: its number from the split, jobs, the distance of each feature, those in which it is unlike the
    past, and the policy's bounded slowdown over EASY's (None: no policy was asked for)."""

    number: int
    jobs: int
    distance: dict[str, float]
    unlike: list[str]
    ratio: float | None


@dataclass(frozen=True)
class Drift:
    """The later weeks of a log, and what is usual (`limits`, by feature). drifted: features of `FEATURES`; scheduler:
    the policy, "" for none; past_ratio, last_ratio: its bounded slowdown over EASY's on the past, and on the last four
    weeks; usual_ratio: that of a week which 95 % of the past's weeks have at most. promised: what its folder says of
    it, with its interval. knows: what it knows of the future, "" for an honest one."""

    past_weeks: int
    weeks: list[Week]
    limits: dict[str, float]
    drifted: list[str]
    scheduler: str
    past_ratio: float | None
    last_ratio: float | None
    usual_ratio: float | None = None
    promised: tuple[float, float, float] | None = None
    knows: str = ""

    @property
    def worse(self) -> bool:
        """Does the policy do worse than its own evidence says?"""
        if self.usual_ratio is None:
            return False
        most = max([self.usual_ratio, *(self.promised or ())])
        return sum(week.ratio is not None and week.ratio > most for week in self.weeks[-LAST:]) >= UNLIKE

    @property
    def behind(self) -> bool:
        """Is the policy behind EASY on the last weeks?"""
        return self.last_ratio is not None and self.last_ratio > 1.0

    @property
    def tune_again(self) -> bool:
        """Is it time to choose anew?"""
        return bool(self.drifted) or self.behind or self.worse

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**asdict(self), "behind": self.behind, "worse": self.worse, "tune_again": self.tune_again}


def drift(
    log: Workload, after: str | float = "60%", platform: Any = None, scheduler: Any = None, **options: Any
) -> Drift:
    """Compare the later weeks of a log with its past.

    after: the share of the log's time that is its past. platform, scheduler: a policy that was chosen there, replayed
    over the whole log beside EASY. options: as of `simulate`. EscalaError for a log without five full weeks of the past
    and one later week.
    """
    if scheduler is not None and platform is None:
        raise EscalaError("drift: a scheduler is replayed on a platform: give both")
    split = split_of(log, after)
    submit = log.jobs["submit_s"].to_numpy()
    later = submit >= split.at_s
    number = np.where(later, split.later_weeks(submit), split.past_weeks(submit))
    counts = np.bincount(number[~later])
    whole = counts[: int((split.at_s - split.first_s) // WEEK_S)]  # the last week of the past may be cut
    if int((whole >= LEAST_JOBS).sum()) < LEAST_WEEKS:
        raise EscalaError(
            f"workload {log.name!r}: its past has {int((whole >= LEAST_JOBS).sum())} weeks of at least {LEAST_JOBS} "
            f"jobs; {LEAST_WEEKS} are needed to tell what is usual: give a longer log, or a larger after= (--after)"
        )
    values = _features(log)
    past = [(number == week) & ~later for week in np.flatnonzero(whole >= LEAST_JOBS)]
    limits = {name: _usual([_distance(x[week], x[~later & ~week]) for week in past]) for name, x in values.items()}
    ratio = _ratios(log, platform, scheduler, split, options) if scheduler is not None else None
    weeks = []
    for k in range(int(number[later].max()) + 1):
        mine = later & (number == k)
        if mine.sum() < LEAST_JOBS:
            continue
        distance = {name: _distance(x[mine], x[~later]) for name, x in values.items()}
        unlike = [name for name, far in distance.items() if far > limits[name]]
        weeks.append(Week(k, int(mine.sum()), distance, unlike, None if ratio is None else ratio.of_week(k)))
    if not weeks:
        raise EscalaError(
            f"workload {log.name!r}: no week after the split has {LEAST_JOBS} jobs: give a smaller after= (--after)"
        )
    last = weeks[-LAST:]
    drifted = [name for name in FEATURES if sum(name in week.unlike for week in last) >= UNLIKE]
    told = name_of(scheduler) if scheduler is not None else ""
    of_past, of_last = (None, None) if ratio is None else (ratio.past, ratio.of_weeks([week.number for week in last]))
    usual = None if ratio is None else _usual(ratio.before)
    knows = "" if ratio is None else ratio.knows
    return Drift(len(past), weeks, limits, drifted, told, of_past, of_last, usual, promise_in(told), knows)


def _features(log: Workload) -> dict[str, Floats]:
    """Of each job, in the order of `FEATURES`; only their order among each other counts."""
    jobs = log.jobs
    gap = np.diff(jobs["submit_s"].to_numpy(), prepend=jobs["submit_s"][0])
    columns = {"request": "walltime_s", "runtime": "runtime_s", "cores": "cores"}
    return {name: jobs[column].to_numpy().astype(np.float64) for name, column in columns.items()} | {"gap": gap}


def _distance(a: Floats, b: Floats) -> float:
    """Of Kolmogorov and Smirnov, between two samples."""
    at = np.concatenate([a, b])
    below = (
        np.searchsorted(np.sort(a), at, side="right") / len(a),
        np.searchsorted(np.sort(b), at, side="right") / len(b),
    )
    return float(np.abs(below[0] - below[1]).max())


def _usual(distances: list[float]) -> float:
    return float(np.quantile(distances, USUAL, method="higher"))


@dataclass(frozen=True)
class _Ratios:
    """Sums of the bounded slowdown by later week, [weeks], of the policy and of EASY; their ratio on the past, and in
    its weeks; and what the policy knows of the future."""

    past: float
    before: list[float]  # by week of the past
    ours: Floats
    theirs: Floats
    knows: str

    def of_week(self, week: int) -> float:
        return self.of_weeks([week])

    def of_weeks(self, weeks: list[int]) -> float:
        return float(self.ours[weeks].sum() / self.theirs[weeks].sum())


def _ratios(log: Workload, platform: Any, scheduler: Any, split: Split, options: Mapping[str, Any]) -> _Ratios:
    """The policy beside EASY, each in one replay of the whole log."""
    machine = read_platform(platform)
    jobs = jobs_of(log, machine, with_options(Options(), **options))
    later = jobs.submit_s >= split.at_s
    week: NDArray[np.int64] = split.later_weeks(jobs.submit_s[later])
    before: NDArray[np.int64] = split.past_weeks(jobs.submit_s[~later])
    counts = np.bincount(before)[: int((split.at_s - split.first_s) // WEEK_S)]
    sums, past, knows = [], [], list[str]()
    for one in (scheduler, REFERENCE):
        result = simulate(log, machine, one, record=False, **options)
        waits = result.jobs["wait_s"].to_numpy()[jobs.row]
        knows.append(result.knows)
        sums.append(weekly(jobs.part(later), waits[later], "bounded_slowdown", week)[0])
        past.append(weekly(jobs.part(~later), waits[~later], "bounded_slowdown", before)[0])
    whole = np.flatnonzero(counts >= LEAST_JOBS)
    return _Ratios(
        float(past[0].sum() / past[1].sum()), (past[0][whole] / past[1][whole]).tolist(), sums[0], sums[1], knows[0]
    )
