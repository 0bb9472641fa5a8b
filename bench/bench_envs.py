"""Steps per second of the environments: 256 simulations in one batch, one core, observations and masks written."""

from __future__ import annotations

import functools
import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
from numpy.typing import NDArray

import escala
import escala.envs
from bench.measure import Case, seconds
from escala.agents import load_team
from escala.envs.exported import load_exported

NUM_ENVS = 256
STEPS = 400


@functools.lru_cache(maxsize=4)
def days(jobs_a_day: int, cores: int, count: int = 20) -> tuple[escala.Workload, ...]:
    """Days of so many jobs at random seconds, log-uniform runtimes of 1 min to 6 h, sizes up to a quarter of the
    machine, load at most about 0.8."""
    random = np.random.default_rng(jobs_a_day)
    out = []
    for k in range(count):
        runtime = np.exp(random.uniform(np.log(60.0), np.log(21600.0), jobs_a_day)).round()
        size = 2 ** random.integers(0, int(np.log2(cores / 4)) + 1, jobs_a_day)
        scale = min(1.0, 0.8 * cores * 86400.0 / float((runtime * size).sum()))
        size = np.maximum(1, (size * scale).astype(np.int64))
        submit = np.sort(random.uniform(0.0, 86400.0, jobs_a_day).round())
        walltime = (runtime * random.uniform(1.0, 5.0, jobs_a_day)).round()
        user = [str(u) for u in random.integers(0, 20, jobs_a_day)]
        table = {"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": size, "user": user}
        out.append(escala.Workload.from_jobs(table, name=f"{jobs_a_day} jobs #{k}"))
    return tuple(out)


def wake_all(env: Any) -> NDArray[np.int64]:
    return np.full(NUM_ENVS, env.single_action_space.n - 1)


def by_chance() -> Callable[[Any], NDArray[np.int64]]:
    """Choices at random, drawn before the clock runs; the same at every call."""
    drawn: list[NDArray[np.int64]] = []
    turn = itertools.count()

    def act(env: Any) -> NDArray[np.int64]:
        if not drawn:
            drawn.extend(np.random.default_rng(0).integers(env.single_action_space.n, size=(STEPS, NUM_ENVS)))
        return drawn[next(turn) % STEPS]

    return act


def first_fit(env: Any) -> NDArray[np.int64]:
    """The first waiting job that fits, else the no-op."""
    mask = env.action_masks()
    first: NDArray[np.int64] = np.argmax(mask[:, 1:], axis=1) + 1
    return np.where(mask[:, 1:].any(axis=1), first, 0)


def steps_per_s(name: str, jobs: int, act: Callable[[Any], NDArray[np.int64]], **options: Any) -> tuple[float, str]:
    """Rate of a rollout with a fixed rule, resets included, steps/s of processor time."""
    env = gymnasium.make_vec(
        name, num_envs=NUM_ENVS, workload=list(days(jobs, 960)), platform="48x20:grid5000", copy=False, **options
    )
    env.reset(seed=0)

    def roll() -> None:
        for _ in range(STEPS):
            env.step(act(env))

    return NUM_ENVS * STEPS / seconds(roll, 3), "steps/s"


def ten_years() -> tuple[float, str]:
    """Processor time of replaying one log of ten years under five shutdown policies."""
    parts = days(60, 960, 200)
    jobs = [parts[k % len(parts)].jobs.with_columns(submit_s=pl.col("submit_s") + 86400.0 * k) for k in range(3652)]
    table = pl.concat(jobs).with_columns(job_id=pl.int_range(pl.len()).cast(pl.String))
    log = escala.Workload.from_jobs(table, name="ten years")
    policies = ("never", "timeout:0", "timeout:300", "hold:0.25", "oracle")

    def replay() -> None:
        for shutdown in policies:
            escala.simulate(log, "48x20:grid5000", scheduler="saf", shutdown=shutdown, record=False)

    return seconds(replay, 1), "s"


def lstm_training(steps: int = 3_000_000) -> tuple[float, str]:
    """Processor time of so many decisions of training with R3's printed setting (LSTM over 20 snapshots), from a
    shorter training's rate; one thread. Its rollouts are shorter than printed, which moves no rate: batches and epochs
    are as printed."""

    def train(decisions: int) -> float:
        begin = time.process_time()
        given: dict[str, Any] = {"preset": "printed", "learn": {"n_steps": 180}, "steps": decisions}
        agent = escala.train("escala/OffReservation-v0", list(days(60, 960)), "48x20:grid5000", **given)
        return (time.process_time() - begin) / agent.manifest["steps_done"]

    train(1)
    return train(10_000) * steps / 60.0, "min"


def one_step(name: str) -> tuple[float, str]:
    """Processor time of a step of a single environment without wrappers, resets included; always action 0."""
    env = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    steps = 20_000

    def roll() -> None:
        for _ in range(steps):
            _, _, ended, cut, _ = env.step(0)
            if ended or cut:
                env.reset()

    return 1e6 * seconds(roll, 5) / steps, "us"


def decision(agent: str) -> tuple[float, str]:
    """Processor time within which 99 of 100 decisions of an exported agent are made."""
    return _decided(escala.load_agent(Path(__file__).parents[1] / "docs" / "studies" / agent))


def of_preset(name: str, preset: str) -> tuple[float, str]:
    """The same of the network of a preset, hardly trained."""
    log: dict[str, Any] = (
        {} if name == "escala/Slots-v0" else {"workload": list(days(60, 960)), "platform": "48x20:grid5000"}
    )
    return _decided(
        escala.train(name, steps=1, seed=0, preset=preset, num_envs=2, learn={"n_steps": 4, "batch_size": 8}, **log)
    )


