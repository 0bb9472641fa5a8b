"""EASY where some jobs go by nodes, or ask for several kinds of resource: what fits is a question to each node, not a
count of cores.

The head's reservation: at the earliest planned end at which nodes have room for all its parts, the lowest such nodes (a
job that takes cores of any nodes: as many as it needs on the lowest ones). Another job may start on the first nodes
where its parts fit now and it either ends by then or leaves the reservation intact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.easy import ends_in_time, head_without_time, pass_fast
from escala.kernel.fit import may_wake, start_if_fits
from escala.kernel.jobs import place, start
from escala.kernel.lanes import behind, end_turns, first_of, has_node, is_mine, takes_turn, turns
from escala.kernel.misses import is_hopeless, miss
from escala.kernel.nodes import free_cores
from escala.kernel.parts import cores_of, may_lie, parts_in, parts_of, parts_on, room_in, share_of, word_for
from escala.kernel.placement import node_readiness, readiness, take_on
from escala.kernel.plans import following
from escala.kernel.queue import NO_LIMIT, index_new, next_fit, row_at
from escala.kernel.reservation import exact, first_release, hold_of_head, next_switch
from escala.kernel.schedule import leader
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, next_urgent

STARTED, NO_ROOM, FITS = range(3)  # what became of a job that tried to pass the head


@inlined
def _worth(w: World, j: int, n: int, cores: Any, room: Any) -> int:
    """What node `n` is worth to the head `j`: for how many of its parts it has room, or its cores."""
    if w.job[j].single == 0:
        return cores[n]
    return room_in(w, j, parts_of(w, j), cores[n], room[n]) if may_lie(w, j, n) else 0


@lean
def _free_at(w: World, j: int, cores: Any, room: Any, only_on: bool) -> int:
    """Free cores [nodes] and room per kind [nodes, kinds] now, of nodes whose cores may be given; what they are worth
    to the head `j`. Of other lanes' nodes nothing is noted, here and below."""
    worth = 0
    every = w.s[0].lane == 0
    for n in range(w.o[0].n_nodes):
        if not (every or has_node(w, n)):
            continue
        in_set = (
            w.node[n].held == 0
            and w.node[n].power != codes.SWITCHING_OFF
            and (w.node[n].power == codes.ON or not only_on)
        )
        cores[n] = free_cores(w, n) if in_set else 0
        for k in range(room.shape[1]):
            room[n, k] = w.room[n, k] if in_set else 0
        worth += _worth(w, j, n, cores, room)
    return worth


@inlined
def _add(w: World, j: int, n: int, free: int, cores: Any, room: Any) -> int:
    """`free` more cores of node `n`, and what is free there of further kinds; by how much more the head `j` gains."""
    before = _worth(w, j, n, cores, room)
    cores[n] += free
    for k in range(room.shape[1]):
        room[n, k] += w.room[n, k]
    return _worth(w, j, n, cores, room) - before


@lean
def _release(w: World, i: int, j: int, cores: Any, room: Any) -> int:
    """Job `i` gives back what it has; by how much the head `j` gains."""
    gained = 0
    c = np.int64(w.run[i].chunk)
    while c != codes.NONE:
        per = np.int64(w.chunk[c].per)
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            before = _worth(w, j, n, cores, room)
            cores[n] += per
            if w.job[i].single != 0 and w.demand.shape[0] > 0:
                parts = parts_in(w, i, per)
                for k in range(room.shape[1]):
                    room[n, k] += parts * w.demand[i, k]
            gained += _worth(w, j, n, cores, room) - before
        c = np.int64(w.chunk[c].next)
    return gained


@lean
def _add_unclaimed(w: World, j: int, cores: Any, room: Any, until: int) -> int:
    """The end of the head's hold: unclaimed cores of nodes that are not on (or will be off by then) become usable; by
    how much the head `j` gains."""
    gained = 0
    for n in range(w.o[0].n_nodes):
        if not has_node(w, n):
            continue
        power = w.node[n].power
        if w.node[n].held == 0 and power != codes.ON and (power != codes.SWITCHING_OFF or w.node[n].done <= until):
            free = free_cores(w, n) if power != codes.SWITCHING_OFF else np.int64(w.node[n].cores)
            gained += _add(w, j, n, free, cores, room)
    return gained


@lean
def _add_switched(w: World, j: int, cores: Any, room: Any, time: int) -> int:
    """Nodes whose switch-off ends at `time` become usable; by how much the head `j` gains."""
    gained = 0
    for n in range(w.o[0].n_nodes):
        switched = w.node[n].held == 0 and w.node[n].power == codes.SWITCHING_OFF and w.node[n].done == time
        if switched and has_node(w, n):
            gained += _add(w, j, n, np.int64(w.node[n].cores), cores, room)
    return gained


