"""Does what was said of a machine make sense? One pass over its columns; whoever is told no looks for the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
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
def survey(jobs: Any, nodes: Any, placed: Any) -> tuple[int, int, int, int, int]:
    """Of JOBS, NODES and PLACED: are jobs out of the order of their submission, and do any want one node; cores that jobs hold; switches
    whose end nobody tells, and nodes that are not on."""
    late = 0
    single = 0
    for k in range(jobs.shape[0]):
        late += k > 0 and jobs[k].submit < jobs[k - 1].submit
        single += jobs[k].single
    held = 0
    for p in range(placed.shape[0]):
        held += (placed[p].high - placed[p].low + 1) * placed[p].per
    untold = 0
    off = 0
    for n in range(nodes.shape[0]):
        untold += nodes[n].done < 0 and nodes[n].power % 2 == 1
        off += nodes[n].power != codes.ON
    return late, single, held, untold, off


@lean
def sound_places(placed: Any, jobs: Any, n_nodes: int) -> bool:
    """PLACED, those of a job together and the jobs in their order: nodes that there are, and all cores of each job that holds any."""
    p = 0
    for k in range(jobs.shape[0]):
        cores = 0 if jobs[k].state == codes.QUEUED else jobs[k].cores
        held = 0
        while p < placed.shape[0] and placed[p].job == k:
            one = placed[p]
            if one.low < 0 or one.high < one.low or one.high >= n_nodes or one.per < 1 or one.per > cores:
                return False
            held += (one.high - one.low + 1) * one.per
            p += 1
        if held != cores:
            return False
    return p == placed.shape[0]  # what is left is out of order, or of a job that there is not
