"""The classic rules on the seven published lists of R1: its author's table, in the environment and in the event-driven
simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import JobLists, given_lists
from escala.envs.slots.options import options_of
from escala.envs.slots.playing import play
from escala.envs.slots.policy import SlotPolicy
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.studies.grid2019.published import LOADS, PAPER_OF, published_lists, published_table

LATENCY = 3e-3  # the reference engine's messages, summed over a run
COLUMNS = {"slowdown": "mean_slowdown", "turnaround": "mean_turnaround_time", "longest_wait": "max_waiting_time"}


@pytest.fixture(scope="module")
def folder(traces: Path) -> Path:
    return traces / "author" / "r1-bench"


@pytest.fixture(scope="module")
def lists(folder: Path) -> JobLists:
    return published_lists(folder)


@pytest.mark.parametrize("rule", ["sjf", "packer", "tetris"])
@pytest.mark.parametrize("placement", ["start-now", "reserve"])
def test_rules_give_the_authors_table(folder: Path, lists: JobLists, rule: str, placement: str) -> None:
    ours = play(lists, rule, placement=placement)
    paper = published_table(folder).filter(pl.col("policy") == PAPER_OF[rule]).sort("load")
    assert paper["load"].to_list() == list(LOADS)
    for mine, column in COLUMNS.items():
        assert (ours[mine] - paper[column]).abs().max() <= LATENCY
    submits = pl.Series([lists.workload(e).jobs["submit_s"][0] for e in range(len(LOADS))])
    assert (ours["makespan"] + submits - paper["makespan"]).abs().max() <= LATENCY  # counted from time 0 there


@pytest.mark.parametrize(
    "rule", ["sjf", "sjf-strict", "packer", "tetris", "tetris-normalised", "fcfs", "easy", "hold-back"]
)
def test_rules_give_the_same_schedule_in_the_event_driven_simulation(lists: JobLists, rule: str) -> None:
    ours = play(lists, rule)
    for e in range(len(lists)):
        jobs = escala.simulate(lists.workload(e), lists.platform, scheduler=SlotPolicy(rule)).jobs
        slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
        assert slowdown == pytest.approx(ours["slowdown"][e], rel=1e-12)
        assert jobs["wait_s"].max() == ours["longest_wait"][e]


@pytest.mark.parametrize("placement", ["start-now", "reserve"])
def test_random_is_a_policy_with_a_seed_of_its_own(lists: JobLists, placement: str) -> None:
    """The same schedule in both worlds for the same seed, list by list; another for another."""
    few = lists.part([1, 3])
    for e in range(len(few)):
        starts = []
        for seed in (0, 7):
            ours = play(few.part([e]), "random", seed=seed, placement=placement)
            policy = SlotPolicy("random", seed=seed, placement=placement)
            jobs = escala.simulate(few.workload(e), few.platform, scheduler=policy).jobs
            again = escala.simulate(few.workload(e), few.platform, scheduler=policy).jobs
            assert jobs["start_s"].equals(again["start_s"])
            slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
            assert (
                slowdown == pytest.approx(ours["slowdown"][0], rel=1e-12)
                and jobs["wait_s"].max() == ours["longest_wait"][0]
            )
            starts.append(jobs["start_s"].to_list())
        assert starts[0] != starts[1]


def test_random_takes_every_choice_that_has_a_place_as_often() -> None:
    """Four jobs wait, one of them has no place: the no-op and the three others, a quarter each."""
    jobs = {"submit_s": [0.0] * 5, "runtime_s": [5.0, 2.0, 2.0, 2.0, 2.0], "cores": [4, 3, 7, 1, 6]}
    lists = given_lists([escala.Workload.from_jobs(jobs)], escala.Platform.uniform(10, 1, power=None), 1.0, "runtime")
    n = 8000
    batch = SlotsBatch(n, lists)
    turn, rows, out = new_turn(batch), np.arange(n), np.zeros(n, np.int64)
    batch.seed(rows, rows.astype(np.uint64))
    batch.restart(rows, turn, {"list": np.zeros(n, np.int64)})
    batch.step(np.ones(n, np.int64), turn)  # the first job: six units are left, too few for the third
    batch.decide("random", out)
    counts = np.bincount(out, minlength=11)
    valid = np.flatnonzero(turn.mask[0])
    assert len(valid) == 4 and counts[valid].sum() == n
    assert (np.abs(counts[valid] / n - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)).all()


def test_known_values_of_rules_that_the_paper_lacks(lists: JobLists) -> None:
    assert play(lists, "sjf-strict")["slowdown"].round(3).to_list() == [1.0, 1.943, 2.496, 3.047, 3.515, 5.521, 18.080]
    assert play(lists, "fcfs")["slowdown"].round(3).to_list() == [1.0, 1.943, 4.742, 9.312, 14.780, 29.064, 44.204]


def test_unlimited_slots_equal_the_queue_of_the_simulation() -> None:
    lists = options_of({"load": 1.3, "lists": 5, "lists_seed": 9}).job_lists()
    for e in range(len(lists)):
        work = lists.workload(e)
        for rule, scheduler in (("fcfs", "fcfs"), ("easy", "easy")):
            slotted = escala.simulate(work, lists.platform, scheduler=SlotPolicy(rule, slots=200)).jobs
            queue = escala.simulate(work, lists.platform, scheduler=scheduler, head="latest-released").jobs
            assert (slotted["start_s"] == queue["start_s"]).all()


def test_easy_looks_as_far_ahead_as_its_head_must_wait() -> None:
    """Jobs much longer than the policy's horizon: in the simulation the rule does what it does in the slotted world."""
    rng = np.random.default_rng(11)
    for _ in range(6):
        n = 25
        columns = {
            "submit_s": np.sort(rng.integers(0, 120, n)).astype(float),
            "runtime_s": rng.integers(1, 200, n).astype(float),
            "cores": rng.integers(1, 11, n),
        }
        lists = given_lists(
            [escala.Workload.from_jobs(columns, name="long")], escala.read_platform("10x1:none"), 1.0, "runtime"
        )
        ours = play(lists, "easy", horizon=200)
        jobs = escala.simulate(lists.workload(0), lists.platform, scheduler=SlotPolicy("easy")).jobs
        slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
        assert slowdown == pytest.approx(ours["slowdown"][0], rel=1e-12)


