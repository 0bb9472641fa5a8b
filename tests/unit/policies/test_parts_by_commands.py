"""Policies of commands and easy-fast see and place what jobs ask of nodes; who plans cores alone refuses it."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

import escala
from escala.envs.slots.policy import SlotPolicy
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload
from tests.oracle.engines import run_kernel
from tests.oracle.worlds import ASKED, draw

CELL = Platform.uniform(3, 4, power=None, resources={"memory": 100, "gpu": 2})
BARE, NAMES = CELL.profiles, ("n0", "n1", "n2")
TIMES = {"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 10.0}


def log(*jobs: dict[str, Any]) -> Workload:
    return Workload.from_jobs([{**TIMES, "single_node": False, **job} for job in jobs])


def test_a_view_shows_what_jobs_ask_of_nodes() -> None:
    seen: dict[str, Any] = {}

    def look(view: escala.View, act: escala.Commands) -> None:
        if not seen:
            for job in view.queue:
                asked = job.parts, job.part_cores, job.parts_per_node, job.demand, job.single_node
                seen[str(job.row)] = asked, view.room_for(job).tolist()
            act.start(0)
            seen["free"] = view.kinds, view.free_cores.tolist(), view.free_kinds.tolist()
            seen["room"] = [view.room_for(job).tolist() for job in view.queue]
        for job in view.queue:
            act.start(job)

    jobs = log(
        {"cores": 5, "nodes": 2, "memory_mb_per_core": 20},
        {"cores": 3, "tasks": 3, "gpus_per_task": 1},
        {"cores": 4, "single_node": True},
        {"cores": 4},
    )
    result = escala.simulate(jobs, CELL, look)
    assert seen["0"] == ((2, 3, 1, (60, 0), False), [1, 1, 1])
    assert seen["1"] == ((3, 1, 3, (0, 1), False), [2, 2, 2])
    assert seen["2"] == ((1, 4, 1, (0, 0), True), [1, 1, 1])
    assert seen["3"] == ((0, 0, 0, (0, 0), False), [4, 4, 4])
    assert seen["free"] == (("memory", "gpu"), [1, 2, 4], [[40, 2], [40, 2], [100, 2]])
    assert seen["room"] == [[1, 2, 2], [0, 0, 1], [1, 2, 4]]
    assert result.jobs["nodes"].to_list() == ["0-1", "0-1", "2", "0"]
    assert result.jobs["start_s"].to_list() == [0.0, 0.0, 0.0, 10.0]


def test_a_view_shows_who_has_a_node_of_any_size_to_itself() -> None:
    """Nodes of 8, 4 and 4 cores, the last with a core taken. Two jobs ask for whole nodes, and one for any three cores;
    what the first has to itself is nobody's, though it uses one core of it."""
    seen: list[Any] = []

    def look(view: escala.View, act: escala.Commands) -> None:
        first, *others = view.queue
        if len(view.running) == 1 and len(others) == 2:
            asked = [(job.parts, job.part_cores, job.demand, job.exclusive) for job in view.queue]
            seen.append((asked, [view.room_for(job).tolist() for job in view.queue]))
            assert not act.start_on(others[1], 1) and act.refusal == "the job does not fit now"  # as of any such job
            assert act.start_on(first, 0)
            seen.append((view.free_cores.tolist(), view.free_now, view.free_any, view.free_kinds.tolist()))
            seen.append([view.room_for(job).tolist() for job in view.queue])
            with pytest.raises(EscalaError, match=r"node 0 has no cores for job 3 now: name nodes with free cores"):
                act.start_on(others[1], [0, 1])
        for job in view.queue:
            act.start(job)

    unlike = Platform("unlike", [8, 4, 4], BARE, [0, 0, 0], resources={"memory": [9, 9, 9]}, names=NAMES)  # type: ignore[arg-type]
    jobs = log(
        {"cores": 1, "required_nodes": "n2"},
        {"cores": 1, "submit_s": 1.0, "exclusive": True},
        {"cores": 5, "submit_s": 1.0, "nodes": 2, "exclusive": True},
        {"cores": 3, "submit_s": 1.0},
    )
    result = escala.simulate(jobs, unlike, look)
    asked, room = seen[0]
    assert asked == [(1, 1, (0,), True), (2, 3, (0,), True), (0, 0, (0,), False)]
    assert room == [[1, 1, 0], [1, 1, 0], [3, 3, 3]]
    assert seen[1:] == [([0, 4, 3], 7, 7, [[9], [9], [9]]), [[0, 1, 0], [0, 3, 3]]]
    assert result.jobs["nodes"].to_list() == ["2", "0", "0-1", "1"]
    assert result.jobs["start_s"].to_list() == [0.0, 1.0, 11.0, 1.0]


