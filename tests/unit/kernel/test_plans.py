"""Planned ends are walked in order, ties by row: few as a line, many as a heap, and as their number passes from one to
the other."""

from __future__ import annotations

from typing import Any

import numpy as np

import escala
from escala.compile import compiled
from escala.kernel.plans import FEW, add_plan, following, remove_plan
from escala.kernel.world import one
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation

JOBS = 4 * FEW


@compiled
def add(table: Any, j: int) -> None:
    add_plan(one(table, 0), j)


@compiled
def remove(table: Any, j: int) -> None:
    remove_plan(one(table, 0), j)


@compiled
def walk(table: Any, rows: Any, frontier: Any) -> int:
    """The jobs of the walk, in its order."""
    w = one(table, 0)
    frontier[0] = 0
    size = min(1, w.s[0].n_plans)
    n = 0
    while size > 0:
        position, size = following(w, frontier, size)
        rows[n] = w.plans[position]
        n += 1
    return n


def test_the_walk_is_in_order_whatever_comes_and_goes() -> None:
    jobs = {"submit_s": np.zeros(JOBS), "runtime_s": np.ones(JOBS), "cores": np.ones(JOBS, int)}
    workload = escala.Workload.from_jobs(jobs)
    chosen = policies.pair(workload, "easy", "never", Options())
    simulation = Simulation(workload, escala.read_platform(f"1x{JOBS}:none"), chosen.plan, Options())
    run = simulation.world.run[0]
    chance = np.random.default_rng(0)
    rows, frontier = np.zeros(JOBS, np.int64), np.zeros(JOBS, np.int64)
    held: list[int] = []
    # grows or shrinks to each in turn, with steps back
    for most in (FEW - 1, 3 * FEW, FEW // 3, FEW + 1, 0, 2 * FEW, 0):
        while len(held) != most:
            if ((chance.random() < 0.8) == (len(held) < most) and len(held) < JOBS) or not held:
                j = int(chance.choice(np.setdiff1d(np.arange(JOBS), held)))
                run[j]["plan"] = chance.integers(1, 12)  # many of one instant
                add(simulation.table, j)
                held.append(j)
            else:
                remove(simulation.table, held.pop(int(chance.integers(len(held)))))
            n = walk(simulation.table, rows, frontier)
            assert rows[:n].tolist() == sorted(held, key=lambda j: (int(run[j]["plan"]), j))
