"""Which waiting job comes first, and next, where scores grow with the wait (`growing`), or where there are two orders.

Such a score is a line over time, or nearly. The search tree (`queue`; here its ranks go by cores, then walltime, so
that jobs of a cell are alike) keeps in each cell the job that comes first among the cell's, and until when it surely
does: a kinetic tournament. What is out of date is played again before a search, the rest stands. A search opens the
cells in the order of their first jobs and leaves out those without a job that may pass. Where those who pass the first
have an order of their own, there are two tournaments over the same cells: `k` is 0 for the order of the queue, 1 for
the other.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.growing import clock_of, growing_score, slope_of, stays_first
from escala.kernel.lanes import behind, first_of, is_mine
from escala.kernel.queue import (
    CORES,
    FIRST,
    SHORT_QUEUE,
    UNTIL,
    WALLTIME,
    cell_may_pass,
    index_new,
    job_may_pass,
    rank_of,
    row_at,
)
from escala.kernel.reach import EMPTY, NO_LIMIT
from escala.kernel.state import FAN, World

JOB = -1  # `FRONT.place` of an entry that stands for a job alone
SHIFT = FAN.bit_length() - 1
LEVEL = 1 << 40  # `FRONT.place` of a cell: level x LEVEL + its number


@inlined
def _width(w: World, level: int) -> int:
    """Cells of a level; jobs for level -1."""
    width = w.o[0].n_jobs
    for _ in range(level + 1):
        width = -(-width // FAN)
    return width


@inlined
def _base(w: World, level: int) -> int:
    """Where the cells of a level begin in the tree."""
    base = 0
    width = -(-w.o[0].n_jobs // FAN)
    for _ in range(level):
        base += width
        width = -(-width // FAN)
    return base


@inlined
def _top(w: World) -> int:
    """Level of the cell that holds all jobs."""
    level = 0
    width = -(-w.o[0].n_jobs // FAN)
    while width > 1:
        width = -(-width // FAN)
        level += 1
    return level


@inlined
def _cell_of(w: World, j: int, level: int) -> int:
    """The cell of a level that holds job `j`."""
    cell = rank_of(w, j) // FAN
    for _ in range(level):
        cell //= FAN
    return cell


@inlined
def _first_of(w: World, k: int, base: int, level: int, cell: int) -> int:
    """First job of a cell of a level, NONE where nobody waits; of level -1: the job at rank `cell`, NONE unless it
    waits."""
    if level < 0:
        j = row_at(w, cell)
        return j if w.run[j].state == codes.QUEUED else codes.NONE
    return w.tree[FIRST + 2 * k, base + cell] if w.tree[CORES, base + cell] != EMPTY else codes.NONE


@lean
def _play(w: World, k: int, level: int, cell: int) -> None:
    """Find the first job of a cell whose children are up to date."""
    below = _base(w, level - 1)
    low = cell * FAN
    high = min(low + FAN, _width(w, level - 1))
    best = codes.NONE
    least = 0.0
    for child in range(low, high):
        j = _first_of(w, k, below, level - 1, child)
        if j == codes.NONE:
            continue
        score = growing_score(w, k, j)
        if best == codes.NONE or score < least or (score == least and j < best):
            best = j
            least = score
    until = codes.NEVER_US
    for child in range(low, high):
        j = _first_of(w, k, below, level - 1, child)
        if j == codes.NONE:
            continue
        if level > 0:
            until = min(until, w.tree[UNTIL + 2 * k, below + child])
        if j != best:
            until = min(until, stays_first(w, k, best, j, least))
    at = _base(w, level) + cell
    w.tree[FIRST + 2 * k, at] = best
    w.tree[UNTIL + 2 * k, at] = until


@lean
def settle(w: World, k: int, level: int, cell: int) -> None:
    """Bring a cell and all below it up to date: down to its first child that is out of date, then on to the right, then
    up."""
    now = clock_of(w, k)
    top = level
    base = _base(w, level)
    if w.tree[UNTIL + 2 * k, base + cell] >= now:
        return
    while True:
        child = _late_from(w, k, level - 1, cell * FAN, cell)
        while child != codes.NONE:
            level -= 1
            cell = child
            child = _late_from(w, k, level - 1, cell * FAN, cell)
        _play(w, k, level, cell)
        while level < top:
            child = _late_from(w, k, level, cell + 1, cell // FAN)
            if child != codes.NONE:
                cell = child
                break
            cell //= FAN
            level += 1
            _play(w, k, level, cell)
        if level == top:
            return


@lean
def _late_from(w: World, k: int, level: int, start: int, parent: int) -> int:
    """The first cell of a level from `start` on, among the children of `parent`, that is out of date; NONE if there is
    none."""
    if level < 0:
        return codes.NONE
    now = clock_of(w, k)
    base = _base(w, level)
    for cell in range(start, min((parent + 1) * FAN, _width(w, level))):
        if w.tree[UNTIL + 2 * k, base + cell] < now:
            return cell
    return codes.NONE


@lean
def most_urgent(w: World) -> int:
    """The queued job of the smallest score (ties in queue order) of the lane whose turn it is; somebody waits there."""
    if w.s[0].n_queued <= SHORT_QUEUE:
        best = first_of(w)
        least = growing_score(w, 0, best)
        j = behind(w, best)
        while j != codes.NONE:
            score = growing_score(w, 0, j)
            if score < least:
                least = score
                best = j
            j = behind(w, j)
        return best
    if w.s[0].lane > 0:
        next_urgent(w, 0, front_of(w, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT), NO_LIMIT, NO_LIMIT, NO_LIMIT)
        return w.front[0].row
    enter_new(w)
    top = _top(w)
    settle(w, 0, top, 0)
    return w.tree[FIRST, _base(w, top)]


@lean
def enter_new(w: World) -> None:
    """Jobs that are queued but not yet in the search tree enter it, with their slopes."""
    s = w.s[0]
    for j in range(s.indexed, s.next_job):
        w.run[j].slope = slope_of(w, 0, j)
    index_new(w)


@lean
def _push(w: World, k: int, n: int, j: int, place: int) -> int:
    """Add an entry (job `j`, first of the cell `place`) to the front, a heap of size n by score and row; returns the
    new size."""
    front = w.front
    score = float(rank_of(w, j)) if w.o[0].ordering == codes.BY_RANK else growing_score(w, k, j)
    i = n
    while i > 0:
        parent = (i - 1) >> 1
        if front[parent].score < score or (front[parent].score == score and front[parent].row < j):
            break
        front[i] = front[parent]
        i = parent
    front[i].score = score
    front[i].row = j
    front[i].place = place
    return n + 1


@inlined
def _ahead(w: World, a: int, b: int) -> bool:
    front = w.front
    return front[a].score < front[b].score or (front[a].score == front[b].score and front[a].row < front[b].row)


@lean
def _pop(w: World, n: int) -> int:
    """Remove the first entry of the front, of size n > 0; returns the new size."""
    front = w.front
    n -= 1
    i = 0
    child = 1
    while child < n:
        if child + 1 < n and _ahead(w, child + 1, child):
            child += 1
        if _ahead(w, n, child):
            break
        front[i] = front[child]
        i = child
        child = 2 * i + 1
    front[i] = front[n]
    return n


@inlined
def _of_others(w: World, level: int, cell: int) -> bool:
    """Are all jobs of a cell of other lanes than the one whose turn it is?"""
    lane = w.lane[w.s[0].lane]
    width = SHIFT * (level + 1)
    return w.s[0].lane > 0 and ((cell + 1) << width <= lane.low or cell << width > lane.high)


@lean
def _push_cell(w: World, k: int, n: int, level: int, cell: int, free: int, window: int, extra: int) -> int:
    """Add a cell that is up to date, if one of its jobs may pass."""
    at = _base(w, level) + cell
    if _of_others(w, level, cell) or not cell_may_pass(w, at, WALLTIME, free, window, extra):
        return n
    return _push(w, k, n, w.tree[FIRST + 2 * k, at], level * LEVEL + cell)


@lean
def _push_job(w: World, k: int, n: int, j: int, free: int, window: int, extra: int) -> int:
    if w.run[j].state != codes.QUEUED or not job_may_pass(w, j, free, window, extra):
        return n
    return _push(w, k, n, j, JOB) if is_mine(w, j) else n


@lean
def front_of(w: World, k: int, free: int, window: int, extra: int) -> int:
    """Begin a search, in the order `k`, for the jobs with cores <= free and (walltime <= window or cores <= extra), of
    the lane whose turn it is; returns the size of the front."""
    s = w.s[0]
    n = 0
    if s.n_queued <= SHORT_QUEUE:
        j = first_of(w)
        while j != codes.NONE:
            n = _push_job(w, k, n, j, free, window, extra)
            j = behind(w, j)
        return n
    enter_new(w)
    top = _top(w)
    at = _base(w, top)
    if not cell_may_pass(w, at, WALLTIME, free, window, extra):
        return 0
    settle(w, k, top, 0)
    return _push_cell(w, k, 0, top, 0, free, window, extra)


@lean
def next_urgent(w: World, k: int, n: int, free: int, window: int, extra: int) -> int:
    """Go on until the first entry of the front is a job that may pass (`w.front[0].row`); returns the size of the
    front, 0: no job may."""
    while n > 0:
        j = w.front[0].row
        if job_may_pass(w, j, free, window, extra) and is_mine(w, j):
            return n
        n = beyond_first(w, k, n, free, window, extra)
    return 0


@lean
def beyond_first(w: World, k: int, n: int, free: int, window: int, extra: int) -> int:
    """Leave the first entry's job behind, whether it has started or not; returns the size of the front.

    A job that still waits is left out of its cell: the cell's other children are added, down to the other jobs beside
    it.
    """
    j = w.front[0].row
    place = w.front[0].place
    n = _pop(w, n)
    if place == JOB:
        return n
    level = place // LEVEL
    cell = place % LEVEL
    at = _base(w, level) + cell
    if not cell_may_pass(w, at, WALLTIME, free, window, extra):
        return n
    if w.run[j].state != codes.QUEUED:
        settle(w, k, level, cell)
        return _push_cell(w, k, n, level, cell, free, window, extra)
    while level > 0:
        level -= 1
        own = _cell_of(w, j, level)
        for child in range(cell * FAN, min((cell + 1) * FAN, _width(w, level))):
            if child != own:
                n = _push_cell(w, k, n, level, child, free, window, extra)
        cell = own
    for rank in range(cell * FAN, min((cell + 1) * FAN, w.o[0].n_jobs)):
        if row_at(w, rank) != j:
            n = _push_job(w, k, n, row_at(w, rank), free, window, extra)
    return n


@lean
def begin_walk(w: World) -> int:
    """The first queued job in the scheduler's order, whatever that is; NONE when the queue is empty. `walk_on` gives
    the others."""
    s = w.s[0]
    if w.o[0].ordering == codes.BY_QUEUE:
        return s.first
    n = 0
    j = s.first
    while j != codes.NONE:
        n = _push(w, 0, n, j, JOB)
        j = np.int64(w.run[j].next)
    s.in_front = n
    return w.front[0].row if n > 0 else codes.NONE


@lean
def walk_on(w: World, j: int) -> int:
    """The job behind job `j`, at which a walk in order is; NONE at its end. To be asked before job `j` may leave the
    queue."""
    s = w.s[0]
    if w.o[0].ordering == codes.BY_QUEUE:
        return np.int64(w.run[j].next)
    s.in_front = _pop(w, s.in_front)
    return w.front[0].row if s.in_front > 0 else codes.NONE
