"""The same numbers whatever the batch size, the order and the number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest

import escala
from escala.kernel import codes
from escala.kernel.world import WORLD
from escala.options import Options
from escala.policies.run import pair
from escala.simulation import Simulation

OPTIONS = Options(start_off=True)


def days(n: int) -> list[escala.Workload]:
    """`n` days of different length and load."""
    out = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        jobs = 5 + 7 * seed
        walltime = rng.integers(60, 7200, jobs).astype(float)
        columns = {
            "submit_s": np.sort(rng.integers(0, 40_000, jobs)).astype(float),
            "walltime_s": walltime,
            "runtime_s": np.ceil(walltime * rng.uniform(0.1, 1.1, jobs)),
            "cores": rng.integers(1, 13, jobs),
        }
        out.append(escala.Workload.from_jobs(columns, name=f"day {seed}"))
    return out


def run_batch(workloads: list[escala.Workload], platform: escala.Platform, scheduler: str) -> list[pl.DataFrame]:
    """All workloads in one batch."""
    chosen = [pair(w, scheduler, "timeout:300", OPTIONS) for w in workloads]
    simulation = Simulation(workloads, platform, [c.plan for c in chosen], OPTIONS)
    assert [simulation.advance(i) for i in range(len(workloads))] == [codes.DONE] * len(workloads)
    return [table for i in range(len(workloads)) for table in (simulation.result(i).jobs, simulation.result(i).power)]


@pytest.mark.parametrize("scheduler", ["fcfs", "saf", "sjf-fit", "easy"])
def test_batch_and_threads_change_nothing(scheduler: str) -> None:
    workloads = days(9)
    platform = escala.Platform.uniform(4, 4)
    alone = [t for w in workloads for t in run_batch([w], platform, scheduler)]
    together = run_batch(workloads, platform, scheduler)
    backwards = run_batch(workloads[::-1], platform, scheduler)
    with ThreadPoolExecutor(2) as pool:  # each its own simulation, as `compare` has them
        threaded = [t for tables in pool.map(lambda w: run_batch([w], platform, scheduler), workloads) for t in tables]
    backwards = [t for k in range(len(workloads) - 1, -1, -1) for t in backwards[2 * k : 2 * k + 2]]
    for one, two, three, four in zip(alone, together, backwards, threaded, strict=True):
        assert one.equals(two)
        assert one.equals(three)
        assert one.equals(four)


def test_one_row_of_the_table_for_each_simulation() -> None:
    """The addresses of a batch lie one simulation apart, and growing a table of one simulation moves all rows."""
    workloads = days(3)
    chosen = pair(workloads[0], "easy", "never", OPTIONS)
    simulation = Simulation(
        workloads, escala.Platform.uniform(4, 4), [pair(w, "easy", "never", OPTIONS).plan for w in workloads], OPTIONS
    )
    assert chosen.plan.queueing == codes.EASY
    steps = np.diff(simulation.table, axis=0)
    strides = {WORLD.at[name]: array.strides[0] for name, array in simulation.world._asdict().items()}
    assert len(strides) == len(WORLD.at)
    assert (steps == [strides.get(word, 0) for word in range(WORLD.words)]).all(), "shapes are the same in all rows"
