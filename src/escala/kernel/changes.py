"""What a decision has changed, beside the state that was loaded (`escala.kernel.load`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.kernel import codes
from escala.kernel.queue import note_age
from escala.kernel.reservation import hold_end
from escala.kernel.shutdown import next_due
from escala.kernel.state import HEAP_TIMERS, World
from escala.kernel.world import one


@lean
def changes(table: Any, i: int, jobs: Any, nodes: Any, found: Any) -> tuple[int, int, int, int, int, int]:
    """What the decision of simulation `i` has changed, as loaded from `jobs` and `nodes`.

    Fills `found`, int64 of 4 a job, 3 a chunk and 1 a node: for each job that was given cores its place in `jobs`, the
    first of its chunks, whether it waits for nodes, the number of its chunks, and low node, high node and cores on each
    of these; then the nodes that were switched on, and those that were switched off. Returns the number of starts, how
    much is filled, how many nodes at its end were switched off, when the policies want to be asked again, us, when the
    next periodic decision is due, and how many calls policies have asked for.
    """
    w = one(table, i)
    n_started = 0
    at = 0
    for k in range(jobs.shape[0]):
        j = jobs[k].row
        state = w.run[j].state
        if jobs[k].state != codes.QUEUED or (state != codes.GIVEN and state != codes.RUNNING):
            continue
        c = np.int64(w.run[j].chunk)
        found[at] = k
        found[at + 1] = c
        found[at + 2] = state == codes.GIVEN
        head = at + 3
        found[head] = 0
        n_started += 1
        at += 4
        while c != codes.NONE:
            found[head] += 1
            found[at] = w.chunk[c].low
            found[at + 1] = w.chunk[c].high
            found[at + 2] = w.chunk[c].per
            at += 3
            c = np.int64(w.chunk[c].next)
    first_off = at
    for state in (codes.SWITCHING_ON, codes.SWITCHING_OFF):
        first_off = at
        for n in range(w.o[0].n_nodes):
            if w.node[n].power == state and nodes[n].power != state and nodes[n].gone == 0:
                found[at] = n
                at += 1
    return n_started, at, at - first_off, _next_call(w), np.int64(w.s[0].tick_us), np.int64(w.s[0].n_timers)


@lean
def _next_call(w: World) -> int:
    """The next instant at which something falls due for the policies; NEVER_US if nothing does. What the machine
    reports by itself, ends of jobs and of switches, is left out."""
    s = w.s[0]
    o = w.o[0]
    t = min(s.next_plan_us, s.tick_us)
    next_due(w)
    t = min(t, s.next_off_us)
    if o.guard_us < codes.NEVER_US:
        note_age(w)
        t = min(t, s.next_aged_us)
    if o.moves == 1 and s.n_plans > 0:
        t = min(t, w.run[w.plans[0]].plan)
    if s.n_timers > 0:
        t = min(t, w.heaps[HEAP_TIMERS, 0].time)
    if o.shutdown == codes.HOLD:
        j = s.first
        while j != codes.NONE:
            end = hold_end(w, j)
            if end > s.now:
                t = min(t, end)
            j = np.int64(w.run[j].next)
    return t
