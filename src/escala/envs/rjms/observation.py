"""What an agent sees, written by compiled code into arrays of the caller's. Every number lies in [0, 1].

Scales: cores and nodes are shares of the platform; a time t is sqrt(t / day), which tells minutes apart without losing
hours, at most 1; a number n of jobs is
n / (n + 10); the time of day is linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.plans import following
from escala.kernel.state import World

SNAPSHOT = 8  # nodes in the five states, queue length, promised start of the first job, time of day
JOB = 4  # cores, walltime, stretch so far, jobs of its user in the system
RUNNING = 3  # cores, remaining walltime, time it has run
SUMMARY = 4  # free cores on nodes that are on, on nodes switching on, of all nodes; demand of the queue
RUNNING_SHOWN = 10
SOME_JOBS = 10.0


@inlined
def root(us: int, day_us: int) -> float:
    """A time on the scale of the observations."""
    return min(1.0, np.sqrt(max(us, 0) / day_us))


@inlined
def crowd(n: float) -> float:
    """A number of jobs on the scale of the observations."""
    return n / (n + SOME_JOBS)


@lean
def snapshot(w: World, day: int, out: Any) -> None:
    """One snapshot of the platform, `SNAPSHOT` numbers. day: us."""
    s = w.s[0]
    o = w.o[0]
    for k in range(5):
        nodes = 0
        for p in range(w.ledger.shape[0]):
            nodes += w.ledger[p].nodes[k]
        out[k] = nodes / o.n_nodes
    out[5] = crowd(s.n_queued)
    promised = 0.0
    if s.n_queued > 0:
        known = s.head == s.first and s.shadow_us < codes.NEVER_US
        promised = root(s.shadow_us - s.now, day) if known else 1.0
    out[6] = promised
    out[7] = (s.now % day) / day


@lean
def untaken(w: World) -> int:
    """Cores that no job holds, whatever the power state of their nodes."""
    free = w.o[0].n_cores
    for k in range(w.s[0].n_plans):
        free -= w.job[w.plans[k]].cores
    return free


@inlined
def _count_user(w: World, users: Any, j: int, by: int) -> None:
    user = w.job[j].user
    if user >= 0:
        users[user] += by


@lean
def _count_users(w: World, users: Any, by: int) -> None:
    """Add `by` for each job in the system to its user's number."""
    j = w.s[0].first
    while j != codes.NONE:
        _count_user(w, users, j, by)
        j = np.int64(w.run[j].next)
    for k in range(w.s[0].n_plans):
        _count_user(w, users, np.int64(w.plans[k]), by)


@lean
def queued_jobs(w: World, day: int, users: Any, out: Any) -> None:
    """The first jobs of the queue, `JOB` numbers each, zeros behind them. `users`: int64 scratch, all zero before and
    after."""
    s = w.s[0]
    out[:] = 0.0
    if s.n_queued == 0:
        return
    _count_users(w, users, 1)
    j = s.first
    at = 0
    while j != codes.NONE and at < out.shape[0]:
        job = w.job[j]
        out[at] = job.cores / w.o[0].n_cores
        out[at + 1] = root(job.walltime, day)
        out[at + 2] = min(1.0, (s.now - job.submit) / job.walltime)
        out[at + 3] = crowd(users[job.user]) if job.user >= 0 else 0.0
        at += JOB
        j = np.int64(w.run[j].next)
    _count_users(w, users, -1)


@lean
def running_jobs(w: World, day: int, frontier: Any, out: Any) -> None:
    """The running jobs that are planned to leave first, `RUNNING` numbers each, zeros behind them."""
    s = w.s[0]
    out[:] = 0.0
    size = 0
    if s.n_plans > 0:
        frontier[0] = 0
        size = 1
    at = 0
    while size > 0 and at < out.shape[0]:
        position, size = following(w, frontier, size)
        j = np.int64(w.plans[position])
        out[at] = w.job[j].cores / w.o[0].n_cores
        out[at + 1] = root(w.run[j].plan - s.now, day)
        out[at + 2] = root(s.now - w.run[j].start, day) if w.run[j].state == codes.RUNNING else 0.0
        at += RUNNING


@lean
def summary(w: World, out: Any) -> None:
    """`SUMMARY` numbers on free cores and demand."""
    s = w.s[0]
    cores = w.o[0].n_cores
    demand = 0
    j = s.first
    while j != codes.NONE:
        demand += w.job[j].cores
        j = np.int64(w.run[j].next)
    out[0] = s.free_on / cores
    out[1] = s.free_boot / cores
    out[2] = untaken(w) / cores
    out[3] = demand / (demand + cores)


@lean
def unroll(history: Any, newest: int, out: Any) -> None:
    """The ring of snapshots in order of time, the newest last; `out` is flat."""
    length = history.shape[0]
    width = history.shape[1]
    at = 0
    for k in range(length):
        row = history[(newest + 1 + k) % length]
        for c in range(width):
            out[at + c] = row[c]
        at += width
