"""A run that goes on from a state of elsewhere: as `load`, with the jobs as they really are, and those yet to come."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.kernel import codes
from escala.kernel.advance import PHASE_BETWEEN
from escala.kernel.backlog import weigh
from escala.kernel.energy import integrate
from escala.kernel.events import push
from escala.kernel.load import load
from escala.kernel.queue import note_age
from escala.kernel.state import HEAP_ENDS, World
from escala.kernel.users import bring_all_forward
from escala.kernel.world import one


@compiled
def resume(table: Any, i: int, now: int, jobs: Any, nodes: Any, placed: Any, truth: Any, decided: bool) -> int:
    """Bring simulation `i` to time `now` (us) of a run that goes on from a state of elsewhere. truth: JOB of the first
    rows, as they really are; jobs: JOBS of those among them that live, the others have ended; the rows behind are yet
    to be submitted. decided: all of that instant has been taken in and decided on. 0, or the code of the table that is
    too small."""
    w = one(table, i)
    grow, _ = load(
        table, i, now, jobs, nodes, placed, np.zeros((jobs.shape[0], 0), np.int64), np.empty(w.o[0].n_jobs, np.int64)
    )
    s = w.s[0]
    s.n_ends = 0
    for j in range(truth.shape[0]):
        queued = w.run[j].state == codes.QUEUED
        if queued:
            weigh(w, j, -1)
        cores = w.job[j].cores  # fewer than its own, where nodes are gone
        w.job[j] = truth[j]
        w.job[j].cores = cores if w.run[j].state != codes.COMPLETED else truth[j].cores
        if queued:
            weigh(w, j, 1)
        if w.run[j].state == codes.RUNNING:
            s.n_ends = push(w.heaps[HEAP_ENDS], s.n_ends, max(w.run[j].start + truth[j].runtime, now), j)
            _add_rate(w, j)
    for j in range(truth.shape[0], w.o[0].n_jobs):
        w.run[j].state = codes.PENDING
    s.n_ended = truth.shape[0] - jobs.shape[0]
    s.next_job = truth.shape[0]
    s.told = s.next_job
    s.new_from = s.next_job
    s.aged = 0
    s.next_aged_us = codes.NEVER_US
    if w.o[0].guard_us < codes.NEVER_US:
        note_age(w)
    s.instants = 1 if decided else 0
    s.phase = PHASE_BETWEEN
    return grow


@compiled
def until(table: Any, i: int, now: int) -> None:
    """What nodes did and users used in simulation `i` is counted up to `now` (us)."""
    w = one(table, i)
    integrate(w, now)
    bring_all_forward(w)


@lean
def _add_rate(w: World, j: int) -> None:
    """The share of its nodes' power that job `j` draws."""
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            w.ledger[w.node[n].profile].rate += w.job[j].load * w.chunk[c].per / w.node[n].cores
        c = np.int64(w.chunk[c].next)