@lean
def _find_time(w: World, j: int, cores: Any, room: Any) -> int:
    """Set the reservation's time for the head `j`; `cores` and `room` become what is free then. The end of its hold, if
    that is still to come then, else NEVER_US."""
    s = w.s[0]
    held_until = hold_of_head(w, j)
    held = held_until != codes.NEVER_US
    need = np.int64(w.job[j].cores) if w.job[j].single == 0 else parts_of(w, j)
    worth = _free_at(w, j, cores, room, held)
    s.head = j
    s.shadow_us = codes.NEVER_US
    s.shadow_fine = 0
    frontier = w.frontier
    frontier[0] = 0
    size = 1 if s.n_plans > 0 else 0
    switch = next_switch(w, s.now)
    while s.shadow_us == codes.NEVER_US:
        us, fine = first_release(w, frontier, size, switch, held_until)
        if us == codes.NEVER_US:
            break
        while size > 0 and w.run[w.plans[frontier[0]]].plan == us and w.run[w.plans[frontier[0]]].fine == fine:
            position, size = following(w, frontier, size)
            if is_mine(w, np.int64(w.plans[position])):
                worth += _release(w, w.plans[position], j, cores, room)
        if held_until == us and fine == exact(w, us):
            held_until = codes.NEVER_US
            worth += _add_unclaimed(w, j, cores, room, us)
            switch = next_switch(w, us)
        elif held_until == codes.NEVER_US and switch == us and fine == exact(w, us):
            worth += _add_switched(w, j, cores, room, us)
            switch = next_switch(w, us)
        if worth >= need:
            s.shadow_us = us
            s.shadow_fine = fine
    return held_until


@lean
def _reserve(w: World, j: int, cores: Any, room: Any) -> None:
    """Set the reservation's time for the head `j`; `cores` and `room` become what others may use beyond it."""
    s = w.s[0]
    held_until = _find_time(w, j, cores, room)
    if s.shadow_us == codes.NEVER_US:
        return
    s.extra = cores.sum() - w.job[j].cores
    _set_aside(w, j, cores, room)
    if held_until != codes.NEVER_US:
        _add_unclaimed(w, j, cores, room, s.now)  # the head does without them


@inlined
def _use(w: World, j: int, n: int, per: int, count: int, cores: Any, room: Any) -> None:
    """So many parts of job `j`, of `per` cores together, take node `n`'s resources out of what others may use."""
    cores[n] -= per
    if w.demand.shape[0] > 0:
        for k in range(room.shape[1]):
            room[n, k] -= count * w.demand[j, k]


@lean
def _set_aside(w: World, j: int, cores: Any, room: Any) -> None:
    """Take the head's demands out of what others may use beyond its reservation: for each part what a node needs to
    have room for it, that of the largest."""
    if w.job[j].single != 0:
        left = parts_of(w, j)
        for n in range(w.o[0].n_nodes):
            count = room_in(w, j, left, cores[n], room[n]) if left > 0 and may_lie(w, j, n) else 0
            if count > 0:
                _use(w, j, n, count * share_of(w, j), count, cores, room)
                left -= count
        return
    need = np.int64(w.job[j].cores)
    for n in range(w.o[0].n_nodes):
        k = min(need, cores[n])
        cores[n] -= k
        need -= k


@inlined
def _counted(w: World) -> bool:
    """latest-released: only the number of cores to spare beside the reservation is known. A head that goes by nodes
    names its nodes all the same."""
    return w.o[0].head == codes.LATEST_RELEASED and w.job[w.s[0].head].single == 0


@inlined
def _beside(w: World, j: int, n: int, here: int, cores: Any, room: Any) -> int:
    """For how many parts of job `j`, of the `here` that fit now, node `n` has room beside the reservation."""
    if _counted(w):
        return here if cores_of(w, j, 0, parts_of(w, j)) <= w.s[0].extra else 0
    return room_in(w, j, here, cores[n], room[n])


@lean
def _try(w: World, j: int, cores: Any, room: Any, missed: int) -> int:
    """Start job `j` if it may pass the head. missed: so many could not before it in this decision; returns their number
    now."""
    waking = may_wake(w, j)
    if is_hopeless(w, j, waking, missed):
        return missed
    found = _pass_spread(w, j, cores, waking) if w.job[j].single == 0 else _pass(w, j, cores, room, waking)
    if found == STARTED or (found == FITS and _counted(w)):
        return missed
    return miss(w, j, waking, found == FITS, missed)