def test_a_job_of_parts_is_started_on_the_nodes_named() -> None:
    """Its large part lies on the first of them; tasks that pack fill a node before the next one."""
    seen: dict[int, Any] = {}

    def named(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            assert act.start_on(job, {0: [2, 0], 1: [1, 2], 2: 1, 3: [0]}[job.row])
        seen.update({job.row: job.nodes for job in view.running})

    jobs = log(
        {"cores": 5, "nodes": 2},
        {"cores": 3, "tasks": 3, "gpus_per_task": 1},
        {"cores": 2, "tasks": 2, "cores_per_task": 1, "tasks_per_node": 2},
        {"cores": 2, "single_node": True},
    )
    escala.simulate(jobs, CELL, named)
    assert seen == {0: ((2, 2, 3), (0, 0, 2)), 1: ((1, 1, 2), (2, 2, 1)), 2: ((1, 1, 2),), 3: ((0, 0, 2),)}


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([1, 2], "node 2 has no room for job 1 now: name nodes with room (View.room_for)"),
        ([1], "the nodes named have room for 1 part, and job 1 needs 2 parts: name more"),
        ([0, 1, 2], "job 1 has all of its 2 parts from the first 2 of the nodes named: name no more"),
        ([0, 0], "node 0 is named twice: name each node once"),
    ],
)
def test_nodes_without_room_for_the_parts_are_one_line(nodes: list[int], words: str) -> None:
    def named(view: escala.View, act: escala.Commands) -> None:
        assert act.start_on(0, [2])
        act.start_on(1, nodes)

    jobs = log({"cores": 3, "nodes": 1}, {"cores": 4, "nodes": 2})
    with pytest.raises(EscalaError) as caught:
        escala.simulate(jobs, CELL, named)
    assert str(caught.value) == f"start_on: {words}"


def test_a_list_of_nodes_takes_time_in_proportion() -> None:
    """Processor time: eight times the nodes took 64 times as long."""

    def start_s(nodes: int) -> float:
        took = []

        def named(view: escala.View, act: escala.Commands) -> None:
            began = time.process_time()
            assert act.start_on(0, list(range(nodes)))
            took.append(time.process_time() - began)

        for _ in range(3):
            escala.simulate(log({"cores": nodes}), f"{nodes}x1", named)
        return min(took)

    assert start_s(32_000) < 24 * start_s(4_000)