def of_team(name: str) -> tuple[float, str]:
    """The same of one agent of an exported team."""
    team = load_team(Path(__file__).parents[1] / "docs" / "studies" / name)
    with tempfile.TemporaryDirectory() as folder:
        team.export(Path(folder) / "exported")
        member = load_exported(Path(folder) / "exported").members(sampled=False)[0]
    return _each(lambda seen, mask: member(seen, mask), (team.manifest["shape"][4],), team.manifest["actions"])


def _decided(agent: Any) -> tuple[float, str]:
    with tempfile.TemporaryDirectory() as folder:
        agent.export(Path(folder) / "exported")
        exported = load_exported(Path(folder) / "exported")
    return _each(
        lambda seen, mask: exported.act(seen, mask, None),
        exported.manifest["observation_shape"],
        exported.manifest["actions"],
    )


def _each(act: Callable[..., Any], shape: Sequence[int], actions: int) -> tuple[float, str]:
    seen, mask = np.random.default_rng(0).random((1, *shape), np.float32), np.ones((1, actions), bool)
    taken = []
    for _ in range(5_000):
        begin = time.process_time()
        act(seen, mask)
        taken.append(time.process_time() - begin)
    return 1e3 * float(np.quantile(taken, 0.99)), "ms"


def _off(jobs: int, observation: str) -> Case:
    what = (
        f"OffReservation, action `wake`, always all, 48 nodes x 20, {jobs} jobs a day, 256 simulations, {observation}"
    )
    return Case(
        what,
        "≥ 250 k steps/s",
        lambda: steps_per_s("escala/OffReservation-v0", jobs, wake_all, observation=observation),
    )


def _choosing(action: str, jobs: int) -> Case:
    what = (
        f"OffReservation, action `{action}`, choices at random, 48 nodes x 20, {jobs} jobs a day, 256 simulations, "
        "snapshots"
    )
    return Case(
        what, "≥ 250 k steps/s", lambda: steps_per_s("escala/OffReservation-v0", jobs, by_chance(), action=action)
    )


CASES = [
    _off(60, "snapshots"),
    _off(60, "compact"),
    _off(1000, "snapshots"),
    _off(1000, "compact"),
    Case(
        "OffReservation, action `wake`, always all, every minute asked (skip=False), 60 jobs a day",
        "≥ 250 k steps/s",
        lambda: steps_per_s("escala/OffReservation-v0", 60, wake_all, skip=False),
    ),
    _choosing("count", 60),
    _choosing("count", 1000),
    _choosing("hold", 60),
    _choosing("hold", 1000),
    Case(
        "Scheduling, 48 nodes x 20, 60 jobs a day, 256 simulations",
        "≥ 250 k steps/s",
        lambda: steps_per_s("escala/Scheduling-v0", 60, first_fit),
    ),
    Case(
        "Scheduling, 48 nodes x 20, 1000 jobs a day, 256 simulations",
        "≥ 250 k steps/s",
        lambda: steps_per_s("escala/Scheduling-v0", 1000, first_fit),
    ),
    Case(
        "3 M decisions of PPO on OffReservation, the printed LSTM (action `count`), one core", "≤ 60 min", lstm_training
    ),
    *(
        Case(f"One step of a single {name}, its compiled part included", "≤ 8 us", functools.partial(one_step, name))
        for name in ("escala/OffReservation-v0", "escala/Scheduling-v0", "escala/Slots-v0")
    ),
    Case(
        "A decision of an exported agent, dense layers, p99",
        "≤ 0.2 ms",
        lambda: decision("grid2019/agents/published-100-0"),
    ),
    Case(
        "A decision of an exported agent, slot scorer, p99", "≤ 0.2 ms", lambda: decision("grid2019/agents/fresh-190-0")
    ),
    Case(
        "A decision of an exported agent, numbers of holding, p99",
        "≤ 0.2 ms",
        lambda: decision("deepshutdown2020/agents/g5k-1-0"),
    ),
    Case(
        "A decision of an exported agent, scores of a queue of 128, p99",
        "≤ 0.2 ms",
        lambda: decision("deepscheduler2020/agents/g5k-0.95-0"),
    ),
    *(
        Case(f"A decision of an exported agent, {what}, p99", "≤ 0.2 ms", functools.partial(of_preset, name, preset))
        for what, name, preset in (
            ("sets of jobs", "escala/OffReservation-v0", "ordered"),
            ("16 filters", "escala/Slots-v0", "conv3-16"),
            ("16 filters, pooled", "escala/Slots-v0", "conv3-16-pool"),
            ("LSTM of 128 units over 20 snapshots", "escala/OffReservation-v0", "printed"),
            ("three GRUs of 64 units over the queue", "escala/Scheduling-v0", "printed"),
        )
    ),
    Case(
        "A decision of an exported team's agent, pairs of jobs and machines, p99",
        "≤ 0.2 ms",
        lambda: of_team("marl2024/agents/team-3x2-0"),
    ),
    Case(
        "Ten years of a cluster of 48 nodes x 20, 60 jobs a day, SAF under five shutdown policies",
        "≤ 60 s",
        lambda: ten_years(),
    ),
]

if __name__ == "__main__":
    for case in CASES:
        print(case.what, *case.measure(), flush=True)
