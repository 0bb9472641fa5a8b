"""EASY where some jobs go by nodes, or ask for several kinds of resource: what fits is a question to each node, not a
count of cores.

The head's reservation: at the earliest planned end at which nodes have room for all its parts, the lowest such nodes (a
job that takes cores of any nodes: as many as it needs on the lowest ones). Another job may start on the first nodes
where its parts fit now and it either ends by then or leaves the reservation intact.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.easy import ends_in_time, head_without_time, pass_fast, window_of
from escala.kernel.fit import may_wake, start_if_fits
from escala.kernel.head import find_time, reserve, use
from escala.kernel.jobs import place, start
from escala.kernel.lanes import behind, end_turns, first_of, is_mine, takes_turn, turns
from escala.kernel.misses import is_hopeless, miss
from escala.kernel.nodes import free_cores
from escala.kernel.parts import cores_of, level_of, parts_of, room_in, room_on, word_for
from escala.kernel.placement import node_readiness, readiness, take_on
from escala.kernel.queue import SHORT_QUEUE, index_new, next_fit, row_at
from escala.kernel.reach import NO_LIMIT, grouped, note_reach
from escala.kernel.reservation import all_held, most_free
from escala.kernel.schedule import leader
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, next_urgent

WALKED = 8 * SHORT_QUEUE  # up to this length the list is walked: noting what room there is takes as long
STARTED, NO_ROOM, FITS = range(3)  # what became of a job that tried to pass the head


@inlined
def _counted(w: World) -> bool:
    """latest-released: only the number of cores to spare beside the reservation is known. A head that goes by nodes
    names its nodes all the same."""
    return w.o[0].head == codes.LATEST_RELEASED and w.job[w.s[0].head].single == 0


@inlined
def _beside(w: World, j: int, n: int, here: int) -> int:
    """For how many parts of job `j`, of the `here` that fit now, node `n` has room beside the reservation."""
    if _counted(w):
        return here if cores_of(w, j, 0, parts_of(w, j)) <= w.s[0].extra else 0
    return room_in(w, j, here, w.cores[n], w.beyond[n]) if bits.has(w.bits[codes.SET_RESERVED], n) else here


@lean
def _try(w: World, j: int, missed: int) -> int:
    """Start job `j` if it may pass the head. missed: so many could not before it in this decision; returns their number
    now."""
    waking = may_wake(w, j)
    if is_hopeless(w, j, waking, missed):
        return missed
    found = _pass_spread(w, j, waking) if w.job[j].single == 0 else _pass(w, j, waking)
    if found == STARTED or (found == FITS and _counted(w)):
        return missed
    return miss(w, j, waking, found == FITS, missed)


@lean
def _pass(w: World, j: int, waking: bool) -> int:
    """Start job `j` if some choice of nodes lets it pass the head: of the nodes in order, as few as hold all its parts,
    where it ends in time, or else beside the reservation."""
    in_time = parts_of(w, j)
    beside = in_time
    left = in_time
    last = codes.SET_OFF if waking else codes.SET_ON
    level = level_of(w, j)
    at_once = ends_in_time(w, j, np.int64(w.s[0].now))
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                here = room_on(w, j, n, max(in_time, beside))
                if here == 0:
                    continue
                left -= min(here, left)
                ends = at_once if which == codes.SET_ON else ends_in_time(w, j, node_readiness(w, n, which))
                if ends:
                    in_time -= min(here, in_time)
                if waking or not ends:  # else it ends in time on all nodes
                    beside -= min(_beside(w, j, n, here), beside)
                if in_time == 0 or beside == 0:
                    _take(w, j, in_time == 0)
                    return STARTED
    return FITS if left == 0 else NO_ROOM


@lean
def _take(w: World, j: int, in_time: bool) -> None:
    """Start job `j` on the first nodes in order, of those where it ends in time or of those that have room beside the
    reservation; there are enough."""
    s = w.s[0]
    left = parts_of(w, j)
    taken = 0
    chunk = codes.NONE
    ready = s.now
    level = level_of(w, j)
    for which in range(codes.SET_ON, codes.SET_OFF + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level) if left > 0 else bits.ZERO
            while word != bits.ZERO and left > 0:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                here = room_on(w, j, n, left)
                if here > 0 and in_time:
                    here = here if ends_in_time(w, j, node_readiness(w, n, which)) else 0
                elif here > 0:
                    here = _beside(w, j, n, here)
                if here > 0:
                    if not in_time and not _counted(w) and bits.has(w.bits[codes.SET_RESERVED], n):
                        use(w, j, n, cores_of(w, j, taken, here), here)
                    chunk, on = take_on(w, j, chunk, n, taken, here)
                    ready = max(ready, on)
                    taken += here
                    left -= here
    if not in_time and _counted(w):
        s.extra -= cores_of(w, j, 0, parts_of(w, j))
    place(w, j, ready)


@lean
def _pass_spread(w: World, j: int, waking: bool) -> int:
    """As `_pass`, for a job that takes cores of any nodes."""
    s = w.s[0]
    need = np.int64(w.job[j].cores)
    free = s.free_on + s.free_boot + s.free_off if waking else s.free_on
    if need > free:
        return NO_ROOM
    ready = s.now if need <= s.free_on else readiness(w, need, False)
    if ends_in_time(w, j, ready):
        start(w, j, False, waking)
        return STARTED
    if _counted(w):
        if need > s.extra:
            return FITS
        s.extra -= need
        start(w, j, False, waking)
        return STARTED
    if need > free - _kept_back(w, waking):
        return FITS
    start(w, j, True, waking)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if bits.has(w.bits[codes.SET_RESERVED], n):
                w.cores[n] -= w.chunk[c].per
        c = np.int64(w.chunk[c].next)
    return STARTED


@lean
def _kept_back(w: World, waking: bool) -> int:
    """Cores that are free now and belong to the reservation, each node's limit beside it noted (NODE.limit)."""
    total = 0
    for i in range(w.bits.shape[1]):
        word = w.bits[codes.SET_RESERVED, i]
        free_now = w.bits[codes.SET_ON, i]
        if waking:
            free_now |= w.bits[codes.SET_BOOT, i] | w.bits[codes.SET_OFF, i]
        while word != bits.ZERO:
            low = bits.lowest(word)
            n = (i << 6) + low
            w.node[n].limit = max(w.cores[n], 0)
            if (free_now >> np.uint64(low)) & bits.ONE != bits.ZERO:
                total += max(0, free_cores(w, n) - w.node[n].limit)
            word &= word - bits.ONE
    return total


