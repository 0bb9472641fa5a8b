"""The energy bound as a mixed-integer programme: starts x[j, s], nodes on n[t], switched on u[t] and off v[t], all
whole."""

from __future__ import annotations

import math

import numpy as np

from escala.errors import EscalaError
from escala.optimum.power import PowerInstance
from escala.optimum.solver import installed, solve
from escala.optimum.timeindexed import MAX_ENTRIES


def solve_switching(instance: PowerInstance, limit_s: float) -> tuple[float, str, bool, bool]:
    """Proved lower bound in joules (-inf: none), who proved it, whether to optimality, whether Ctrl-C ended it.

    minimise idle * (sum n - work) + on_j * sum u + off_j * sum v, with n[t] - n[t-1] = u[t] - v[t] and busy <= n <=
    total. EscalaError without highspy.
    """
    if not installed("highspy"):
        raise EscalaError("exact needs HiGHS: pip install 'escala[optimum]', or leave out exact")
    origin = instance.first
    times = instance.release - origin, instance.latest - origin, instance.length
    unit = int(np.gcd.reduce(np.concatenate(times)))
    release, latest, length = (a // unit for a in times)
    ticks = int((latest + length).max())
    count = latest - release + 1
    if int((count * length).sum()) + 4 * ticks > MAX_ENTRIES:
        return -math.inf, "", False, False
    job = np.repeat(np.arange(count.size), count)
    start = release[job] + np.arange(job.size) - (np.cumsum(count) - count)[job]
    columns, steps = job.size, np.arange(ticks)
    n, u, v = (columns + k * ticks + steps for k in range(3))
    runs = length[job]
    column = np.repeat(np.arange(columns), runs)
    tick = start[column] + np.arange(column.size) - (np.cumsum(runs) - runs)[column]
    once, busy, change = job, count.size + tick, count.size + ticks + steps
    rows = np.concatenate([once, busy, count.size + steps, change, change[1:], change, change])
    places = np.concatenate([np.arange(columns), column, n, n, n[:-1], u, v])
    ones = np.ones(ticks)
    entries = np.concatenate(
        [np.ones(columns), instance.nodes[job[column]].astype(float), -ones, ones, -ones[1:], -ones, ones]
    )
    idle_j = instance.idle_w * instance.tick_s * unit
    free = steps >= (instance.soonest - origin) // unit
    counts = np.ones(ticks)  # 0 where idle nodes cost nothing
    for begin, finish in instance.unsure():
        counts[(begin - origin) // unit : -((origin - finish) // unit)] = 0.0
    counted = np.concatenate([[0.0], np.cumsum(counts)])
    free_of = instance.nodes[job] * (runs - (counted[start + runs] - counted[start]))
    cost = (
        np.concatenate([idle_j * free_of, idle_j * counts, instance.on_j * ones, np.where(free, 0.0, instance.off_j)])
        / 1e3
    )
    given = np.zeros(ticks)
    given[0] = instance.on_at_start
    once_each = np.ones(count.size)
    data = {
        "cost": cost, "top": np.concatenate([np.ones(columns), np.full(3 * ticks, float(instance.total))]),
        "low": np.concatenate([once_each, -np.inf * ones, given]), "high": np.concatenate([once_each, 0 * ones, given]),
        "rows": rows, "columns": places, "entries": entries, "known": False,
    }  # fmt: skip
    run = solve("milp", data, limit_s)
    work = idle_j * float((length * instance.nodes).sum())
    prover = f"HiGHS, float tolerance 1e-6 ({run.version or 'stopped'})"
    return 1e3 * run.bound - work, prover, run.done == "optimal", run.interrupted
