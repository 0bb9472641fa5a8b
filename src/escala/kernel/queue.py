"""The queue: a linked list in order of submission, and a search tree over a fixed order of all jobs.

The tree holds, for each cell of 16 ranks (and of 16 cells, level by level), of its *queued* jobs the least cores, and
the least walltime among those of at most so many cores: eight such limits, where the sizes of the jobs differ
(`filling.fill_widths`). "The next job, in this order, that needs at most c cores and either ends in time or needs at
most e cores" is then found without looking at jobs that cannot be it: with one least walltime for all, a narrow job and
a short one make a cell look as if a job that is both were in it. A job enters the tree only when a search is due, so
one that starts on arrival never touches it.

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
from escala.kernel.lanes import behind, first_of, has_lanes, join, lane_of, leave
from escala.kernel.reach import EMPTY, NO_LIMIT, branch_of, grouped, may_reach, size_of, some_may_reach, width_of
from escala.kernel.state import FAN, World
from escala.kernel.users import count

OUTDATED = -EMPTY  # `UNTIL` of a cell whose first job has to be found anew
# Rows of the tree. From the second on, one a limit of cores; where a tournament finds the first (`urgency`) there is
# one such limit, and behind it stand FIRST and UNTIL, twice for two.
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


@lean
def _enter(w: World, j: int) -> None:
    """Job `j`, which waits, counts in the cells above its rank, as far up as that changes something."""
    rank = rank_of(w, j)
    cores = np.int64(w.job[j].cores)
    walltime = w.job[j].walltime
    least = width_of(w, cores)
    cell = rank // FAN
    base = 0
    width = -(-w.o[0].n_ranks // FAN)
    while True:
        same = True
        if cores < w.tree[CORES, base + cell]:
            w.tree[CORES, base + cell] = cores
            same = False
        if grouped(w):
            same = not _enter_branch(w, j, base + cell) and same
        else:
            for row in range(WALLTIME + least, WALLTIME + w.o[0].n_widths):
                if walltime < w.tree[row, base + cell]:
                    w.tree[row, base + cell] = walltime
                    same = False
        if same or width == 1:
            break
        base += width
        width = -(-width // FAN)
        cell //= FAN
    for k in range(w.o[0].n_orders):
        outdate(w, k, rank)


@lean
def _enter_branch(w: World, j: int, at: int) -> bool:
    """Job `j` counts in a cell among those of its group; does that change something?"""
    first, size, walltime = branch_of(w, j), size_of(w, j), w.job[j].walltime
    changes = False
    if size < w.branch[first, at]:
        w.branch[first, at] = size
        changes = True
    for row in range(first + 1 + width_of(w, size), first + 1 + w.o[0].n_widths):
        if walltime < w.branch[row, at]:
            w.branch[row, at] = walltime
            changes = True
    return changes


@lean
def _leave_branch(w: World, j: int, level: int, below: int, base: int, cell: int) -> bool:
    """Job `j` no longer counts in a cell among those of its group; see `_found_anew`."""
    first, size, at = branch_of(w, j), size_of(w, j), base + cell
    changes = w.branch[first, at] == size and _found_in_branch(w, j, 0, level, below, base, cell)
    for row in range(1 + width_of(w, size), 1 + w.o[0].n_widths):
        if w.branch[first + row, at] == w.job[j].walltime:
            changes = _found_in_branch(w, j, row, level, below, base, cell) or changes
    return changes


@lean
def _found_in_branch(w: World, of: int, row: int, level: int, below: int, base: int, cell: int) -> bool:
    """As `_found_anew`, of the group of a job; row: behind its first."""
    least, first = EMPTY, branch_of(w, of)
    if level == 0:
        for rank in range(cell * FAN, min((cell + 1) * FAN, w.o[0].n_ranks)):
            j = row_at(w, rank)
            waits = j < w.s[0].indexed and w.run[j].state == codes.QUEUED and rank_of(w, j) == rank
            if waits and w.member[j] == w.member[of]:
                if row == 0:
                    least = min(least, size_of(w, j))
                elif size_of(w, j) <= w.o[0].widths[row - 1]:
                    least = min(least, w.job[j].walltime)
    else:
        for child in range(below + cell * FAN, below + min((cell + 1) * FAN, base - below)):
            least = min(least, w.branch[first + row, child])
    changes = least != w.branch[first + row, base + cell]
    w.branch[first + row, base + cell] = least
    return changes


@lean
def _leave(w: World, j: int, rank: int) -> None:
    """Job `j`, which was at this rank, counts in the cells above it no longer, as far up as that changes something."""
    cores = np.int64(w.job[j].cores)
    walltime = w.job[j].walltime
    least = width_of(w, cores)
    cell = rank // FAN
    level = 0
    below = 0
    base = 0
    width = -(-w.o[0].n_ranks // FAN)
    while True:
        same = not (w.tree[CORES, base + cell] == cores and _found_anew(w, CORES, level, below, base, cell))
        if grouped(w):
            same = not _leave_branch(w, j, level, below, base, cell) and same
        for row in range(WALLTIME + least, WALLTIME + w.o[0].n_widths if not grouped(w) else 0):
            if w.tree[row, base + cell] == walltime and _found_anew(w, row, level, below, base, cell):
                same = False
        if same or width == 1:
            break
        below = base
        base += width
        width = -(-width // FAN)
        cell //= FAN
        level += 1
    for k in range(w.o[0].n_orders):
        outdate(w, k, rank)


@lean
def _found_anew(w: World, row: int, level: int, below: int, base: int, cell: int) -> bool:
    """Find the least value of a cell anew, from the cells of the level below, which begin at `below`, or from the jobs;
    is it another?"""
    least = EMPTY
    if level == 0:
        for rank in range(cell * FAN, min((cell + 1) * FAN, w.o[0].n_ranks)):
            j = row_at(w, rank)
            if j < w.s[0].indexed and w.run[j].state == codes.QUEUED and rank_of(w, j) == rank:
                if row == CORES:
                    least = min(least, w.job[j].cores)
                elif w.job[j].cores <= w.o[0].widths[row - WALLTIME]:
                    least = min(least, w.job[j].walltime)
    else:
        for child in range(below + cell * FAN, below + min((cell + 1) * FAN, base - below)):
            least = min(least, w.tree[row, child])
    changes = least != w.tree[row, base + cell]
    w.tree[row, base + cell] = least
    return changes


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
    if has_lanes(w):
        join(w, j)
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
            _enter(w, j)


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
    if has_lanes(w):
        leave(w, j)
    weigh(w, j, -1)
    w.run[j].state = state
    if w.user.shape[0] > 0:
        count(w, j, -1, 0)
    if j < s.indexed and w.tree.shape[1] > 0:
        _leave(w, j, rank_of(w, j))


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
    w.lane[lane_of(w, j)].head = codes.NONE
    before = rank_of(w, j)
    if w.o[0].n_ranks > w.o[0].n_jobs:
        w.order[1, j] = j
    if j < s.indexed and w.tree.shape[1] > 0:
        _leave(w, j, before)
        _enter(w, j)


@inlined
def may_pass(cores: int, walltime: int, free: int, window: int, extra: int) -> bool:
    """Does a job need at most `free` cores, and either end in time or need at most `extra`?"""
    return cores <= free and (walltime <= window or cores <= extra)


@inlined
def job_may_pass(w: World, j: int, free: int, window: int, extra: int) -> bool:
    """The same of job `j`, where jobs go by nodes by `reach.note_reach`, unless `free` is NO_LIMIT."""
    if grouped(w) and free < NO_LIMIT:
        return w.job[j].cores <= free and may_reach(w, j, window)
    return may_pass(w.job[j].cores, w.job[j].walltime, free, window, extra)


@inlined
def cell_may_pass(w: World, at: int, walltimes: int, free: int, window: int, extra: int) -> bool:
    """The same of some job of the cell at position `at` of the tree. walltimes: row of the least walltimes to go by."""
    if grouped(w) and free < NO_LIMIT:
        return w.tree[CORES, at] <= free and some_may_reach(w, at, window)
    return may_pass(w.tree[CORES, at], w.tree[walltimes, at], free, window, extra)


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
        j = behind(w, j)
    return best


@lean
def least_of_all(w: World) -> int:
    """The queued job of the least rank, of the lane whose turn it is: the oldest where it has waited the guard, else
    one behind the ranks of such jobs. Somebody waits there."""
    s = w.s[0]
    first = first_of(w)
    if first < s.aged:
        return first
    if s.n_queued <= SHORT_QUEUE:
        return least_rank(w, first, codes.NONE, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    index_new(w)
    start = w.o[0].n_ranks - w.o[0].n_jobs + w.lane[s.lane].low
    return row_at(w, next_fit(w, start, NO_LIMIT, NO_LIMIT, NO_LIMIT))


@lean
def next_fit(w: World, start: int, free: int, window: int, extra: int) -> int:
    """Least rank >= start of a queued job with cores <= free and (walltime <= window or cores <= extra); n_ranks if
    there is none."""
    n_ranks = w.o[0].n_ranks
    free = min(free, NO_LIMIT)
    walltimes = WALLTIME + width_of(w, free)
    rank = start
    while rank < n_ranks:
        end = min((rank // FAN + 1) * FAN, n_ranks)
        while rank < end:
            j = row_at(w, rank)
            if w.run[j].state == codes.QUEUED and rank_of(w, j) == rank and job_may_pass(w, j, free, window, extra):
                return rank
            rank += 1
        if rank >= n_ranks:
            return n_ranks
        rank = _next_cell(w, rank // FAN, free, window, extra, walltimes) * FAN
    return n_ranks


@lean
def _next_cell(w: World, start: int, free: int, window: int, extra: int, walltimes: int) -> int:
    """Least bottom cell >= start that may hold such a job; the number of bottom cells if there is none. walltimes: row
    of the least walltimes to go by.

    Walks right along a level, climbs at the end of each group of 16 and descends into a cell that qualifies. A cell may
    promise what no child keeps (where sizes lie between two limits, its values may come from different jobs); the walk
    then simply goes on behind it.
    """
    bottom = -(-w.o[0].n_ranks // FAN)
    level = 0
    base = 0
    width = bottom
    cell = start
    while cell < width:
        if cell_may_pass(w, base + cell, walltimes, free, window, extra):
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
