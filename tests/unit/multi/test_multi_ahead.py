"""Look-ahead over the game of several agents: its futures play as the game itself plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escala.agents.imitation import team_teaching
from escala.agents.imitation.team_lookahead import LookAhead, law_of
from escala.agents.imitation.team_teaching import check
from escala.agents.training.team.train import train_team
from escala.envs import multi
from escala.envs.slots.team.batch import MultiBatch
from escala.envs.slots.team.lookahead import Bases
from escala.envs.slots.team.playing import play
from escala.errors import EscalaError

LATER = np.array([True])


def played(batch: MultiBatch, state: Any, action: int) -> float:
    """Sum of waits / length of the whole list when the action is followed by the rule dense, by the game itself."""
    batch.restore(state)
    turn, out = batch.new_turn(), np.array([action])
    while True:
        batch.step(out, turn)
        if turn.terminated[0]:
            return float((batch.games.memory["slowdown"][0] - 1.0) * batch.games.memory["submitted"][0])
        batch.decide("dense", out)


def play_ahead(batch: MultiBatch, teacher: LookAhead, patience: int = 20_000) -> np.ndarray:
    """Mean slowdown of each list of the batch, game i playing list i, all agents choosing by look-ahead; NaN where not
    finished."""
    n = batch.num_envs
    turn: Any = batch.new_turn()
    batch.restart(np.arange(n), turn, {"list": np.arange(n)})
    going = np.ones(n, bool)
    for _ in range(patience):
        batch.step(teacher.choose(turn.mask, going), turn)
        going &= ~(turn.terminated | turn.truncated)
        if not going.any():
            break
    return np.where(going, np.nan, batch.games.memory["slowdown"])


@pytest.mark.parametrize(
    "shape", [{"agents": 2}, {"agents": 2, "machines": 2}, {"agents": 1, "machines": 3, "turns": "until-void"}]
)
def test_a_future_that_comes_true_costs_what_the_game_costs(shape: dict[str, Any]) -> None:
    """The only future is the list itself, and nothing is hidden in the backlog."""
    batch = multi.batch(1, load=0.6, steps=60, lists=1, lists_seed=3, skip="forced", **shape)
    look = LookAhead(batch, 2, seed=0, ahead=1000)
    owned = batch.options.owned
    look.use(Bases(np.array([0.5 * owned]), np.array([-1])))
    turn, out, compared = batch.new_turn(), np.zeros(1, np.int64), 0
    batch.restart(np.array([0]), turn, {"list": 0})
    other = multi.batch(1, batch.lists, skip="forced", **shape)
    while not turn.terminated[0]:
        batch.decide("dense", out)
        if batch.worlds.world.s[0, 0]["next_job"] == batch.games.memory["entered"][0] and turn.mask[0, :-1].any():
            costs = look.costs(turn.mask, LATER)[0].copy()
            open_ = np.flatnonzero(turn.mask[0])
            assert np.isinf(costs[~turn.mask[0]]).all()
            theirs = np.array([played(other, batch.state(), int(c)) for c in open_])
            assert costs[open_] - costs[-1] == pytest.approx(theirs - theirs[-1], abs=1e-9)
            compared += len(open_) - 1
        batch.step(out, turn)
    assert compared > 20


def test_a_base_that_holds_back_keeps_a_machine_free_of_long_jobs() -> None:
    """Two long jobs wait, a short one comes a unit later: starting both is worse than holding one; by hand."""
    from escala.workload import Workload

    columns: dict[str, Any] = {"submit_s": [0.0, 0.0, 1.0, 2.0], "runtime_s": [20.0, 20.0, 1.0, 1.0], "cores": [10] * 4}
    jobs = Workload.from_jobs(columns | {"single_node": [True] * 4})
    batch = multi.batch(1, jobs, agents=2, resources=1, horizon=20)
    look = LookAhead(batch, 1, seed=0)
    turn = batch.new_turn()
    batch.restart(np.array([0]), turn, {"list": 0})
    look.use(Bases(np.array([0.0]), np.array([1])))  # holds: the second machine stays free until the last arrival, at 2
    noop = int(batch.action_space.n) - 1
    start = look.costs(turn.mask, LATER)[0].copy()
    # first long at 0; agent 1 holds the other: shorts at 1 and 2 (their waits are counted from 0), then the held one at
    # 3
    assert start[0] == pytest.approx(0 + 1 / 1 + 2 / 1 + 3 / 20)
    # no-op: agent 1 takes the first long; agent 0 is free for the shorts
    assert start[noop] == pytest.approx(0 + 1 / 1 + 2 / 1 + 3 / 20)
    look.use(Bases(np.array([0.0]), np.array([-1])))  # greedy: both start at 0, the shorts wait until 20
    assert look.costs(turn.mask, LATER)[0, 0] == pytest.approx(0 + 0 + 20 + 20)


def test_look_ahead_beats_the_rules_and_is_the_same_for_the_same_seed() -> None:
    shape: dict[str, Any] = {"agents": 2, "skip": "forced"}
    lists = multi.batch(1, load=0.9, steps=60, lists=24, lists_seed=9, **shape).lists
    found = [play_ahead(b, LookAhead(b, 16, seed=4)) for b in (MultiBatch(24, lists, **shape) for _ in range(2))]
    assert (found[0] == found[1]).all()
    for rule in ("sjf", "tetris-normalised", "dense"):
        assert found[0].mean() < 0.97 * play(lists, rule, **shape)["slowdown"].mean()


def test_futures_are_of_the_games_own_load() -> None:
    batch = multi.batch(4, load=[0.1, 1.2], steps=40, lists=8, skip="forced")
    look = LookAhead(batch, 1, seed=0, loads=2)
    batch.worlds.chosen[:] = [0, 3, 4, 7]
    assert [tuple(map(int, pair)) for pair in zip(*look.sources(), strict=True)] == [(0, 4), (0, 4), (4, 8), (4, 8)]
    law = law_of(batch.lists, 10)
    assert law.jobs.shape == (len(batch.lists.job), 4) and law.jobs[:, 1].max() <= 20


@pytest.mark.parametrize(
    "teacher", ["nobody", {"rollout": 0}, {"rollout": 1.5}, {"rollout": 4, "more": 1}, {"plan": 3}, ["sjf"]]
)
def test_unknown_teachers_are_refused(teacher: Any) -> None:
    with pytest.raises(EscalaError, match="teacher="):
        check(teacher)


@pytest.mark.parametrize("information", ["global", "local"])
def test_agents_may_know_when_arrivals_end(information: str) -> None:
    shape: dict[str, Any] = {
        "agents": 2,
        "load": 0.5,
        "steps": 30,
        "lists": 1,
        "information": information,
        "skip": "none",
    }
    plain, told = multi.batch(1, **shape), multi.batch(1, arrivals_end=30, **shape)
    turns = plain.new_turn(), told.new_turn()
    for batch, turn in zip((plain, told), turns, strict=True):
        batch.restart(np.array([0]), turn)
    seen_after = False
    for _ in range(90):
        row = int(told.games.memory["row"][0])
        assert (turns[1].observation[0, :-2] == turns[0].observation[0]).all()
        assert turns[1].observation[0, -2:] == pytest.approx([min(row / 30, 1.0), float(row >= 30)])
        seen_after |= row >= 30
        for batch, turn in zip((plain, told), turns, strict=True):
            out = np.zeros(1, np.int64)
            batch.decide("sjf", out)
            batch.step(out, turn)
        if turns[0].terminated[0]:
            break
    assert seen_after


@pytest.mark.slow
@pytest.mark.learn
def test_a_team_learns_from_look_ahead_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_teaching, "OF_LOOK_AHEAD", team_teaching.Manner(48, 400, 10.0))
    shape: dict[str, Any] = {"agents": 2, "load": 0.9, "lists": 48, "lists_seed": 1}
    team = train_team(preset="look-ahead", steps=0, teacher={"rollout": 4}, num_envs=4, **shape)
    assert team.manifest["steps_done"] == 0 and team.options["arrivals_end"] == 200
    one, other = (network.state_dict() for network in team.networks)
    assert all((one[name] == other[name]).all() for name in one)
    lists = multi.batch(1, agents=2, load=0.9, lists=32, lists_seed=2).lists
    found = play(lists, team.members(sampled=False), rescue=1, agents=2, skip="forced", arrivals_end=200)
    assert found["finished"].all()
    assert found["slowdown"].mean() < play(lists, "random", agents=2)["slowdown"].mean() * 0.8


def test_no_steps_and_no_teacher_are_refused() -> None:
    with pytest.raises(EscalaError, match="0 with a teacher"):
        train_team(preset="printed", steps=0)
