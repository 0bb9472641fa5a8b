"""The game of several agents: the same world as Slots for a team of one, its laws, its rewards, and bad options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escala.envs import multi
from escala.envs.slots.heuristics import TEAM_RULES as RULES
from escala.envs.slots.lists import JobLists, draw_lists
from escala.envs.slots.playing import play as play_slots
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.team.batch import MultiBatch
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.playing import play
from escala.errors import EscalaError
from escala.workload import Workload
from escala.workload.generate_slots import cpu_memory_model

SHAPES: dict[str, dict[str, Any]] = {
    "3x1": {"agents": 3},
    "2x2, until void": {"agents": 2, "machines": 2, "turns": "until-void", "load": 0.9},
    "3x2, local": {
        "agents": 3,
        "machines": 2,
        "information": "local",
        "rewards": "local",
        "load": [0.3, 1.2],
        "skip": "forced",
    },
    "image": {"agents": 2, "machines": 2, "observation": "image", "skip": "empty"},
    "unequal": {"agents": 2, "machines": 2, "capacity": [[10, 10], [12, 6], [6, 12], [20, 20]]},
    "three resources": {"agents": 2, "resources": 3, "formula": "printed", "turns": "until-void"},
    "one resource": {"agents": 4, "resources": 1, "load": 0.8},
}


def schedule(batch: Any, i: int) -> tuple[np.ndarray, ...]:
    """(submission, start, length, demand [jobs, kinds], machine) of game i, in units, from the kernel's tables."""
    lists, e = batch.lists, int(batch.worlds.chosen[i])
    rows = slice(int(lists.first[e]), int(lists.first[e + 1]))
    job = lists.job[rows]
    run = batch.worlds.world.run[i, : len(job)]
    return (
        job["submit"] // 1_000_000,
        run["start"] // 1_000_000,
        job["runtime"] // 1_000_000,
        np.column_stack([job["cores"], lists.demand[rows]]),
    )


def rollout(batch: MultiBatch, seed: int, steps: int = 60_000) -> tuple[np.ndarray, dict[int, list[tuple[int, int]]]]:
    """Random choices, valid and invalid, to the end; summed rewards [N, agents], and (job, machine) of each placement
    in each game."""
    turn, rows = batch.new_turn(), np.arange(batch.num_envs)
    batch.seed(rows, rows.astype(np.uint64) + np.uint64(seed))
    batch.restart(rows, turn)
    rng = np.random.default_rng(seed)
    total, done = np.zeros((batch.num_envs, batch.options.agents)), np.zeros(batch.num_envs, bool)
    placed: dict[int, list[tuple[int, int]]] = {i: [] for i in rows}
    slots, machines = batch.options.slots, batch.options.machines
    for _ in range(steps):
        actions = rng.integers(0, int(batch.action_space.n), batch.num_envs)
        actions[done] = -1
        for i in np.flatnonzero(~done):
            if actions[i] < slots * machines and turn.mask[i, actions[i]]:
                placed[i].append(
                    (
                        int(batch.games.slots[i, actions[i] % slots]),
                        int(batch.agent[i]) * machines + int(actions[i]) // slots,
                    )
                )
        batch.step(actions, turn)
        total += turn.reward
        done |= turn.terminated
        assert batch.observation_space.contains(turn.observation[0])
        if done.all():
            return total, placed
    raise AssertionError("a random game did not end")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_job_runs_once_on_one_machine_within_its_capacity(shape: dict[str, Any]) -> None:
    batch = multi.batch(4, lists=8, steps=40, **shape)
    total, placed = rollout(batch, 3)
    for i in range(batch.num_envs):
        submit, start, length, demand = schedule(batch, i)
        assert sorted(j for j, _ in placed[i]) == list(range(len(submit))) and (start >= submit).all()
        machine = np.array([n for _, n in sorted(placed[i])])
        for n in range(batch.options.owned):
            its = machine == n
            for t in np.unique(start[its]):
                runs = its & (start <= t) & (t < start + length)
                assert (demand[runs].sum(axis=0) <= batch.games.capacity[n]).all()
        slowdowns = (start + length - submit) / length
        assert batch.info()["slowdown"][i] == pytest.approx(slowdowns.mean(), rel=1e-12)
        if batch.options.rewards == "global":
            assert total[i] == pytest.approx(np.full(batch.options.agents, -slowdowns.sum()), rel=1e-9)
        else:  # waiting is paid by all, running by the owner: together K (slowdowns - jobs) + jobs
            agents = batch.options.agents
            assert total[i].sum() == pytest.approx(-(agents * (slowdowns.sum() - len(start)) + len(start)), rel=1e-9)


