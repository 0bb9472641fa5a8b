"""Desks take jobs that ask for nodes, tasks, memory, GPUs, whole nodes, features and nodes by name: what they order is
what the run inside the kernel does."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import pytest

import escala
from escala.envs.slots.policy import SlotPolicy
from escala.live import Desk, Snapshot
from escala.live.parts import Lying
from tests.live import fuzz
from tests.live.machine import Crowded
from tests.live.twin import differences, shaped_case, whole_case

BARE = escala.Platform.uniform(3, 4, power=None, resources={"memory": 100, "gpu": 2})
FEATURES = (("x",), ("y",), ())
CELL = escala.Site(
    "cell", BARE.cores, BARE.profiles, BARE.profile_of, BARE.resources, ("n0", "n1", "n2"), features=FEATURES
)
JOBS = 50


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize(
    "scheduler",
    [
        "fcfs",
        "easy",
        "easy-fast",
        "conservative",
        "easy:queue=wfp3:guard=9",
        "conservative:queue=sjf",
        "packer",
        "easy++",
    ],
)
def test_named_schedulers(scheduler: str, number: int) -> None:
    for shutdown in ("never", "timeout:3"):
        assert differences(shaped_case(scheduler, shutdown, number, JOBS)) == []


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "easy-fast", "conservative", "packer", "tetris", "easy++"])
def test_nodes_of_several_sizes_that_jobs_have_to_themselves(scheduler: str) -> None:
    for number in range(3):
        assert differences(whole_case(scheduler, "timeout:3", number, JOBS)) == []


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "easy-fast", "conservative", "easy:queue=wfp3:guard=9"])
def test_a_job_divided_by_nodes_is_the_job(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those are that hold other shares on each of their nodes: here all that hold some."""
    monkeypatch.setattr(Lying, "uneven", property(lambda self: self._who))
    for number in range(3):
        assert differences(shaped_case(scheduler, "timeout:3", number, JOBS)) == []


def test_random_worlds() -> None:
    asked, found = fuzz.check(seed=3, first=0, worlds=350, shaped=True)
    assert not found and asked > 30


def test_jobs_that_fit_nowhere_are_as_if_they_were_not_there() -> None:
    assert differences(shaped_case("easy", "timeout:3", 2, JOBS), kind=Crowded) == []


class Naming:
    """Starts jobs on the last nodes that have room for them."""

    name = "naming"

    def decide(self, view: Any, act: Any) -> None:
        for job in view.queue:
            room, left, nodes = view.room_for(job), job.parts or job.cores, list[int]()
            for n in reversed(range(len(room))):
                if left > 0 and room[n] > 0:
                    left -= room[n]
                    nodes.append(n)
            if left <= 0:
                assert act.start_on(job, nodes), act.refusal


@pytest.mark.parametrize("number", range(3))
def test_objects_that_name_nodes(number: int) -> None:
    case = shaped_case("easy", "never", number, JOBS)
    case.options["scheduler"] = Naming()
    assert differences(case, scheduler=Naming) == []


def _snapshot(now_s: float = 10.0, placed: Any = None, gone: Any = None, **jobs: Any) -> Snapshot:
    """Jobs 1, 2, ... of a core and a minute; those with a start run."""
    n = len(next(iter(jobs.values())))
    starts = jobs.get("start_s", [None] * n)
    told = {
        "job_id": [str(k + 1) for k in range(n)],
        "submit_s": [1.0 + k for k in range(n)],
        "walltime_s": [60.0] * n,
        "cores": [1] * n,
        "state": ["queued" if start is None else "running" for start in starts],
    }
    nodes = {"power": ["on"] * 3} | ({"gone": gone} if gone else {})
    return Snapshot.from_json(Snapshot.of(now_s, told | jobs, nodes, placed).to_json())


def _starts(snapshot: Snapshot, scheduler: str = "easy") -> dict[str, Any]:
    return {one.job_id: one.nodes for one in Desk(CELL, scheduler).decide(snapshot).starts}


