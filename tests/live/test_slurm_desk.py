"""Slurm's rules asked from outside, against runs inside the kernel: overlapping partitions, limits, shapes, and nodes
that are gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.live import Desk, SiteDesk, SlurmDesk, Snapshot
from escala.live.site_desk import desk_of
from escala.platform.closures import DRAIN, RESERVED
from escala.slurm import Settings
from tests.laws import test_slurm_laws, test_slurm_limits
from tests.live.slurm_machine import Asked, with_closed

DRAWN: dict[str, Callable[[int, Path], tuple[Any, escala.Workload]]] = {
    "shapes": test_slurm_laws.world,
    "limits": test_slurm_limits.world,
}
SEEDS = 8
LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(SEEDS // 2, SEEDS)]


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("seed", [*range(SEEDS // 2), *LONG])
def test_asked_from_outside_as_inside(kind: str, seed: int, tmp_path: Path) -> None:
    """Through JSON, with a restart from the state file at every 10th decision."""
    machine = Asked(*DRAWN[kind](seed, tmp_path))
    machine.run(tmp_path)
    assert machine.differences() == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_three_hundred_jobs_of_all_shapes(seed: int, tmp_path: Path) -> None:
    machine = Asked(*test_slurm_laws.world(seed, tmp_path, 300))
    machine.run(tmp_path)
    assert machine.differences() == []


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_reservations_of_the_site(seed: int, tmp_path: Path) -> None:
    machine = Asked(*with_closed(test_slurm_laws.world(seed, tmp_path), seed, RESERVED))
    machine.run(tmp_path)
    assert machine.differences() == []


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_nodes_that_are_drained_are_told_as_gone(seed: int, tmp_path: Path) -> None:
    """The desk's site knows of no drain: snapshots tell."""
    machine = Asked(*with_closed(test_slurm_laws.world(seed, tmp_path), seed, DRAIN))
    assert machine.turns
    machine.run(tmp_path)
    assert machine.differences() == []


SITE = """\
name = "small"
[[nodes]]
names = "n[1-4]"
cores = 8
memory_mb = 8000
gpus = {k = 2}
[[partitions]]
name = "all"
nodes = "ALL"
default = true
[[partitions]]
name = "some"
nodes = "n[1-2]"
tier = 2
[slurm]
SelectTypeParameters = "CR_CPU_Memory"
"""


def _site(tmp_path: Path, more: str = "") -> Any:
    path = tmp_path / "site.toml"
    path.write_text(SITE + more)
    return escala.read_site(path)


def _snapshot(now: float = 100.0, placed: Any = None, there: Any = None, **jobs: Any) -> Snapshot:
    n = len(next(iter(jobs.values())))
    told = {"job_id": [str(k) for k in range(n)], "submit_s": [float(k) for k in range(n)], "walltime_s": [600.0] * n}
    told |= {"cores": [4] * n, "state": ["queued"] * n} | jobs
    return Snapshot.of(now, told, there or {"power": ["on"] * 4}, placed)


def _in_time(desk: SlurmDesk, first: Snapshot) -> Any:
    """The orders at the beat that the first answer names."""
    due = desk.decide(first).next_s
    told = first.columns()
    assert due is not None
    return desk.decide(Snapshot.of(due, told["jobs"], told["nodes"], told["placed"]))


def test_what_a_start_tells(tmp_path: Path) -> None:
    asked = _snapshot(gpus_per_node=[1, None], memory_mb_per_core=[500, 100], partition=["some", "all,some"])
    orders = _in_time(SlurmDesk(_site(tmp_path)), asked)
    assert [one.job_id for one in orders.starts] == ["0", "1"]
    first, second = orders.starts
    assert (first.partition, first.nodes, dict(first.held)) == (
        "some",
        ((0, 0, 4),),
        {"memory_mb": (2000,), "gpu:k": (1,)},
    )
    assert second.partition == "some" and dict(second.held) == {"memory_mb": (400,)}
    assert type(orders).read(orders.told()) == orders


def test_jobs_that_could_never_run_are_refused(tmp_path: Path) -> None:
    asked = _snapshot(partition=["some", "all", "all"], cores=[4, 40, 4], walltime_s=[600.0] * 3, nodes=[3, None, 1])
    orders = _in_time(SlurmDesk(_site(tmp_path)), asked)
    assert [one.job_id for one in orders.starts] == ["2"]
    assert [(one.job_id, one.why) for one in orders.refused] == [
        ("0", "partition 'some' has 2 nodes that could run it, and it needs 3"),
        ("1", "partition 'all' could give it 32 cores, and it needs 40"),
    ]


def test_tasks_that_no_node_has_room_for_are_refused(tmp_path: Path) -> None:
    """Nodes of 8 cores hold two tasks of 3 each: 9 of them never start, though 32 cores are there; 8 do."""
    asked = _snapshot(cores=[27, 24], tasks=[9, 8], cores_per_task=[3, 3])
    orders = _in_time(SlurmDesk(_site(tmp_path)), asked)
    assert [one.job_id for one in orders.starts] == ["1"]
    assert [one.why for one in orders.refused] == ["partition 'all' could give it 24 cores, and it needs 27"]


