"""Rewards by hand, the two faces against each other, what learners are given, and the laws on a team's own result."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

import escala
from escala.agents.training.team.buffer import TimedBuffer
from escala.agents.training.team.train import train_team
from escala.envs import multi
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.policy import TeamPolicy
from escala.workload import Workload
from tests.laws import laws


@pytest.mark.parametrize("rewards", ["global", "local"])
def test_a_unit_costs_what_waits_in_the_slots_behind_them_and_what_runs(rewards: str) -> None:
    """Jobs A, B, C, D of length 4, 2, 5, 8, each as large as a machine; two agents of one machine, two slots. In the
    first two units A runs on the machine of agent 0, C and B are in the slots, D is behind; then B runs on the other
    machine, C and D are in the slots."""
    jobs = {
        "submit_s": [0] * 4,
        "runtime_s": [4, 2, 5, 8],
        "cores": [10] * 4,
        "demand_memory": [10] * 4,
        "single_node": [True] * 4,
    }
    game = multi.parallel(
        Workload.from_jobs(jobs), agents=2, slots=2, alpha=-2.0, beta=-3.0, gamma=-5.0, rewards=rewards
    )
    game.reset(seed=0)
    noop = 2
    first = game.step({"agent_0": 0, "agent_1": noop})[1]
    second = game.step({"agent_0": noop, "agent_1": noop})[1]
    third = game.step({"agent_0": noop, "agent_1": 1})[1]
    waiting, later = -2.0 * (1 / 5 + 1 / 2) - 3.0 / 8, -2.0 * (1 / 5 + 1 / 8)
    own = {"agent_0": (1 / 4, 1 / 4), "agent_1": (0.0, 1 / 2)}
    for name, (early, late) in own.items():
        running = (1 / 4, 1 / 4 + 1 / 2) if rewards == "global" else (early, late)
        assert first[name] == pytest.approx(waiting - 5.0 * running[0]) and second[name] == pytest.approx(first[name])
        assert third[name] == pytest.approx(later - 5.0 * running[1])


@pytest.mark.parametrize("machines", [1, 2])
def test_both_faces_play_the_same_game(machines: int) -> None:
    """The same job list, and agents that choose a slot of their own each (so that none wants what another has
    taken)."""
    options: dict[str, Any] = {"agents": 3, "machines": machines, "lists": 3, "steps": 60, "load": 0.9}
    turns, together = multi.slots(**options), multi.parallel(**options)
    turns.reset(seed=5)
    seen, infos = together.reset(seed=5)
    total = dict.fromkeys(together.possible_agents, 0.0)
    rng = np.random.default_rng(0)
    steps = 0
    while together.agents and steps < 2000:
        for a, name in enumerate(together.possible_agents):
            assert turns.agent_selection == name and (a > 0 or np.array_equal(turns.observe(name), seen[name]))
            wanted = (
                [k for k in np.flatnonzero(infos[name]["action_mask"][:-1]) if k % 5 % 3 == a]
                if rng.random() < 0.7
                else []
            )
            infos[name]["chosen"] = int(wanted[0]) if wanted else 5 * machines
            turns.step(infos[name]["chosen"])
            for other in turns.possible_agents:
                total[other] += turns.rewards[other]
        seen, rewards, ended, cut, infos = together.step({name: infos[name]["chosen"] for name in together.agents})
        for name in together.possible_agents:
            assert rewards[name] == pytest.approx(total[name])
        total = dict.fromkeys(total, 0.0)
        assert ended == turns.terminations and cut == turns.truncations
        steps += 1
    assert 60 < steps < 2000 and all(ended.values())


@pytest.mark.parametrize("make", [multi.slots, multi.parallel])
def test_a_pickled_game_is_the_same_game(make: Any) -> None:
    game = make(agents=2, lists=3, steps=30)
    other = pickle.loads(pickle.dumps(game))
    assert type(other) is type(game) and other.possible_agents == game.possible_agents
    for one in (game, other):
        one.reset(seed=3)
    if make is multi.parallel:
        for _ in range(10):
            mine, its = (one.step({"agent_0": 0, "agent_1": 1}) for one in (game, other))
            assert mine[1] == its[1] and all(np.array_equal(mine[0][name], its[0][name]) for name in mine[0])
    else:
        for _ in range(20):
            assert np.array_equal(game.observe(game.agent_selection), other.observe(other.agent_selection))
            for one in (game, other):
                one.step(0)


def test_advantages_discount_by_the_units_that_pass() -> None:
    """Three steps of one game that last 2, 1 and 3 units at gamma 0.5, lambda 0.8; the episode ends with the third."""
    passed = np.ones(1)
    buffer = TimedBuffer(
        3, spaces.Box(0.0, 1.0, (1,)), spaces.Discrete(2), device="cpu", gamma=0.5, gae_lambda=0.8, n_envs=1,
        view=SimpleNamespace(passed=passed),  # type: ignore[arg-type]
    )  # fmt: skip
    buffer.reset()
    for units, reward, value in ((2, -1.0, -3.0), (1, -2.0, -4.0), (3, -0.5, -1.0)):
        passed[:] = 0.5**units
        given = torch.tensor([value]), torch.tensor([0.0])
        buffer.add(
            np.zeros((1, 1)), np.zeros((1, 1)), np.array([reward]), np.zeros(1), *given, action_masks=np.ones((1, 2))
        )
    buffer.compute_returns_and_advantage(torch.tensor([-9.0]), np.array([True]))
    last = -0.5 - (-1.0)  # nothing follows an end
    middle = (-2.0 + 0.5 * -1.0 - (-4.0)) + 0.5 * 0.8 * last
    early = (-1.0 + 0.25 * -4.0 - (-3.0)) + 0.25 * 0.8 * middle
    assert buffer.advantages.ravel() == pytest.approx([early, middle, last])
    assert buffer.returns.ravel() == pytest.approx([early - 3.0, middle - 4.0, last - 1.0])


@pytest.mark.slow
@pytest.mark.learn
def test_in_turns_one_agent_learns_at_a_time_and_the_others_are_frozen() -> None:
    learn = {"n_steps": 16, "batch_size": 32, "n_epochs": 2}
    given: dict[str, Any] = {"num_envs": 4, "learn": learn, "lists": 16, "agents": 3, "seed": 3, "teacher": None}
    after = [train_team(mode="turns", steps=64 * rounds, **given) for rounds in (1, 2, 3)]

    def moved(a: Any, b: Any) -> list[bool]:
        pairs = zip(a.networks, b.networks, strict=True)
        return [
            any(not torch.equal(x, y) for x, y in zip(m.state_dict().values(), n.state_dict().values(), strict=True))
            for m, n in pairs
        ]

    # the rate falls with the share that is left, so only who moves can be compared between trainings of several lengths
    start = train_team(mode="turns", steps=1, **(given | {"learn": learn | {"learning_rate": 0.0}}))
    assert [moved(start, team) for team in after] == [[True, False, False], [True, True, False], [True, True, True]]


UNEQUAL = {"capacity": (6, 14, 10, 10)}


@pytest.mark.parametrize(
    "rule, options",
    [
        ("dense", {}),
        ("dense", {"turns": "until-void"}),
        ("sjf", UNEQUAL),
        ("tetris", {"turns": "until-void", **UNEQUAL}),
        (None, UNEQUAL),
    ],
)
def test_the_laws_hold_for_what_a_team_does_in_the_simulation(rule: str | None, options: dict[str, Any]) -> None:
    """With rules and a team of networks (None), equal machines and unequal ones."""
    given = {"agents": 2, "machines": 2, "load": 0.9, **options}
    lists = options_of(given | {"lists": 2, "lists_seed": 9, "steps": 60}).job_lists()
    work = lists.workload(0)
    if rule is None:
        learn = {"n_steps": 16, "batch_size": 32, "n_epochs": 1}
        policy = train_team(steps=64, num_envs=4, learn=learn, lists=16, teacher=None, **given).policy(sampled=False)
    else:
        policy = TeamPolicy(rule, **{name: value for name, value in given.items() if name != "load"})
    found = escala.simulate(work, lists.platform, scheduler=policy)
    machines = lists.platform
    about = {
        "cores": machines.cores.tolist(), "profiles": [profile.spec() for profile in machines.profiles],
        "profile_of": list(machines.profile_of), "resources": {kind: values.tolist() for kind,
                                                               values in machines.resources.items()},
    }  # fmt: skip
    assert found.jobs.height > 20 and found.jobs["start_s"].null_count() == 0 and about["resources"]
    # nothing ends these jobs but themselves
    asked = [row | {"walltime_s": row["runtime_s"] + 1.0} for row in work.jobs.to_dicts()]
    assert not work.jobs["limited"].any()
    laws.check(found, asked, about)
