"""What is compiled above the kernel, on the oracle's worlds: environments, agents' own code, slots, look-ahead, bounds.

`make test-bounds` runs these with every access checked; unchecked they would show nothing.
"""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import escala
import escala.envs
from escala.agents.direct_search import hold_play, queue_play
from escala.agents.training.reference_returns import levels
from escala.compile import CHECKED
from escala.envs.rjms import hold_features, queue_features
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.envs.slots.policy import SlotPolicy
from escala.optimum import Instance, PowerInstance, bound, energy_bound, on_machines
from escala.optimum.search import search
from escala.policies import Rollout
from tests.memory.dice import OFF, SCHEDULING, scheduling_dice, shutdown_dice
from tests.oracle.worlds import Case, draw, draw_jobs, draw_number, draw_platform

pytestmark = pytest.mark.skipif(not CHECKED, reason="looks for accesses outside of arrays: make test-bounds")

CLOCK = {"day_s": 60.0, "period_s": 2.0, "oversized": "drop", "min_jobs": 1}


def machine(case: Case) -> escala.Platform:
    profiles = tuple(
        escala.PowerProfile(name=f"p{k}", **profile) for k, profile in enumerate(case.platform["profiles"])
    )
    return escala.Platform(
        name="world", cores=case.platform["cores"], profiles=profiles, profile_of=case.platform["profile_of"]
    )


def days(seed: int, size: str = "small") -> tuple[escala.Platform, list[escala.Workload]]:
    """A machine, and some logs of jobs that take cores of any nodes."""
    rng = random.Random(seed)
    nodes = 100 if size == "broad" else rng.randint(1, 6)
    case = Case(draw_platform(rng, 1.0, False, nodes), [], {"shutdown": "never"})
    logs = [
        draw_jobs(rng, 1.0, case.platform, case.options, False, draw_number(rng, "easy", size, 25)) for _ in range(3)
    ]
    return machine(case), [escala.Workload.from_jobs(jobs) for jobs in logs]


SIZES = ["small", "broad", "long"]
SHUTDOWNS: list[dict[str, Any]] = [
    {"action": "wake", "observation": "snapshots"},
    {"action": "hold", "holds": (0.0, 0.3, 1.0), "observation": "compact"},
    {"action": "count", "history": 2, "jobs": 3},
    {"action": "hold", "guard": "late", "ask": "periods", "history": 1},
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", SHUTDOWNS)
def test_off_reservation(options: dict[str, Any], size: str) -> None:
    for seed in range(3):
        platform, logs = days(seed, size)
        play(OFF, platform, logs, window=("cut", "drain")[seed % 2], **options)
        for jobs in logs:
            agent = shutdown_dice(platform, day_s=60.0, period_s=2.0, **options)
            escala.simulate(
                jobs, platform, scheduler="saf", shutdown=agent.policy(seed=seed), oversized="drop", start_off=seed == 1
            )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [{}, {"places": 1, "waits": True}, {"confidence": "submitted", "places": 3}])
def test_scheduling(options: dict[str, Any], size: str) -> None:
    for seed in range(3):
        platform, logs = days(seed, size)
        play(SCHEDULING, platform, logs, window=("cut", "drain")[seed % 2], **options)
        for jobs in logs:
            agent = scheduling_dice(day_s=60.0, period_s=2.0, **options)
            escala.simulate(jobs, platform, scheduler=agent.policy(seed=seed), shutdown="timeout:3", oversized="drop")


def play(env_id: str, platform: escala.Platform, logs: list[escala.Workload], **options: Any) -> None:
    """Steps of any action, whatever the mask says."""
    env = gymnasium.make_vec(env_id, num_envs=4, workload=logs, platform=platform, **CLOCK, **options)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(150):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("size", SIZES)
def test_days_played_by_scores(size: str) -> None:
    platform, logs = days(5, size)
    rng = np.random.default_rng(5)
    held = OffReservationBatch(3, logs, platform, action="hold", observation="compact", **CLOCK)
    queued = SchedulingBatch(3, logs, platform, waits=True, **CLOCK)
    for _ in range(3):
        hold_play.whole_days(rng.normal(size=1 + len(hold_features.FEATURES)), held)
        queue_play.whole_days(rng.normal(size=2 * len(queue_features.JOB_FEATURES)), queued)


@pytest.mark.parametrize("size", SIZES)
def test_days_played_by_policies_of_the_kernel(size: str) -> None:
    platform, logs = days(6, size)
    held = OffReservationBatch(3, logs, platform, action="hold", **CLOCK)
    for level in (
        *levels(OFF, held).values(),
        *levels(SCHEDULING, SchedulingBatch(3, logs, platform, **CLOCK)).values(),
    ):
        assert level(60.0) is not None


