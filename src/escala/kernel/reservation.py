"""The reservation of EASY's head: when it can start, on which cores, and what it leaves to others.

Every core has a time from which it may be given to the head: now, if no job has it and its node is not switching off;
the end of the switch, if its node is switching off; the planned end of the job that has it. A head that is still held
back (shutdown policy hold) cannot use nodes that are not on before its own time. The reservation's time s is the time
of the q-th such core. lowest-id: it uses the lowest-numbered cores of those free by s. latest-released: only the number
of cores to spare is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.clock import earlier
from escala.kernel.clock import fine as fine_of
from escala.kernel.forecast import limit_of
from escala.kernel.lanes import note
from escala.kernel.plans import following
from escala.kernel.state import HEAP_SWITCHES, World


@inlined
def exact(w: World, us: int) -> int:
    """Exact residue of a time or a span, 0 unless plans are exact."""
    return fine_of(us) if w.o[0].exact == 1 else 0


@inlined
def hold_end(w: World, j: int) -> int:
    """When job `j` has waited its share of the walltime, or the longest wait, us."""
    return w.job[j].submit + min(np.int64(np.floor(w.o[0].fraction * limit_of(w, j) + 0.5)), w.o[0].cap_us)


@inlined
def note_busy(w: World) -> None:
    """hold:X:if-busy, once a decision: does some job run? A change makes all plans out of date."""
    s = w.s[0]
    busy = 1 if s.n_ends > 0 else 0
    if busy != s.busy:
        s.busy = busy
        note(w, 0)


@inlined
def note_woken(w: World) -> None:
    """The hold of a waiting job is over, or it is not held at all."""
    if w.o[0].shutdown == codes.HOLD and w.s[0].woken != codes.NONE:
        w.s[0].woken += 1


@lean
def all_held(w: World, head: int) -> bool:
    """Is it known that no waiting job but `head` (NONE: none) may be given nodes that are not on?"""
    s = w.s[0]
    if w.o[0].shutdown != codes.HOLD or s.woken == codes.NONE or (w.o[0].if_busy == 1 and s.busy == 0):
        return False
    return s.woken == (1 if head != codes.NONE and hold_end(w, head) <= s.now else 0)


@inlined
def most_free(w: World, held: bool) -> int:
    """Cores that may be given to some waiting job at most. held: see `all_held`."""
    s = w.s[0]
    return s.free_on if held else s.free_on + s.free_boot + s.free_off


@inlined
def extra_on(w: World) -> int:
    """Free cores of nodes that are on which the reservation leaves alone."""
    s = w.s[0]
    return min(s.extra, s.free_on) if w.o[0].head == codes.LATEST_RELEASED else s.extra_on


@inlined
def most_extra(w: World, held: bool) -> int:
    """The same of those that the reservation leaves alone."""
    return extra_on(w) if held else w.s[0].extra


@inlined
def permission(w: World, j: int) -> int:
    """From when job `j` may be given nodes that are not on, us."""
    o = w.o[0]
    if o.shutdown == codes.HOLD:
        return hold_end(w, j) if o.if_busy == 0 or w.s[0].busy == 1 else 0
    if o.shutdown == codes.ORACLE and w.run[j].place != codes.WOKEN_FOR:
        return hold_end(w, j)
    return 0


@inlined
def usable(w: World, j: int) -> int:
    """Cores that job `j` may be given now."""
    s = w.s[0]
    if w.o[0].given == 1 and permission(w, j) <= s.now:
        return s.free_on + s.free_boot + s.free_off
    return s.free_on


@lean
def _release_job(w: World, j: int) -> None:
    """Mark the nodes of job `j` as released by the reservation's time."""
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        bits.put_range(w.bits[codes.SET_RELEASED], w.chunk[c].low, w.chunk[c].high)
        if w.o[0].unit == 0:
            for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                w.node[n].released += w.chunk[c].per
        c = np.int64(w.chunk[c].next)


@inlined
def _release_node(w: World, n: int) -> None:
    bits.put(w.bits[codes.SET_RELEASED], n)
    if w.o[0].unit == 0:
        w.node[n].released += w.node[n].cores


@lean
def next_switch(w: World, after: int) -> int:
    """Earliest end after `after` of a switch-off under way, us."""
    best = codes.NEVER_US
    for i in range(w.s[0].n_switches):
        event = w.heaps[HEAP_SWITCHES, i]
        if event.time > after and event.time < best and w.node[event.id].power == codes.SWITCHING_OFF:
            best = event.time
    return best


@inlined
def first_release(w: World, frontier: Any, size: int, switch: int, held_until: int) -> tuple[int, int]:
    """The next time (us, residue) at which something becomes available to the head: a planned end, the end of a
    switch-off, or the end of its own hold, before which nodes that are not on are of no use to it."""
    us = codes.NEVER_US
    fine = 0
    if size > 0:
        first = np.int64(w.plans[frontier[0]])
        us = w.run[first].plan
        fine = w.run[first].fine
    other = min(switch, held_until) if held_until == codes.NEVER_US else held_until
    if other < codes.NEVER_US and earlier(other, exact(w, other), us, fine):
        us = other
        fine = exact(w, other)
    return us, fine


@lean
def _release_switches(w: World, after: int, until: int) -> int:
    """Nodes whose switch-off ends in (after, until] become usable; returns their cores."""
    total = 0
    for i in range(w.s[0].n_switches):
        event = w.heaps[HEAP_SWITCHES, i]
        if after < event.time <= until and w.node[event.id].power == codes.SWITCHING_OFF and w.node[event.id].held == 0:
            _release_node(w, event.id)
            total += w.node[event.id].cores
    return total


