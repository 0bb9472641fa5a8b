"""The queue: a linked list in order of submission, and a search tree over a fixed order of all jobs.

The tree holds, for each cell of 16 ranks (and of 16 cells, level by level), the least cores and the least walltime
among its *queued* jobs. "The next job, in this order, that needs at most c cores and either ends in time or needs at
most e cores" is then found without looking at jobs that cannot be it. A job enters the tree only when a search is due,
so one that starts on arrival never touches it.

With a guard a job that has waited so long stands in front, the oldest first. Under a fixed order the first n_jobs ranks
are kept for such jobs, by row, and the order of all jobs follows: a job moves from its rank there to its rank in front.
Scores that grow with the wait are -infinity from then on.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.backlog import weigh
from escala.kernel.forecast import foresee
from escala.kernel.state import FAN, World
from escala.kernel.users import count

EMPTY = 1 << 62  # least value of a cell without queued jobs
OUTDATED = -EMPTY  # `UNTIL` of a cell whose first job has to be found anew
NO_LIMIT = EMPTY - 1  # of cores or walltime, in a search: every job passes, an empty cell never does
# rows of the tree; the last two where a tournament finds the first (`urgency`), twice for two
CORES, WALLTIME, FIRST, UNTIL = range(4)
SHORT_QUEUE = 24  # up to this length the list is walked: measured faster than the tree


@inlined
def row_at(w: World, rank: int) -> int:
    """Job row at a rank of the search order."""
    return np.int64(w.order[0, rank]) if w.order.shape[1] > 0 else rank


@inlined
def rank_of(w: World, j: int) -> int:
    """Rank of job row `j` in the search order."""
    return np.int64(w.order[1, j]) if w.order.shape[1] > 0 else j


@inlined
def _least_of_jobs(w: World, cell: int) -> tuple[int, int]:
    """Least cores and walltime among the queued jobs of a bottom cell."""
    cores = EMPTY
    walltime = EMPTY
    for rank in range(cell * FAN, min((cell + 1) * FAN, w.o[0].n_ranks)):
        j = row_at(w, rank)
        if j < w.s[0].indexed and w.run[j].state == codes.QUEUED and rank_of(w, j) == rank:
            cores = min(cores, w.job[j].cores)
            walltime = min(walltime, w.job[j].walltime)
    return cores, walltime


@lean
def _refresh(w: World, rank: int) -> None:
    """Recompute the cells above a rank, as far up as something changes. A cell that is out of date has no parent that
    is not."""
    cell = rank // FAN
    orders = (w.tree.shape[0] - FIRST) // 2
    cores, walltime = _least_of_jobs(w, cell)
    base = 0
    width = -(-w.o[0].n_ranks // FAN)
    while True:
        same = w.tree[CORES, base + cell] == cores and w.tree[WALLTIME, base + cell] == walltime
        for k in range(orders):
            same = same and w.tree[UNTIL + 2 * k, base + cell] == OUTDATED
        if same:
            return
        w.tree[CORES, base + cell] = cores
        w.tree[WALLTIME, base + cell] = walltime
        for k in range(orders):
            w.tree[UNTIL + 2 * k, base + cell] = OUTDATED
        if width == 1:
            return
        parent = cell // FAN
        cores = EMPTY
        walltime = EMPTY
        for child in range(parent * FAN, min((parent + 1) * FAN, width)):
            cores = min(cores, w.tree[CORES, base + child])
            walltime = min(walltime, w.tree[WALLTIME, base + child])
        base += width
        width = -(-width // FAN)
        cell = parent


@lean
def outdate(w: World, k: int, rank: int) -> None:
    """The first jobs of the cells above a rank have to be found anew, in the order `k`."""
    cell = rank // FAN
    base = 0
    width = -(-w.o[0].n_ranks // FAN)
    while w.tree[UNTIL + 2 * k, base + cell] != OUTDATED:
        w.tree[UNTIL + 2 * k, base + cell] = OUTDATED
        if width == 1:
            return
        base += width
        width = -(-width // FAN)
        cell //= FAN


@lean
def enqueue(w: World, j: int) -> None:
    """Job `j` joins the end of the queue."""
    s = w.s[0]
    w.run[j].state = codes.QUEUED
    w.run[j].next = codes.NONE
    w.run[j].prev = s.last
    if s.last == codes.NONE:
        s.first = j
    else:
        w.run[s.last].next = j
    s.last = j
    s.n_queued += 1
    if w.forecast.shape[0] > 0:
        foresee(w, j)
    weigh(w, j, 1)
    if w.user.shape[0] > 0:
        count(w, j, 1, 0)


@lean
def index_new(w: World) -> None:
    """Jobs that are queued but not yet in the search tree enter it: called only before a search. A job counts in its
    cell from then on: one that starts before leaves nothing behind."""
    s = w.s[0]
    while s.indexed < s.next_job:
        j = s.indexed
        s.indexed += 1
        if w.run[j].state == codes.QUEUED:
            _refresh(w, rank_of(w, j))


@lean
def dequeue(w: World, j: int, state: int) -> None:
    """Job `j` leaves the queue for `state`."""
    s = w.s[0]
    before = np.int64(w.run[j].prev)
    after = np.int64(w.run[j].next)
    if before == codes.NONE:
        s.first = after
    else:
        w.run[before].next = after
    if after == codes.NONE:
        s.last = before
    else:
        w.run[after].prev = before
    s.n_queued -= 1
    weigh(w, j, -1)
    w.run[j].state = state
    if w.user.shape[0] > 0:
        count(w, j, -1, 0)
    if j < s.indexed and w.tree.shape[1] > 0:
        _refresh(w, rank_of(w, j))


@lean
def note_age(w: World) -> bool:
    """Jobs that have waited the guard by now move to the front; True if there is one. Notes when the next will have
    waited so long."""
    s = w.s[0]
    o = w.o[0]
    moved = False
    while s.aged < s.next_job:
        j = s.aged
        waits = w.run[j].state == codes.QUEUED
        if waits and w.job[j].submit + o.guard_us > s.now:
            s.next_aged_us = w.job[j].submit + o.guard_us
            return moved
        s.aged += 1
        if waits:
            _to_front(w, j)
            moved = True
    s.next_aged_us = codes.NEVER_US
    return moved


@lean
def _to_front(w: World, j: int) -> None:
    """Job `j`, which waits, stands in front of all that have waited less: the head may be another, so its reservation
    falls."""
    s = w.s[0]
    s.head = codes.NONE
    before = rank_of(w, j)
    if w.o[0].n_ranks > w.o[0].n_jobs:
        w.order[1, j] = j
    if j < s.indexed and w.tree.shape[1] > 0:
        _refresh(w, before)
        _refresh(w, rank_of(w, j))


@inlined
def may_pass(cores: int, walltime: int, free: int, window: int, extra: int) -> bool:
    """Does a job need at most `free` cores, and either end in time or need at most `extra`?"""
    return cores <= free and (walltime <= window or cores <= extra)


@lean
def least_rank(w: World, first: int, beyond: int, free: int, window: int, extra: int) -> int:
    """Of the queued jobs from `first` on, in order of submission, with cores <= free and (walltime <= window or cores
    <= extra), the one of the least rank > beyond; NONE if there is none. For short queues."""
    best = codes.NONE
    least = w.o[0].n_ranks
    j = first
    while j != codes.NONE:
        rank = rank_of(w, j)
        if beyond < rank < least and may_pass(w.job[j].cores, w.job[j].walltime, free, window, extra):
            best = j
            least = rank
        j = np.int64(w.run[j].next)
    return best


@lean
def least_of_all(w: World) -> int:
    """The queued job of the least rank: the oldest where it has waited the guard, else one behind the ranks of such
    jobs. The queue is not empty."""
    s = w.s[0]
    if s.first < s.aged:
        return s.first
    if s.n_queued <= SHORT_QUEUE:
        return least_rank(w, s.first, codes.NONE, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    index_new(w)
    return row_at(w, next_fit(w, w.o[0].n_ranks - w.o[0].n_jobs, NO_LIMIT, NO_LIMIT, NO_LIMIT))


@lean
def next_fit(w: World, start: int, free: int, window: int, extra: int) -> int:
    """Least rank >= start of a queued job with cores <= free and (walltime <= window or cores <= extra); n_ranks if
    there is none."""
    n_ranks = w.o[0].n_ranks
    free = min(free, NO_LIMIT)
    rank = start
    while rank < n_ranks:
        end = min((rank // FAN + 1) * FAN, n_ranks)
        while rank < end:
            j = row_at(w, rank)
            if (
                w.run[j].state == codes.QUEUED
                and rank_of(w, j) == rank
                and may_pass(w.job[j].cores, w.job[j].walltime, free, window, extra)
            ):
                return rank
            rank += 1
        if rank >= n_ranks:
            return n_ranks
        rank = _next_cell(w, rank // FAN, free, window, extra) * FAN
    return n_ranks


@lean
def _next_cell(w: World, start: int, free: int, window: int, extra: int) -> int:
    """Least bottom cell >= start that may hold such a job; the number of bottom cells if there is none.

    Walks right along a level, climbs at the end of each group of 16 and descends into a cell that qualifies. A cell may
    promise what no child keeps (its two least values come from different jobs); the walk then simply goes on behind it.
    """
    bottom = -(-w.o[0].n_ranks // FAN)
    level = 0
    base = 0
    width = bottom
    cell = start
    while cell < width:
        if may_pass(w.tree[CORES, base + cell], w.tree[WALLTIME, base + cell], free, window, extra):
            if level == 0:
                return cell
            level -= 1
            base = 0
            width = bottom
            for _ in range(level):
                base += width
                width = -(-width // FAN)
            cell *= FAN
        else:
            cell += 1
            while cell % FAN == 0 and width > 1:
                base += width
                width = -(-width // FAN)
                cell //= FAN
                level += 1
    return bottom