@pytest.mark.parametrize("placement", ["start-now", "reserve"])
@pytest.mark.parametrize(
    "shown", [{}, {"observation": "image"}, {"observation": "image", "dtype": "float32"}, {"queue": "shortest"}]
)
def test_slots(placement: str, shown: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    options = {"placement": placement, "slots": 3, "horizon": 16, **shown}
    for seed in range(8):
        platform, logs = days(seed)
        pool = escala.read_platform(f"{platform.total_cores}x1:none")
        length = pl.col("walltime_s").ceil()
        pause = pl.when(pl.int_range(pl.len()) < 3).then(0).otherwise(200)  # longer than anything is remembered
        whole = {"submit_s": pl.col("submit_s").floor() + pause, "runtime_s": length, "walltime_s": length}
        even = [jobs.with_jobs(jobs.jobs.with_columns(**whole)) for jobs in logs]
        env = gymnasium.make_vec("escala/Slots-v0", num_envs=4, workload=even, platform=pool, **options)
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(60):
            env.step(env.action_space.sample())
        for jobs in even if placement == "reserve" else logs:
            policy = SlotPolicy(lambda seen, mask, random: int(rng.choice(np.flatnonzero(mask))), **options)
            escala.simulate(jobs, pool, scheduler=policy)


def test_single_node_jobs_in_slots() -> None:
    for seed in range(8):
        case = draw(random.Random(f"slots/{seed}"), ("easy",))
        node = {kind: int(sum(amounts)) + 1 for kind, amounts in case.platform.get("resources", {}).items()}
        platform = escala.Platform.uniform(1, sum(case.platform["cores"]), power=None, resources=node)
        jobs = [{**job, "single_node": True} for job in case.jobs if job["cores"] <= platform.total_cores]
        escala.simulate(escala.Workload.from_jobs(jobs), platform, scheduler=SlotPolicy("packer", slots=2))


def test_commands_that_switch_nodes() -> None:
    """Any node at any decision, also those that there are not."""
    done = set[bool]()
    for seed in range(6):
        platform, logs = days(seed, "long")
        rng = random.Random(seed)

        def switch(view: Any, act: Any, rng: random.Random = rng, n: int = platform.n_nodes) -> None:
            done.update((act.wake if rng.random() < 0.5 else act.switch_off)(rng.randint(-1, n)) for _ in range(3))

        escala.simulate(logs[0], platform, scheduler="easy", shutdown=switch, oversized="drop")
    assert done == {True, False}


def test_look_ahead() -> None:
    for seed in range(4):
        platform, logs = days(seed)
        for base in ("fcfs", "easy", "sjf-fit"):
            escala.simulate(logs[0], platform, scheduler=Rollout(4, base, seed=seed))


@pytest.mark.parametrize("objective", ["slowdown", "bounded-slowdown", "wait", "makespan"])
def test_bounds(objective: str) -> None:
    for seed in range(6):
        platform, logs = days(seed)
        columns = (
            np.ceil(logs[0].jobs[name].to_numpy()).astype(np.int64) for name in ("submit_s", "walltime_s", "cores")
        )
        instance = Instance(*columns, np.array([platform.total_cores]), objective)
        lower = bound(instance, steps=("wspt", "lagrange")).lower
        assert lower is not None and lower <= search(instance, effort=0.01).value * (1 + 1e-9)


def test_bounds_of_machines_energy_and_many_jobs() -> None:
    """Several machines; lives of nodes; parts of a schedule that are annealed; starts that no optimum has."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        jobs = 160 if seed < 2 else 6
        release, length, wide = rng.integers(0, 40, jobs), rng.integers(1, 9, jobs), rng.integers(1, 5, jobs)
        instance = Instance(release, length, wide, np.array([4]), "wait")
        best = search(instance, effort=0.05, seed=seed)
        assert 0 <= on_machines(instance, 2, effort=0.05).value <= best.value
        if jobs < 10:
            found = bound(instance, steps=("wspt", "lagrange", "exact"))
            assert found.lower is not None and found.lower <= best.value * (1 + 1e-9)
        day = PowerInstance(release, length, wide, release + 5, 4, 60.0, 95.0, 7e3, 4e3, on_at_start=seed % 3)
        assert energy_bound(day, rounds=200, max_cells=50).lower_j >= 0.0
