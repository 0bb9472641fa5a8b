"""What a replay carries from one window of jobs to the next: the jobs that live, what they hold, the nodes, and what
has been counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from escala.kernel.resume import resume
from escala.simulation import Simulation
from escala.standing import standing

COUNTED = (
    "switch_offs",
    "switch_ons",
    "offs_then",
    "ons_then",
    "switched_us",
    "last_finish",
    "changed",
    "next_off_us",
)
"""Scalars that go on from window to window."""
MEASURED = ("node_us", "carry", "load_s", "rate")
"""Of the ledger."""


@dataclass(frozen=True)
class Carried:
    """The state in which a window ended; times in us.

    table: rows of the log in front of the next window's: the log's first job, by which measuring begins, and those that
    live. jobs: JOBS of these, truth: JOB of all of `table`. nodes: NODES; placed: PLACED, by place in `jobs`; counts,
    ledger: what has been measured.
    """

    now_us: int
    table: pl.DataFrame
    jobs: Any
    truth: Any
    nodes: Any
    placed: Any
    counts: dict[str, int]
    ledger: Any

    @property
    def ended(self) -> int:
        """Rows of `table` that have ended: the log's first job, where it is told only for the clock."""
        return len(self.truth) - len(self.jobs)


def state_of(simulation: Simulation) -> Carried:
    """How simulation 0 stands, between two instants."""
    w = simulation.world
    now, s = standing(w), w.s[0, 0]
    rows = np.union1d([0], now.rows)
    now.jobs["row"] = np.searchsorted(rows, now.rows)
    for name in ("submit", "walltime", "cores", "single"):
        now.jobs[name] = w.job[0, now.rows][name]
    table = simulation.workloads[0].jobs[simulation.admitted[0].rows[rows]]
    counts = {name: int(s[name]) for name in COUNTED}
    return Carried(
        int(s["now"]), table, now.jobs, w.job[0, rows].copy(), now.nodes, now.placed, counts, w.ledger[0].copy()
    )


def go_on(simulation: Simulation, carried: Carried) -> None:
    """Bring simulation 0, whose first rows are `carried.table`, to the state in which the last window ended."""
    truth, users = carried.truth, simulation.world.job[0, : len(carried.truth)]["user"]
    truth["user"] = users  # numbered by each window anew
    carried.jobs["user"] = users[carried.jobs["row"]]
    room = simulation.world.room[0].copy()
    while resume(simulation.table, 0, carried.now_us, carried.jobs, carried.nodes, carried.placed, truth, True) != 0:
        simulation.grow(0)
        simulation.world.room[0] = room  # of which the jobs take their demands anew
    s, ledger = simulation.world.s[0, 0], simulation.world.ledger[0]
    for name, value in carried.counts.items():
        s[name] = value
    for name in MEASURED:
        ledger[name] = carried.ledger[name]
