"""Rewards as differences of the kernel's ledger, so that the rewards of an episode add up to the metrics of its
Result."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.rjms.observation import untaken
from escala.kernel import codes
from escala.kernel.state import World

CARRY = float(1 << 61)
HOUR_US = 3.6e9
BOUND_US = 10e6  # of the bounded slowdown

STRETCH = 0  # what a job's wait is counted in: its walltime
WAIT = 1  # hours
SLOWDOWN = 2  # its runtime, of 10 s at least
AREA = 3  # hours, by the hours of the whole machine that it takes
COSTS = {"stretch": STRETCH, "wait": WAIT, "bounded-slowdown": SLOWDOWN, "area-wait": AREA}


@lean
def node_us(w: World, p: int, state: int) -> float:
    """Node-time of profile p in a ledger state so far, us."""
    return w.ledger[p].node_us[state] + CARRY * w.ledger[p].carry[state]


@lean
def node_us_of(w: World, state: int) -> float:
    """The same over all profiles."""
    total = 0.0
    for p in range(w.ledger.shape[0]):
        total += node_us(w, p, state)
    return total


@lean
def waste_j(w: World, watts: Any) -> float:
    """E_idle + E_switching-off + E_switching-on so far, J (R3, equation 4.4). `watts` [profiles, 3]."""
    total = 0.0
    for p in range(watts.shape[0]):
        total += watts[p, 0] * node_us(w, p, codes.IDLE)
        total += watts[p, 1] * node_us(w, p, codes.IS_SWITCHING_OFF)
        total += watts[p, 2] * node_us(w, p, codes.IS_SWITCHING_ON)
    return total * 1e-6


@lean
def late_cores(w: World, tau: float, startable: int) -> float:
    """QoS of R3: cores of the queued jobs with wait >= tau walltime; startable: of those that fit, each by itself, the
    cores that no job holds."""
    s = w.s[0]
    if s.n_queued == 0:
        return 0.0
    free = untaken(w) if startable == 1 else w.o[0].n_cores
    total = 0.0
    j = s.first
    while j != codes.NONE:
        job = w.job[j]
        if s.now - job.submit >= tau * job.walltime and job.cores <= free:
            total += job.cores
        j = np.int64(w.run[j].next)
    return total


@inlined
def unit_of(w: World, j: int, cost: int) -> float:
    """The time, us, for which job `j` waits at the cost of 1. A reward may know how long a job will run; no observation
    does."""
    job = w.job[j]
    if cost == STRETCH:
        return job.walltime
    if cost == WAIT:
        return HOUR_US
    if cost == SLOWDOWN:
        return max(job.runtime, BOUND_US)
    return HOUR_US * HOUR_US * w.o[0].n_cores / (max(job.runtime, 1) * job.cores)


@lean
def waited(w: World, since_us: int, cost: int = STRETCH) -> float:
    """What the queued jobs have cost since `since_us`; STRETCH: the sum of the time waited, in walltimes."""
    s = w.s[0]
    total = 0.0
    j = s.first
    while j != codes.NONE:
        total += (s.now - max(since_us, w.job[j].submit)) / unit_of(w, j, cost)
        j = np.int64(w.run[j].next)
    return total
