"""Calls on one simulation of a batch: bringing it to its start, and commands from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled
from escala.kernel import bits, codes, commands
from escala.kernel.forecast import told
from escala.kernel.lanes import clear_lanes
from escala.kernel.nodes import add_free, due, lower_hint, set_free, set_of
from escala.kernel.reach import EMPTY
from escala.kernel.world import one


@compiled
def prepare(table: Any, i: int, start_off: bool) -> None:
    """Bring simulation `i`, whose options, jobs, nodes and profiles are filled in, to its start."""
    w = one(table, i)
    s = w.s[0]
    o = w.o[0]
    s.now = o.start_us
    s.first = codes.NONE
    s.last = codes.NONE
    s.free_chunk = codes.NONE
    s.head = codes.NONE
    s.touched = codes.NONE
    s.next_off_us = codes.NEVER_US
    s.next_aged_us = codes.NEVER_US
    s.next_plan_us = codes.NEVER_US
    s.tick_us = o.start_us if o.period_us > 0 else codes.NEVER_US
    s.changed = 1
    clear_lanes(w, 0)
    for j in range(o.n_jobs):
        w.run[j].state = codes.PENDING
        w.run[j].start = codes.NONE
        w.run[j].chunk = codes.NONE
    w.tree[:, :] = EMPTY
    w.branch[:, :] = EMPTY
    w.roomy[:, :] = bits.ZERO
    w.recent[:, :] = codes.NONE
    for n in range(o.n_nodes):
        node = w.node[n]
        node.free = 0
        set_free(w, n, np.int64(node.cores))
        node.limit = node.cores
        node.since = o.start_us
        off = start_off and w.profile[node.profile].can_switch == 1
        node.power = codes.OFF if off else codes.ON
        which = set_of(node.power)
        bits.put(w.bits[which], n)
        lower_hint(w, which, 0)
        add_free(w, which, node.cores)
        w.ledger[node.profile].nodes[codes.IS_OFF if off else codes.IDLE] += 1
        if not off:
            s.next_off_us = min(s.next_off_us, due(w, o.start_us))


@compiled
def clear(table: Any, i: int, size: int, start: Any) -> None:
    """Empty the tables of simulation `i`, which is to play `size` jobs; `prepare` comes next. start: the table of one
    simulation, as at every start. (A function of its own: the addresses in a row of the table must not change during a
    call.)"""
    w, fresh = one(table, i), one(start, 0)
    w.o[0] = fresh.o[0]
    w.o[0].n_jobs = size
    w.o[0].n_ranks = size
    w.s[0] = fresh.s[0]
    for p in range(w.ledger.shape[0]):
        for k in range(5):
            w.ledger[p].node_us[k] = 0
            w.ledger[p].carry[k] = 0
            w.ledger[p].nodes[k] = 0
        w.ledger[p].rate = 0.0
        w.ledger[p].load_s = 0.0
    w.bits[:, :] = 0
    for n in range(fresh.node.shape[0]):
        w.node[n] = fresh.node[n]
        for k in range(fresh.room.shape[1]):
            w.room[n, k] = fresh.room[n, k]


START = 0
START_ON = 1
SWITCH_OFF = 2
WAKE = 3
RESERVE = 4
TIMER = 5
NAMES = ("start", "start_on", "switch_off", "wake", "reserve_off", "call_at")  # by kind


@compiled
def command(table: Any, i: int, kind: int, a: int, b: int) -> int:
    """One command to simulation `i`; returns its refusal code."""
    w = one(table, i)
    if kind == START:
        return commands.command_start(w, a)
    if kind == START_ON:
        return commands.command_start_on(w, a, b)
    if kind == SWITCH_OFF:
        return commands.command_switch_off(w, a)
    if kind == WAKE:
        return commands.command_wake(w, a)
    if kind == RESERVE:
        return commands.command_reserve(w, a)
    return commands.command_timer(w, a)


@compiled
def start_at(table: Any, i: int, j: int, nodes: Any) -> tuple[int, int]:
    """Start job `j` of simulation `i` on these nodes [int64]; see `commands.command_start_at`."""
    return commands.command_start_at(one(table, i), j, nodes)


@compiled
def held(table: Any, i: int, rows: Any, out: Any) -> int:
    """The cores that these jobs of simulation `i` hold, in the order in which they were taken: place among the rows,
    first and last node, cores on each, int64 [4, *]. Returns how many parts there are, whether they fitted or not."""
    w = one(table, i)
    parts = 0
    for k in range(rows.shape[0]):
        c = np.int64(w.run[rows[k]].chunk)
        while c != codes.NONE:
            if parts < out.shape[1]:
                out[0, parts] = k
                out[1, parts] = w.chunk[c].low
                out[2, parts] = w.chunk[c].high
                out[3, parts] = w.chunk[c].per
            parts += 1
            c = np.int64(w.chunk[c].next)
    return parts


@compiled
def tell(table: Any, i: int, j: int, estimate: int, order: int) -> None:
    """Somebody outside says how long job `j` of simulation `i`, just submitted, will run (us): for plans, and for the
    order."""
    told(one(table, i), j, estimate, order)