def _lying(cores: list[int], **more: Any) -> dict[str, Any]:
    """Job 1 has so many cores of nodes 0, 1, ..."""
    nodes = list(range(len(cores)))
    return {"job": [0] * len(cores), "first": nodes, "last": nodes, "cores": cores, **more}


def test_what_jobs_ask_and_get_by_hand() -> None:
    """Two nodes with 60 MB each, of which neither has feature x; a task of three has a GPU; a whole node is left."""
    orders = Desk(CELL).decide(
        _snapshot(
            cores=[3, 3, 1],
            nodes=[2, None, None],
            memory_mb_per_core=[30, None, None],
            excluded_nodes=["n0", None, None],
            tasks=[None, 3, None],
            gpus_per_task=[None, 1, None],
            features=[None, "x|y", None],
            exclusive=[None, None, True],
        )
    )
    assert [(one.job_id, one.nodes, one.held) for one in orders.starts] == [
        ("1", ((1, 1, 2), (2, 2, 1)), (("memory_mb", (60, 60)),)),
        ("2", ((0, 0, 2), (1, 1, 1)), (("gpu", (2, 1)),)),
    ]
    assert escala.live.Orders.read(orders.told()) == orders


def test_running_jobs_count_where_they_lie() -> None:
    """Slurm dealt five cores 4 + 1, with 20 MB a core: 20 MB of node 0 are left, and 80 of node 1. They come back
    together."""
    lies = _lying([4, 1], memory_mb=[80, 20])
    asked = {"cores": [5, 1, 1], "nodes": [2, None, None], "start_s": [5.0, None, None]}
    wanting = _snapshot(**asked, memory_mb_per_node=[None, 85, 100], required_nodes=[None, "n1", "n0"], placed=lies)
    assert _starts(wanting) == {}
    assert [(one.job_id, one.start_s) for one in Desk(CELL).plan(wanting)] == [("2", 65.0), ("3", 65.0)]
    content = _snapshot(**asked, memory_mb_per_node=[None, 80, 100], required_nodes=[None, "n1", "n2"], placed=lies)
    assert _starts(content) == {"2": ((1, 1, 1),), "3": ((2, 2, 1),)}


def test_jobs_hold_of_nodes_what_they_hold() -> None:
    """As much on none as on another, neither a node nor a core; all of it comes back at once."""
    lies = _lying([2, 1, 1], memory_mb=[10, 50, 90], gpu=[1, 1, 0])
    asked = {"cores": [4, *[1] * 4], "start_s": [5.0, *[None] * 4], "memory_mb_per_node": [None, 91, 51, 11, 100]}
    named = {"required_nodes": [None, "n0", "n1", "n2", "n0"], "user": ["a", *"bcde"]}
    snapshot = _snapshot(**asked, **named, placed=lies)
    assert _starts(snapshot) == {}
    planned = Desk(CELL).plan(snapshot)
    assert [(one.job_id, one.start_s) for one in planned] == [("2", 65.0), ("3", 65.0), ("4", 65.0), ("5", 125.0)]
    asked["memory_mb_per_node"] = [None, 90, 50, 10, 100]
    snapshot = _snapshot(**asked, **named, placed=lies)
    for scheduler in ("easy", "easy-fast", "fcfs", "easy++", "packer"):
        assert _starts(snapshot, scheduler) == {"2": ((0, 0, 1),), "3": ((1, 1, 1),), "4": ((2, 2, 1),)}


def test_what_is_held_is_reckoned_where_nobody_tells() -> None:
    """By the largest part, as inside the kernel: 40 MB on each node; of a job that lies otherwise than it asks, too."""
    for cores in ([2, 1], [1, 2], [3]):
        told = _snapshot(
            cores=[3, 1],
            nodes=[2, 1],
            memory_mb_per_core=[20, None],
            memory_mb_per_node=[None, 60],
            required_nodes=[None, "n0"],
            start_s=[5.0, None],
            placed=_lying(cores),
        )
        assert _starts(told) == {"2": ((0, 0, 1),)}
        more = told.columns()
        more["jobs"]["memory_mb_per_node"][1] = 61
        assert _starts(Snapshot.of(10.0, more["jobs"], more["nodes"], more["placed"])) == {}


