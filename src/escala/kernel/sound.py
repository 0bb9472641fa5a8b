"""Does what was said of a machine make sense? One pass over its columns; whoever is told no looks for the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import SECOND


@lean
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


@lean
def within(values: Any, low: int, high: int) -> bool:
    """Are all whole numbers in a range?"""
    outside = 0
    for k in range(values.shape[0]):
        outside += values[k] < low or values[k] > high
    return outside == 0


@lean
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


@lean
def sound_places(placed: Any, jobs: Any, n_nodes: int) -> bool:
    """PLACED, those of a job together and the jobs in their order: nodes that there are, and all cores of each job that holds any."""
    before = codes.NONE
    held = 0
    for p in range(placed.shape[0]):
        one = placed[p]
        if one.job < max(before, 0) or one.job >= jobs.shape[0] or one.low < 0 or one.high < one.low or one.high >= n_nodes or one.per < 1:
            return False
        if jobs[one.job].state == codes.QUEUED:
            return False
        if one.job != before:
            if not _all_told(jobs, before, one.job, held):
                return False
            before = one.job
            held = 0
        held += (one.high - one.low + 1) * one.per
    return _all_told(jobs, before, jobs.shape[0], held)


@inlined
def _all_told(jobs: Any, k: int, end: int, held: int) -> bool:
    """Has job `k` (NONE: none) these cores, and do the jobs between it and `end`, of which no cores are told, hold none?"""
    wrong = 0
    if k != codes.NONE:
        wrong += held != jobs[k].cores
    for other in range(k + 1, end):
        wrong += jobs[other].state != codes.QUEUED
    return wrong == 0
