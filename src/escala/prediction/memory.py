"""What a simulation's ended jobs tell, kept up as they end, and the features of a job at its submission. Compiled.

`GROUPS` has a row for each group of jobs that are alike (`keys`); `COME` one for each user.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.compile import compiled, lean
from escala.prediction import features as f

NONE = -1
SECOND = 1e6
DAY_S, WEEK_DAYS = 86400.0, 7
FIRST_WEEKDAY = 3  # 1 January 1970 was a Thursday
GROUPS = np.dtype(
    [
        ("ended", "i8"),
        ("log", "f8"),  # sum of the logs of the run times, s
        ("asked", "i8"),  # how many of them had a request
        ("ratio", "f8"),  # sum of run time / request, of these
        ("last", "i8"),  # us, NONE: none has ended
        ("before", "i8"),  # us
        ("last_ratio", "f8"),  # NaN: it had no request
        ("end", "i8"),  # us, when the last one ended
    ]
)
# jobs submitted; of them those not yet looked at; us, the last, NONE
COME = np.dtype([("came", "i8"), ("new", "i8"), ("last", "i8")])


class Jobs(NamedTuple):
    """A simulation's jobs and groups, as compiled code gets them. job, run, forecast, past, user: the kernel's tables;
    key [jobs, kinds];
    asked [jobs]: has the job a request; groups, come: the memory; origin_s: Unix seconds of the clock's 0, NaN: not
    known."""

    job: Any
    run: Any
    forecast: Any
    past: Any
    user: Any
    key: NDArray[np.int64]
    asked: NDArray[np.bool_]
    groups: NDArray[Any]
    come: NDArray[Any]
    origin_s: float


def fresh(groups: int) -> NDArray[Any]:
    """Groups of which nobody has ended."""
    of = np.zeros(groups, GROUPS)
    of["last"] = of["before"] = NONE
    return of


def nobody_came(users: int) -> NDArray[Any]:
    """Users who have submitted nothing."""
    come = np.zeros(users, COME)
    come["last"] = NONE
    return come


@lean
def _note(jobs: Jobs, j: int) -> None:
    """Job `j` has ended: its groups know."""
    ran = jobs.job[j].runtime
    length = max(ran, 1) / SECOND
    ratio = ran / max(jobs.forecast[j].limit, 1) if jobs.asked[j] else math.nan
    for kind in range(jobs.key.shape[1]):
        g = jobs.key[j, kind]
        if g == NONE:
            continue
        group = jobs.groups[g]
        group.ended += 1
        group.log += math.log(length)
        if jobs.asked[j]:
            group.asked += 1
            group.ratio += ratio
        group.before = group.last
        group.last = ran
        group.last_ratio = ratio
        group.end = jobs.run[j].start + ran


@lean
def _of_group(jobs: Jobs, j: int, code: int, kind: int) -> float:
    """A feature of a group: NaN where nobody of it has ended."""
    g = jobs.key[j, kind]
    if g == NONE:
        return math.nan
    group = jobs.groups[g]
    if code == f.COUNT:
        return math.log1p(group.ended)
    if group.ended == 0:
        return math.nan
    if code == f.MEAN_LOG:
        return group.log / group.ended
    if code == f.MEAN_RATIO:
        return group.ratio / group.asked if group.asked > 0 else math.nan
    if code == f.LAST:
        return math.log(max(group.last, 1) / SECOND)
    if code == f.LAST_RATIO:
        return group.last_ratio
    if code == f.LAST_TWO:
        return math.log(max(group.last if group.before == NONE else (group.last + group.before) // 2, 1) / SECOND)
    return math.log(max(group.before, 1) / SECOND) if group.before != NONE else math.nan


@lean
def _of_user(jobs: Jobs, j: int, code: int, now: int) -> float:
    """A feature of the user's other jobs: NaN where no user is known."""
    u = np.int64(jobs.job[j].user)
    g = jobs.key[j, 0]
    if u == NONE or g == NONE:
        return math.nan
    come, group = jobs.come[u], jobs.groups[g]
    waiting = jobs.user[u].queued - come.new  # this job and those submitted with it, but after it, are no others
    if code == f.WAITING:
        return float(waiting)
    if code == f.RUNNING:
        return float(come.came - group.ended - waiting)
    if code == f.PAUSE:
        return math.log1p((now - come.last) / SECOND) if come.last != NONE else math.nan
    return math.log1p((now - group.end) / SECOND) if group.ended > 0 else math.nan


@lean
def _describe(jobs: Jobs, j: int, wanted: Any, now: int, out: Any) -> None:
    """The features of job `j`, submitted now. wanted [features, 2]: codes and kinds."""
    for k in range(wanted.shape[0]):
        code = wanted[k, 0]
        if code < f.ALONE:
            out[k] = _of_group(jobs, j, code, wanted[k, 1])
        elif code == f.REQUEST:
            out[k] = math.log(max(jobs.forecast[j].limit, 1) / SECOND) if jobs.asked[j] else math.nan
        elif code == f.CORES:
            out[k] = math.log(jobs.job[j].cores)
        elif code == f.HOUR:
            out[k] = (jobs.origin_s + now / SECOND) % DAY_S / 3600.0
        elif code == f.WEEKDAY:
            out[k] = (math.floor((jobs.origin_s + now / SECOND) / DAY_S) + FIRST_WEEKDAY) % WEEK_DAYS
        else:
            out[k] = _of_user(jobs, j, code, now)


@compiled
def look(jobs: Jobs, ended: tuple[int, int], new: tuple[int, int], wanted: Any, out: Any) -> None:
    """Take in the jobs that have ended since the last look, places ended[0] to ended[1] of `past`, and describe the
    jobs new[0] to new[1], submitted now. out [jobs, features]: gets the features of these, in the order of `wanted`."""
    for k in range(ended[0], ended[1]):
        _note(jobs, jobs.past[k])
    for j in range(new[0], new[1]):
        u = np.int64(jobs.job[j].user)
        if u != NONE:
            jobs.come[u].new += 1
    for j in range(new[0], new[1]):
        u = np.int64(jobs.job[j].user)
        _describe(jobs, j, wanted, jobs.job[j].submit, out[j - new[0]])
        if u != NONE:
            jobs.come[u].new -= 1
            jobs.come[u].came += 1
            jobs.come[u].last = jobs.job[j].submit
