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
def survey(now: int, jobs: Any, nodes: Any, placed: Any) -> tuple[int, int, int, int, int, int, int]:
    """Of JOBS, NODES and PLACED at `now`, us, as in `escala.live.snapshot.Survey`: do they make sense (1); jobs out of the order of their
    submission, and jobs of one node; the most cores of a job; cores that jobs hold; switches whose end nobody tells, and nodes that are not
    on. What waits has no start from here on."""
    late = 0
    single = 0
    most = 0
    held = 0
    untold = 0
    off = 0
    sound = 1
    for k in range(jobs.shape[0]):
        job = jobs[k]
        if job.cores < 1 or job.walltime < 1 or job.submit > now:
            sound = 0
        if job.state != codes.RUNNING:
            job.start = codes.NONE
        elif job.start < 0 or job.start > now:
            sound = 0
        late += k > 0 and job.submit < jobs[k - 1].submit
        single += job.single
        most = max(most, job.cores)
    for n in range(nodes.shape[0]):
        node = nodes[n]
        if node.power == codes.ON and node.since > now:
            sound = 0
        untold += node.done < 0 and node.power % 2 == 1
        off += node.power != codes.ON
    if sound == 1:
        held = _sound_places(placed, jobs, nodes.shape[0])
    return np.int64(sound == 1 and held >= 0), late, single, most, held, untold, off


@inlined
def _sound_places(placed: Any, jobs: Any, n_nodes: int) -> int:
    """The cores held in PLACED, where those of a job stand together and the jobs in their order, on nodes that there are, and each job that
    holds any has all its cores; -1 where it is otherwise."""
    p = 0
    total = 0
    for k in range(jobs.shape[0]):
        cores = 0 if jobs[k].state == codes.QUEUED else jobs[k].cores
        held = 0
        while p < placed.shape[0] and placed[p].job == k:
            one = placed[p]
            if one.low < 0 or one.high < one.low or one.high >= n_nodes or one.per < 1 or one.per > cores:
                return -1
            held += (one.high - one.low + 1) * one.per
            p += 1
        if held != cores:
            return -1
        total += held
    return total if p == placed.shape[0] else -1  # what is left is out of order, or of a job that there is not
