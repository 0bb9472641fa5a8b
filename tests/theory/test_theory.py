"""Simulations whose outcome is known from theory."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.golden.hand import POWER, job
from tests.laws.laws import rows
from tests.oracle.engines import ENGINES
from tests.oracle.worlds import Case
from tests.theory.queues import mean_and_error, mean_wait_mg1, mean_wait_mmc, poisson_jobs

WARM_UP = 2000


def simulate(
    jobs: list[dict[str, Any]], nodes: int, scheduler: str = "fcfs", engine: str = "kernel", **options: Any
) -> Any:
    platform = {"cores": [1] * nodes, "profiles": [POWER], "profile_of": [0] * nodes}
    return ENGINES[engine](Case(platform, jobs, {"scheduler": scheduler, **options}))


def waits(result: Any) -> list[float]:
    return [row["wait_s"] for row in rows(result.jobs)]


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.8), (2, 0.7), (4, 0.8), (8, 0.9)])
def test_mean_wait_of_mmc(servers: int, load: float) -> None:
    """FCFS with exponential runtimes: Erlang's formula lies within four standard errors, and these are small."""
    jobs = poisson_jobs(random.Random(servers), 200_000, load * servers / 100.0, lambda rng: rng.expovariate(1 / 100.0))
    mean, error = mean_and_error(waits(simulate(jobs, servers))[WARM_UP:])
    expected = mean_wait_mmc(servers, load * servers / 100.0, 1 / 100.0)
    assert abs(mean - expected) < 4 * error
    assert error < 0.06 * expected


def test_mean_wait_of_md1() -> None:
    """Constant runtimes: Pollaczek-Khinchine."""
    jobs = poisson_jobs(random.Random(5), 200_000, 0.7 / 100.0, lambda rng: 100.0)
    mean, error = mean_and_error(waits(simulate(jobs, 1))[WARM_UP:])
    expected = mean_wait_mg1(0.7 / 100.0, 100.0, 100.0**2)
    assert abs(mean - expected) < 4 * error
    assert error < 0.06 * expected


@pytest.fixture(scope="module")
def alike() -> tuple[list[dict[str, Any]], list[float]]:
    """Jobs of one core and one walltime, and their waits under FCFS by the slow simulator."""
    jobs = poisson_jobs(random.Random(7), 3000, 0.9 * 4 / 100.0, lambda rng: rng.expovariate(1 / 100.0))
    return jobs, waits(simulate(jobs, 4, engine="oracle"))


@pytest.mark.parametrize(
    "scheduler", ["fcfs", "first-fit", "sjf", "sjf-fit", "easy", "easy-fast", "packer", "conservative"]
)
def test_one_core_jobs_of_one_walltime_know_one_schedule(
    scheduler: str, alike: tuple[list[dict[str, Any]], list[float]]
) -> None:
    """Jobs of one core and one walltime: no policy may differ from FCFS. (Conservative backfilling that keeps its plans
    may: a job can move into a hole that its own old plan kept closed for the jobs before it. Planned anew at each
    decision it does not.)"""
    jobs, fcfs = alike
    options: dict[str, Any] = {"rebuild": True} if scheduler == "conservative" else {}
    assert waits(simulate(jobs, 4, scheduler, **options)) == fcfs


@pytest.mark.parametrize("engine", ENGINES)
def test_shortest_first_is_optimal_on_one_machine(engine: str) -> None:
    """All jobs there at once on one node: the mean wait of SJF is the least of all orders (Smith 1956), that of LJF the
    largest."""
    lengths = [7.0, 3.0, 11.0, 2.0, 5.0, 13.0]
    jobs = [job(f"j{k}", 0.0, length) for k, length in enumerate(lengths)]
    sums = [sum(sum(order[:k]) for k in range(len(order))) for order in itertools.permutations(lengths)]
    assert sum(waits(simulate(jobs, 1, "sjf", engine))) == min(sums)
    assert sum(waits(simulate(jobs, 1, "ljf", engine))) == max(sums)


@pytest.mark.parametrize("engine", ENGINES)
def test_longest_first_bound_on_identical_machines(engine: str) -> None:
    """Graham (1969): the makespan of longest-first on m machines is at most 4/3 - 1/(3m) of the optimum; his worst case
    reaches it."""
    machines = 3
    lengths = [5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0]  # optimum 9: 5+4, 5+4, 3+3+3; longest first: 11
    jobs = [job(f"j{k}", 0.0, length) for k, length in enumerate(lengths)]
    ends = [row["finish_s"] for row in rows(simulate(jobs, machines, "ljf", engine).jobs)]
    assert max(ends) == 11.0 == pytest.approx(9.0 * (4 / 3 - 1 / (3 * machines)))


@pytest.mark.parametrize(
    "scheduler", ["fcfs", "first-fit", "sjf", "packer", "tetris", "easy", "easy-fast", "saf", "conservative"]
)
def test_utilisation_identities(scheduler: str) -> None:
    """Work is conserved: computing node-seconds = sum of the runtimes, idle = the rest; Little's law holds for the
    queue."""
    rng = random.Random(3)
    jobs = [
        job(
            str(k), float(rng.randint(0, 4000)), float(rng.randint(1, 60)), rng.randint(1, 6), 60.0 + rng.randint(0, 60)
        )
        for k in range(500)
    ]
    jobs.sort(key=lambda row: row["submit_s"])
    result = simulate(jobs, 8, scheduler)
    table = rows(result.jobs)
    begin, end = min(row["submit_s"] for row in table), max(row["finish_s"] for row in table)
    seconds = {
        state: sum(r["seconds"] for r in rows(result.power) if r["state"] == state) for state in ("computing", "idle")
    }
    work = sum(row["cores"] * row["runtime_s"] for row in jobs)
    assert seconds["computing"] == pytest.approx(work, rel=1e-12)
    assert seconds["computing"] + seconds["idle"] == pytest.approx(8 * (end - begin), rel=1e-12)
    joules = sum(r["joules"] for r in rows(result.power))
    assert float(joules) == pytest.approx(100 * 8 * (end - begin) + 100 * work, rel=1e-12)
    # Little: the integral of the queue's length = the sum of the waits
    changes = sorted([(row["submit_s"], 1) for row in table] + [(row["start_s"], -1) for row in table])
    area, length, before = 0.0, 0, begin
    for time, change in changes:
        area += length * (time - before)
        length, before = length + change, time
    assert length == 0 and area == pytest.approx(sum(row["wait_s"] for row in table), rel=1e-12)
