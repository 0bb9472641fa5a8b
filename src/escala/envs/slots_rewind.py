"""Bringing simulations to the start of another job list, without leaving compiled code."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled
from escala.kernel import calls
from escala.kernel.world import PLACE, WORDS, one

JOB_AT = WORDS * PLACE["job"]
DEMAND_AT = WORDS * PLACE["demand"]


@compiled
def rewind(table: Any, rows: Any, chosen: Any, first: Any, where: Any, options: Any, scalars: Any, node: Any, room: Any) -> None:
    """Point simulation rows[q] at list chosen[q] and clear its tables. where: address and bytes a job of the jobs, the same of the
    demands (0: none); options [1], scalars [1], node [nodes], room [nodes, kinds]: as at every start."""
    for q in range(rows.shape[0]):
        i = rows[q]
        begin = first[chosen[q]]
        size = first[chosen[q] + 1] - begin
        table[i, JOB_AT] = where[0] + begin * where[1]
        table[i, JOB_AT + 1] = size
        if where[3] > 0:
            table[i, DEMAND_AT] = where[2] + begin * where[3]
            table[i, DEMAND_AT + 1] = size
        clear(table, i, size, options, scalars, node, room)
        calls.prepare(table, i, False)


@compiled
def clear(table: Any, i: int, size: int, options: Any, scalars: Any, node: Any, room: Any) -> None:
    """Empty the tables of simulation `i`. (A function of its own: the addresses in a row of the table must not change during a call.)"""
    w = one(table, i)
    w.o[0] = options[0]
    w.o[0].n_jobs = size
    w.s[0] = scalars[0]
    for p in range(w.ledger.shape[0]):
        for k in range(5):
            w.ledger[p].node_us[k] = 0
            w.ledger[p].carry[k] = 0
            w.ledger[p].nodes[k] = 0
        w.ledger[p].rate = 0.0
        w.ledger[p].load_s = 0.0
        w.ledger[p].switch_ons = 0
        w.ledger[p].switch_offs = 0
    w.bits[:, :] = 0
    for n in range(node.shape[0]):
        w.node[n] = node[n]
        for k in range(room.shape[1]):
            w.room[n, k] = room[n, k]
