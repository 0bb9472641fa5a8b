"""The queue's search tree: an empty cell lets no search in, and a cell holds the least of its jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala.compile import compiled
from escala.filling import fill_widths
from escala.kernel import codes
from escala.kernel.queue import CORES, EMPTY, NO_LIMIT, WALLTIME, next_fit
from escala.kernel.state import FAN, OPTIONS, WIDTHS
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


@pytest.mark.parametrize("most", [6, 40])
@pytest.mark.parametrize("scheduler", ["easy", "easy-fast", "easy-f1", "easy:queue=saf:guard=600"])
def test_a_cell_holds_the_least_of_its_jobs(scheduler: str, most: int) -> None:
    """Least cores, and least walltimes by size, of each bottom cell in the middle of a run where the queue is long:
    found anew from the jobs that wait. Six sizes have a row each, forty share eight."""
    random = np.random.default_rng(2)
    jobs = {
        "submit_s": np.cumsum(random.exponential(8, JOBS)).round(),
        "runtime_s": random.integers(10, 2000, JOBS).astype(float),
        "cores": random.integers(1, most + 1, JOBS),
    }
    jobs["walltime_s"] = jobs["runtime_s"] * random.integers(1, 4, JOBS)
    workload = escala.Workload.from_jobs(jobs)
    chosen = policies.pair(workload, scheduler, "never", Options())
    simulation = Simulation(workload, escala.read_platform("1x50:none"), chosen.plan, Options())
    simulation.advance(0, 4000.0)
    w = simulation.world
    options, state = w.o[0, 0], w.run[0]["state"]
    cores, walltime = w.job[0]["cores"].astype(np.int64), w.job[0]["walltime"]
    assert options["n_widths"] == min(most, WIDTHS)
    rank = w.order[0, 1, :JOBS] if w.order.shape[2] else np.arange(JOBS)
    counted = (state == codes.QUEUED) & (np.arange(JOBS) < w.s[0]["indexed"][0])
    assert counted.sum() > 100
    for cell in range(-(-int(options["n_ranks"]) // FAN)):
        inside = counted & (rank // FAN == cell)
        assert w.tree[0, CORES, cell] == cores[inside].min(initial=EMPTY)
        for width in range(options["n_widths"]):
            alike = inside & (cores <= options["widths"][width])
            assert w.tree[0, WALLTIME + width, cell] == walltime[alike].min(initial=EMPTY)


def test_each_size_has_a_limit_of_its_own_where_they_are_few() -> None:
    options = np.zeros(1, OPTIONS)[0]
    one_job = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [1.0], "cores": [1]})
    plan = policies.pair(one_job, "easy", "never", Options()).plan
    fill_widths(options, plan, np.array([4, 1, 1, 64, 4, 2], np.int32))
    assert options["n_widths"] == 4
    assert options["widths"][:3].tolist() == [1, 3, 63]
    fill_widths(options, plan, np.arange(1, 801, dtype=np.int32))
    assert options["n_widths"] == WIDTHS
    assert options["widths"][:7].tolist() == [100, 200, 300, 400, 500, 600, 700]