def slots_lists(count: int = 30) -> JobLists:
    return draw_lists(cpu_memory_model(0.9), count, 5)


@pytest.mark.parametrize("rule", ["sjf", "packer", "tetris", "tetris-normalised"])
def test_a_team_of_one_with_one_machine_is_the_single_agent_by_rule(rule: str) -> None:
    lists = slots_lists()
    single = play_slots(lists, rule, slots=5)
    team = play(lists, rule, agents=1, machines=1, slots=5, turns="until-void")
    for name in ("slowdown", "turnaround", "wait", "makespan"):
        assert team[name].to_numpy() == pytest.approx(single[name].to_numpy(), rel=1e-12)


@pytest.mark.parametrize("skip", ["none", "empty", "forced"])
def test_a_team_of_one_with_one_machine_is_the_single_agent_choice_by_choice(skip: str) -> None:
    """The same choices give the same rewards, ends, masks, slots and starts."""
    lists, n = slots_lists(8), 8
    one, many = (
        SlotsBatch(n, lists, slots=5, skip=skip),
        MultiBatch(n, lists, agents=1, machines=1, slots=5, turns="until-void", skip=skip),
    )
    from escala.envs.core.batch import new_turn

    first, second, rows = new_turn(one), many.new_turn(), np.arange(n)
    one.restart(rows, first, {"list": rows})
    many.restart(rows, second, {"list": rows})
    rng = np.random.default_rng(1)
    done = np.zeros(n, bool)
    for _ in range(5000):
        assert (first.mask[~done][:, 1:] == second.mask[~done][:, :-1]).all()
        actions = rng.integers(0, 6, n)
        one.step(actions, first)
        many.step(np.where(actions == 0, 5, actions - 1), second)
        assert second.reward[:, 0] == pytest.approx(first.reward, abs=1e-9)
        assert (first.terminated == second.terminated).all()
        assert (one.games.slots[~done] == many.games.slots[~done]).all()
        done |= first.terminated
        if done.all():
            break
    assert done.all()
    assert (one.worlds.world.run["start"] == many.worlds.world.run["start"]).all()
    assert many.info()["slowdown"] == pytest.approx(one.info()["slowdown"], rel=1e-12)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rules_never_idle_where_something_fits_and_are_the_same_in_any_batch(rule: str) -> None:
    options = options_of({"agents": 2, "machines": 2, "load": 0.9, "lists": 6, "steps": 60})
    lists = options.job_lists()
    together = play(lists, rule, agents=2, machines=2)
    alone = play(lists.part([0]), rule, agents=2, machines=2)
    assert together["finished"].all() and together.row(0) == alone.row(0)
    batch = MultiBatch(6, lists, agents=2, machines=2)
    turn, out = batch.new_turn(), np.zeros(6, np.int64)
    batch.restart(np.arange(6), turn, {"list": np.arange(6)})
    for _ in range(400):
        batch.decide(rule, out)
        busy = turn.mask[:, :-1].any(axis=1)
        assert (turn.mask[np.arange(6), out]).all() and ((out == 10) == ~busy).all()
        batch.step(out, turn)


