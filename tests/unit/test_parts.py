"""What jobs are made of: parts of nodes and of tasks, what they demand, and which fit no platform."""

from __future__ import annotations

from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.parts import Parts, parts_of
from escala.platform import Platform

CELL = Platform.uniform(4, 8, power=None, resources={"memory": 100, "gpu": 4, "gpu:a": 4})
TIMES = {"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 10.0}


def made(platform: Platform = CELL, **job: Any) -> Parts:
    found = parts_of(escala.Workload.from_jobs([{**TIMES, **job}]), platform)
    assert found is not None
    return found


ASKED: dict[str, tuple[dict[str, Any], tuple[int, int, int, int, int]]] = {
    # parts, most on a node, cores of a large part, of the others, how many are large
    "cores of any nodes": ({"cores": 6, "tasks": 6}, (0, 1, 6, 6, 0)),
    "nodes": ({"cores": 6, "nodes": 3}, (3, 1, 2, 2, 3)),
    "cores that do not go into nodes": ({"cores": 7, "nodes": 3}, (3, 1, 3, 2, 1)),
    "whole tasks": ({"cores": 10, "nodes": 2, "tasks": 5, "cores_per_task": 2}, (2, 1, 6, 4, 1)),
    "fewer cores than nodes": ({"cores": 1, "nodes": 2}, (2, 1, 1, 1, 2)),
    "tasks that pack": ({"cores": 9, "tasks": 3, "cores_per_task": 3}, (3, 3, 3, 3, 3)),
    "tasks, one on a node": ({"cores": 3, "tasks_per_node": 1}, (3, 1, 1, 1, 3)),
    "half a task is a whole one": ({"cores": 5, "cores_per_task": 2}, (3, 3, 2, 2, 3)),
    "memory of each node: the fewest nodes": ({"cores": 9, "memory_mb_per_node": 50}, (2, 1, 5, 4, 1)),
    "GPUs of each node and task": ({"cores": 6, "gpus_per_task": 2}, (6, 6, 1, 1, 6)),
    "more tasks on a node than there are": ({"cores": 6, "tasks": 6, "tasks_per_node": 1 << 40}, (6, 6, 1, 1, 6)),
    "a whole node": ({"cores": 1, "exclusive": True}, (1, 1, 8, 8, 1)),
    "whole nodes": ({"cores": 9, "exclusive": True}, (2, 1, 8, 8, 2)),
    "one node": ({"cores": 3, "single_node": True, "demand_gpu": 2, "nodes": None}, (1, 1, 3, 3, 1)),
}


@pytest.mark.parametrize("what", ASKED)
def test_parts(what: str) -> None:
    job, expected = ASKED[what]
    found = parts_of(escala.Workload.from_jobs([{**TIMES, "gpu_kind": None, **job}]), CELL)
    if expected[0] == 0 and found is None:
        found = made(**job)
    assert found is not None
    names = ("parts", "most", "share", "less", "large")
    assert tuple(int(getattr(found, name)[0]) for name in names) == expected


@pytest.mark.parametrize(
    ("job", "demands"),
    [
        ({"cores": 6, "nodes": 3, "memory_mb_per_core": 10}, {"memory": 20}),
        ({"cores": 5, "nodes": 2, "memory_mb_per_core": 10}, {"memory": 30}),  # as the larger part needs
        ({"cores": 6, "nodes": 2, "tasks": 3, "cores_per_task": 2, "gpus_per_task": 1}, {"gpu": 2}),
        ({"cores": 2, "nodes": 2, "gpus_per_node": 3, "gpu_kind": "a"}, {"gpu": 3, "gpu:a": 3}),
        ({"cores": 4, "tasks": 2, "cores_per_task": 2, "memory_mb_per_core": 7}, {"memory": 14}),
    ],
)
def test_demands_of_each_part(job: dict[str, Any], demands: dict[str, int]) -> None:
    assert {kind: int(values[0]) for kind, values in made(**job).demands.items()} == demands


def test_what_a_platform_does_not_count_is_not_demanded() -> None:
    plain = Platform.uniform(2, 8, power=None)
    found = made(plain, cores=2, nodes=2, gpus_per_node=3, memory_mb_per_node=5)
    assert found.demands == {} and not found.too_large(plain).any()


@pytest.mark.parametrize(
    ("job", "needs"),
    [
        ({"cores": 40, "nodes": 4}, "4 nodes with 10 cores each"),
        ({"cores": 5, "nodes": 5}, "5 nodes with 1 core each"),
        ({"cores": 2, "nodes": 2, "gpus_per_node": 5}, "2 nodes with 1 core, 5 GPUs each"),
        (
            {"cores": 1, "nodes": 1, "gpus_per_node": 1, "gpu_kind": "b"},
            "GPUs of kind 'b', and platform '4x8' has a: name a kind that some node has,",
        ),
        ({"cores": 25, "tasks": 5, "cores_per_task": 5}, r"5 tasks \(at most 5 on a node\) with 5 cores each"),
        ({"cores": 9, "nodes": 1, "exclusive": True}, "1 node with 9 cores"),
    ],
)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "sjf-fit", "conservative"])
def test_a_job_that_fits_no_nodes_is_refused_in_one_line(job: dict[str, Any], needs: str, scheduler: str) -> None:
    log = escala.Workload.from_jobs([{**TIMES, **job}, {**TIMES, "cores": 1}])
    line = f"^job '1' .*needs {needs}[^\n]*drop"
    with pytest.raises(EscalaError, match=line):
        escala.simulate(log, CELL, scheduler)
    assert escala.simulate(log, CELL, scheduler, oversized="drop").jobs["state"].to_list() == ["REJECTED", "KILLED"]


