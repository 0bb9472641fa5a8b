"""Does what was said of a machine make sense? One pass over its columns; whoever is told no looks for the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled
from escala.kernel import codes
from escala.kernel.clock import SECOND


@compiled
def in_us(seconds: Any, absent: int, latest: float, out: Any) -> bool:
    """Fills `out` with seconds as us, half up; with `absent` where they are NaN, if that is not NEVER_US. False where one is below 0, or
    above `latest`."""
    for k in range(seconds.shape[0]):
        value = seconds[k]
        if np.isnan(value):
            if absent == codes.NEVER_US:
                return False
            out[k] = absent
        elif 0.0 <= value <= latest:
            out[k] = np.int64(np.floor(value * SECOND + 0.5))
        else:
            return False
    return True


@compiled
def within(values: Any, low: int, high: int) -> bool:
    """Are all whole numbers in a range?"""
    outside = 0
    for k in range(values.shape[0]):
        outside += values[k] < low or values[k] > high
    return outside == 0


@compiled
def sound_jobs(jobs: Any, now: int) -> bool:
    """JOBS at `now`, us: sizes, and times that have been. What waits has no start from here on."""
    for k in range(jobs.shape[0]):
        job = jobs[k]
        if job.cores < 1 or job.walltime < 1 or job.submit > now:
            return False
        if job.state != codes.RUNNING:
            job.start = codes.NONE
        elif job.start < 0 or job.start > now:
            return False
    return True


@compiled
def sound_places(placed: Any, jobs: Any, n_nodes: int) -> bool:
    """PLACED, those of a job together and the jobs in their order: nodes that there are, and all cores of each job that holds any."""
    sums = np.zeros(jobs.shape[0], np.int64)
    before = 0
    for p in range(placed.shape[0]):
        one = placed[p]
        if one.job < before or one.job >= jobs.shape[0] or one.low < 0 or one.high < one.low or one.high >= n_nodes or one.per < 1:
            return False
        before = one.job
        if jobs[one.job].state == codes.QUEUED:
            return False
        sums[one.job] += (one.high - one.low + 1) * one.per
    wrong = 0
    for k in range(jobs.shape[0]):
        wrong += jobs[k].state != codes.QUEUED and sums[k] != jobs[k].cores
    return wrong == 0
