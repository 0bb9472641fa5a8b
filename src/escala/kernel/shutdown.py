"""Which idle nodes go off, after the scheduler; and the off-reservation, before it."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.lanes import end_turns, first_of, has_lanes, has_node, is_mine, note, turn, turns
from escala.kernel.nodes import due, enter_set, free_cores, is_idle, leave_set, switch_off
from escala.kernel.reservation import usable
from escala.kernel.state import World


@inlined
def can_switch(w: World, n: int) -> bool:
    """Has node `n` a sleep state?"""
    return w.profile[w.node[n].profile].can_switch == 1


@lean
def shut_down(w: World) -> None:
    """One decision of the shutdown policy, after the scheduler. While jobs wait in a strict order, nodes stay on."""
    s = w.s[0]
    o = w.o[0]
    waiting = o.queueing == codes.STRICT and s.n_queued > 0
    if waiting and has_lanes(w):
        for k in range(1, w.lane.shape[0]):
            waiting = waiting and w.lane[k].first != codes.NONE
    if o.shutdown == codes.PROPORTIONAL:
        if not waiting:
            _keep(w, np.int64(np.ceil(o.fraction * _computing(w))))
    elif o.shutdown == codes.TIMEOUT or o.shutdown == codes.HOLD or o.shutdown == codes.ORACLE:
        if s.next_off_us <= s.now:
            for k in range(w.lane.shape[0]):
                w.lane[k].overdue = 1
            next_due(w)
        if not waiting and (_is_overdue(w) or o.spare > 0):
            _keep(w, o.spare)
    elif o.shutdown == codes.ARRIVALS and s.free_on > 0 and not waiting:
        for k in range(turns(w)):
            if has_lanes(w):
                turn(w, k + 1)
            if o.queueing != codes.STRICT or first_of(w) == codes.NONE:
                _keep_for_arrivals(w)
        end_turns(w)


@lean
def _is_overdue(w: World) -> bool:
    """May some idle node that no job keeps on be past its timeout? It goes off now."""
    found = False
    for k in range(w.lane.shape[0]):
        if w.lane[k].overdue == 1 and not _is_kept(w, k):
            w.lane[k].overdue = 0
            found = True
    return found


@inlined
def _is_kept(w: World, lane: int) -> bool:
    """Do nodes of this lane stay on, as jobs wait there in a strict order?"""
    return has_lanes(w) and w.o[0].queueing == codes.STRICT and w.lane[lane].first != codes.NONE


@inlined
def _computing(w: World) -> int:
    total = 0
    for p in range(w.ledger.shape[0]):
        total += w.ledger[p].nodes[codes.COMPUTING]
    return total


@lean
def _keep(w: World, spare: int) -> None:
    """Switch off the idle nodes whose time has come, but leave the `spare` lowest idle nodes on."""
    s = w.s[0]
    proportional = w.o[0].shutdown == codes.PROPORTIONAL
    row = w.bits[codes.SET_ON]
    for i in range(row.shape[0]):
        word = row[i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if is_idle(w, n):
                if spare > 0:
                    spare -= 1
                elif _is_kept(w, np.int64(w.node[n].lane)):
                    continue
                elif can_switch(w, n) and (proportional or due(w, w.node[n].since) <= s.now):
                    switch_off(w, n)


@lean
def _coming_cores(w: World, until: int, free: int) -> int:
    """Cores of the jobs that will be submitted up to `until`, in order of submission, as far as they fit `free` cores
    together, of the lane whose turn it is."""
    need = 0
    j = w.s[0].next_job
    while j < w.o[0].n_jobs and w.job[j].submit <= until and need < free:
        if need + w.job[j].cores <= free and is_mine(w, j):
            need += np.int64(w.job[j].cores)
        j += 1
    return need


@lean
def _keep_for_arrivals(w: World) -> None:
    """Switch off the idle nodes, lowest first, that no job will use which comes before idling has cost as much as
    switching: those before it that stay on have enough free cores for all of them. Of the lane whose turn it is."""
    s = w.s[0]
    free = s.free_on + s.free_boot + s.free_off
    if has_lanes(w):
        free = 0
        for n in range(w.o[0].n_nodes):
            if has_node(w, n) and w.node[n].held == 0 and w.node[n].power != codes.SWITCHING_OFF:
                free += free_cores(w, n)
    kept = 0
    need = 0
    known = codes.NONE  # the profile whose `need` that is
    row = w.bits[codes.SET_ON]
    for i in range(row.shape[0]):
        word = row[i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if not has_node(w, n):
                continue
            cores = free_cores(w, n)
            p = w.node[n].profile
            span = w.profile[p].break_even_us
            if is_idle(w, n) and can_switch(w, n) and span < codes.NEVER_US:
                if p != known:
                    need = _coming_cores(w, s.now + span, free)
                    known = p
                if kept >= need:
                    switch_off(w, n)
                    cores = 0
            kept += cores


@lean
def next_due(w: World) -> None:
    """The next instant, after now, at which the timeout of a node that is idle now falls due."""
    s = w.s[0]
    s.next_off_us = codes.NEVER_US
    row = w.bits[codes.SET_ON]
    for i in range(row.shape[0]):
        word = row[i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if is_idle(w, n) and can_switch(w, n) and due(w, w.node[n].since) > s.now:
                s.next_off_us = min(s.next_off_us, due(w, w.node[n].since))


@lean
def timeout_falls_due(w: World) -> bool:
    """Does the timeout of a node that is idle now fall due at this instant? Timers of nodes that have been used since
    are void."""
    s = w.s[0]
    found = False
    row = w.bits[codes.SET_ON]
    for i in range(row.shape[0]):
        word = row[i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if is_idle(w, n) and can_switch(w, n) and due(w, w.node[n].since) == s.now:
                found = True
    return found


@lean
def hold_node(w: World, n: int) -> None:
    """Keep node `n`, idle or off, for the off-reservation; an idle one is switched off at once."""
    s = w.s[0]
    free = free_cores(w, n)
    leave_set(w, n, free)
    w.node[n].held = 1
    s.n_held += 1
    if w.node[n].power == codes.ON:
        switch_off(w, n)


@lean
def release_node(w: World, n: int) -> None:
    """Node `n` leaves the off-reservation."""
    s = w.s[0]
    w.node[n].held = 0
    s.n_held -= 1
    enter_set(w, n, w.node[n].cores)
    note(w, np.int64(w.node[n].lane))
    s.freer_us = codes.NEVER_US


@lean
def reserve_off(w: World, target: int) -> None:
    """Keep `target` nodes off: more are taken among idle nodes (highest first), then off nodes (highest first); fewer
    are released from the lowest."""
    _take(w, target, codes.ON, codes.ALL_CORES)
    _take(w, target, codes.OFF, codes.ALL_CORES)
    _give_back(w, target)


@lean
def _take(w: World, target: int, power: int, spare: int) -> int:
    """Hold more nodes of this power, highest first, up to `target` in all and to `spare` cores; returns the cores that
    are spare still."""
    s = w.s[0]
    n = w.o[0].n_nodes - 1
    while n >= 0 and s.n_held < target:
        node = w.node[n]
        if (
            node.cores <= spare
            and node.held == 0
            and can_switch(w, n)
            and node.power == power
            and free_cores(w, n) == node.cores
        ):
            hold_node(w, n)
            spare -= node.cores
        n -= 1
    return spare


@lean
def _give_back(w: World, target: int) -> None:
    """Release nodes, lowest first, down to `target`."""
    n = 0
    while w.s[0].n_held > target and n < w.o[0].n_nodes:
        if w.node[n].held == 1:
            release_node(w, n)
        n += 1


@lean
def reserve_off_but_head(w: World, target: int) -> None:
    """As `reserve_off`, with the safeguard of R3: the queue's first job is never blocked by the off-reservation alone.
    Where it could start with no node held, held nodes that it lacks are released (lowest first), and nodes that it
    needs are not taken: off nodes are taken before idle ones then, so that it finds nodes that are on."""
    s = w.s[0]
    if s.n_queued == 0:
        reserve_off(w, target)
        return
    j = s.first
    spare = usable(w, j) - w.job[j].cores
    ready = 0
    for n in range(w.o[0].n_nodes):
        if w.node[n].held == 1 and w.node[n].power == codes.OFF:
            ready += w.node[n].cores
    if spare + ready < 0:
        reserve_off(w, target)
        return
    for n in range(w.o[0].n_nodes):
        if spare < 0 and w.node[n].held == 1 and w.node[n].power == codes.OFF:
            release_node(w, n)
            spare += w.node[n].cores
    spare = _take(w, target, codes.OFF, spare)
    _take(w, target, codes.ON, spare)
    _give_back(w, target)
