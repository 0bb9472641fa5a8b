"""The waiting jobs behind the slots where these show the shortest ones (queue="shortest"): a heap of job rows, the shortest first, of
equals the oldest. No job behind the slots comes before one that has a slot.

`memory.seen` - `memory.entered` is its size: the jobs that came so far, but for those that have, or had, a slot.
"""

from __future__ import annotations

import numpy as np

from escala.compile import lean
from escala.envs.slots.state import Game
from escala.kernel import codes
from escala.kernel.state import World

NO_ROOM = -2


@lean
def before(w: World, a: int, b: int) -> bool:
    """Does job `a` come before job `b`?"""
    mine, other = w.job[a].walltime, w.job[b].walltime
    return mine < other or (mine == other and a < b)


@lean
def push(w: World, g: Game, n: int, j: int) -> None:
    """Job `j` goes behind the slots, where n are."""
    heap = g.behind
    at = n
    while at > 0 and before(w, j, np.int64(heap[(at - 1) // 2])):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = j


@lean
def pop(w: World, g: Game, n: int) -> int:
    """The first of the n jobs behind the slots; it is taken away."""
    heap = g.behind
    first, last = np.int64(heap[0]), np.int64(heap[n - 1])
    at = 0
    while 2 * at + 1 < n - 1:
        child = 2 * at + 1
        if child + 1 < n - 1 and before(w, np.int64(heap[child + 1]), np.int64(heap[child])):
            child += 1
        if not before(w, np.int64(heap[child]), last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@lean
def come(w: World, g: Game, j: int) -> int:
    """A new job takes the lowest empty slot, or that of the last job that has one, if it comes before that; else it goes behind them. Its
    slot, NONE, or NO_ROOM."""
    m = g.memory
    if w.run[j].state != codes.QUEUED:  # beside a machine: somebody else has started it
        m.entered += 1
        return codes.NONE
    worst = 0
    for k in range(g.settings.slots):
        if g.slots[k] == codes.NONE:
            g.slots[k] = j
            m.entered += 1
            return k
        if before(w, np.int64(g.slots[worst]), np.int64(g.slots[k])):
            worst = k
    n = m.seen - m.entered
    if n >= g.behind.shape[0]:
        return NO_ROOM
    last = np.int64(g.slots[worst])
    if before(w, j, last):
        g.slots[worst] = j
        push(w, g, n, last)
        return worst
    push(w, g, n, j)
    return codes.NONE
