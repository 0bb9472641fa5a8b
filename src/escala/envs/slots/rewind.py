"""Bringing simulations to the start of another job list, without leaving compiled code."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled
from escala.kernel import calls
from escala.kernel.world import WORLD

JOB_AT = WORLD.at["job"]
DEMAND_AT = WORLD.at["demand"]


@compiled
def rewind(table: Any, rows: Any, chosen: Any, first: Any, where: Any, start: Any) -> None:
    """Point simulation rows[q] at list chosen[q] and clear its tables. where: address and bytes a job of the jobs, the
    same of the demands (0: none); start: the table of one simulation as at every start."""
    for q in range(rows.shape[0]):
        i = rows[q]
        begin = first[chosen[q]]
        size = first[chosen[q] + 1] - begin
        table[i, JOB_AT] = where[0] + begin * where[1]
        table[i, JOB_AT + 1] = size
        if where[3] > 0:
            table[i, DEMAND_AT] = where[2] + begin * where[3]
            table[i, DEMAND_AT + 1] = size
        calls.clear(table, i, size, start)
        calls.prepare(table, i, False)