@lean
def _clear_released(w: World) -> None:
    if w.o[0].head != codes.LOWEST_ID:
        return
    row = w.bits[codes.SET_RELEASED]
    for i in range(row.shape[0]):
        word = row[i]
        row[i] = bits.ZERO
        while word != bits.ZERO and w.o[0].unit == 0:
            w.node[(i << 6) + bits.lowest(word)].released = 0
            word &= word - bits.ONE


@inlined
def hold_of_head(w: World, j: int) -> int:
    """End of the head's own hold, NEVER_US if it is not held back."""
    if w.o[0].given == 1 and permission(w, j) > w.s[0].now:
        return permission(w, j)
    return codes.NEVER_US


@lean
def reserve_head(w: World, j: int, frontier: Any) -> None:
    """Set head, shadow time, extra cores and (lowest-id) the reserved cores for the blocked head `j`. `frontier`: int64
    scratch, one per running job."""
    s = w.s[0]
    by_id = w.o[0].head == codes.LOWEST_ID
    s.head = j
    s.shadow_us = codes.NEVER_US
    s.shadow_fine = 0
    held_until = hold_of_head(w, j)
    free = usable(w, j)
    need = np.int64(w.job[j].cores)
    _clear_released(w)
    frontier[0] = 0
    size = 1 if s.n_plans > 0 else 0
    switch = next_switch(w, s.now) if s.n_switches > 0 else codes.NEVER_US
    while True:
        us, fine = first_release(w, frontier, size, switch, held_until)
        if us == codes.NEVER_US or (free >= need and earlier(s.shadow_us, s.shadow_fine, us, fine)):
            break
        while size > 0 and w.run[w.plans[frontier[0]]].plan == us and w.run[w.plans[frontier[0]]].fine == fine:
            position, size = following(w, frontier, size)
            free += w.job[w.plans[position]].cores
            if by_id:
                _release_job(w, w.plans[position])
        if held_until == us and fine == exact(w, us):
            held_until = codes.NEVER_US
            free += s.free_boot + s.free_off + _release_switches(w, s.now, us)
            switch = next_switch(w, us)
        elif held_until == codes.NEVER_US and switch == us and fine == exact(w, us):
            free += _release_switches(w, us - 1, us)
            switch = next_switch(w, us)
        if free >= need:
            s.shadow_us = us
            s.shadow_fine = fine
    woken = w.o[0].given == 1 and held_until == codes.NEVER_US
    if s.shadow_us == codes.NEVER_US:
        _no_reservation(w)
    elif not by_id:
        s.extra = free - need
    elif w.o[0].unit == 1:
        _reserve_words(w, need, woken)
    else:
        _reserve_nodes(w, need, woken)


@lean
def _no_reservation(w: World) -> None:
    """The head can never start as things stand: it reserves nothing."""
    s = w.s[0]
    s.extra = s.free_on + s.free_boot + s.free_off
    s.extra_on = s.free_on
    w.bits[codes.SET_RESERVED, :] = bits.ZERO


@lean
def _reserve_words(w: World, need: int, woken: bool) -> None:
    """Reserve the lowest `need` nodes of one core of those free by the reservation's time."""
    s = w.s[0]
    s.extra = 0
    s.extra_on = 0
    for i in range(w.bits.shape[1]):
        free = w.bits[codes.SET_ON, i]
        others = w.bits[codes.SET_BOOT, i] | w.bits[codes.SET_OFF, i]
        word = free | w.bits[codes.SET_RELEASED, i]
        if woken:
            word |= others
        if need == 0:
            word = bits.ZERO
        elif bits.population(word) > need:
            word = bits.lowest_bits(word, need)
        need -= bits.population(word)
        w.bits[codes.SET_RESERVED, i] = word
        s.extra += bits.population((free | others) & ~word)
        s.extra_on += bits.population(free & ~word)


@lean
def _reserve_nodes(w: World, need: int, woken: bool) -> None:
    """Reserve cores on the lowest nodes; within a node, cores that are released later rather than those free now. Nodes
    with a core of the reservation are in SET_RESERVED: they alone have a limit."""
    s = w.s[0]
    s.extra = s.free_on + s.free_boot + s.free_off
    s.extra_on = s.free_on
    limited = w.bits[codes.SET_RESERVED]
    limited[:] = bits.ZERO
    for i in range(limited.shape[0]):
        free_now = w.bits[codes.SET_ON, i] | w.bits[codes.SET_BOOT, i] | w.bits[codes.SET_OFF, i]
        word = w.bits[codes.SET_RELEASED, i] | (free_now if woken else w.bits[codes.SET_ON, i])
        while word != bits.ZERO and need > 0:
            low = bits.lowest(word)
            word &= word - bits.ONE
            node = w.node[(i << 6) + low]
            free = node.free if (free_now >> np.uint64(low)) & bits.ONE != bits.ZERO else 0
            counted = free if (woken or node.power == codes.ON) else 0
            reserved = min(need, counted + node.released)
            if reserved > 0:
                need -= reserved
                node.limit = free + node.released - reserved
                bits.put(limited, (i << 6) + low)
                fewer = free - min(free, node.limit)
                s.extra -= fewer
                if node.power == codes.ON:
                    s.extra_on -= fewer
        if need == 0:
            return
