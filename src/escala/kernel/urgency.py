"""Which waiting job comes first, and next, where scores grow with the wait (WFP3, UNICEP, the expansion factor).

Such a score is a power of slope x wait, with a slope of the job's own, so jobs are lines over time. (A fixed score that becomes known
only when a job is submitted, codes.BY_KEY, is found in the same way: its lines are level.) The search tree (`queue`; here its
ranks go by cores, then walltime, so that jobs of a cell are alike) keeps in each cell the job that comes first among the cell's, and until
when it surely does: a kinetic tournament. What is out of date is played again before a search, the rest stands. A search opens the cells
in the order of their first jobs and leaves out those without a job that may pass.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.forecast import length_of
from escala.kernel.queue import CORES, EMPTY, FIRST, SHORT_QUEUE, UNTIL, WALLTIME, index_new, may_pass, rank_of, row_at
from escala.kernel.state import FAN, World

JOB = -1  # `FRONT.place` of an entry that stands for a job alone
LEVEL = 1 << 40  # `FRONT.place` of a cell: level x LEVEL + its number
DOUBT = 2e-7  # slopes are kept as 32-bit numbers: two lines that are nearer than this share of their height may change places


@inlined
def growing_score(w: World, j: int) -> float:
    """WFP3: -(wait / walltime)^3 cores. UNICEP: -wait / (log2(max(cores, 2)) walltime) (Tang et al. 2009). Expansion factor: -wait /
    walltime. Or the score of codes.BY_KEY. -infinity for a job that has waited the guard. The smallest is first."""
    if j < w.s[0].aged:
        return -np.inf
    if w.o[0].ordering == codes.BY_KEY:
        return w.forecast[j].key
    ratio = (w.s[0].now - w.job[j].submit) / max(length_of(w, j), 1)  # one division of whole numbers: equal ratios tie
    cores = np.int64(w.job[j].cores)
    if w.o[0].ordering == codes.BY_WFP3:
        return -(ratio * ratio * ratio) * cores
    if w.o[0].ordering == codes.BY_XFACTOR:
        return -ratio
    return -ratio / np.log2(max(cores, 2))


@inlined
def _slope_of(w: World, j: int) -> float:
    """Growth of the line of job `j`, 1/us."""
    cores = np.int64(w.job[j].cores)
    if w.o[0].ordering == codes.BY_WFP3:
        factor = np.cbrt(cores)
    else:
        factor = 1.0 if w.o[0].ordering == codes.BY_XFACTOR else 1.0 / np.log2(max(cores, 2))
    return factor / max(length_of(w, j), 1)


@lean
def _stays_first(w: World, a: int, b: int) -> int:
    """Time up to which job `a`, which comes before job `b` now, surely does, us; now, where that cannot be told."""
    if w.o[0].ordering == codes.BY_KEY or (w.job[a].cores == w.job[b].cores and length_of(w, a) == length_of(w, b)):
        return codes.NEVER_US  # of equal ones the one submitted first
    if a < w.s[0].aged:
        return codes.NEVER_US  # it has waited the guard
    now = w.s[0].now
    least = w.run[a].slope * (1.0 - DOUBT)
    most = w.run[b].slope * (1.0 + DOUBT)
    lead = least * (now - w.job[a].submit) - most * (now - w.job[b].submit)
    if lead <= 0.0:
        return now
    if most <= least:
        return codes.NEVER_US
    return now + np.int64(min(lead / (most - least), 1e18))


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
def _first_of(w: World, base: int, level: int, k: int) -> int:
    """First job of cell `k` of a level, NONE where nobody waits; of level -1: the job at rank `k`, NONE unless it waits."""
    if level < 0:
        j = row_at(w, k)
        return j if w.run[j].state == codes.QUEUED else codes.NONE
    return w.tree[FIRST, base + k] if w.tree[CORES, base + k] != EMPTY else codes.NONE


@lean
def _play(w: World, level: int, cell: int) -> None:
    """Find the first job of a cell whose children are up to date."""
    below = _base(w, level - 1)
    low = cell * FAN
    high = min(low + FAN, _width(w, level - 1))
    best = codes.NONE
    least = 0.0
    for k in range(low, high):
        j = _first_of(w, below, level - 1, k)
        if j == codes.NONE:
            continue
        score = growing_score(w, j)
        if best == codes.NONE or score < least or (score == least and j < best):
            best = j
            least = score
    until = codes.NEVER_US
    for k in range(low, high):
        j = _first_of(w, below, level - 1, k)
        if j == codes.NONE:
            continue
        if level > 0:
            until = min(until, w.tree[UNTIL, below + k])
        if j != best:
            until = min(until, _stays_first(w, best, j))
    at = _base(w, level) + cell
    w.tree[FIRST, at] = best
    w.tree[UNTIL, at] = until


@lean
def settle(w: World, level: int, cell: int) -> None:
    """Bring a cell and all below it up to date: down to its first child that is out of date, then on to the right, then up."""
    now = w.s[0].now
    top = level
    base = _base(w, level)
    if w.tree[UNTIL, base + cell] >= now:
        return
    while True:
        child = _late_from(w, level - 1, cell * FAN, cell)
        while child != codes.NONE:
            level -= 1
            cell = child
            child = _late_from(w, level - 1, cell * FAN, cell)
        _play(w, level, cell)
        while level < top:
            child = _late_from(w, level, cell + 1, cell // FAN)
            if child != codes.NONE:
                cell = child
                break
            cell //= FAN
            level += 1
            _play(w, level, cell)
        if level == top:
            return


@lean
def _late_from(w: World, level: int, start: int, parent: int) -> int:
    """The first cell of a level from `start` on, among the children of `parent`, that is out of date; NONE if there is none."""
    if level < 0:
        return codes.NONE
    now = w.s[0].now
    base = _base(w, level)
    for k in range(start, min((parent + 1) * FAN, _width(w, level))):
        if w.tree[UNTIL, base + k] < now:
            return k
    return codes.NONE


@lean
def most_urgent(w: World) -> int:
    """The queued job of the smallest score (ties in queue order); the queue is not empty."""
    if w.s[0].n_queued <= SHORT_QUEUE:
        best = w.s[0].first
        least = growing_score(w, best)
        j = np.int64(w.run[best].next)
        while j != codes.NONE:
            score = growing_score(w, j)
            if score < least:
                least = score
                best = j
            j = np.int64(w.run[j].next)
        return best
    enter_new(w)
    top = _top(w)
    settle(w, top, 0)
    return w.tree[FIRST, _base(w, top)]


@lean
def enter_new(w: World) -> None:
    """Jobs that are queued but not yet in the search tree enter it, with their slopes."""
    s = w.s[0]
    for j in range(s.indexed, s.next_job):
        w.run[j].slope = _slope_of(w, j)
    index_new(w)


@lean
def _push(w: World, n: int, j: int, place: int) -> int:
    """Add an entry (job `j`, first of the cell `place`) to the front, a heap of size n by score and row; returns the new size."""
    front = w.front
    score = float(rank_of(w, j)) if w.o[0].ordering == codes.BY_RANK else growing_score(w, j)
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


@lean
def _push_cell(w: World, n: int, level: int, cell: int, free: int, window: int, extra: int) -> int:
    """Add a cell that is up to date, if one of its jobs may pass. (The least cores may be those of a job that started before it was due in
    the tree; then nobody is first.)"""
    at = _base(w, level) + cell
    if (
        w.tree[CORES, at] == EMPTY
        or w.tree[FIRST, at] == codes.NONE
        or not may_pass(w.tree[CORES, at], w.tree[WALLTIME, at], free, window, extra)
    ):
        return n
    return _push(w, n, w.tree[FIRST, at], level * LEVEL + cell)


@lean
def _push_job(w: World, n: int, j: int, free: int, window: int, extra: int) -> int:
    if w.run[j].state != codes.QUEUED or not may_pass(w.job[j].cores, w.job[j].walltime, free, window, extra):
        return n
    return _push(w, n, j, JOB)


@lean
def front_of(w: World, free: int, window: int, extra: int) -> int:
    """Begin a search for the jobs with cores <= free and (walltime <= window or cores <= extra); returns the size of the front."""
    s = w.s[0]
    n = 0
    if s.n_queued <= SHORT_QUEUE:
        j = s.first
        while j != codes.NONE:
            n = _push_job(w, n, j, free, window, extra)
            j = np.int64(w.run[j].next)
        return n
    enter_new(w)
    top = _top(w)
    at = _base(w, top)
    if not may_pass(w.tree[CORES, at], w.tree[WALLTIME, at], free, window, extra):
        return 0
    settle(w, top, 0)
    return _push_cell(w, 0, top, 0, free, window, extra)


@lean
def next_urgent(w: World, n: int, free: int, window: int, extra: int) -> int:
    """Go on until the first entry of the front is a job that may pass (`w.front[0].row`); returns the size of the front, 0: no job may."""
    while n > 0:
        j = w.front[0].row
        if may_pass(w.job[j].cores, w.job[j].walltime, free, window, extra):
            return n
        n = beyond_first(w, n, free, window, extra)
    return 0


@lean
def beyond_first(w: World, n: int, free: int, window: int, extra: int) -> int:
    """Leave the first entry's job behind, whether it has started or not; returns the size of the front.

    A job that still waits is left out of its cell: the cell's other children are added, down to the other jobs beside it.
    """
    j = w.front[0].row
    place = w.front[0].place
    n = _pop(w, n)
    if place == JOB:
        return n
    level = place // LEVEL
    cell = place % LEVEL
    at = _base(w, level) + cell
    if not may_pass(w.tree[CORES, at], w.tree[WALLTIME, at], free, window, extra):
        return n
    if w.run[j].state != codes.QUEUED:
        settle(w, level, cell)
        return _push_cell(w, n, level, cell, free, window, extra)
    while level > 0:
        level -= 1
        own = _cell_of(w, j, level)
        for child in range(cell * FAN, min((cell + 1) * FAN, _width(w, level))):
            if child != own:
                n = _push_cell(w, n, level, child, free, window, extra)
        cell = own
    for rank in range(cell * FAN, min((cell + 1) * FAN, w.o[0].n_jobs)):
        if row_at(w, rank) != j:
            n = _push_job(w, n, row_at(w, rank), free, window, extra)
    return n


@lean
def begin_walk(w: World) -> int:
    """The first queued job in the scheduler's order, whatever that is; NONE when the queue is empty. `walk_on` gives the others."""
    s = w.s[0]
    if w.o[0].ordering == codes.BY_QUEUE:
        return s.first
    n = 0
    j = s.first
    while j != codes.NONE:
        n = _push(w, n, j, JOB)
        j = np.int64(w.run[j].next)
    s.in_front = n
    return w.front[0].row if n > 0 else codes.NONE


@lean
def walk_on(w: World, j: int) -> int:
    """The job behind job `j`, at which a walk in order is; NONE at its end. To be asked before job `j` may leave the queue."""
    s = w.s[0]
    if w.o[0].ordering == codes.BY_QUEUE:
        return np.int64(w.run[j].next)
    s.in_front = _pop(w, s.in_front)
    return w.front[0].row if s.in_front > 0 else codes.NONE
