"""Hand-made schedules: jobs of several nodes, tasks that pack, memory, GPUs and whole nodes. Times in seconds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.hand import POWER, Engine, job

ORDERS = ["fcfs", "first-fit", "sjf", "sjf-fit", "packer", "tetris", "easy", "easy:queue=sjf", "conservative"]


def wide(job_id: str, submit_s: float, runtime_s: float, nodes: int, cores: int, **more: Any) -> dict[str, Any]:
    """A job of so many nodes."""
    return job(job_id, submit_s, runtime_s, cores, nodes=nodes, **more)


@pytest.mark.parametrize("scheduler", ORDERS)
def test_a_job_of_two_nodes_has_two(run: Engine, scheduler: str) -> None:
    """Three nodes of 4 cores. A has node 0 whole. B asks for two nodes with 2 cores each: nodes 1 and 2, though node 1
    alone has 4."""
    got = run([wide("A", 0, 10, 1, 4), wide("B", 1, 10, 2, 4)], [4, 4, 4], scheduler)
    assert got.start == {"A": 0, "B": 1}
    assert (got.nodes["A"], got.nodes["B"]) == ("0", "1-2")


@pytest.mark.parametrize("scheduler", ORDERS)
def test_free_cores_of_few_nodes_are_no_room_for_many(run: Engine, scheduler: str) -> None:
    """Two nodes of 4 cores. A has one core of node 0 until 10; B asks for 4 cores on each of two nodes: 7 are free, and
    it waits. By cores alone it would be refused, for 8 are not free; C asks for 2 and 2 and starts."""
    got = run([wide("A", 0, 10, 1, 1), wide("B", 1, 5, 2, 8), wide("C", 11, 5, 2, 4)], [4, 4], scheduler)
    assert got.start["B"] == 10 and got.start["C"] == 15
    got = run([wide("A", 0, 10, 1, 1), wide("C", 1, 5, 2, 4)], [4, 4], scheduler)
    assert got.start["C"] == 1 and got.nodes["C"] == "0-1"


def test_cores_are_dealt_out_by_whole_tasks(run: Engine) -> None:
    """Five tasks of 2 cores on two nodes: 6 and 4 cores. B needs 3 cores on one node: node 1 has 4 left, node 0 two."""
    jobs = [wide("A", 0, 10, 2, 10, tasks=5, cores_per_task=2), wide("B", 1, 5, 1, 3), wide("C", 1, 5, 1, 2)]
    got = run(jobs, [8, 8], "first-fit")
    assert got.start == {"A": 0, "B": 1, "C": 1}
    assert (got.nodes["B"], got.nodes["C"]) == ("1", "0")


def test_tasks_pack_and_are_not_cut(run: Engine) -> None:
    """Three tasks of 3 cores on nodes of 4, 7 and 4 cores: one on node 0, two on node 1. On nodes of 4 and 5 cores
    there is room for two only, though 9 cores are free."""
    packed = job("A", 0, 10, 9, tasks=3, cores_per_task=3)
    assert run([packed], [4, 7, 4], "easy").nodes["A"] == "0-1"
    assert run([{**packed, "tasks_per_node": 1}], [4, 7, 4], "easy").nodes["A"] == "0-2"
    assert run([packed], [4, 5], "easy", oversized="drop").state["A"] == "REJECTED"


def test_easy_sets_nodes_aside_and_leaves_the_others(run: Engine) -> None:
    """Three nodes of 2 cores. A has node 0 to 20, B node 1 to 10, node 2 is free. Head H (two nodes whole): at 10 on
    nodes 1 and 2. C (one core of one node, 30 s) would delay it on node 2; D (8 s) ends at 10 and may; E (two nodes,
    a core each) has only node 2 now."""
    jobs = [wide("A", 0, 20, 1, 2), wide("B", 0, 10, 1, 2), wide("H", 1, 5, 2, 4)]
    jobs += [wide("C", 2, 30, 1, 1), wide("D", 2, 8, 1, 1), wide("E", 2, 4, 2, 2)]
    got = run(jobs, [2, 2, 2], "easy")
    assert got.start == {"A": 0, "B": 0, "D": 2, "H": 10, "C": 15, "E": 15}
    assert got.nodes["H"] == "1-2"


def test_conservative_plans_every_job_on_nodes(run: Engine) -> None:
    """Three nodes of 2 cores and 2 GPUs. A has node 0 to 20, B node 1 to 10. H (two nodes whole) is planned at 10 on
    nodes 1 and 2, G (a core and 2 GPUs on each of two nodes) at 15. C (one core of one node, 15 s, no GPU) would delay
    H on node 2, and fits beside G at 15; D (8 s) ends at 10. With C of 1 GPU the first node with one to spare is node 0
    at 20, which G needs no more."""
    jobs = [wide("A", 0, 20, 1, 2), wide("B", 0, 10, 1, 2), wide("H", 1, 5, 2, 4)]
    jobs += [wide("G", 1, 5, 2, 2, gpus_per_node=2), wide("C", 2, 15, 1, 1), wide("D", 2, 8, 1, 1)]
    got = run(jobs, [2, 2, 2], "conservative", resources={"gpu": [2, 2, 2]})
    assert got.start == {"A": 0, "B": 0, "D": 2, "H": 10, "G": 15, "C": 15}
    assert (got.nodes["H"], got.nodes["G"], got.nodes["C"]) == ("1-2", "1-2", "1")
    jobs[4]["gpus_per_node"] = 1
    got = run(jobs, [2, 2, 2], "conservative", resources={"gpu": [2, 2, 2]})
    assert (got.start["C"], got.nodes["C"], got.start["G"]) == (20, "0", 15)


def test_conservative_moves_a_job_of_nodes_forward_when_another_ends_early(run: Engine) -> None:
    """Two nodes of 2 cores. A has node 0, asks for 20 s and ends at 5; H (two nodes, a core each) was planned at 20 and
    starts at 5 beside B, which has one core of node 1."""
    jobs = [wide("A", 0, 5, 1, 2, walltime_s=20), wide("B", 0, 30, 1, 1), wide("H", 1, 5, 2, 2)]
    assert run(jobs, [2, 2], "conservative").start == {"A": 0, "B": 0, "H": 5}


def test_what_a_job_of_uneven_parts_leaves_of_its_plan_is_free_once_it_starts(run: Engine) -> None:
    """Two nodes of 8 cores. H has 5 tasks of 2 cores on both, so 6 and 6 cores are planned from 10, when A ends, and 6
    and 4 are taken. B (4 cores of one node) was planned behind it, at 30, also when E has ended. Now node 1 has 4 more
    once S has ended: at 12."""
    jobs = [wide("A", 0, 10, 1, 8), wide("E", 0, 4, 1, 2), wide("H", 1, 20, 2, 10, tasks=5, cores_per_task=2)]
    jobs += [wide("B", 2, 9, 1, 4), wide("S", 3, 9, 1, 2)]
    got = run(jobs, [8, 8], "conservative")
    assert got.start["H"] == 10 and got.nodes["H"] == "0-1"
    assert got.start["B"] == 12 and got.nodes["B"] == "1"


@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def test_a_head_of_uneven_parts_starts_when_it_was_promised(run: Engine, scheduler: str) -> None:
    """Two nodes of 2 cores. A has node 0 to 10. Head H has 3 cores on two nodes, and a node has room for a part where
    it has room for the larger one, so at 10 it needs both whole. Jobs of one core and 100 s would take its second."""
    jobs = [wide("A", 0, 10, 1, 2), wide("H", 1, 10, 2, 3)]
    jobs += [wide(f"C{k}", 2 + 90 * k, 100, 1, 1) for k in range(4)]
    assert run(jobs, [2, 2], scheduler).start["H"] == 10


def test_gpus_and_memory_bind(run: Engine) -> None:
    """Nodes of 8 cores, 4 GPUs, 100 MB. A: two nodes with 3 GPUs each. B: one GPU for each of two tasks on one node:
    none has two left. C: 30 MB a core, 2 cores: 60 MB of the 40 that A's 60 leave: at 10."""
    further = {"gpu": [4, 4], "memory": [100, 100]}
    jobs = [wide("A", 0, 10, 2, 2, gpus_per_node=3, memory_mb_per_node=60)]
    jobs += [wide("B", 1, 5, 1, 2, gpus_per_task=1), wide("C", 1, 5, 1, 2, memory_mb_per_core=30)]
    jobs += [wide("D", 1, 5, 1, 1, gpus_per_node=1, memory_mb_per_core=40)]
    got = run(jobs, [8, 8], "first-fit", resources=further)
    assert got.start == {"A": 0, "B": 10, "C": 10, "D": 1}


