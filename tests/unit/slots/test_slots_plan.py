"""Plans for a single list: what they promise, their search on instances of known optimum, and agents taught by them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import escala
from escala.envs.core.batch import new_turn
from escala.envs.slots.options import options_of
from escala.envs.slots.plan import play_plans, search_plan
from escala.envs.slots.playing import play
from escala.envs.slots.slots import LEAST_LOSS, SlotsBatch
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload

POOL = Platform.uniform(10, 1, power=None)


def one_list(jobs: list[tuple[int, int, int]]) -> SlotsBatch:
    """A batch on one list of (submission, length, cores)."""
    columns = {"submit_s": [j[0] for j in jobs], "runtime_s": [j[1] for j in jobs], "cores": [j[2] for j in jobs]}
    return SlotsBatch(1, [Workload.from_jobs(columns, name="one")], POOL)


def test_whole_machine_jobs_of_one_instant_are_best_in_order_of_length() -> None:
    lengths = [7, 2, 5, 1, 3]
    batch = one_list([(0, length, 10) for length in lengths])
    best = min(
        np.mean([(np.cumsum(order)[i] / order[i]) for i in range(len(order))])
        for order in permutations(lengths)  # one after the other: nothing else is possible
    )
    assert play(batch.lists, "sjf")["slowdown"][0] == pytest.approx(best, rel=1e-12)
    found = search_plan(batch.lists, np.zeros(5), rounds=30, seed=0)
    assert found.slowdown == pytest.approx(best, rel=1e-12)


def test_a_plan_may_wait_for_a_short_job_that_no_rule_knows_of() -> None:
    # the long job takes the whole machine for 10 units; one unit later a job of one unit arrives: waiting costs 2/10,
    # not waiting 9/1
    batch = one_list([(0, 10, 10), (1, 1, 10)])
    assert play(batch.lists, "sjf")["slowdown"][0] == pytest.approx((1 + 10) / 2)
    found = search_plan(batch.lists, np.array([0.0, 1.0]), rounds=40, seed=1)
    assert found.slowdown == pytest.approx((12 / 10 + 1) / 2)
    assert play_plans(SlotsBatch(1, batch.lists), found.wanted[None])[0] == pytest.approx(found.slowdown)


@pytest.mark.parametrize("placement", ["start-now", "reserve"])
def test_no_job_is_placed_before_its_wanted_start_and_every_job_runs(placement: str) -> None:
    lists = options_of({"load": 1.3, "lists": 1, "lists_seed": 4}).job_lists()
    submit = lists.job["submit"] // 1_000_000
    wanted = submit + np.random.default_rng(0).integers(0, 30, len(submit))
    batch = SlotsBatch(1, lists, placement=placement)
    assert np.isfinite(play_plans(batch, wanted[None].astype(np.float64)))[0]
    start = batch.worlds.world.run[0, : len(submit)]["start"] // 1_000_000
    assert (start >= wanted).all()


def test_the_search_never_ends_above_its_first_plan_and_is_repeatable() -> None:
    lists = options_of({"load": 1.9, "lists": 1, "lists_seed": 2}).job_lists()
    submit = lists.job["submit"] / 1e6
    first = search_plan(lists, submit, rounds=1, seed=0).slowdown
    found = [search_plan(lists, submit, rounds=8, seed=0) for _ in range(2)]
    assert found[0].slowdown == found[1].slowdown <= first
    assert (found[0].wanted == found[1].wanted).all()


def test_a_plan_is_for_one_list_and_one_list_only() -> None:
    lists = options_of({"lists": 2}).job_lists()
    with pytest.raises(EscalaError, match="a plan is for one"):
        search_plan(lists, np.zeros(5), rounds=1, seed=0)
    with pytest.raises(EscalaError, match="needs a single list"):
        escala.train(
            "escala/Slots-v0", steps=1, preset="planned", teacher={"plan": [0.0]}, lists=2, placement="start-now"
        )


@pytest.mark.learn
@pytest.mark.long
def test_an_agent_taught_by_a_plan_plays_it(tmp_path: object) -> None:
    lists = options_of({"load": 0.7, "lists": 1, "lists_seed": 7}).job_lists()
    plan = search_plan(lists, lists.job["submit"] / 1e6, rounds=30, seed=0)
    agent = escala.train("escala/Slots-v0", [lists.workload(0)], lists.platform, steps=1, seed=0, preset="planned",
                         teacher={"plan": plan.wanted.tolist()}, placement="start-now")  # fmt: skip
    played = play(lists, lambda seen, mask: agent.act(seen, mask, None), skip="forced", rescue=50)["slowdown"][0]
    assert played <= play(lists, "sjf")["slowdown"][0]
    assert played == pytest.approx(plan.slowdown, rel=0.1)


def test_relative_rewards_add_up_to_the_slowdowns_over_what_sjf_loses() -> None:
    lists = options_of({"load": [0.1, 1.9], "lists": 8, "lists_seed": 3}).job_lists()
    sjf = play(lists, "sjf")["slowdown"].to_numpy()
    batch = SlotsBatch(len(lists), lists, reward="relative")
    turn, rows = new_turn(batch), np.arange(len(lists))
    batch.restart(rows, turn, {"list": rows})
    total, done, rng = np.zeros(len(lists)), np.zeros(len(lists), bool), np.random.default_rng(0)
    while not done.all():
        batch.step(rng.integers(0, 11, len(lists)), turn)
        total += turn.reward
        done |= turn.terminated
    loss = np.maximum(sjf - 1, LEAST_LOSS)
    assert total == pytest.approx(-batch.info()["slowdown"] / loss, rel=1e-9)


def test_several_loads_and_windows_have_equal_shares_of_the_lists() -> None:
    lists = options_of({"load": [0.4, 1.9], "window": [50, 200], "lists": 40}).job_lists()
    assert len(lists) == 40
    last = np.array([lists.job["submit"][row - 1] // 1_000_000 for row in lists.first[1:]])
    assert (
        (last[:10] < 50).all() and (last[10:20] >= 100).any() and (last[20:30] < 50).all() and (last[30:] >= 150).all()
    )
