"""The waiting jobs behind the slots where these do not show the oldest: job rows, in `game.behind`.

queue="shortest": a heap, the shortest first, of equals the oldest; no job behind the slots comes before one that has a
slot.
queue="ends": sorted by age; half of the slots, rounded up, the *head*, hold jobs older than all of them, the others,
the *tail*, newer ones. Which slots are the head's follows from the jobs in them: theirs are the oldest.

`memory.seen` - `memory.entered` is their number: the jobs that came so far, but for those that have, or had, a slot.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.envs.slots.state import SHOWS_SHORTEST, Game
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
def join(w: World, g: Game, n: int, j: int) -> None:
    """Job `j` goes behind the slots, where n are; of the ends' no older one than these."""
    if g.settings.shows == SHOWS_SHORTEST:
        push(w, g, n, j)
    else:
        g.behind[n] = j


@lean
def leave(w: World, g: Game, n: int) -> int:
    """The one of the n jobs behind the slots that has the first claim to an empty slot; it is taken away."""
    if g.settings.shows == SHOWS_SHORTEST:
        return pop(w, g, n)
    slots, rows = g.slots, g.behind
    older = 0
    for k in range(g.settings.slots):
        older += 1 if slots[k] != codes.NONE and slots[k] < rows[0] else 0
    if older >= head(g):
        return np.int64(rows[n - 1])
    first = np.int64(rows[0])
    for at in range(n - 1):
        rows[at] = rows[at + 1]
    return first


@inlined
def head(g: Game) -> int:
    """How many slots show the oldest jobs."""
    return (g.settings.slots + 1) // 2


@lean
def come(w: World, g: Game, j: int) -> int:
    """A new job takes the lowest empty slot, or that of the job that has to leave its slot for it; else it goes behind
    them. Its slot, NONE, or NO_ROOM."""
    m = g.memory
    if w.run[j].state != codes.QUEUED:  # beside a machine: somebody else has started it
        m.entered += 1
        return codes.NONE
    for k in range(g.settings.slots):
        if g.slots[k] == codes.NONE:
            g.slots[k] = j
            m.entered += 1
            return k
    n = m.seen - m.entered
    if n >= g.behind.shape[0]:
        return NO_ROOM
    at = _longest(w, g, j) if g.settings.shows == SHOWS_SHORTEST else _oldest_of_tail(g)
    leaves = j
    if at != codes.NONE:
        leaves = np.int64(g.slots[at])
        g.slots[at] = j
    join(w, g, n, leaves)
    return at


@lean
def _longest(w: World, g: Game, j: int) -> int:
    """The slot of the longest job, of equals the newest; NONE if job `j` comes behind that."""
    worst = 0
    for k in range(g.settings.slots):
        if before(w, np.int64(g.slots[worst]), np.int64(g.slots[k])):
            worst = k
    return worst if before(w, j, np.int64(g.slots[worst])) else codes.NONE


@lean
def _oldest_of_tail(g: Game) -> int:
    """The slot of the job that as many jobs in slots are older than as the head has slots (every slot is taken); NONE
    if the head has them all."""
    slots, first = g.slots, head(g)
    if first == g.settings.slots:
        return codes.NONE
    # its row is one of these: by halves, the least that more than `first` rows in slots do not exceed
    low, high = 0, g.memory.seen - 1
    while low < high:
        middle = (low + high) // 2
        many = 0
        for k in range(g.settings.slots):
            many += 1 if slots[k] <= middle else 0
        if many > first:
            high = middle
        else:
            low = middle + 1
    for k in range(g.settings.slots):
        if slots[k] == low:
            return k
    return codes.NONE
