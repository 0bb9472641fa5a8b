"""What happens next, and the written order of what happens at one instant.

Job ends -> node switches ending -> submissions -> planned starts (of jobs that were given nodes) -> planned ends that
are outlived -> timers; within a kind by row or node number. Each kind has a binary heap of (time, id), or a pointer
where the times are sorted already (planned ends: the heap of `plans`); the order of kinds is the order in which
`advance.take_in` empties them.
"""

from __future__ import annotations

from typing import Any

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, HEAP_SWITCHES, HEAP_TIMERS, World


@inlined
def _before(heap: Any, a: int, b: int) -> bool:
    return heap[a].time < heap[b].time or (heap[a].time == heap[b].time and heap[a].id < heap[b].id)


@lean
def push(heap: Any, n: int, time: int, ident: int) -> int:
    """Add (time, ident) to a heap of size n; returns the new size."""
    i = n
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent].time < time or (heap[parent].time == time and heap[parent].id < ident):
            break
        heap[i].time = heap[parent].time
        heap[i].id = heap[parent].id
        i = parent
    heap[i].time = time
    heap[i].id = ident
    return n + 1


@lean
def pop(heap: Any, n: int) -> int:
    """Remove the first of a heap of size n > 0; returns the new size."""
    n -= 1
    time = heap[n].time
    ident = heap[n].id
    i = 0
    child = 1
    while child < n:
        if child + 1 < n and _before(heap, child + 1, child):
            child += 1
        if time < heap[child].time or (time == heap[child].time and ident < heap[child].id):
            break
        heap[i].time = heap[child].time
        heap[i].id = heap[child].id
        i = child
        child = 2 * i + 1
    heap[i].time = time
    heap[i].id = ident
    return n


@inlined
def next_instant(w: World) -> int:
    """Time of the next event in us, NEVER_US if there is none."""
    s = w.s[0]
    o = w.o[0]
    t = codes.NEVER_US
    if s.next_job < o.n_jobs:
        t = w.job[s.next_job].submit
    if s.n_ends > 0:
        t = min(t, w.heaps[HEAP_ENDS, 0].time)
    if s.n_switches > 0:
        t = min(t, w.heaps[HEAP_SWITCHES, 0].time)
    if s.n_starts > 0:
        t = min(t, w.heaps[HEAP_STARTS, 0].time)
    if s.n_timers > 0:
        t = min(t, w.heaps[HEAP_TIMERS, 0].time)
    if o.moves == 1 and s.n_plans > 0:
        t = min(t, w.run[w.plans[0]].plan)
    t = min(t, s.next_off_us)
    t = min(t, s.next_aged_us)
    t = min(t, s.next_plan_us)
    return min(t, s.tick_us)