@lean
def easy_single(w: World) -> None:
    """One decision of EASY, for each lane."""
    for k in range(turns(w)):
        if takes_turn(w, k):
            _easy(w)
    end_turns(w)


@lean
def _easy(w: World) -> None:
    """With nothing released since the last decision, and the same head, only the new jobs can start, see `easy`."""
    s = w.s[0]
    o = w.o[0]
    missed = 0
    few = o.ordering == codes.BY_QUEUE or s.next_job - s.new_from <= 1
    if s.changed == 0 and s.head != codes.NONE and few and (o.queueing == codes.EASY or leader(w) == s.head):
        for j in range(s.new_from, s.next_job):
            if is_mine(w, j):
                missed = _try(w, j, missed)
        return
    s.head = codes.NONE
    j = leader(w)
    while j != codes.NONE and start_if_fits(w, j):
        j = leader(w)
    if j == codes.NONE:
        return
    reserve(w, j)
    if o.ordering == codes.BY_QUEUE and (s.n_queued <= WALKED or not grouped(w)):
        j = behind(w, j)
        while j != codes.NONE:
            after = behind(w, j)
            missed = _try(w, j, missed)
            j = after
    elif o.ordering in codes.CHANGING:
        _pass_urgent(w)
    else:
        _pass_tree(w)


@lean
def _note_limits(w: World, held: bool) -> tuple[int, int]:
    """How many free cores there are, and the walltime of a job that started now and ended by the reservation, us, where
    a search goes by groups (see `reach`). held: see `reservation.all_held`."""
    if not grouped(w):
        return NO_LIMIT, NO_LIMIT
    s = w.s[0]
    note_reach(w, held, np.int64(s.extra) if _counted(w) and s.shadow_us < codes.NEVER_US else NO_LIMIT)
    return most_free(w, held), window_of(w)


@lean
def _pass_urgent(w: World) -> None:
    """Try the others in the order of a score that grows with the wait."""
    s = w.s[0]
    missed = 0
    held = all_held(w, np.int64(s.head))
    k = 0 if w.o[0].passing == codes.BY_QUEUE else 1
    free, window = _note_limits(w, held)
    n = front_of(w, k, free, window, NO_LIMIT)
    while True:
        n = next_urgent(w, k, n, free, window, NO_LIMIT)
        if n == 0:
            return
        j = w.front[0].row
        if j != s.head:
            missed = _try(w, j, missed)
            if w.run[j].state != codes.QUEUED:
                free, window = _note_limits(w, held)
        n = beyond_first(w, k, n, free, window, NO_LIMIT)


@lean
def _pass_tree(w: World) -> None:
    """Try the others by rank."""
    s = w.s[0]
    o = w.o[0]
    missed = 0
    held = all_held(w, np.int64(s.head))
    index_new(w)
    in_front = o.n_ranks - o.n_jobs
    last = o.n_ranks - 1 if s.lane == 0 else in_front + w.lane[s.lane].high
    rank = np.int64(w.lane[s.lane].low) if in_front == 0 else 0
    if o.ordering == codes.BY_QUEUE:
        rank = np.int64(s.head) + 1
    free, window = _note_limits(w, held)
    rank = next_fit(w, rank, free, window, NO_LIMIT)
    while rank <= last:
        j = row_at(w, rank)
        if j != s.head and is_mine(w, j):
            missed = _try(w, j, missed)
            if w.run[j].state != codes.QUEUED:
                free, window = _note_limits(w, held)
        rank = next_fit(w, rank + 1, free, window, NO_LIMIT)


@lean
def easy_fast_single(w: World) -> None:
    """One decision of `easy_fast`, for each lane: the head's time is the earliest at which nodes have room for it."""
    for k in range(turns(w)):
        if takes_turn(w, k):
            if head_without_time(w):
                find_time(w, first_of(w))
            if w.s[0].head != codes.NONE:
                pass_fast(w)
    end_turns(w)
