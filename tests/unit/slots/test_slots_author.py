"""The classic rules on the seven published lists of R1: its author's table, in the environment and in the event-driven simulation."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import escala
from escala.envs.slots_lists import JobLists
from escala.envs.slots_options import options_of
from escala.envs.slots_play import play
from escala.envs.slots_policy import SlotPolicy
from escala.studies.published import LOADS, PAPER_OF, published_lists, published_table

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


@pytest.mark.parametrize("rule", ["sjf", "sjf-strict", "packer", "tetris", "tetris-normalised", "fcfs", "easy", "hold-back"])
def test_rules_give_the_same_schedule_in_the_event_driven_simulation(lists: JobLists, rule: str) -> None:
    ours = play(lists, rule)
    for e in range(len(lists)):
        jobs = escala.simulate(lists.workload(e), lists.platform, scheduler=SlotPolicy(rule)).jobs
        slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
        assert slowdown == pytest.approx(ours["slowdown"][e], rel=1e-12)
        assert jobs["wait_s"].max() == ours["longest_wait"][e]


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