def test_what_no_node_has_is_refused_of_its_job_alone(tmp_path: Path) -> None:
    """A feature, a kind of GPU: the others go on. One that runs, from before its node lost the feature, keeps what it
    has."""
    told: dict[str, Any] = {"features": ["x", None, None, None, "x"], "gpu_kind": [None, "h100", None, None, None]}
    told |= {
        "gpus_per_node": [None, 1, None, 1, None],
        "state": ["queued"] * 4 + ["running"],
        "start_s": [None] * 4 + [50.0],
    }
    placed = {"job": [4], "first": [0], "last": [0], "cores": [4]}
    orders = _in_time(
        SlurmDesk(_site(tmp_path)),
        _snapshot(partition=["some"] * 5, memory_mb_per_core=[100] * 5, placed=placed, **told),
    )
    assert [one.job_id for one in orders.starts] == ["2", "3"]
    assert [one.job_id for one in orders.refused] == ["0", "1"]
    assert orders.refused[0].why.startswith("it needs feature 'x', which no node of site")
    assert orders.refused[1].why.startswith("it asks for GPUs of kind 'h100', and site") and orders.refused[
        1
    ].why.endswith(" has k")


def test_jobs_that_name_what_there_is_not_are_refused_alone(tmp_path: Path) -> None:
    """The first runs, and has a node that is no more among its names; the last starts."""
    asked = _snapshot(
        state=["running", *["queued"] * 4],
        start_s=[50.0, *[None] * 4],
        nodes=[1, 1, 2, 1, 1],
        required_nodes=["old", "n9", "n1", None, "n3"],
        features=[None, None, None, "x&&(", None],
        placed={"job": [0], "first": [0], "last": [0], "cores": [4]},
    )
    desk = SlurmDesk(_site(tmp_path))
    orders = _in_time(desk, asked)
    assert [(one.job_id, one.nodes) for one in orders.starts] == [("4", ((2, 2, 4),))]
    assert [one.job_id for one in orders.refused] == ["1", "2", "3"]
    assert [one.job_id for one in SlurmDesk(_site(tmp_path)).plan(asked)] == ["4"]
    assert SlurmDesk(_site(tmp_path)).decide(_snapshot(required_nodes=["n9"])).refused[0].job_id == "0"


def test_rows_of_one_job_on_one_node_are_its_share_there(tmp_path: Path) -> None:
    """2000 MB of node 0, told in two rows: 6000 MB are left."""
    asked = _snapshot(
        state=["running", "queued"],
        start_s=[50.0, None],
        memory_mb_per_node=[2000, 6000],
        required_nodes=[None, "n1"],
        placed={"job": [0, 0], "first": [0, 0], "last": [0, 0], "cores": [2, 2]},
    )
    assert [one.job_id for one in _in_time(SlurmDesk(_site(tmp_path)), asked).starts] == ["1"]


def test_what_is_held_is_reckoned_where_nobody_tells_it(tmp_path: Path) -> None:
    """A job that runs has 2 GPUs and 4 000 MB of node 0; the next that wants a GPU of it goes elsewhere."""
    running: dict[str, Any] = {
        "state": ["running", "queued"],
        "start_s": [50.0, None],
        "gpus_per_node": [2, 1],
        "nodes": [1, 1],
    }
    placed = {"job": [0], "first": [0], "last": [0], "cores": [4]}
    for held in ({}, {"memory_mb": [4000], "gpu:k": [2]}):
        asked = _snapshot(placed=placed | held, memory_mb_per_core=[1000, 100], **running)
        assert [one.nodes for one in _in_time(SlurmDesk(_site(tmp_path)), asked).starts] == [((1, 1, 4),)]
    gone = {"power": ["on"] * 4, "gone": [False, True, True, False]}
    asked = _snapshot(placed=placed, memory_mb_per_core=[1000, 100], there=gone, **running)
    assert [one.nodes for one in _in_time(SlurmDesk(_site(tmp_path)), asked).starts] == [((3, 3, 4),)]


def test_a_plan_is_what_slurm_would_do_and_no_decision(tmp_path: Path) -> None:
    desk = SlurmDesk(_site(tmp_path))
    asked = _snapshot(
        nodes=[4, 4, 1], exclusive=[True, True, None], cores=[32, 32, 1], walltime_s=[600.0, 1200.0, 60.0]
    )
    desk.save(tmp_path / "before.json")
    planned = desk.plan(asked, first=3)
    desk.save(tmp_path / "after.json")
    assert (tmp_path / "before.json").read_text() == (tmp_path / "after.json").read_text()
    assert [one.job_id for one in planned] == ["0", "1", "2"]
    assert planned[0].start_s < 110 and 700 <= planned[1].start_s < 740 and 1900 <= planned[2].start_s < 1960


def test_orders_that_nobody_carried_out_are_given_again(tmp_path: Path) -> None:
    desk = SlurmDesk(_site(tmp_path, 'SchedulerParameters = "sched_interval=5"'))
    asked = _snapshot(tasks=[4])
    first = _in_time(desk, asked)
    assert [one.job_id for one in first.starts] == ["0"]
    told = asked.columns()
    again = desk.decide(Snapshot.of(first.now_s + 30, told["jobs"], told["nodes"], told["placed"]))
    assert [one.job_id for one in again.starts] == ["0"]


