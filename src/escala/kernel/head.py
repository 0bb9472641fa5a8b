"""The reservation of a head where jobs go by nodes, or ask for several kinds of resource: when it may start, on which
nodes, and what it leaves to others there.

Of few nodes anything is noted: those with resources of jobs that end by then, and those on which the head will lie
(SET_RELEASED), each with what is free of it then (`World.cores`, `World.beyond`). The latter are in SET_RESERVED; on
all others whoever has room now has room beside the reservation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.lanes import has_node, is_mine
from escala.kernel.nodes import free_cores
from escala.kernel.parts import allowed_of, level_of, may_lie, parts_in, parts_of, room_in, share_of
from escala.kernel.plans import following
from escala.kernel.reservation import exact, first_release, hold_of_head, next_switch
from escala.kernel.state import World


@inlined
def _worth(w: World, j: int, free: int, room: Any) -> int:
    """What a node with so much free is worth to the head `j`: for how many of its parts it has room, or its cores."""
    return free if w.job[j].single == 0 else room_in(w, j, parts_of(w, j), free, room)


@inlined
def _may_use(w: World, j: int, n: int) -> bool:
    """May the head `j` lie on node `n`, by what it asks of nodes?"""
    return has_node(w, n) and (w.job[j].single == 0 or may_lie(w, j, n))


@inlined
def _usable(w: World, n: int, only_on: bool) -> bool:
    """May what is free of node `n` now be given to the head?"""
    power = w.node[n].power
    return w.node[n].held == 0 and (power == codes.ON or not (only_on or power == codes.SWITCHING_OFF))


@inlined
def _roomy(w: World, i: int, level: int, only_on: bool) -> Any:
    """Word `i` of the nodes of a level that may be given to the head now."""
    word = w.bits[codes.SET_ON, i]
    if not only_on:
        word |= w.bits[codes.SET_BOOT, i] | w.bits[codes.SET_OFF, i]
    return word & w.roomy[level, i]


@inlined
def _level(w: World, j: int) -> int:
    return 0 if w.job[j].single == 0 else level_of(w, j)


@inlined
def _among(w: World, j: int, i: int, word: Any) -> Any:
    """Of word `i` of a set, the nodes on which the head `j` may lie."""
    return word if w.allowed.shape[0] == 0 else word & w.allowed[allowed_of(w, j), i]


@lean
def _forget(w: World, which: int) -> None:
    """A set of nodes is empty; those of other lanes stay in it: reservations there stand."""
    row = w.bits[which]
    for i in range(row.shape[0]):
        word = row[i] if w.s[0].lane != 0 else bits.ZERO
        stays = bits.ZERO
        while word != bits.ZERO:
            low = bits.lowest(word)
            word &= word - bits.ONE
            if not has_node(w, (i << 6) + low):
                stays |= bits.ONE << np.uint64(low)
        row[i] = stays


@lean
def _worth_now(w: World, j: int, only_on: bool) -> int:
    """What all nodes are worth to the head `j` now."""
    worth = 0
    level = _level(w, j)
    for i in range(w.bits.shape[1]):
        word = _among(w, j, i, _roomy(w, i, level, only_on))
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if has_node(w, n):
                worth += _worth(w, j, free_cores(w, n), w.room[n])
    return worth


@inlined
def _note(w: World, n: int, only_on: bool) -> None:
    """What is free of node `n` at the reservation's time is noted from here on."""
    if bits.has(w.bits[codes.SET_RELEASED], n):
        return
    bits.put(w.bits[codes.SET_RELEASED], n)
    usable = _usable(w, n, only_on)
    w.cores[n] = free_cores(w, n) if usable else 0
    for k in range(w.beyond.shape[1]):
        w.beyond[n, k] = w.room[n, k] if usable else 0


@inlined
def _add(w: World, j: int, n: int, free: int, only_on: bool) -> int:
    """`free` more cores of node `n`, and what is free there of further kinds; by how much more the head `j` gains."""
    _note(w, n, only_on)
    before = _worth(w, j, w.cores[n], w.beyond[n])
    w.cores[n] += free
    for k in range(w.beyond.shape[1]):
        w.beyond[n, k] += w.room[n, k]
    return _worth(w, j, w.cores[n], w.beyond[n]) - before


@lean
def _release(w: World, i: int, j: int, only_on: bool) -> int:
    """Job `i` gives back what it has; by how much the head `j` gains."""
    gained = 0
    c = np.int64(w.run[i].chunk)
    while c != codes.NONE:
        per = np.int64(w.chunk[c].per)
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if not _may_use(w, j, n):
                continue
            _note(w, n, only_on)
            before = _worth(w, j, w.cores[n], w.beyond[n])
            w.cores[n] += per
            if w.job[i].single != 0 and w.demand.shape[0] > 0:
                parts = parts_in(w, i, per)
                for k in range(w.beyond.shape[1]):
                    w.beyond[n, k] += parts * w.demand[i, k]
            gained += _worth(w, j, w.cores[n], w.beyond[n]) - before
        c = np.int64(w.chunk[c].next)
    return gained


