"""OR*: which waiting jobs are held, because enough cores of nodes that are on will be free in time.

A job is held if enough cores of nodes that are on, or switching on, will be free before it has waited its share of the
walltime, besides those that jobs held before it wait for. The mark lies in `RUN.place`, which has no other use while a
job waits.

Only jobs that have not waited so long yet may be held. They stand in a list in the order of the queue (`state.HOPING`,
`state.ROOM`), each with the cores that jobs which have cores now, or had them, will have given back by the end of its
hold. It never has more entries than there are timers, for each has one: the end of its hold.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.reservation import hold_end
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, HOPING, ROOM, World


@inlined
def _first_alone(w: World) -> bool:
    """Under fcfs only the first may start, and only its mark is looked at."""
    return w.o[0].queueing == codes.STRICT and w.o[0].ordering == codes.BY_QUEUE


@lean
def _ending(w: World, time: int) -> int:
    """Cores of jobs that have them now and will not at `time`, by their actual ends."""
    s = w.s[0]
    cores = 0
    for k in range(s.n_ends):
        if w.heaps[HEAP_ENDS, k].time <= time:
            cores += w.job[w.heaps[HEAP_ENDS, k].id].cores
    for k in range(s.n_starts):
        i = w.heaps[HEAP_STARTS, k].id
        if w.heaps[HEAP_STARTS, k].time + w.job[i].runtime <= time:
            cores += w.job[i].cores
    return cores


@lean
def hope(w: World, j: int) -> None:
    """Job `j`, just submitted, may be held."""
    s = w.s[0]
    w.run[j].place = codes.WOKEN_FOR
    if hold_end(w, j) > s.now and not _first_alone(w):
        w.heaps[HOPING, s.n_hoping].time = hold_end(w, j)
        w.heaps[HOPING, s.n_hoping].id = j
        w.heaps[ROOM, s.n_hoping].time = _ending(w, hold_end(w, j)) + s.given_back
        w.heaps[ROOM, s.n_hoping].id = np.int64(w.job[j].cores)
        s.n_hoping += 1


@lean
def plan_oracle(w: World, end: int, cores: int) -> None:
    """At each decision, and after each start of a job (which has `cores` until `end`; at a decision NEVER_US): mark the
    jobs that are held, in queue order. Jobs that have started, or waited their share, leave the list."""
    s = w.s[0]
    if _first_alone(w):
        _plan_first(w)
        return
    taken = 0
    kept = 0
    ready = s.free_on + s.free_boot - s.given_back
    for k in range(s.n_hoping):
        until = w.heaps[HOPING, k].time
        j = w.heaps[HOPING, k].id
        if w.run[j].state != codes.QUEUED:
            continue
        w.run[j].place = codes.WOKEN_FOR
        if until <= s.now:
            continue
        room = w.heaps[ROOM, k].time
        need = w.heaps[ROOM, k].id
        if end <= until:
            room += cores
        if ready + room - taken >= need:
            w.run[j].place = codes.HELD
            taken += need
        w.heaps[HOPING, kept].time = until
        w.heaps[HOPING, kept].id = j
        w.heaps[ROOM, kept].time = room
        w.heaps[ROOM, kept].id = need
        kept += 1
    s.n_hoping = kept


@lean
def _plan_first(w: World) -> None:
    """The mark of the queue's first job."""
    s = w.s[0]
    if s.first != codes.NONE:
        until = hold_end(w, s.first)
        held = until > s.now and s.free_on + s.free_boot + _ending(w, until) >= w.job[s.first].cores
        w.run[s.first].place = codes.HELD if held else codes.WOKEN_FOR
