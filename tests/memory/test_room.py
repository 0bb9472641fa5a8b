"""Arrays that compiled code writes have room for all that may come, and what comes from outside is checked first.

An overrun is silent as a rule: `make test-bounds` runs these with every access checked.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import escala
import escala.envs
from escala.agents.direct_search import hold_play, queue_play
from escala.agents.networks import slot_layers
from escala.envs.rjms import hold_features
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.envs.slots.team.batch import MultiBatch
from escala.errors import EscalaError
from escala.optimum import Instance, on_machines
from escala.optimum.search import search
from tests.memory.dice import OFF, scheduling_dice, shutdown_dice

NODES = escala.read_platform("4x1:grid5000")


def log(jobs: int, pause_s: float = 0.0, walltime_s: float = 100.0, users: int = 1) -> escala.Workload:
    """Jobs of one core, one behind the other, of so many users, the last of whom come last."""
    row = np.arange(jobs)
    columns = {"submit_s": row * pause_s, "runtime_s": np.full(jobs, walltime_s), "cores": np.ones(jobs, int)}
    return escala.Workload.from_jobs({**columns, "user": [f"u{k * users // jobs:04}" for k in row]})


def test_agents_remember_users_who_come_later() -> None:
    """Once their memories had room for the users of the first decision."""
    jobs = log(60, pause_s=50.0, users=60)
    for form in ("wake", "hold", "count"):
        escala.simulate(jobs, NODES, scheduler="saf", shutdown=shutdown_dice(NODES, action=form).policy())
    escala.simulate(jobs, NODES, scheduler=scheduling_dice().policy())


def test_every_waiting_job_may_have_a_timer_and_a_policy_any_number() -> None:
    """Once there was room for as many timers as jobs can run at once."""
    jobs, asked = log(400), []

    def patient(view: Any, act: Any) -> None:
        asked.append(view.now_s)
        if len(asked) == 1:
            assert all(act.call_at(1.0 + k) for k in range(500))
        for job in view.queue:
            act.start(job)

    escala.simulate(jobs, NODES, scheduler=patient, shutdown="hold:0.9")
    assert {1.0 + k for k in range(500)} <= set(asked)
    for scheduler in ("easy", "fcfs", "first-fit", "conservative"):
        escala.simulate(log(400, walltime_s=10.0), NODES, scheduler=scheduler, shutdown="hold:0.9")


def test_an_agent_that_holds_sets_a_timer_for_each_waiting_job() -> None:
    jobs, agent = log(400, walltime_s=40.0), shutdown_dice(NODES, action="hold", holds=(0.5, 0.9))
    escala.simulate(jobs, NODES, scheduler="saf", shutdown=agent.policy(seed=1))


@pytest.mark.parametrize("ask", ["submissions", "periods"])
def test_holds_that_change_at_every_submission_leave_room_for_all_timers(ask: str) -> None:
    """Each change asks for new times of all waiting jobs, within the same minute."""
    n, holds = 300, (0.5, 0.52, 0.54)
    env = gymnasium.make(
        OFF, workload=[log(n, pause_s=0.1)], platform=NODES, action="hold", holds=holds, ask=ask, window="drain"
    )
    env.reset(seed=0)
    most, over, steps = 0, False, 0
    while not over:
        *_, terminated, truncated, _ = env.step(steps % len(holds))
        most = max(most, int(env.unwrapped.batch.episodes.world.s["n_timers"][0, 0]))  # type: ignore[attr-defined]
        over, steps = terminated or truncated, steps + 1
    assert most <= n * len(holds)
    assert ask == "periods" or most > 2 * n  # as many as there are


@pytest.mark.parametrize("action", [-1, -3, 21, 10**6])
def test_what_an_agent_chose_is_checked(action: int) -> None:
    for given in (
        {"scheduler": scheduling_dice(always=action)},
        {"shutdown": shutdown_dice(NODES, always=action), "scheduler": "saf"},
    ):
        with pytest.raises(
            EscalaError, match=f"agent .dice.*: its function chose .*{action}.*: return one whole number in 0"
        ):
            escala.simulate(log(5), NODES, **given)


def test_an_agent_of_another_number_of_actions_is_refused() -> None:
    with pytest.raises(EscalaError, match=r"chooses among 3 actions, its queue of 20 places has 21"):
        scheduling_dice(actions=3).policy()
    with pytest.raises(EscalaError, match=r"chooses among 5 actions, platform '9x1:grid5000' has 10"):
        escala.simulate(log(5), "9x1:grid5000", scheduler="saf", shutdown=shutdown_dice(NODES).policy())


def test_turns_and_actions_of_games_are_checked() -> None:
    batch = MultiBatch(2, agents=2, load=0.6, lists=2, steps=30)
    turn = batch.new_turn()
    batch.restart(np.arange(2), turn)
    n = int(batch.action_space.n)
    for actions in ([0], [0, n], [-2, 0], [0.0, math.nan], np.array([0.0, math.nan])):
        with pytest.raises(EscalaError, match=f"actions must be 2 whole numbers in -1..{n - 1}"):
            batch.step(actions, turn)  # type: ignore[arg-type]
    with pytest.raises(EscalaError, match=r"agents must be 2 whole numbers in 0..1"):
        batch.look(np.array([0, 2]), turn.observation, turn.mask)
    with pytest.raises(EscalaError, match=r"give one of 2 numbers"):
        batch.decide("sjf", np.zeros(3, np.int64))


def test_networks_refuse_observations_that_are_too_short() -> None:
    weight, bias = torch.zeros(4, 6), torch.zeros(4)
    for layer in (
        slot_layers.mean_embedding,
        lambda *given: slot_layers.preferences(*given, torch.zeros(2, 4), torch.zeros(4)),
    ):
        layer(torch.zeros(2, 18), 3, weight, bias)
        with pytest.raises(EscalaError, match=r"observations of 17 numbers: 3 slots have 3 x 6"):
            layer(torch.zeros(2, 17), 3, weight, bias)
    with pytest.raises(EscalaError, match="hold-features reads"):
        hold_features.hold_features(np.zeros((2, 20), np.float32))


def test_weights_that_are_played_are_counted() -> None:
    with pytest.raises(EscalaError, match=r"weights of shape \(3,\): the score has 19"):
        hold_play.whole_days(np.zeros(3), OffReservationBatch(1, [log(5)], NODES, action="hold", observation="compact"))
    with pytest.raises(EscalaError, match=r"weights of shape \(3,\): the scores have 2 x 17"):
        queue_play.whole_days(np.zeros(3), SchedulingBatch(1, [log(5)], NODES, waits=True))


def test_hints_have_a_number_for_each_job() -> None:
    instance = Instance([0, 0, 0], [1, 2, 3], [1, 1, 1], [2])
    for hint in ([1, 2], [1, 2, 3, 4], [[1, 2, 3]]):
        with pytest.raises(EscalaError, match="give one number for each of 3 jobs"):
            search(instance, hints=[np.array(hint)])
        with pytest.raises(EscalaError, match="give one number for each of 3 jobs"):
            on_machines(instance, 2, hints=[np.array(hint)])


def test_more_units_of_a_resource_than_the_kernel_counts_are_refused() -> None:
    """2^32 + 1 bytes were taken as one."""
    jobs = {"submit_s": [0.0], "runtime_s": [1.0], "cores": [1], "single_node": [True], "demand_memory": [2**32]}
    platform = escala.Platform.uniform(1, 2, power=None, resources={"memory": 2**32 + 1})
    with pytest.raises(EscalaError, match=r"has 4294967297 of 'memory' on a node; at most 2147483647 are possible"):
        escala.simulate(escala.Workload.from_jobs(jobs), platform)


@pytest.mark.parametrize("length_s", [0.0, 4e-7])
def test_jobs_shorter_than_the_clock_can_tell_are_refused(length_s: float) -> None:
    for name in ("runtime_s", "walltime_s"):
        columns = {"submit_s": [0.0], "runtime_s": [1.0], "walltime_s": [1.0], "cores": [1], name: [length_s]}
        with pytest.raises(EscalaError, match=f"has {name} = "):
            escala.Workload.from_jobs(columns)