@lean
def _add_unclaimed(w: World, j: int, until: int) -> int:
    """The end of the head's hold: unclaimed cores of nodes that are not on (or will be off by then) become usable; by
    how much the head `j` gains."""
    gained = 0
    for n in range(w.o[0].n_nodes):
        power = w.node[n].power
        there = w.node[n].held == 0 and (power != codes.SWITCHING_OFF or w.node[n].done <= until)
        if there and power != codes.ON and _may_use(w, j, n):
            free = free_cores(w, n) if power != codes.SWITCHING_OFF else np.int64(w.node[n].cores)
            gained += _add(w, j, n, free, True)
    return gained


@lean
def _add_switched(w: World, j: int, time: int, only_on: bool) -> int:
    """Nodes whose switch-off ends at `time` become usable; by how much the head `j` gains."""
    gained = 0
    for n in range(w.o[0].n_nodes):
        switched = w.node[n].held == 0 and w.node[n].power == codes.SWITCHING_OFF and w.node[n].done == time
        if switched and _may_use(w, j, n):
            gained += _add(w, j, n, np.int64(w.node[n].cores), only_on)
    return gained


@lean
def find_time(w: World, j: int) -> int:
    """Set the reservation's time for the head `j`, and what it is worth beyond need (SCALARS.extra). The end of its
    hold, if that is still to come then, else NEVER_US."""
    s = w.s[0]
    held_until = hold_of_head(w, j)
    only_on = held_until != codes.NEVER_US
    need = np.int64(w.job[j].cores) if w.job[j].single == 0 else parts_of(w, j)
    _forget(w, codes.SET_RELEASED)
    worth = _worth_now(w, j, only_on)
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
                worth += _release(w, np.int64(w.plans[position]), j, only_on)
        if held_until == us and fine == exact(w, us):
            held_until = codes.NEVER_US
            worth += _add_unclaimed(w, j, us)
            switch = next_switch(w, us)
        elif held_until == codes.NEVER_US and switch == us and fine == exact(w, us):
            worth += _add_switched(w, j, us, only_on)
            switch = next_switch(w, us)
        if worth >= need:
            s.shadow_us = us
            s.shadow_fine = fine
    s.extra = worth - need
    return held_until


@lean
def reserve(w: World, j: int) -> None:
    """Set the reservation for the head `j`: its time and its nodes."""
    _forget(w, codes.SET_RESERVED)
    only_on = hold_of_head(w, j) != codes.NEVER_US
    held_until = find_time(w, j)
    if w.s[0].shadow_us == codes.NEVER_US:
        return
    _set_aside(w, j, only_on)
    if held_until != codes.NEVER_US:
        _leave_unclaimed(w, j)


@lean
def _leave_unclaimed(w: World, j: int) -> None:
    """What the head `j` does without, on the nodes on which it will lie: unclaimed cores of those that are not on."""
    for i in range(w.bits.shape[1]):
        word = w.bits[codes.SET_RESERVED, i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if w.node[n].power != codes.ON and _usable(w, n, False):
                _add(w, j, n, free_cores(w, n), True)


@inlined
def use(w: World, j: int, n: int, per: int, count: int) -> None:
    """So many parts of job `j`, of `per` cores together, take node `n`'s resources out of what others may use."""
    w.cores[n] -= per
    if w.demand.shape[0] > 0:
        for k in range(w.beyond.shape[1]):
            w.beyond[n, k] -= count * w.demand[j, k]


@inlined
def _room_then(w: World, j: int, n: int, left: int) -> int:
    """For how many parts of the head `j`, of `left`, or of its cores, node `n` has room at the reservation's time."""
    noted = bits.has(w.bits[codes.SET_RELEASED], n)
    free = w.cores[n] if noted else free_cores(w, n)
    if w.job[j].single == 0:
        return min(left, np.int64(free))
    return room_in(w, j, left, np.int64(free), w.beyond[n]) if noted else room_in(w, j, left, free, w.room[n])


@lean
def _set_aside(w: World, j: int, only_on: bool) -> None:
    """Take the head's demands out of what others may use, on the lowest nodes that have room then: for each part what a
    node needs to have room for it, that of the largest."""
    spread = w.job[j].single == 0
    left = np.int64(w.job[j].cores) if spread else parts_of(w, j)
    level = _level(w, j)
    for i in range(w.bits.shape[1]):
        word = _among(w, j, i, w.bits[codes.SET_RELEASED, i] | _roomy(w, i, level, only_on))
        while word != bits.ZERO and left > 0:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            count = _room_then(w, j, n, left) if has_node(w, n) else 0
            if count > 0:
                _note(w, n, only_on)
                bits.put(w.bits[codes.SET_RESERVED], n)
                use(w, j, n, count if spread else count * share_of(w, j), 0 if spread else count)
                left -= count
        if left == 0:
            return
