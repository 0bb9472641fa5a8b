"""What an off-reservation agent's numbers mean: `wake`, `count` and `hold`, and the guards that keep jobs from waiting
for the agent alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.rjms.state import Game
from escala.kernel import codes
from escala.kernel.events import push
from escala.kernel.reservation import hold_end
from escala.kernel.shutdown import hold_node, release_node, reserve_off, reserve_off_but_head
from escala.kernel.state import HEAP_TIMERS, World

WAKE = 0
COUNT = 1
HOLD = 2
FORMS = {"wake": WAKE, "count": COUNT, "hold": HOLD}

NO_GUARD = 0
LATE = 1
HEAD = 2
GUARDS = {"none": NO_GUARD, "late": LATE, "head": HEAD}


@lean
def late_need(w: World, share: float, free: int) -> int:
    """Cores that the jobs need which have waited `share` of their walltime, in queue order, as far as they fit `free`
    cores together."""
    need = 0
    j = w.s[0].first
    now = w.s[0].now
    while j != codes.NONE:
        job = w.job[j]
        if now - job.submit >= share * job.walltime and need + job.cores <= free:
            need += job.cores
        j = np.int64(w.run[j].next)
    return need


@lean
def allow(w: World, st: Any, most: int) -> None:
    """At most `most` off nodes, the lowest, may be woken until the next decision; the other nodes that are off or
    switching off are held. The guard allows more: what late jobs need that
    could start."""
    s = w.s[0]
    nodes = w.o[0].n_nodes
    if most >= nodes and s.n_held == 0:
        return
    lacking = 0
    if st.guard == LATE and most < nodes:
        off = 0
        for n in range(nodes):
            if w.node[n].power == codes.OFF:
                off += w.node[n].cores
        on = s.free_on + s.free_boot
        lacking = late_need(w, st.guard_at, on + off) - on
    allowed = 0
    for n in range(nodes):
        node = w.node[n]
        held = False
        if node.power == codes.OFF:
            held = allowed >= most and lacking <= 0
            if not held:
                allowed += 1
                lacking -= node.cores
        elif node.power == codes.SWITCHING_OFF:
            held = most < nodes
        else:
            continue
        if held and node.held == 0:
            hold_node(w, n)
        elif not held and node.held == 1:
            release_node(w, n)


@lean
def _has_timer(w: World, time: int, j: int) -> bool:
    """Is there a timer of job `j` at this time?"""
    found = False
    for k in range(w.s[0].n_timers):
        found = found or (w.heaps[HEAP_TIMERS, k].time == time and w.heaps[HEAP_TIMERS, k].id == j)
    return found


@lean
def set_hold(w: World, period_us: int, fraction: float) -> None:
    """From now on a job may be given nodes that are not on when it has waited `fraction` of its walltime. Timers: the
    jobs of the queue for which that falls between two decisions. So a job has at most as many timers at once as there
    are fractions."""
    s = w.s[0]
    w.o[0].fraction = fraction
    s.woken = codes.NONE
    j = s.first
    while j != codes.NONE:
        end = hold_end(w, j)
        if s.now < end and end < s.now + period_us and not _has_timer(w, end, j):
            s.n_timers = push(w.heaps[HEAP_TIMERS], s.n_timers, end, j)
        j = np.int64(w.run[j].next)


@lean
def apply(w: World, g: Game, action: int) -> None:
    """Put an action in force, before the scheduler."""
    st = g.settings
    if st.form == WAKE:
        allow(w, st, action)
    elif st.form == HOLD:
        fraction = g.fractions[action]
        if st.guard == LATE:
            fraction = min(fraction, st.guard_at)
        set_hold(w, st.period_us, fraction)
    elif st.guard == HEAD:
        reserve_off_but_head(w, action)
    else:
        reserve_off(w, action)


@lean
def off_nodes(w: World) -> int:
    """Nodes that are off: as many as may be woken."""
    nodes = 0
    for p in range(w.ledger.shape[0]):
        nodes += w.ledger[p].nodes[codes.IS_OFF]
    return nodes
