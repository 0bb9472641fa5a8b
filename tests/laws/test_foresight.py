"""Who knows the future? Two worlds are the same until some instant and differ after it: an honest policy does the same
in both until then. Every registered policy is tried, and what `escala.foresight` says of it must be what is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.foresight import known_to
from escala.policies.compose import SHUTDOWN_FORMS, _example
from escala.workload import Workload
from tests.oracle.linear import NAMES

NOW_S = 3000.3  # no event falls on it
JOBS, WORLDS = 70, 10
PLATFORM = "6x2:grid5000"
SHUTDOWNS = [_example(form) for form in SHUTDOWN_FORMS]


def _world(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    walltime = np.ceil(draw.lognormal(6.0, 1.0, JOBS)) + 60.0
    runtime = np.ceil(walltime * draw.uniform(0.05, 0.95, JOBS))
    cores = draw.integers(1, 5, JOBS)
    submit, user = np.sort(np.floor(draw.uniform(0.0, 2 * NOW_S, JOBS))), draw.choice(["ada", "ben", "cem"], JOBS)
    return {"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": cores, "user": user}


def _otherwise(
    world: dict[str, np.ndarray], finish_s: np.ndarray, start_s: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """The same until NOW_S: other jobs come after it, and those that have not ended by then take another time."""
    draw, other = np.random.default_rng([seed, 1]), {name: values.copy() for name, values in world.items()}
    coming = np.flatnonzero(world["submit_s"] > NOW_S)
    for name, values in _world(seed + 1000).items():
        other[name][coming] = values[coming]
    other["submit_s"][coming] = np.sort(np.ceil(NOW_S + draw.exponential(300.0, len(coming)).cumsum()))
    going = np.flatnonzero((world["submit_s"] <= NOW_S) & ~(finish_s <= NOW_S))
    ran = np.where(start_s[going] < NOW_S, NOW_S - start_s[going], 0.0)
    other["runtime_s"][going] = (
        np.floor(ran + draw.uniform(0.05, 0.95, len(going)) * (world["walltime_s"][going] - ran)) + 1.0
    )
    return other


def _past(result: Any) -> tuple[list[Any], list[Any]]:
    """What happened until NOW_S: starts of jobs, and states of nodes."""
    nodes = result.nodes.filter(pl.col("from_s") < NOW_S).with_columns(pl.col("to_s").clip(upper_bound=NOW_S))
    return result.jobs.filter(pl.col("start_s") < NOW_S).select("job_id", "start_s", "nodes").rows(), nodes.sort(
        "node", "from_s"
    ).rows()


def _depends_on_the_future(scheduler: Any, shutdown: Any, **options: Any) -> bool:
    for seed in range(WORLDS):
        world = _world(seed)
        first = escala.simulate(Workload.from_jobs(world), PLATFORM, scheduler, shutdown, **options)
        finish, start = (first.jobs[name].fill_null(np.inf).to_numpy() for name in ("finish_s", "start_s"))
        other = Workload.from_jobs(_otherwise(world, finish, start, seed))
        if _past(first) != _past(escala.simulate(other, PLATFORM, scheduler, shutdown, **options)):
            return True
    return False


QUEUES = (
    "easy:queue=saf:backfill=sjf:guard=600",
    "easy:queue=wfp3:backfill=xfactor",
    *(f"easy:queue={name}" for name in NAMES),
)


@pytest.mark.parametrize(
    "scheduler", [*escala.policies.SCHEDULERS, *QUEUES, pytest.param("rollout:2", marks=pytest.mark.slow)]
)
def test_schedulers_are_honest(scheduler: str) -> None:
    assert known_to(scheduler, "never") == ""
    assert not _depends_on_the_future(scheduler, "never")


@pytest.mark.parametrize("shutdown", [*SHUTDOWNS, "oracle:2"])
def test_a_shutdown_policy_is_called_clairvoyant_if_it_depends_on_the_future(shutdown: str) -> None:
    assert _depends_on_the_future("easy", shutdown) == bool(known_to("easy", shutdown))


def test_known_runtimes_are_the_future() -> None:
    assert (
        _depends_on_the_future("sjf", "never", estimate="runtime") and known_to("sjf", "never", "runtime") == "runtimes"
    )


@pytest.mark.parametrize(
    "scheduler", ["easy", "easy-saf", "easy:queue=sjf", "easy:queue=xfactor", "conservative", "sjf", "tetris"]
)
@pytest.mark.parametrize("which", ["estimate", "order_estimate"])
def test_predictions_know_only_what_has_ended(scheduler: str, which: str) -> None:
    assert known_to(scheduler, "never", "last2") == ""
    assert not _depends_on_the_future(scheduler, "never", **{which: "last2"})


def test_runtimes_known_to_the_order_alone_are_the_future_too() -> None:
    assert _depends_on_the_future("easy:queue=sjf", "never", order_estimate="runtime")
    assert known_to("easy:queue=sjf:order_estimate=runtime", "never") == "runtimes"


class ShortestRun:
    """Starts what will really be over first."""

    clairvoyant = True

    def decide(self, view: Any, act: Any) -> None:
        for job in sorted(view.queue, key=lambda job: view.runtime_s(job.row)):
            act.start(job)


class Beneath:
    """Does nothing itself; what works beneath it knows runtimes."""

    beneath = "oracle"

    def decide(self, view: Any, act: Any) -> None:
        pass


def test_objects_say_so_themselves_or_by_what_works_beneath_them() -> None:
    assert _depends_on_the_future(ShortestRun(), "never") and known_to(ShortestRun(), "never") == "runtimes"
    assert known_to("easy", Beneath()) == "runtimes"
    assert known_to(ShortestRun(), "arrivals-known") == "arrivals and runtimes"
