"""The queue's search tree: an empty cell lets no search in, whatever the search asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala.compile import compiled
from escala.kernel import codes
from escala.kernel.queue import CORES, EMPTY, NO_LIMIT, next_fit
from escala.kernel.state import FAN
from escala.kernel.world import one
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation

JOBS = 1000


@compiled
def search(table: Any, rank: int, limit: int) -> int:
    return next_fit(one(table, 0), rank, limit, limit, limit)


@pytest.mark.parametrize("limit", [NO_LIMIT, codes.ALL_CORES, codes.NEVER_US, 1 << 60, 2**63 - 1])
def test_no_search_enters_an_empty_cell(limit: int) -> None:
    """Jobs are marked as queued without entering the tree: whoever finds one has looked into a cell that is empty."""
    jobs = {"submit_s": np.zeros(JOBS), "runtime_s": np.ones(JOBS), "cores": np.ones(JOBS, int)}
    workload = escala.Workload.from_jobs(jobs)
    chosen = policies.pair(workload, "sjf", "never", Options())
    simulation = Simulation(workload, escala.read_platform("1x4:none"), chosen.plan, Options())
    simulation.world.run[0]["state"][FAN:] = codes.QUEUED
    assert search(simulation.table, 0, limit) == JOBS


@pytest.mark.parametrize("scheduler", ["packer", "sjf-fit:guard=600", "easy:queue=saf:guard=600", "xfactor-fit"])
def test_the_tree_is_empty_once_all_have_started(scheduler: str) -> None:
    """A job that starts before it is due in the tree leaves nothing behind, though another of its cell is looked at."""
    random = np.random.default_rng(1)
    submit, runtime = np.cumsum(random.exponential(50, 4 * JOBS)).round(), random.integers(10, 200, 4 * JOBS)
    jobs = {"submit_s": submit, "runtime_s": runtime, "cores": random.integers(1, 5, 4 * JOBS)}
    workload = escala.Workload.from_jobs(jobs)
    chosen = policies.pair(workload, scheduler, "never", Options())
    simulation = Simulation(workload, escala.read_platform("1x6:none"), chosen.plan, Options())
    policies.run(simulation, 0, chosen)
    assert simulation.world.s[0]["indexed"][0] > FAN
    assert (simulation.world.tree[0][CORES] == EMPTY).all()