# the units before the first job are not gone through
@pytest.mark.parametrize("late_s", [1000.0, 1_600_000_000.0, 9e10])
def test_a_policy_that_knows_the_end_of_arrivals_counts_from_the_first_job_of_a_log(late_s: float) -> None:
    lists = options_of({"load": 1.3, "lists": 1, "lists_seed": 9}).job_lists()
    work = lists.workload(0)
    seen: dict[float, list[np.ndarray]] = {}

    def watch(observation: np.ndarray, mask: np.ndarray, random: Any) -> int:
        seen[shift].append(observation[-2:].copy())
        return int(np.flatnonzero(mask)[-1])

    first = float(work.jobs["submit_s"].min())
    for shift in (late_s - first, late_s + 7.0 - first):
        seen[shift] = []
        moved = escala.Workload.from_jobs(work.jobs.with_columns(pl.col("submit_s") + shift), name="moved")
        escala.simulate(moved, lists.platform, scheduler=SlotPolicy(watch, arrivals_end=100))
        with pytest.raises(EscalaError, match="arrivals_end=60: a job comes"):
            escala.simulate(moved, lists.platform, scheduler=SlotPolicy(watch, arrivals_end=60))
    one, other = seen.values()
    assert len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert one[0][0] == 0.0 and one[-1][1] == 1.0


def test_hold_back_lets_go_when_arrivals_are_known_to_have_ended() -> None:
    """A long job waits for ten silent units after the short one at 4; where arrivals are known to end at 6 it goes
    then."""
    jobs = {"submit_s": [0.0, 4.0], "runtime_s": [15.0, 1.0], "cores": [3, 1]}
    for end, start in ((0, 14.0), (6, 6.0)):
        policy = SlotPolicy("hold-back", hold=(3, 10, 0), arrivals_end=end)
        assert escala.simulate(escala.Workload.from_jobs(jobs), "10x1:none", scheduler=policy).jobs[
            "start_s"
        ].to_list() == [start, 4.0]


def test_what_a_policy_cannot_schedule_is_one_clear_line() -> None:
    long = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [50.0], "cores": [3]}, name="long")
    policy = SlotPolicy(lambda seen, mask, random: 0, placement="reserve")
    with pytest.raises(EscalaError, match="shows 20 units of 1 s, and a job asks for 50"):
        escala.simulate(long, "10x1:none", scheduler=policy)
    lists = options_of({"model": "cpu-memory", "lists": 1}).job_lists()
    shape = (options_of({}).numbers(1),)
    with pytest.raises(EscalaError, match="trained on another machine"):
        escala.simulate(
            lists.workload(0), lists.platform, scheduler=SlotPolicy(lambda seen, mask, random: 0, seen=shape)
        )


@pytest.mark.parametrize("action", [-1, 11, 10**6, 1.0, None])
def test_an_action_out_of_range_is_one_clear_line(action: Any) -> None:
    jobs = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [3]})
    policy = SlotPolicy(lambda seen, mask, random: action, slots=10, name="mine")
    with pytest.raises(EscalaError, match=r"mine: its function chose .*: return one whole number in 0\.\.10"):
        escala.simulate(jobs, "10x1:none", scheduler=policy)
