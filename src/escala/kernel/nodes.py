"""A node's life: on, switching off, off, switching on."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.energy import count_switch, ledger_state, move
from escala.kernel.events import push
from escala.kernel.lanes import note
from escala.kernel.state import HEAP_SWITCHES, World


@inlined
def set_of(power: int) -> int:
    """The set of free cores to which a node of this power state belongs; NONE while it is switching off."""
    if power == codes.ON:
        return codes.SET_ON
    if power == codes.SWITCHING_ON:
        return codes.SET_BOOT
    if power == codes.OFF:
        return codes.SET_OFF
    return codes.NONE


@inlined
def add_free(w: World, which: int, n: int) -> None:
    """`n` more cores are free in a set (negative: fewer)."""
    s = w.s[0]
    if which == codes.SET_ON:
        s.free_on += n
    elif which == codes.SET_BOOT:
        s.free_boot += n
    else:
        s.free_off += n


@inlined
def lower_hint(w: World, which: int, word: int) -> None:
    """A node of this word entered the set."""
    s = w.s[0]
    if which == codes.SET_ON:
        s.low_on = min(s.low_on, word)
    elif which == codes.SET_BOOT:
        s.low_boot = min(s.low_boot, word)
    else:
        s.low_off = min(s.low_off, word)


@inlined
def free_cores(w: World, n: int) -> int:
    """Cores of node `n` that no job has. With one core a node the sets themselves hold that; `NODE.free` is then not
    kept."""
    if w.o[0].unit == 0:
        return w.node[n].free
    which = set_of(w.node[n].power)
    if which == codes.NONE or w.node[n].held == 1:
        return 1
    return 1 if bits.has(w.bits[which], n) else 0


@inlined
def set_free(w: World, n: int, free: int) -> None:
    """So many cores of node `n`, of several, are taken by no job."""
    before = np.int64(w.node[n].free)
    w.node[n].free = free
    if w.roomy.shape[0] > 0:
        _note_room(w, n, before, free)


@lean
def _note_room(w: World, n: int, before: int, free: int) -> None:
    """The sets of nodes by free cores. Where each has one core, the other sets say alone whether it is free."""
    if w.o[0].unit == 1:
        bits.put(w.roomy[0], n)
        return
    for level in range(w.roomy.shape[0]):
        enough = free >> level > 0
        if not enough and before >> level <= 0:
            return
        if enough != (before >> level > 0):
            w.roomy[level, n >> 6] ^= bits.ONE << np.uint64(n & 63)


@inlined
def enter_set(w: World, n: int, free: int) -> None:
    """Node `n` joins the set of its power state with `free` cores (unless it is held off)."""
    which = set_of(w.node[n].power)
    if which != codes.NONE and w.node[n].held == 0 and free > 0:
        bits.put(w.bits[which], n)
        lower_hint(w, which, n >> 6)
        add_free(w, which, free)


@inlined
def leave_set(w: World, n: int, free: int) -> None:
    """Node `n` with its `free` cores leaves the set of its power state."""
    which = set_of(w.node[n].power)
    if which != codes.NONE and w.node[n].held == 0 and free > 0:
        bits.drop(w.bits[which], n)
        add_free(w, which, -free)


@lean
def change_power(w: World, n: int, power: int) -> None:
    """Node `n`, which does not compute, takes a new power state; the switch is logged."""
    s = w.s[0]
    node = w.node[n]
    free = free_cores(w, n)
    leave_set(w, n, free)
    move(w, node.profile, ledger_state(node.power), ledger_state(power), 1)
    node.power = power
    enter_set(w, n, free)
    if w.o[0].record == 1:
        w.log[s.n_log].time = s.now
        w.log[s.n_log].node = n
        w.log[s.n_log].state = power
        s.n_log += 1


@lean
def switch_off(w: World, n: int) -> None:
    """Order a wholly idle node off, now. Legality is the caller's."""
    s = w.s[0]
    profile = w.profile[w.node[n].profile]
    change_power(w, n, codes.SWITCHING_OFF)
    note(w, np.int64(w.node[n].lane))  # plans that counted on it are out of date
    count_switch(w, 1, 0)
    w.node[n].done = s.now + profile.off_us
    s.n_switches = push(w.heaps[HEAP_SWITCHES], s.n_switches, w.node[n].done, n)


@lean
def switch_on(w: World, n: int) -> None:
    """Order an off node on, now. Legality is the caller's."""
    s = w.s[0]
    profile = w.profile[w.node[n].profile]
    change_power(w, n, codes.SWITCHING_ON)
    count_switch(w, 0, 1)
    w.node[n].done = s.now + profile.on_us
    s.n_switches = push(w.heaps[HEAP_SWITCHES], s.n_switches, w.node[n].done, n)


@lean
def switch_ends(w: World, n: int) -> None:
    """The switch of node `n` is over."""
    s = w.s[0]
    if w.node[n].power == codes.SWITCHING_ON:
        change_power(w, n, codes.ON)
        w.node[n].since = s.now
        if free_cores(w, n) == w.node[n].cores:
            s.next_off_us = min(s.next_off_us, due(w, s.now))
    else:
        change_power(w, n, codes.OFF)
    note(w, np.int64(w.node[n].lane))


@inlined
def due(w: World, since: int) -> int:
    """When the timeout of a node idle since `since` falls due, NEVER_US without such a policy."""
    o = w.o[0]
    if o.shutdown == codes.TIMEOUT or o.shutdown == codes.HOLD or o.shutdown == codes.ORACLE:
        return since + o.timeout_us
    return codes.NEVER_US


@inlined
def is_idle(w: World, n: int) -> bool:
    """On (a node that is held off never is), and no core taken."""
    return w.node[n].power == codes.ON and free_cores(w, n) == w.node[n].cores