def test_gpus_of_a_kind_are_of_all_kinds_too() -> None:
    machine = escala.Platform.uniform(3, 4, power=None, resources={"gpu": 2, "gpu:a": 1, "gpu:b": 1})
    placed = _lying([1, 1], **{"gpu:a": [1, 1]})
    told = {"cores": [2, 1, 1], "start_s": [5.0, None, None], "gpus_per_node": [None, 1, 1]}
    orders = Desk(machine).decide(_snapshot(**told, gpu_kind=[None, "a", "b"], placed=placed))
    assert [(one.job_id, one.nodes, one.held) for one in orders.starts] == [
        ("2", ((2, 2, 1),), (("gpu:a", (1,)),)),
        ("3", ((0, 0, 1),), (("gpu:b", (1,)),)),
    ]


def test_what_is_told_counts_though_a_job_asked_for_more() -> None:
    """A GPU that it gave back, and memory of which a column says that there is none."""
    asked = {"cores": [1, 1], "gpus_per_node": [2, 2], "memory_mb_per_node": [60, 60], "start_s": [5.0, None]}
    assert _starts(_snapshot(**asked, placed=_lying([1]))) == {"2": ((1, 1, 1),)}
    assert _starts(_snapshot(**asked, placed=_lying([1], gpu=[0]))) == {"2": ((1, 1, 1),)}
    assert _starts(_snapshot(**asked, placed=_lying([1], gpu=[0], memory_mb=[40]))) == {"2": ((0, 0, 1),)}


@pytest.mark.parametrize("cores", [1, 4])
def test_a_whole_node_may_be_told_as_asked_or_as_held(cores: int) -> None:
    told = _snapshot(cores=[cores, 4, 4], exclusive=[True, None, None], start_s=[5.0, None, None], placed=_lying([4]))
    assert _starts(told) == {"2": ((1, 1, 4),), "3": ((2, 2, 4),)}


def test_tetris_goes_by_resources_whatever_kinds_are_told_of_running_jobs() -> None:
    """Nodes of 4, 4 and 8 cores, of which the last is free: the job of 5 cores stands before a whole one of 3."""
    unlike = escala.Platform("unlike", [4, 4, 8], BARE.profiles, [0, 0, 0], resources={"memory": [100] * 3})  # type: ignore[arg-type]
    asked = {"cores": [8, 3, 5], "exclusive": [None, True, None], "start_s": [5.0, None, None]}
    for told in ({}, {"memory_mb": [10, 10]}):
        snapshot = _snapshot(**asked, placed=_lying([4, 4], **told))
        assert [one.job_id for one in Desk(unlike, "tetris").decide(snapshot).starts] == ["3"]


def test_nodes_that_are_gone_take_what_jobs_hold_with_them() -> None:
    placed = _lying([4, 4], memory_mb=[70, 70])
    told = {"cores": [2, 1], "nodes": [2, 1], "exclusive": [True, None], "memory_mb_per_node": [70, 90]}
    gone = _snapshot(**told, start_s=[5.0, None], placed=placed, gone=[True, False, True])
    assert _starts(gone) == {}
    assert [(one.job_id, one.start_s) for one in Desk(CELL).plan(gone)] == [("2", 65.0)]


def test_sets_of_nodes_are_forgotten_with_the_snapshot() -> None:
    desk = Desk(CELL, "fcfs")
    assert desk.decide(_snapshot(required_nodes=["n1"])).starts[0].nodes == ((1, 1, 1),)
    assert desk.decide(_snapshot(11.0, cores=[1])).starts[0].nodes == ((0, 0, 1),)
    many = _snapshot(12.0, excluded_nodes=["n0", "n1", "n2", "n[0-1]", "n[1-2]"])
    assert [one.nodes[0][0] for one in desk.decide(many).starts] == [1, 0, 0, 2, 0]