@pytest.mark.parametrize("scheduler", ["first-fit", "easy", "easy-fast", "conservative"])
def test_room_is_a_question_to_nodes_not_to_their_sum(scheduler: str) -> None:
    """Two nodes of 8 cores, one core taken: 8 + 7 cores do not fit on two nodes, 15 cores anywhere do."""
    log = escala.Workload.from_jobs([{**TIMES, "cores": 1}, {**TIMES, "cores": 15, "nodes": 2}, {**TIMES, "cores": 9}])
    assert escala.simulate(log, "2x8", scheduler).jobs["start_s"].to_list() == [0.0, 10.0, 0.0]
    anywhere = log.with_jobs(log.jobs.drop("nodes"))
    assert escala.simulate(anywhere, "2x8", scheduler).jobs["start_s"].to_list() == [0.0, 0.0, 10.0]


def test_a_run_tells_what_its_jobs_asked_of_nodes() -> None:
    """Else another log would pass for that of the run, and a campaign would keep its results for it."""
    rows = [{**TIMES, "cores": 4, "nodes": 2}]
    log, other = (escala.Workload.from_jobs([{**row, "nodes": n} for row in rows]) for n in (2, 1))
    assert log.digest() == other.digest()
    told = [escala.simulate(one, CELL).manifest["columns"] for one in (log, other)]
    assert told[0]["nodes"] != told[1]["nodes"]


def test_a_bound_holds_for_jobs_of_nodes_and_its_schedule_is_one_of_a_pool() -> None:
    """Two nodes of 4 cores; jobs of 3 and 3 cores and jobs of 1 and 1: by cores a large one and a small one fit beside
    each other, and so they do on nodes; two jobs of 2 cores on one node and a large one do not."""
    rows = [{**TIMES, "submit_s": float(k), "cores": 6 if k % 2 else 2, "nodes": 2 if k % 2 else 1} for k in range(6)]
    log = escala.Workload.from_jobs(rows)
    found = escala.bound(log, "2x4", "wait", policies=("easy",))
    by_nodes = escala.simulate(log, "2x4").summary()["mean_wait_s"]
    assert found.policies["easy"] == pytest.approx(by_nodes) and found.lower is not None
    assert found.lower < by_nodes and found.found is not None and found.lower <= found.found


def test_the_best_schedule_of_a_pool_counts_where_nodes_can_carry_it_out() -> None:
    """Two nodes of 4 cores. A long job on both and short ones on one each: the short ones first, as on a pool. With
    3 cores each, two short jobs of one node and a third of two cores need a node more than there is."""
    times = {"submit_s": 0.0}
    long_, short = ({**times, "runtime_s": s, "walltime_s": s} for s in (100.0, 10.0))
    log = escala.Workload.from_jobs([{**long_, "cores": 8, "nodes": 2}, *[{**short, "cores": 4, "nodes": 1}] * 2])
    found = escala.bound(log, "2x4", "wait", policies=("easy",), limit_s=5.0)
    assert (found.found_by, found.found) == ("search", pytest.approx(10.0 / 3))
    apart = escala.Workload.from_jobs([*[{**short, "cores": 3, "nodes": 1}] * 2, {**short, "cores": 2, "nodes": 1}])
    found = escala.bound(apart, "2x4", "wait", policies=("easy",), limit_s=5.0)
    assert found.lower == 0.0 and found.found_by != "search" and found.found == pytest.approx(10.0 / 3)


@pytest.mark.parametrize("name", ["memory_mb_per_core", "memory_mb_per_node"])
def test_more_memory_than_64_bits_hold_fits_nowhere(name: str) -> None:
    job = {**TIMES, "cores": 16, "nodes": 2, name: 1 << 60}
    with pytest.raises(EscalaError, match="MB of memory each, which platform '4x8' does not have: use a larger"):
        escala.simulate(escala.Workload.from_jobs([job]), CELL, scheduler="easy")
