"""Commands from outside: legality, effect, refusal code. A command that makes no sense is refused and changes
nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.events import push
from escala.kernel.fit import fits_now, may_wake
from escala.kernel.jobs import place, start
from escala.kernel.nodes import is_idle, set_of, switch_off, switch_on
from escala.kernel.parts import parts_of, parts_on, takes_any
from escala.kernel.placement import append_chunk, take_cores, take_on
from escala.kernel.shutdown import can_switch, reserve_off
from escala.kernel.state import HEAP_TIMERS, World


@lean
def command_start(w: World, j: int) -> int:
    """Start the queued job `j` on the lowest cores that may be given."""
    if j < 0 or j >= w.s[0].next_job:  # a job that is not submitted yet cannot be told from none
        return codes.REFUSED_NO_SUCH
    if w.run[j].state != codes.QUEUED:
        return codes.REFUSED_NOT_QUEUED
    if not fits_now(w, j):
        return codes.REFUSED_NO_ROOM
    start(w, j, False, may_wake(w, j))
    return codes.REFUSED_NONE


@lean
def command_start_on(w: World, j: int, n: int) -> int:
    """Start the queued job `j`, which goes by nodes, on node `n`: all its parts there."""
    if j < 0 or j >= w.s[0].next_job or n < 0 or n >= w.o[0].n_nodes:
        return codes.REFUSED_NO_SUCH
    if w.run[j].state != codes.QUEUED:
        return codes.REFUSED_NOT_QUEUED
    node = w.node[n]
    givable = node.held == 0 and (node.power == codes.ON or (may_wake(w, j) and node.power != codes.SWITCHING_OFF))
    if takes_any(w, j) or not givable or (w.o[0].unit == 1 and not is_idle(w, n)):
        return codes.REFUSED_NO_ROOM
    parts = parts_of(w, j)
    if parts_on(w, j, n, parts) < parts:
        return codes.REFUSED_NO_ROOM
    place(w, j, take_on(w, j, codes.NONE, n, 0, parts)[1])
    return codes.REFUSED_NONE


@lean
def command_start_at(w: World, j: int, nodes: Any) -> tuple[int, int]:
    """Start the queued job `j` on these nodes, each there and named once, in this order: all free cores of each, or as
    many of its parts as there is room for, until it has all of its own. A refusal code, with REFUSED_NO_NODE the node
    that cannot be given, else how many cores, parts or nodes there are to take."""
    if j < 0 or j >= w.s[0].next_job:
        return codes.REFUSED_NO_SUCH, 0
    if w.run[j].state != codes.QUEUED:
        return codes.REFUSED_NOT_QUEUED, 0
    waking = may_wake(w, j)
    spreads = w.job[j].single == 0
    need = np.int64(w.job[j].cores) if spreads else parts_of(w, j)
    found = 0
    for k in range(nodes.shape[0]):
        n = nodes[k]
        if found >= need:
            return codes.REFUSED_TOO_MANY, k
        which = set_of(w.node[n].power)
        if which == codes.NONE or not bits.has(w.bits[which], n) or not (which == codes.SET_ON or waking):
            return codes.REFUSED_NO_NODE, n
        here = _free(w, n) if spreads else parts_on(w, j, n, need - found)
        if here == 0:
            return codes.REFUSED_NO_NODE, n
        found += here
    if found < need:
        return codes.REFUSED_TOO_FEW, found
    ready, last, taken = w.s[0].now, codes.NONE, 0
    for k in range(nodes.shape[0]):
        n = nodes[k]
        if spreads:
            per = min(_free(w, n), need - taken)
            taken += per
            last = append_chunk(w, j, last, n, n, per)
            on = take_cores(w, n, per)
        else:
            here = parts_on(w, j, n, need - taken)
            last, on = take_on(w, j, last, n, taken, here)
            taken += here
        ready = max(ready, on)
    place(w, j, ready)
    return codes.REFUSED_NONE, 0


@inlined
def _free(w: World, n: int) -> int:
    """Free cores of node `n`, which is in a set of nodes that have some."""
    return 1 if w.o[0].unit == 1 else np.int64(w.node[n].free)


@lean
def command_switch_off(w: World, n: int) -> int:
    """Order the wholly idle node `n` off."""
    if n < 0 or n >= w.o[0].n_nodes:
        return codes.REFUSED_NO_SUCH
    if not can_switch(w, n):
        return codes.REFUSED_CANNOT_SWITCH
    if not is_idle(w, n):
        return codes.REFUSED_NOT_IDLE
    switch_off(w, n)
    return codes.REFUSED_NONE


@lean
def command_wake(w: World, n: int) -> int:
    """Order the off node `n` on."""
    if n < 0 or n >= w.o[0].n_nodes:
        return codes.REFUSED_NO_SUCH
    if w.node[n].power != codes.OFF or w.node[n].held == 1:
        return codes.REFUSED_NOT_OFF
    switch_on(w, n)
    return codes.REFUSED_NONE


@lean
def command_reserve(w: World, target: int) -> int:
    """Keep `target` nodes off (off-reservation): more are taken among the free ones, fewer are released."""
    if target < 0 or target > w.o[0].n_nodes:
        return codes.REFUSED_NO_SUCH
    reserve_off(w, target)
    return codes.REFUSED_NONE


@lean
def command_timer(w: World, time_us: int) -> int:
    """Ask for a decision at `time_us`."""
    s = w.s[0]
    if time_us <= s.now:
        return codes.REFUSED_PAST
    if s.n_timers >= w.heaps.shape[1]:
        return codes.REFUSED_NO_ROOM
    s.n_timers = push(w.heaps[HEAP_TIMERS], s.n_timers, time_us, codes.NONE)
    return codes.REFUSED_NONE