def test_whole_nodes_are_shared_with_nobody(run: Engine) -> None:
    """A asks for one core, and for its node whole: B, of 4 cores anywhere, gets node 1 alone and C waits. A computes on
    one core of four: 100 W + 25 W."""
    jobs = [job("A", 0, 10, 1, exclusive=True), job("B", 0, 10, 4), job("C", 1, 5, 1)]
    got = run(jobs, [4, 4], "first-fit")
    assert got.start == {"A": 0, "B": 0, "C": 10}
    joules = {row["node"]: row["joules"] for row in got.power if row["state"] == "computing"}
    assert float(joules[0]) == 10 * 125 + 5 * 125 and float(joules[1]) == 10 * 200
    assert POWER["idle_w"] == 100 and POWER["computing_w"] == 200


def test_a_strict_head_wakes_as_many_nodes_as_it_lacks(run: Engine) -> None:
    """All four nodes are off. H asks for three nodes with one core each: three are woken, the fourth stays off."""
    got = run([wide("H", 5, 10, 3, 3)], [2, 2, 2, 2], "fcfs", shutdown="timeout:100", start_off=True)
    assert got.start["H"] == 25 and got.nodes["H"] == "0-2"
    assert all(state != "switching_on" for state, _, _ in got.life(3))


def test_who_passes_on_a_node_that_is_on_and_one_that_is_off(run: Engine) -> None:
    """R has node 0 from 20 to 120, node 1 is on, node 2 off. Head H asks for both cores of node 0. P asks for two
    nodes: from 31 it would end in time on node 1, and not on node 2, which is on from 51. Neither is H's, so it
    passes."""
    jobs = [wide("R", 0, 100, 1, 2), wide("Q", 0, 1, 1, 1), wide("H", 30, 10, 1, 2), wide("P", 31, 80, 2, 2)]
    got = run(jobs, [2, 1, 1], "easy", power=POWER, shutdown="timeout:1000", start_off=True)
    assert got.start == {"R": 20, "Q": 20, "H": 120, "P": 51}
    assert (got.nodes["H"], got.nodes["P"]) == ("0", "1-2")