def test_sjf_and_packer_choose_by_hand() -> None:
    """Machine 0 (of 10 and 10) runs a job of 6 and 2; waiting: A length 3, demand 4, 1; B length 2, demand 8, 8; C
    length 5, demand 4, 8."""
    jobs = {
        "submit_s": [0, 1, 1, 1], "runtime_s": [9, 3, 2, 5], "cores": [6, 4, 8, 4], "demand_memory": [2, 1, 8, 8],
        "single_node": [True] *
        4,
    }  # fmt: skip
    batch = MultiBatch(1, Workload.from_jobs(jobs), agents=1, machines=2, slots=3, turns="until-void")
    turn, out = batch.new_turn(), np.zeros(1, np.int64)
    batch.restart(np.zeros(1, np.int64), turn)
    batch.step(np.array([0]), turn)  # the first job on machine 0
    batch.step(np.array([6]), turn)  # a unit passes: A, B, C in slots 0, 1, 2
    expected = {
        "sjf": 1 + 3,  # B is the shortest and fits on machine 1 only
        "packer": 1 + 3,  # B on machine 1: 8 x 10 + 8 x 10 = 160; C there 120; C on machine 0: 4 x 4 + 8 x 8 = 80
        "tetris": 1 + 3,  # B: .5 x 16 + .25
        "dense": 1 + 3,  # B: 2 / .8; A: 3 / .25; C: 5 / .6
    }
    for rule, action in expected.items():
        batch.decide(rule, out)
        assert out[0] == action, rule


@pytest.mark.parametrize(
    ("busy", "expected"), [(0, {"sjf": 0, "dense": 0, "tetris": 3}), (1, {"sjf": 0, "dense": 3, "tetris": 0})]
)
def test_between_machines_of_one_score_each_rule_chooses_by_hand(busy: int, expected: dict[str, int]) -> None:
    """One of two machines of 10 and 10 runs a job of 6 and 2; a job of 4 and 1 fits on both: sjf takes the first, dense
    the one with less left over (0 and 7 against 6 and 9), tetris the one of the larger alignment (4 x 10 + 10 against 4
    x 4 + 8)."""
    jobs = {
        "submit_s": [0, 1],
        "runtime_s": [9, 3],
        "cores": [6, 4],
        "demand_memory": [2, 1],
        "single_node": [True, True],
    }
    batch = MultiBatch(1, Workload.from_jobs(jobs), agents=1, machines=2, slots=3, turns="until-void")
    turn, out = batch.new_turn(), np.zeros(1, np.int64)
    batch.restart(np.zeros(1, np.int64), turn)
    batch.step(np.array([3 * busy]), turn)  # the first job, in slot 0
    batch.step(np.array([6]), turn)  # a unit passes
    for rule, action in expected.items():
        batch.decide(rule, out)
        assert out[0] == action, rule


def test_cut_runs_tell_what_is_left() -> None:
    figures = play(options_of({"load": 1.2, "lists": 10}).job_lists(), "sjf", limit=200)
    assert (figures["row"] == 200).all() and (figures["left"] > 0).all()
    crowded = play(options_of({"load": 1.2, "lists": 10}).job_lists(), "sjf", overflow="end", backlog=20)
    assert (crowded["row"] < 200).any() and (crowded["left"] > 20).any()


def test_a_saved_state_goes_on_exactly() -> None:
    batch, other = (multi.batch(5, lists=6, steps=30, skip="forced") for _ in range(2))
    turn, again, rows = batch.new_turn(), other.new_turn(), np.arange(5)
    batch.seed(rows, rows.astype(np.uint64))
    batch.restart(rows, turn)
    out = np.zeros(5, np.int64)
    for k in range(60):
        if k == 20:
            other.restore(batch.state())
        batch.decide("random", out)
        if k >= 20:
            mine = np.zeros(5, np.int64)
            other.decide("random", mine)
            assert (mine == out).all()
            other.step(mine, again)
        batch.step(out, turn)
        if k >= 20:
            assert (again.reward == turn.reward).all() and (again.terminated == turn.terminated).all()


