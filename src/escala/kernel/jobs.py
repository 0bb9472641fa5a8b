"""A job's life: submitted, queued, given its nodes, running, ended."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.bookings import release
from escala.kernel.energy import move
from escala.kernel.events import push
from escala.kernel.forecast import remember
from escala.kernel.lanes import lane_of, note
from escala.kernel.nodes import due
from escala.kernel.oracle import plan_oracle
from escala.kernel.placement import give_back, recycle, take, take_parts
from escala.kernel.plans import add_plan, plan_end, remove_plan
from escala.kernel.queue import dequeue
from escala.kernel.reservation import hold_end
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, HEAP_SWITCHES, World
from escala.kernel.users import count


@lean
def occupy(w: World, j: int, sign: int) -> None:
    """The cores of job `j` begin (sign 1) or cease (sign -1) to compute: ledger counts and busy cores."""
    o = w.o[0]
    load = w.job[j].load
    plain = o.unit == 1 and w.ledger.shape[0] == 1
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        low = np.int64(w.chunk[c].low)
        high = np.int64(w.chunk[c].high)
        per = np.int64(w.chunk[c].per)
        if plain:
            n_nodes = high - low + 1
            if sign > 0:
                move(w, 0, codes.IDLE, codes.COMPUTING, n_nodes)
            else:
                move(w, 0, codes.COMPUTING, codes.IDLE, n_nodes)
            w.ledger[0].rate += sign * load * n_nodes
        else:
            for n in range(low, high + 1):
                _occupy_node(w, n, per, sign, load)
        c = np.int64(w.chunk[c].next)
    if w.s[0].n_ends == 0 and sign < 0:
        for p in range(w.ledger.shape[0]):  # nothing computes: shed the rounding of the running sum
            if w.ledger[p].nodes[codes.COMPUTING] == 0:
                w.ledger[p].rate = 0.0


@inlined
def _occupy_node(w: World, n: int, per: int, sign: int, load: float) -> None:
    node = w.node[n]
    p = node.profile
    before = node.busy
    node.busy += sign * per
    w.ledger[p].rate += sign * load * per / node.cores
    if before == 0:
        move(w, p, codes.IDLE, codes.COMPUTING, 1)
    elif node.busy == 0:
        move(w, p, codes.COMPUTING, codes.IDLE, 1)


@lean
def _pace(w: World, j: int) -> None:
    """How long job `j` runs on the nodes that it has: as long as on the slowest. One that does not compute takes its
    time."""
    job = w.job[j]
    slowest = 1e3
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            slowest = min(slowest, w.speed[n])
        c = np.int64(w.chunk[c].next)
    lasts = w.whole[j, 0]
    if slowest != 1.0 and job.load > 0.0:
        lasts = np.int64(max(min(np.floor(lasts / slowest + 0.5), codes.LONGEST_US), 1.0))
    limit = w.whole[j, 1]
    job.killed = 1 if lasts >= limit else 0
    job.runtime = min(lasts, limit)


@lean
def begin(w: World, j: int) -> None:
    """All nodes of job `j` are on: it runs."""
    s = w.s[0]
    w.run[j].state = codes.RUNNING
    w.run[j].start = s.now
    s.n_ends = push(w.heaps[HEAP_ENDS], s.n_ends, s.now + w.job[j].runtime, j)
    occupy(w, j, 1)


@lean
def _switching_now(w: World, j: int) -> bool:
    """Is a node of job `j` still switching on, though its switch ends at this very instant (a switch of no length)?"""
    s = w.s[0]
    if s.n_switches == 0 or w.heaps[HEAP_SWITCHES, 0].time > s.now:
        return False
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if w.node[n].power == codes.SWITCHING_ON:
                return True
        c = np.int64(w.chunk[c].next)
    return False


@lean
def place(w: World, j: int, ready: int) -> None:
    """Job `j` has been given its cores; its nodes are all on at `ready`."""
    s = w.s[0]
    dequeue(w, j, codes.GIVEN)
    if w.speed.shape[0] > 0:
        _pace(w, j)
    if s.woken > 0 and w.o[0].shutdown == codes.HOLD and hold_end(w, j) <= s.now:
        s.woken -= 1
    if w.user.shape[0] > 0:
        count(w, j, 0, 1)
    plan_end(w, j, ready)
    if w.plans.shape[0] > 0:
        add_plan(w, j)
    if ready <= s.now and not _switching_now(w, j):
        begin(w, j)
    else:
        s.n_starts = push(w.heaps[HEAP_STARTS], s.n_starts, ready, j)
    if w.o[0].shutdown == codes.ORACLE:
        plan_oracle(w, max(ready, s.now) + w.job[j].runtime, j)


@lean
def start(w: World, j: int, beyond: bool, any_power: bool) -> None:
    """Start the queued job `j` on the lowest cores that it may be given now (the caller has checked that there are
    enough)."""
    ready = take_parts(w, j, any_power) if w.job[j].single != 0 else take(w, j, beyond, any_power)
    place(w, j, ready)


@lean
def end(w: World, j: int) -> None:
    """Job `j` has run its time."""
    s = w.s[0]
    occupy(w, j, -1)
    if w.user.shape[0] > 0:
        count(w, j, 0, -1)
    if w.o[0].queueing == codes.CONSERVATIVE:
        release(w, j)
    give_back(w, j)
    if w.o[0].shutdown != codes.NEVER or w.o[0].queueing == codes.EXTERNAL:
        _idle_since(w, j)
    if w.plans.shape[0] > 0:
        remove_plan(w, j)
    w.run[j].state = codes.KILLED if w.job[j].killed == 1 else codes.COMPLETED
    remember(w, j)
    if w.o[0].record == 0:
        recycle(w, j)
    if w.o[0].shutdown == codes.ORACLE:
        w.lane[lane_of(w, j)].given_back += np.int64(w.job[j].cores)
    s.n_ended += 1
    s.last_finish = s.now
    note(w, lane_of(w, j))


@lean
def _idle_since(w: World, j: int) -> None:
    """Nodes that job `j` was the last to use are idle since now."""
    s = w.s[0]
    unit = w.o[0].unit == 1
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if unit or w.node[n].free == w.node[n].cores:
                w.node[n].since = s.now
                if w.o[0].shutdown != codes.NEVER:
                    s.next_off_us = min(s.next_off_us, due(w, s.now))
        c = np.int64(w.chunk[c].next)