def test_jobs_that_could_never_run_are_refused_with_the_reason() -> None:
    told = _snapshot(
        cores=[1, 9, 2, 1],
        nodes=[None, 3, 2, None],
        memory_mb_per_node=[101, None, None, None],
        features=["x", None, "x", "z"],
    )
    orders = Desk(CELL, "fcfs").decide(told)
    assert [(one.job_id, one.nodes) for one in orders.starts] == [("2", ((0, 2, 3),))]
    assert [one.why for one in orders.refused] == [
        "it needs 1 node with 1 core, 101 MB of memory, which platform 'cell' does not have among the 1 of its 3 nodes "
        "open to it (features 'x')",
        "it needs 2 nodes with 1 core each, which platform 'cell' does not have among the 1 of its 3 nodes open to it "
        "(features 'x')",
        "it needs feature 'z', which no node of platform 'cell' has",
    ]


def test_jobs_that_name_what_there_is_not_are_refused_alone() -> None:
    """The others are decided for as if they were not there; a desk has nothing to do where nobody else waits."""
    told = _snapshot(
        nodes=[1, 1, 2, None, 1],
        cores=[1, 1, 2, 1, 1],
        required_nodes=["n9", None, "n1", None, "n2"],
        excluded_nodes=[None, "n[", None, None, None],
        features=[None, None, None, "x&&(", None],
    )
    for scheduler in ("easy", "fcfs"):
        desk = Desk(CELL, scheduler)
        orders = desk.decide(told)
        assert [(one.job_id, one.nodes) for one in orders.starts] == [("5", ((2, 2, 1),))]
        assert [one.job_id for one in desk.plan(told)] == ["5"]
    assert [(one.job_id, one.why.partition(":")[0]) for one in orders.refused] == [
        ("1", "names node 'n9', which site 'cell' has not"),
        ("2", "required_nodes or excluded_nodes"),
        ("3", "required_nodes are 1 nodes"),
        ("4", "features 'x&&(' are no expression"),
    ]
    alone = Desk(CELL).decide(_snapshot(required_nodes=["n9"]))
    assert alone.starts == () and [one.job_id for one in alone.refused] == ["1"]
    assert _starts(_snapshot(required_nodes=["n9", None], memory_mb_per_node=[10, 100])) == {"2": ((0, 0, 1),)}


@pytest.mark.parametrize(
    "named", [{"required_nodes": "n9"}, {"required_nodes": "n[1-2]"}, {"excluded_nodes": "n["}, {"features": "x&&("}]
)
def test_what_running_jobs_named_once_stops_nobody(named: dict[str, str]) -> None:
    """The first has 60 MB of node 0: the second has to lie on node 1."""
    asked = {name: [value, None] for name, value in named.items()}
    told = _snapshot(**asked, start_s=[5.0, None], memory_mb_per_node=[60, 60], placed=_lying([1]))
    orders = Desk(CELL).decide(told)
    assert [(one.job_id, one.nodes) for one in orders.starts] == [("2", ((1, 1, 1),))] and orders.refused == ()


@pytest.mark.parametrize("gpu", [None, [1, 1]])
def test_rows_of_one_job_on_one_node_are_its_share_there(gpu: list[int] | None) -> None:
    """Two GPUs, and two of four cores, told in two rows."""
    placed = {"job": [0, 0], "first": [0, 0], "last": [0, 0], "cores": [1, 1]} | ({"gpu": gpu} if gpu else {})
    told = _snapshot(cores=[2, 2, 1], gpus_per_node=[2, None, 1], start_s=[5.0, None, None], placed=placed)
    assert _starts(told) == {"2": ((0, 0, 2),), "3": ((1, 1, 1),)}