@pytest.mark.parametrize(
    "agents, capacity, largest",
    [
        (3, [[10, 10], [12, 6], [6, 12]], 12),
        (3, [[10, 20]] * 3, 10),
        (2, [[10, 10], [12, 6]], 10),
        (2, [[10, 1], [1, 10]], 3),
        (2, [[2, 1], [2, 1]], 1),
    ],
)
def test_jobs_are_drawn_for_the_largest_capacity_of_which_each_has_a_machine(
    agents: int, capacity: Any, largest: int
) -> None:
    batch = multi.batch(2, agents=agents, capacity=capacity, load=0.8, lists=200, lists_seed=2)
    need = np.column_stack([batch.lists.job["cores"], batch.lists.demand])
    assert need.max() == largest
    assert np.any(np.all(need[:, None, :] <= np.array(capacity)[None], axis=2), axis=1).all()
    lists = batch.lists
    work = float((need * (lists.job["runtime"] / 1e6)[:, None]).sum(axis=0).max()) / (len(lists) * 200)
    assert work / np.array(capacity).sum(axis=0).min() == pytest.approx(0.8, rel=0.05)
    assert play(batch.lists.part(range(3)), "sjf", agents=agents, capacity=capacity)["finished"].all()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"agents": 0}, "agents=0"),
    ({"machines": 1.5}, "machines=1.5"),
    ({"load": 0.0}, "load"),
    ({"load": []}, "load"),
    ({"p_long": 2.0}, "p_long"),
    ({"capacity": [10, 10]}, "capacity"),
    ({"capacity": "large"}, "capacity"),
    ({"capacity": 1}, "capacity"),
    ({"information": "some"}, "global, local"),
    ({"turns": "twice"}, "single, until-void"),
    ({"alpha": float("nan")}, "alpha"),
    ({"slot": 3}, "unknown option 'slot'"),
    ({"formula": "square"}, "plain, printed"),
    ({"capacity": 10.7}, "capacity=10.7: give one whole number"),
    ({"capacity": [10, 10, 10.5]}, "whole number"),
    ({"horizon": 10**9}, "horizon=1000000000: at most 10000"),
    ({"slots": 10**9}, "slots=1000000000: at most 10000"),
    ({"lists": 10**9}, "lists=1000000000: at most 200000"),
    ({"load": 1e9}, "from 0.001 to 100"),
    ({"load": [0.5, 1e-9]}, "from 0.001 to 100"),
]


@pytest.mark.parametrize("options, match", BAD, ids=[str(options) for options, _ in BAD])
def test_bad_options_give_one_clear_line(options: dict[str, Any], match: str) -> None:
    with pytest.raises(EscalaError, match=match) as error:
        multi.batch(1, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("capacity", [10, [10, 5, 5], [[10, 10], [4, 4], [4, 4]], [[10, 10], [12, 6], [6, 12]]])
def test_load_is_of_all_machines_together(capacity: Any) -> None:
    batch = multi.batch(1, agents=3, capacity=capacity, load=0.5, lists=4000, steps=100)
    job, total = batch.lists.job, batch.options.capacities().sum(axis=0)
    demand = np.column_stack([job["cores"], batch.lists.demand]).mean(axis=1)  # over the kinds, as the model has it
    offered = (demand * (job["runtime"] / 1e6)).sum() / (4000 * 100 * total.min())
    assert offered == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("workload", [5, "x.swf", [], [5]])
def test_what_is_no_workload_is_refused(workload: Any) -> None:
    with pytest.raises(EscalaError, match="give a Workload"):
        multi.batch(1, workload)


def test_bad_workloads_give_one_clear_line() -> None:
    large = {"submit_s": [0.0], "runtime_s": [3.0], "cores": [11], "demand_memory": [1], "single_node": [True]}
    with pytest.raises(EscalaError):
        multi.batch(1, Workload.from_jobs(large))
    spread = large | {"cores": [4], "single_node": [False]}
    del spread["demand_memory"]
    with pytest.raises(EscalaError, match="single_node"):
        multi.batch(1, Workload.from_jobs(spread), resources=1)
    with pytest.raises(EscalaError, match="resources=3"):
        multi.batch(1, Workload.from_jobs(large | {"cores": [4]}), resources=3)