def test_a_job_that_fits_by_cores_alone_is_refused_to_a_policy() -> None:
    """Two nodes of 4 cores with one taken on each: 6 cores are free, and none has room for a whole job of 4."""
    replies = []

    def eager(view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            replies.append((view.now_s, job.row, act.start(job), act.refusal))
            act.start_on(job, 0)

    starts = escala.simulate(log({"cores": 2, "nodes": 2}, {"cores": 4, "nodes": 1}), "2x4", eager).jobs["start_s"]
    assert starts.to_list() == [0.0, 10.0]
    assert replies[1] == (0.0, 1, False, "the job does not fit now")


class Naming:
    """first-fit, which names the nodes itself by what a View shows."""

    def decide(self, view: escala.View, act: escala.Commands) -> None:
        for job in view.queue:
            states, room = view.node_states, view.room_for(job)
            order = [n for state in ("on", "switching_on", "off") for n in range(len(room)) if states[n] == state]
            left, nodes = job.parts or job.cores, list[int]()
            for n in order:
                if left > 0 and room[n] > 0:
                    left -= room[n]
                    nodes.append(n)
            if left <= 0:
                assert act.start_on(job, nodes), act.refusal


def test_first_fit_by_names_of_nodes_is_first_fit() -> None:
    """On random worlds of jobs that go by nodes: the same starts, on the same nodes with as many cores."""
    found = 0
    for number in range(300):
        case = draw(random.Random(f"named/{number}"), ("first-fit",), 12, 0.0, True)
        shaped = any(job.get(name) is not None for job in case.jobs for name in ASKED)
        if not shaped or case.options["shutdown"].startswith(("hold", "off-reservation")):
            continue
        found += 1
        own, named = ({**case.options, "scheduler": which} for which in ("first-fit", Naming()))
        for options in (own, named):
            options.pop("calls_s", None)
        case.options = own
        expected = run_kernel(case)
        case.options = named
        got = run_kernel(case)
        assert got.jobs.equals(expected.jobs), case.program()
        assert got.allocations.sort("job_id", "node").equals(expected.allocations.sort("job_id", "node"))
    assert found > 20


def test_easy_fast_promises_its_head_a_time_at_which_nodes_have_room() -> None:
    """Two nodes of 4 cores: X has one core of node 0 to 5, A the others to 30, B 3 cores of node 1 to 20. Head C, of 2
    cores on one node, is promised 20; by count it would be 5. So D, of 10 s, may pass, and E, of 19 s, may not."""
    rows = [("X", 0.0, 5.0, 1), ("A", 0.0, 30.0, 3), ("B", 0.0, 20.0, 3), ("C", 1.0, 5.0, 2), ("D", 2.0, 10.0, 1)]
    rows.append(("E", 2.0, 19.0, 1))
    names = ("job_id", "submit_s", "runtime_s", "cores")
    jobs = [dict(zip(names, row, strict=True)) | {"walltime_s": row[2], "nodes": 1} for row in rows]
    starts = dict(escala.simulate(Workload.from_jobs(jobs), "2x4", "easy-fast").jobs.select("job_id", "start_s").rows())
    assert starts == {"X": 0.0, "A": 0.0, "B": 0.0, "C": 20.0, "D": 2.0, "E": 20.0}


@pytest.mark.parametrize("asked", [{"nodes": 2}, {"nodes": 1}, {"single_node": True}, {"exclusive": True}])
def test_rollout_refuses_jobs_that_go_by_nodes(asked: dict[str, Any]) -> None:
    line = r"rollout:2 plans cores of any nodes; [^\n]* \(job 1\): take easy or sjf-fit, or leave out"
    with pytest.raises(EscalaError, match=line):
        escala.simulate(log({"cores": 1}, {"cores": 2, **asked}), "2x4", "rollout:2")


def test_slots_refuse_jobs_of_several_parts() -> None:
    jobs = log({"cores": 1}, {"cores": 4, "nodes": 2, "memory_mb_per_node": 30})
    machine = Platform.uniform(1, 8, power=None, resources={"memory": 100})
    line = r"sjf gives each job one place, and job 1 asks for [^\n]*: take easy or sjf-fit, or leave out"
    packed = log({"cores": 1}, {"cores": 4, "tasks": 4, "memory_mb_per_core": 5})
    with pytest.raises(EscalaError, match=line):
        escala.simulate(packed, machine, SlotPolicy("sjf"))
    with pytest.raises(EscalaError, match=r"job '2' .*needs 2 nodes"):
        escala.simulate(jobs, machine, SlotPolicy("sjf"))
    one = log({"cores": 1}, {"cores": 4, "nodes": 1, "memory_mb_per_node": 30})
    assert escala.simulate(one, machine, SlotPolicy("sjf")).jobs["start_s"].to_list() == [0.0, 0.0]


@pytest.mark.parametrize("env", ["Scheduling-v0", "OffReservation-v0", "Slots-v0"])
def test_environments_refuse_jobs_of_nodes_and_name_the_columns(env: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    jobs = log({"cores": 2, "nodes": 2}, {"cores": 1})
    with pytest.raises(EscalaError, match=r"^workload [^\n]*: leave out nodes"):
        gymnasium.make(f"escala/{env}", workload=[jobs], platform="4x1:grid5000")