def test_what_does_not_count_is_said_once_as_in_a_run() -> None:
    desk = Desk("3x4", "fcfs")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for now in (10.0, 11.0):
            orders = desk.decide(_snapshot(now, cores=[2], nodes=[2], features=["x"], nice=[5]))
            assert orders.starts[0].nodes == ((0, 1, 1),)
    assert [str(one.message) for one in said] == [
        "what jobs ask for by features does not count: the platform has no features of nodes",
        "what jobs ask for by nice does not count: the scheduler slurm alone looks at it, and policies of your own, "
        "which see it",
    ]


def test_damaged_shapes_are_refused_or_answered() -> None:
    """Whatever jobs ask and hold: orders, or one clear error."""
    asked = {"nodes": [2, 2, None, 1], "tasks": [None, None, 1, 2], "memory_mb_per_core": [10, None, None, 20]}
    asked |= {"exclusive": [None, None, True, None], "features": [None, "x|y", None, "y"], "cores": [2, 3, 1, 2]}
    asked |= {"gpus_per_node": [None, 1, None, 1], "excluded_nodes": [None, None, "n1", None]}
    placed = _lying([1, 1], memory_mb=[10, 10], gpu=[0, 0])
    whole, rng, answered = _snapshot(**asked, start_s=[5.0, *[None] * 3], placed=placed).to_json(), random.Random(5), 0
    worth = [None, 0, 1, 2, 5, 99, 2**31, 2**53, -1, True, False, "x", "n0,n1", "x&", "n[0-1]", "", 1.5]
    columns = [("jobs", name) for name in asked] + [("placed", name) for name in ("cores", "memory_mb", "gpu")]
    for k in range(600):
        desk, told = Desk(CELL, ("easy", "fcfs", "conservative")[k % 3], rebuild=True), json.loads(whole)
        for part, name in rng.choices(columns, k=rng.randint(1, 2)):
            told[part][name][rng.randrange(len(told[part][name]))] = rng.choice(worth)
        try:
            desk.decide(Snapshot.from_plain(told))
            answered += 1
        except escala.EscalaError:
            continue
    assert 100 < answered < 500


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"nodes": [2], "tasks": [1]}, "no more than its tasks are possible"),
        (
            {"nodes": [1], "start_s": [1.0], "placed": _lying([1], memory_mb=[101])},
            "jobs hold 101 memory of node 0, which has 100: tell what each holds there (placed.memory_mb, gpu,",
        ),
        (
            {"cores": [2], "start_s": [1.0], "placed": _lying([2], **{"gpu:a": [1]})},
            "placed.gpu:a: platform 'cell' has no gpu:a: leave it out",
        ),
        ({"cores": [3], "nodes": [1], "start_s": [1.0], "placed": _lying([2])}, "job '1' has 3 cores, and holds 2 in"),
    ],
)
def test_refused_in_one_line(told: dict[str, Any], said: str) -> None:
    with pytest.raises(escala.EscalaError) as caught:
        Desk(CELL).decide(_snapshot(**told))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_who_plans_cores_alone_refuses_jobs_of_nodes() -> None:
    with pytest.raises(escala.EscalaError, match="rollout:2 plans cores of any nodes"):
        Desk(CELL, "rollout:2").decide(_snapshot(nodes=[2], cores=[2]))
    desk = Desk("1x8", SlotPolicy("sjf"))
    job = {"job_id": ["1"], "submit_s": [0.0], "walltime_s": [9.0], "cores": [2], "state": ["queued"]}
    for now, name, asked in ((0.0, "exclusive", True), (1.0, "nodes", 1)):
        told = Snapshot.of(now, job | {name: [asked]}, {"power": ["on"]})
        if name == "nodes":
            assert desk.decide(told).starts[0].nodes == ((0, 0, 2),)
            continue
        with pytest.raises(escala.EscalaError, match="sjf gives each job one place, and job 0 asks for several"):
            desk.decide(told)