@lean
def _pass(w: World, j: int, cores: Any, room: Any, waking: bool) -> int:
    """Start job `j` if some choice of nodes lets it pass the head: of the nodes in order, as few as hold all its parts,
    where it ends in time, or else beside the reservation."""
    in_time = parts_of(w, j)
    beside = in_time
    left = in_time
    last = codes.SET_OFF if waking else codes.SET_ON
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                here = parts_on(w, j, n, max(in_time, beside))
                if here == 0:
                    continue
                left -= min(here, left)
                if ends_in_time(w, j, node_readiness(w, n, which)):
                    in_time -= min(here, in_time)
                beside -= min(_beside(w, j, n, here, cores, room), beside)
                if in_time == 0 or beside == 0:
                    _take(w, j, in_time == 0, cores, room)
                    return STARTED
    return FITS if left == 0 else NO_ROOM


@lean
def _take(w: World, j: int, in_time: bool, cores: Any, room: Any) -> None:
    """Start job `j` on the first nodes in order, of those where it ends in time or of those that have room beside the
    reservation; there are enough."""
    s = w.s[0]
    left = parts_of(w, j)
    taken = 0
    chunk = codes.NONE
    ready = s.now
    for which in range(codes.SET_ON, codes.SET_OFF + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i) if left > 0 else bits.ZERO
            while word != bits.ZERO and left > 0:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                here = parts_on(w, j, n, left)
                if here > 0 and in_time:
                    here = here if ends_in_time(w, j, node_readiness(w, n, which)) else 0
                elif here > 0:
                    here = _beside(w, j, n, here, cores, room)
                if here > 0:
                    if not in_time and not _counted(w):
                        _use(w, j, n, cores_of(w, j, taken, here), here, cores, room)
                    chunk, on = take_on(w, j, chunk, n, taken, here)
                    ready = max(ready, on)
                    taken += here
                    left -= here
    if not in_time and _counted(w):
        s.extra -= cores_of(w, j, 0, parts_of(w, j))
    place(w, j, ready)


@lean
def _pass_spread(w: World, j: int, cores: Any, waking: bool) -> int:
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
    total = 0
    for n in range(w.o[0].n_nodes):
        w.node[n].limit = max(cores[n], 0)
        in_set = w.node[n].held == 0 and (
            w.node[n].power == codes.ON or (waking and w.node[n].power != codes.SWITCHING_OFF)
        )
        if in_set:
            total += min(free_cores(w, n), w.node[n].limit)
        if w.o[0].unit == 1 and cores[n] > 0:
            bits.drop(w.bits[codes.SET_RESERVED], n)
        else:
            bits.put(w.bits[codes.SET_RESERVED], n)
    if need > total:
        return FITS
    start(w, j, True, waking)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            cores[n] -= w.chunk[c].per
        c = np.int64(w.chunk[c].next)
    return STARTED


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
    cores, room = w.cores, w.beyond
    missed = 0
    few = o.ordering == codes.BY_QUEUE or s.next_job - s.new_from <= 1
    if s.changed == 0 and s.head != codes.NONE and few and (o.queueing == codes.EASY or leader(w) == s.head):
        for j in range(s.new_from, s.next_job):
            if is_mine(w, j):
                missed = _try(w, j, cores, room, missed)
        return
    s.head = codes.NONE
    j = leader(w)
    while j != codes.NONE and start_if_fits(w, j):
        j = leader(w)
    if j == codes.NONE:
        return
    _reserve(w, j, cores, room)
    if o.ordering == codes.BY_QUEUE:
        j = behind(w, j)
        while j != codes.NONE:
            after = behind(w, j)
            missed = _try(w, j, cores, room, missed)
            j = after
        return
    if o.ordering in codes.CHANGING:
        k = 0 if o.passing == codes.BY_QUEUE else 1
        n = front_of(w, k, s.free_on + s.free_boot + s.free_off, NO_LIMIT, NO_LIMIT)
        while True:
            free = s.free_on + s.free_boot + s.free_off
            n = next_urgent(w, k, n, free, NO_LIMIT, NO_LIMIT)
            if n == 0:
                return
            if w.front[0].row != s.head:
                missed = _try(w, w.front[0].row, cores, room, missed)
            n = beyond_first(w, k, n, free, NO_LIMIT, NO_LIMIT)
    index_new(w)
    in_front = o.n_ranks - o.n_jobs
    last = o.n_ranks - 1 if s.lane == 0 else in_front + w.lane[s.lane].high
    rank = next_fit(w, w.lane[s.lane].low if in_front == 0 else 0, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    while rank <= last:
        if row_at(w, rank) != s.head and is_mine(w, row_at(w, rank)):
            missed = _try(w, row_at(w, rank), cores, room, missed)
        rank = next_fit(w, rank + 1, NO_LIMIT, NO_LIMIT, NO_LIMIT)


@lean
def easy_fast_single(w: World) -> None:
    """One decision of `easy_fast`, for each lane: the head's time is the earliest at which nodes have room for it."""
    for k in range(turns(w)):
        if takes_turn(w, k):
            if head_without_time(w):
                _find_time(w, first_of(w), w.cores, w.beyond)
            if w.s[0].head != codes.NONE:
                pass_fast(w)
    end_turns(w)
