"""Hand-made schedules: jobs whose demands must lie on one node, with several resource kinds. Times in seconds."""

from __future__ import annotations

from typing import Any

import pytest

from escala.kernel.single import WALKED
from tests.golden.hand import Engine, job


def single(job_id: str, submit_s: float, runtime_s: float, cores: int = 1, memory: int = 0) -> dict[str, Any]:
    """A job whose cores and memory must lie on one node."""
    return job(job_id, submit_s, runtime_s, cores, single_node=True, demand_memory=memory)


@pytest.mark.parametrize("scheduler", ["fcfs", "first-fit", "sjf", "sjf-fit", "packer", "tetris", "easy"])
def test_cores_of_two_nodes_do_not_add_up(run: Engine, scheduler: str) -> None:
    """A and B leave one core on each node; C needs two on one node. A spreading job would start at 1."""
    # memory keeps A and B apart
    jobs = [single("A", 0, 10, memory=1), single("B", 0, 20, memory=4), single("C", 1, 5, 2)]
    got = run(jobs, [2, 2], scheduler, resources={"memory": [4, 4]})
    assert (got.nodes["A"], got.nodes["B"]) in (("0", "1"), ("1", "0"))
    assert got.start["C"] == 10
    spreading = [{**row, "single_node": row["job_id"] != "C", "demand_memory": row["demand_memory"]} for row in jobs]
    assert run(spreading, [2, 2], scheduler, resources={"memory": [4, 4]}).start["C"] == 1


def test_every_kind_must_fit(run: Engine) -> None:
    """Node 0 has memory 2, node 1 memory 8. A (memory 3) goes to node 1 although node 0 is lower; B (memory 6) waits
    for it."""
    got = run(
        [single("A", 0, 10, memory=3), single("B", 0, 5, memory=6)], [4, 4], "first-fit", resources={"memory": [2, 8]}
    )
    assert got.nodes == {"A": "1", "B": "1"}
    assert got.start == {"A": 0, "B": 10}


def test_packer_aligns_demand_and_free(run: Engine) -> None:
    """One node with 4 cores and memory 8. A: 3 x 4 + 1 x 8 = 20; B: 1 x 4 + 6 x 8 = 52, first; then A still fits (3
    cores, memory 2)."""
    jobs = [single("C", 0, 5, 2, 2), single("A", 0, 10, 3, 1), single("B", 0, 10, 1, 6)]
    got = run(jobs, [4], "packer", resources={"memory": [8]})
    # C: 2 x 4 + 2 x 8 = 24. After B: free 3 and 2: A 9 + 2 = 11, C 6 + 4 = 10
    assert got.start == {"B": 0, "A": 0, "C": 10}


def test_tetris_adds_demands_over_kinds(run: Engine) -> None:
    """A: 0.5 x (1 + 5) + 0.5 / 10 = 3.05; B: 0.5 x 4 + 0.5 / 0.5 = 3: A first, and B no longer fits."""
    jobs = [single("B", 0, 0.5, 1, 3), single("A", 0, 10, 1, 5)]
    assert run(jobs, [4], "tetris", resources={"memory": [7]}).start == {"A": 0, "B": 10}


def test_easy_reserves_on_the_node_of_the_earliest_fit(run: Engine) -> None:
    """Two nodes of two cores. A (two cores) on node 0 to 20, B (one) on node 1 to 10. Head H (two cores): node 1 at 10.
    C (one core, 30 s) must not take node 1's core before; D (one core, 8 s) ends at 10 and may."""
    jobs = [single("A", 0, 20, 2), single("B", 0, 10), single("H", 1, 5, 2), single("C", 2, 30), single("D", 2, 8)]
    got = run(jobs, [2, 2], "easy", resources={"memory": [1, 1]})
    assert got.start == {"A": 0, "B": 0, "D": 2, "H": 10, "C": 15}
    assert (got.nodes["H"], got.nodes["D"]) == ("1", "1")


