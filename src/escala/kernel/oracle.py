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
from escala.kernel.lanes import lane_of
from escala.kernel.nodes import free_cores
from escala.kernel.reservation import hold_end
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, HOPING, ROOM, World


@inlined
def _first_alone(w: World) -> bool:
    """Under fcfs only the first may start, and only its mark is looked at."""
    return w.o[0].queueing == codes.STRICT and w.o[0].ordering == codes.BY_QUEUE


@lean
def _ending(w: World, j: int, time: int) -> int:
    """Cores of jobs in the lane of job `j` that have them now and will not at `time`, by their actual ends."""
    s = w.s[0]
    lane = lane_of(w, j)
    cores = 0
    for k in range(s.n_ends):
        i = w.heaps[HEAP_ENDS, k].id
        if w.heaps[HEAP_ENDS, k].time <= time and lane_of(w, i) == lane:
            cores += w.job[i].cores
    for k in range(s.n_starts):
        i = w.heaps[HEAP_STARTS, k].id
        if w.heaps[HEAP_STARTS, k].time + w.job[i].runtime <= time and lane_of(w, i) == lane:
            cores += w.job[i].cores
    return cores


@lean
def _count_room(w: World) -> None:
    """Free cores of nodes that are on, or on their way, by lane."""
    s = w.s[0]
    w.lane[0].room = s.free_on + s.free_boot
    for k in range(1, w.lane.shape[0]):
        w.lane[k].room = 0
    for n in range(w.o[0].n_nodes if w.lane.shape[0] > 1 else 0):
        node = w.node[n]
        if node.held == 0 and (node.power == codes.ON or node.power == codes.SWITCHING_ON):
            w.lane[node.lane].room += free_cores(w, n)


@lean
def hope(w: World, j: int) -> None:
    """Job `j`, just submitted, may be held."""
    s = w.s[0]
    w.run[j].place = codes.WOKEN_FOR
    if hold_end(w, j) > s.now and not _first_alone(w):
        w.heaps[HOPING, s.n_hoping].time = hold_end(w, j)
        w.heaps[HOPING, s.n_hoping].id = j
        w.heaps[ROOM, s.n_hoping].time = _ending(w, j, hold_end(w, j)) + w.lane[lane_of(w, j)].given_back
        w.heaps[ROOM, s.n_hoping].id = np.int64(w.job[j].cores)
        s.n_hoping += 1


@lean
def plan_oracle(w: World, end: int, started: int) -> None:
    """At each decision (`started` NONE), and after each start of a job, which will end at `end`: mark the jobs that are
    held, in queue order. Jobs that have started, or waited their share, leave the list."""
    s = w.s[0]
    _count_room(w)
    if _first_alone(w):
        _plan_first(w)
        return
    kept = 0
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
        lane = w.lane[lane_of(w, j)]
        if started != codes.NONE and end <= until and lane_of(w, started) == lane_of(w, j):
            room += np.int64(w.job[started].cores)
        if lane.room + room - lane.given_back >= need:
            w.run[j].place = codes.HELD
            lane.room -= need
        w.heaps[HOPING, kept].time = until
        w.heaps[HOPING, kept].id = j
        w.heaps[ROOM, kept].time = room
        w.heaps[ROOM, kept].id = need
        kept += 1
    s.n_hoping = kept


@lean
def _plan_first(w: World) -> None:
    """The mark of the first job of each queue."""
    for k in range(w.lane.shape[0]):
        j = w.lane[k].first if w.lane.shape[0] > 1 else w.s[0].first
        if j != codes.NONE:
            until = hold_end(w, j)
            held = until > w.s[0].now and w.lane[k].room + _ending(w, j, until) >= w.job[j].cores
            w.run[j].place = codes.HELD if held else codes.WOKEN_FOR