def test_compiling_beforehand_leaves_no_trace(tmp_path: Path) -> None:
    desk = SlurmDesk(_site(tmp_path))
    desk.save(tmp_path / "before.json")
    desk.warm()
    desk.save(tmp_path / "after.json")
    assert (tmp_path / "before.json").read_text() == (tmp_path / "after.json").read_text()


FAIR = (
    'PriorityType = "priority/multifactor"\nPriorityWeightFairshare = "10"\nAccountingStorageType = '
    '"accounting_storage/slurmdbd"\n'
)


def test_under_fair_share_priorities_are_told(tmp_path: Path) -> None:
    desk = SlurmDesk(_site(tmp_path, FAIR))
    with pytest.raises(escala.EscalaError, match="job '0' has no priority, and under fair share"):
        desk.decide(_snapshot(tasks=[4]))
    asked = _snapshot(cores=[32, 32], nodes=[4, 4], priority=[5, 7])
    assert [one.job_id for one in _in_time(desk, asked).starts] == ["1"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda site: SlurmDesk(site, "slurm", "timeout:300"), "nodes stay on under scheduler slurm: give never"),
        (lambda site: SlurmDesk(site, rules="batsched"), "option rules means nothing to scheduler slurm"),
        (lambda site: SlurmDesk(site, depth=5), "option depth means nothing to scheduler slurm"),
        (lambda site: SlurmDesk(site, depht=5), "unknown option 'depht'"),
        (lambda site: SlurmDesk(site, "slurm:nonsense=3"), "unknown key 'nonsense'"),
        (lambda site: SlurmDesk(site, Settings(passes_s=(1.0,))), "recorded moments of backfill passes are of one log"),
        (
            lambda site: SlurmDesk(site, Settings(preempt="qos", preempt_mode="requeue")),
            "lets jobs preempt others, which is only simulated",
        ),
        (
            lambda site: SlurmDesk(site).decide(_snapshot(partition=["none"])),
            "has no partition 'none': it has all, some",
        ),
        (lambda site: SlurmDesk(site).decide(_snapshot(nodes=[8], tasks=[4])), "no more than its tasks are possible"),
        (
            lambda site: SlurmDesk(site).decide(_snapshot(tasks=[1.5])),
            "jobs.tasks[0] is 1.5: give a whole number, or null",
        ),
        (
            lambda site: SlurmDesk(site).decide(_snapshot(exclusive=[1])),
            "jobs.exclusive[0] is 1: give true or false, or null",
        ),
        (lambda site: SlurmDesk(site).decide(_snapshot(dependency=["after:1"])), "jobs.dependency is no column"),
        (
            lambda site: SlurmDesk(site).decide(_snapshot(single_node=[True], demand_gpu=[1])),
            "jobs.demand_gpu: scheduler slurm goes by memory_mb_per_node",
        ),
        (
            lambda site: SlurmDesk(site).decide(
                _snapshot(
                    state=["running"],
                    start_s=[1.0],
                    placed={"job": [0], "first": [0], "last": [0], "cores": [4], "gpu": [1]},
                )
            ),
            "placed.gpu: site 'small' has gpu:k: say of which kind they are",
        ),
        (
            lambda site: SlurmDesk(site).decide(
                _snapshot(
                    state=["running"],
                    start_s=[1.0],
                    cores=[9],
                    placed={"job": [0], "first": [0], "last": [0], "cores": [9]},
                )
            ),
            "jobs hold more of node 0 than its 8 cores",
        ),
        (lambda site: SiteDesk(site), "take scheduler slurm"),
    ],
)
def test_refused_in_one_line(make: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(escala.EscalaError) as raised:
        make(_site(tmp_path))
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_which_desk_a_scheduler_has(tmp_path: Path) -> None:
    assert type(desk_of("4x8")) is Desk
    assert type(desk_of(_site(tmp_path), "slurm:bf_interval=60")) is SlurmDesk


def test_a_state_of_others_is_refused(tmp_path: Path) -> None:
    desk = SlurmDesk(_site(tmp_path))
    _in_time(desk, _snapshot(tasks=[4]))
    path = tmp_path / "desk.json"
    desk.save(path, {"seq": 3})
    assert SlurmDesk(_site(tmp_path)).restore(path) == {"seq": 3}
    whole = path.read_text()
    for text in (
        whole[:40],
        "[]",
        whole.replace('"tick"', '"tack"'),
        whole.replace('"next_row": 1', '"next_row": "1"'),
        whole.replace('"rows": {"0": 0}', '"rows": {"0": "0"}'),
    ):
        path.write_text(text)
        with pytest.raises(escala.EscalaError, match=r"desk\.json"):
            SlurmDesk(_site(tmp_path)).restore(path)
    with pytest.raises(escala.EscalaError, match="in the order of time"):
        desk.decide(_snapshot(now=1.0, tasks=[4]))