def test_easy_leaves_the_reservation_intact(run: Engine) -> None:
    """One node of four cores, memory 8. A (two cores, memory 6) to 10; head H (one core, memory 4) at 10: two cores and
    memory 4 are over then.
    C (one core, memory 2, long) leaves it intact and takes the last memory; E (memory 1) must wait."""
    jobs = [single("A", 0, 10, 2, 6), single("H", 1, 5, 1, 4), single("C", 2, 50, 1, 2), single("E", 3, 50, 1, 1)]
    got = run(jobs, [4], "easy", resources={"memory": [8]})
    assert got.start == {"A": 0, "H": 10, "C": 2, "E": 10}


def test_strict_wakes_a_node_that_can_hold_the_head(run: Engine) -> None:
    """Node 0 (one core) is too small for A (two cores): node 1 is woken, at 10, and A starts at 30."""
    got = run([single("A", 10, 5, 2)], [1, 2], "fcfs", resources={"memory": [1, 1]}, start_off=True)
    assert got.start == {"A": 30}
    assert got.life(0) == [("off", 10, 35)]


def test_single_node_jobs_take_nodes_that_are_on_first(run: Engine) -> None:
    """Node 0 goes off at 0 (it is idle), A keeps node 1 on: B goes there although node 0 is lower."""
    jobs = [single("A", 0, 50, 1, 3), single("B", 10, 5, 1, 1)]
    got = run(jobs, [2, 2], "easy", resources={"memory": [2, 4]}, shutdown="timeout:0")
    assert got.nodes == {"A": "1", "B": "1"}
    assert got.start["B"] == 10


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_the_lowest_node_that_can_just_hold_the_first_job_is_woken(run: Engine, scheduler: str) -> None:
    """All off at 0. A needs two cores and memory 4: node 0 has too little memory, node 1 just enough, node 2 more. 20 s
    to switch on."""
    got = run(
        [single("A", 0, 10, 2, 4)],
        [2, 2, 4],
        scheduler,
        resources={"memory": [3, 4, 8]},
        start_off=True,
        shutdown="timeout:0",
    )
    assert got.life(1) == [("switching_on", 0, 20), ("computing", 20, 30)]
    assert got.life(0) == got.life(2) == [("off", 0, 30)]


def test_those_who_pass_the_head_in_one_decision_share_what_it_leaves(run: Engine) -> None:
    """One node of four cores. A (two) to 100; head H (three) at 100, which leaves one core beside it. B and C (one
    each, 500 s) come together: B takes that core, C waits for H's end."""
    jobs = [single("A", 0, 100, 2), single("H", 1, 50, 3), single("B", 2, 500), single("C", 2, 500)]
    assert run(jobs, [4], "easy").start == {"A": 0, "B": 2, "H": 100, "C": 150}


def test_what_a_head_left_on_its_node_is_not_kept_for_the_next(run: Engine) -> None:
    """Two nodes of 4 cores, heads by count alone. S (all of one node, to 20) is promised node 0 and has it from 10 to
    12, when it ends early. Then P is the head: 6 cores at 40, which leaves 2 of 8. Z (2 cores of one node, 100 s) takes
    those on node 0, of which S left none. So many wait behind that Z is found in the search tree."""
    jobs = [job(name, 0, length, 4, single_node=True) for name, length in (("X", 10), ("Y", 40))]
    jobs += [job("S", 1, 2, 4, walltime_s=10, single_node=True), job("P", 1, 5, 6)]
    jobs += [job("Z", 1, 100, 2, single_node=True), *(job(f"w{k}", 1, 1, 8) for k in range(WALKED))]
    got = run(jobs, [4, 4], "easy", head="latest-released")
    assert {name: got.start[name] for name in "XYSPZ"} == {"X": 0, "Y": 0, "S": 10, "P": 40, "Z": 12}
    assert got.nodes["Z"] == "0"
