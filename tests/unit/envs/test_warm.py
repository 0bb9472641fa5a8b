"""Episodes that begin as a replay of the whole log has the machine: what follows is what followed in that replay, to
the microsecond."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import escala
import escala.envs
from escala.envs.rjms.episodes import Episodes
from escala.envs.rjms.warm import warm_episodes
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.drive import DRIVERS
from escala.options import Options
from escala.policies.compose import plan_for, scheduler, shutdown
from escala.workload import generate

DAY_S = 20_000.0


def _log(seed: int, jobs: int = 400, load: float = 0.9) -> escala.Workload:
    return generate.lublin(jobs=jobs, cores=32, load=load, seed=seed)


@pytest.mark.parametrize(
    ("platform", "named", "switched"),
    [
        ("32x1", "easy", "never"),
        ("8x4:grid5000", "easy", "timeout:300"),
        ("32x1:grid5000", "saf", "timeout:0"),
        ("8x4:grid5000", "fcfs", "timeout:60"),
    ],
)
def test_a_day_goes_on_as_the_replay_did(platform: str, named: str, switched: str) -> None:
    log, machine = _log(3), escala.read_platform(platform)
    options = Options(until_s=DAY_S, record=False)

    def plan(part: escala.Workload, told: Options) -> Any:
        return plan_for(scheduler(named), shutdown(switched, told)[0], part, told)

    days, starts = warm_episodes(log, machine, plan, options, DAY_S, 1)
    assert max(len(start.jobs) for start in starts) > 10  # a queue is carried over
    assert {codes.QUEUED, codes.RUNNING} <= set(np.concatenate([start.jobs["state"] for start in starts]).tolist())
    episodes = Episodes(1, days, machine, plan, options, starts=starts)
    whole = escala.simulate(log, machine, named, switched)
    start_us = dict(
        zip(whole.jobs["job_id"], np.round(whole.jobs["start_s"].to_numpy() * SECOND).astype(np.int64).tolist())
    )
    for number, (day, start) in enumerate(zip(days, starts, strict=True)):
        episodes.begin(np.array([0]), {"day": number})
        assert DRIVERS[int(episodes.world.o[0, 0]["queueing"])](episodes.table, 0, codes.NEVER_US) == codes.DONE
        begin_us = round((day.origin_s - log.origin_s) * SECOND) + start.offset_us
        found = episodes.world.run[0, : len(day)]["start"].tolist()
        expected = [start_us[job] - begin_us for job in day.jobs["job_id"]]
        assert found == [us if us < DAY_S * SECOND else codes.NONE for us in expected]


def _env(load: float = 0.9, **options: Any) -> Any:
    return gymnasium.make(
        "escala/Scheduling-v0", workload=_log(5, load=load), platform="32x1", shutdown="never", day_s=DAY_S, **options
    ).unwrapped


def _starts(env: Any, day: int) -> Any:
    return env.batch.episodes.world.run[0, : len(env.batch.episodes.days[day])]["start"]


def test_a_warm_day_begins_with_jobs_that_run_and_wait() -> None:
    cold, warm = _env(), _env(warm="easy")
    day = max(range(len(warm.batch.episodes.days)), key=lambda k: len(warm.batch.episodes._starts[k].jobs))
    observation, info = warm.reset(options={"day": day})
    assert observation[:, 3].max() > 0.0  # cores of running jobs
    waits = warm.batch.episodes.world.s[0, 0]["n_queued"]
    assert waits > len(cold.batch.episodes.days[0].jobs.filter(cold.batch.episodes.days[0].jobs["submit_s"] == 0.0))
    again, _ = warm.reset(options={"day": day})
    assert np.array_equal(observation, again) and info["action_mask"][0]


def test_rewards_of_an_objective_are_its_sums() -> None:
    """An episode run to completion: -sigma times what each job waited, in the objective's own unit."""
    for objective, unit in {
        "stretch": lambda job: job["walltime_s"],
        "wait": lambda job: 3600.0,
        "bounded-slowdown": lambda job: max(job["runtime_s"], 10.0),
        "area-wait": lambda job: 3600.0**2 * 32 / (job["runtime_s"] * job["cores"]),
    }.items():
        env = _env(warm="easy", window="drain", drain_days=50.0, rho=0.0, tau=0.0, objective=objective)
        total, over, rng, (_, info) = 0.0, False, np.random.default_rng(1), env.reset(options={"day": 2})
        while not over:
            _, reward, terminated, truncated, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
            total += reward
            over = terminated or truncated
        assert terminated
        day, offset = env.batch.episodes.days[2], env.batch.episodes._starts[2].offset_us
        begun = np.maximum(_starts(env, 2), 0) / SECOND
        # what was waited before counts for nobody
        submitted = np.maximum(day.jobs["submit_s"].to_numpy() - offset / SECOND, 0.0)
        waits = np.maximum(begun - submitted, 0.0)
        expected = -sum(wait / unit(job) for wait, job in zip(waits, day.jobs.to_dicts(), strict=True))
        assert total == pytest.approx(expected, rel=1e-6), objective


@pytest.mark.parametrize("lazy", [True, False], ids=["starts nothing", "at random"])
def test_the_guard_holds_whatever_the_agent_wants(lazy: bool) -> None:
    """Who has waited the guard holds a reservation that nobody delays: it starts no later than was promised when it
    came in front."""
    guard_s = 600.0
    env, rng, held = (
        _env(1.5, warm="easy", window="drain", drain_days=400.0, guard_s=guard_s),
        np.random.default_rng(4),
        0,
    )
    for day, about in enumerate(env.batch.episodes.days[:6]):
        over, promised, (_, info) = False, dict[int, int](), env.reset(options={"day": day})
        while not over:
            memory, world = env.batch.games.memory[0], env.batch.episodes.world
            if memory["aged"]:
                promised.setdefault(int(world.s[0, 0]["first"]), int(memory["shadow_us"]))
            action = 0 if lazy else int(rng.choice(np.flatnonzero(info["action_mask"])))
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        begun, held = _starts(env, day), held + len(promised)
        assert terminated
        assert all(begun[row] <= us for row, us in promised.items())
        if lazy:  # nobody else starts anything: in order of submission, none before the guard
            queued = np.flatnonzero(begun > 0)
            assert (np.diff(begun[queued]) >= 0).all()
            submitted = about.jobs["submit_s"].to_numpy()[queued] - env.batch.episodes._starts[day].offset_us / SECOND
            assert (begun[queued] / SECOND - submitted >= guard_s).all()
    assert held > 10


def test_what_makes_no_sense_is_one_line() -> None:
    with pytest.raises(EscalaError, match="unknown scheduler 'esay'"):
        _env(warm="esay")
    with pytest.raises(EscalaError, match="no part of a start"):
        _env(warm="conservative")
    with pytest.raises(EscalaError, match="give the log, or its path, not days"):
        gymnasium.make("escala/Scheduling-v0", workload=[_log(1)], platform="32x1", shutdown="never", warm="easy")
    with pytest.raises(EscalaError, match="guard_s"):
        _env(guard_s=-1.0)
