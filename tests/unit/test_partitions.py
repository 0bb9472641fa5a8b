"""Partitions under every scheduler: on which nodes they let jobs lie, whom they refuse, and who takes a site as one
pool."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError, EscalaWarning
from escala.live.site_desk import desk_of
from escala.parts import parts_of
from escala.platform import Platform, Site
from escala.platform.site import Partition
from escala.streaming import stream
from escala.unseen import ACROSS, BEYOND, POOL, SHARED, of_all, sentences
from escala.workload import generate

NAMES = ("a1", "a2", "b1", "b2")
TIMES = {"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 10.0, "cores": 2}
COLUMNS = ("partition", "queue", "account", "qos", "nodes", "features", "exclusive")
A, B = Partition("a", (0, 1), default=True), Partition("b", (2, 3))
BOTH, SHORT = Partition("both", (0, 1, 2, 3)), Partition("short", (1, 2), max_s=3600.0)
EVERY = ("fcfs", "easy", "easy-fast", "saf", "conservative", "sjf-fit", "packer", "random", "easy:queue=wfp3")


def site(*partitions: Partition, cores: tuple[int, ...] = (8, 8, 8, 8)) -> Site:
    plain = Platform.uniform(4, 8)
    return Site(
        "four", np.array(cores), plain.profiles, plain.profile_of, names=NAMES, partitions=partitions,
        features=(("x",), (), ("x",), ()),
    )  # fmt: skip


FOUR = site(A, B, BOTH, SHORT)


def log(*rows: dict[str, Any]) -> escala.Workload:
    return escala.Workload.from_jobs([{**TIMES, **dict.fromkeys(COLUMNS), **row} for row in rows])


def nodes_of(row: dict[str, Any], at: Site = FOUR) -> str:
    """Where it may lie, beside a job that may lie nowhere else than in a."""
    found = parts_of(log(row, {}), at)
    assert found is not None and found.allowed is not None
    mask = found.allowed.mask(int(found.which[0]), 4)
    return " ".join(name for name, may in zip(NAMES, mask, strict=True) if may)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, "a1 a2"),
        ({"partition": "b"}, "b1 b2"),
        ({"partition": "both"}, "a1 a2 b1 b2"),
        ({"partition": "short, b"}, "a2 b1 b2"),
        ({"partition": "b", "queue": "short"}, "b1 b2"),
        ({"queue": "short"}, "a2 b1"),
        ({"queue": "night"}, "a1 a2"),
        ({"partition": "short", "walltime_s": 3600.0}, "a2 b1"),
        ({"partition": "short", "walltime_s": 3600.5}, ""),
        ({"partition": "short,b", "walltime_s": 3600.5}, "b1 b2"),
        ({"partition": "both", "features": "x"}, "a1 b1"),
        ({"partition": "b", "features": "x"}, "b1"),
    ],
)
def test_nodes_of_the_partitions_that_a_job_names(row: dict[str, Any], expected: str) -> None:
    assert nodes_of(row) == expected


@pytest.mark.parametrize("field", ["accounts", "denied_accounts", "qos", "denied_qos"])
def test_a_partition_takes_those_whom_it_admits(field: str) -> None:
    column, denied = ("qos" if "qos" in field else "account"), field.startswith("denied")
    at = site(A, replace(B, **{field: ("ann",)}))
    asking = {"partition": "a,b"}
    for who, admitted in (("ann", not denied), ("bob", denied), (None, True)):
        assert nodes_of(asking | {column: who}, at) == ("a1 a2 b1 b2" if admitted else "a1 a2"), who


def test_a_partition_that_is_down_or_allows_fewer_nodes_takes_nobody_else() -> None:
    assert nodes_of({"partition": "a,b"}, site(A, replace(B, up=False))) == "a1 a2"
    assert nodes_of({"partition": "b,a", "nodes": 2}, site(A, replace(B, max_nodes=1))) == "a1 a2"
    assert nodes_of({"partition": "b,a", "nodes": 1}, site(A, replace(B, max_nodes=1))) == "a1 a2 b1 b2"


@pytest.mark.parametrize("scheduler", EVERY)
def test_jobs_lie_in_their_partitions_and_wait_for_them(scheduler: str) -> None:
    """Two jobs fill b; the third waits for it while a is idle."""
    rows = [{"partition": "b", "cores": 8}, {"partition": "b", "cores": 8}, {"partition": "b", "cores": 16}, {}]
    found = escala.simulate(log(*rows), FOUR, scheduler).jobs
    assert sorted(found["nodes"][:3]) == ["2", "2-3", "3"] and found["nodes"][3] == "0"
    assert sorted(found["start_s"][:3])[1:] in ([0.0, 10.0], [10.0, 10.0])


@pytest.mark.parametrize("scheduler", ["first-fit", "packer", "fcfs", "sjf", "easy", "easy:queue=sjf", "easy-fast"])
def test_partitions_that_share_no_node_are_machines_of_their_own(scheduler: str) -> None:
    drawn = np.random.default_rng(5)
    rows = [
        {"submit_s": float(k), "partition": "ab"[drawn.integers(2)], "cores": int(drawn.integers(1, 17))}
        | dict.fromkeys(("runtime_s", "walltime_s"), float(drawn.integers(1, 40)))
        for k in range(60)
    ]
    whole = escala.simulate(log(*rows), site(A, B), scheduler).jobs
    for name in "ab":
        alone = log(*(row for row in rows if row["partition"] == name))
        part = escala.simulate(alone, site(A, B).machine(name), scheduler).jobs
        mine = whole.filter(pl.Series([row["partition"] == name for row in rows]))
        assert mine["start_s"].equals(part["start_s"]) and part["wait_s"].max() > 0


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "time": ({"partition": "short", "walltime_s": 7200.0}, "partition 'short' allows 3600 s, not 7200"),
    "first": ({"partition": "short,short", "walltime_s": 7200.0}, "partition 'short' allows 3600 s, not 7200"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
def test_what_its_partition_never_takes_is_refused_as_by_slurm(scheduler: str, what: str) -> None:
    row, why = REFUSED[what]
    line = f"^job '1' of workload 'workload' can never run on site 'four': {why}: mend the job or the site, or drop"
    with pytest.raises(EscalaError, match=line):
        escala.simulate(log(row, {}), FOUR, scheduler)
    dropped = escala.simulate(log(row, {}), FOUR, scheduler, oversized="drop").jobs
    assert dropped["state"][0] == "REJECTED" and dropped["start_s"].is_null().to_list() == [True, False]


@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
def test_names_that_are_none_are_one_line_as_under_slurm(scheduler: str) -> None:
    with pytest.raises(EscalaError, match=r"^workload 'workload': job '2': site 'four' has no partition 'c': it has"):
        escala.simulate(log({}, {"partition": "c"}), FOUR, scheduler, oversized="drop")
    with pytest.raises(EscalaError, match=r"^workload 'workload': job '1': names no partition, and site 'four' has no"):
        escala.simulate(log({}), site(replace(A, default=False), B), scheduler)


def test_what_fits_not_its_partition_is_refused_with_its_name() -> None:
    line = "which platform 'four' does not have among the 2 of its 4 nodes open to it .partition 'b'.: ask for others"
    with pytest.raises(EscalaError, match=line):
        escala.simulate(log({"partition": "b", "nodes": 3, "cores": 3}), FOUR, "easy")
    with pytest.raises(EscalaError, match=r"among the 1 of its 4 nodes open to it .partition 'b', features 'x'."):
        escala.simulate(log({"partition": "b", "features": "x", "nodes": 2, "cores": 2}), FOUR, "easy")


def test_a_partition_of_whole_nodes_gives_whole_nodes() -> None:
    rows = [{"partition": "b"}, {"partition": "b"}, {"partition": "a"}, {"partition": "a"}, {"partition": "b"}]
    for cores in ((8, 8, 8, 8), (8, 8, 8, 4)):
        found = escala.simulate(log(*rows), site(A, replace(B, exclusive=True), cores=cores), "easy")
        assert found.jobs["nodes"].to_list() == ["2", "3", "0", "0", "2"] and found.jobs["start_s"][4] == 10.0
        assert not found.unseen


@pytest.mark.parametrize("name", ["batch", "all"])
@pytest.mark.parametrize("cores", [(8, 8, 8, 8), (8, 8, 8, 4)])
def test_select_linear_gives_whole_nodes_in_every_partition(cores: tuple[int, ...], name: str) -> None:
    """One job of a core on each of four nodes, and the fifth waits; `slurm` takes other nodes, and as many."""
    everywhere = replace(B, name=name, nodes=(0, 1, 2, 3), default=True)
    for select, second in (("select/cons_tres", "0"), ("select/linear", "1")):
        at = replace(site(everywhere, cores=cores), settings={"selecttype": select})
        for scheduler in ("easy", "fcfs", "conservative"):
            found = escala.simulate(log(*[{}] * 5), at, scheduler)
            assert found.jobs["nodes"][1] == second and not found.unseen
    starts = [round(s) for s in escala.simulate(log(*[{}] * 5), at, "slurm").jobs["start_s"].to_list()]
    assert [s < 10 for s in starts] == [s < 10 for s in found.jobs["start_s"]] == [True] * 4 + [False]
    with pytest.warns(EscalaWarning, match=f"^{SHARED}$"):
        pool = escala.simulate(log(*[{}] * 5), at, "rollout:1")
    assert pool.jobs["nodes"][1] == "0" and dict(pool.unseen) == {"exclusive": SHARED}


def said(*rows: dict[str, Any], at: Site = FOUR, **more: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EscalaWarning)
        return dict(escala.simulate(log(*rows), at, "easy", **more).unseen)


def test_several_partitions_are_taken_together_and_only_then_said() -> None:
    wide = {"partition": "a,b"}
    assert said({}, wide) == {"partition": ACROSS}
    alone = [wide | {"nodes": 1}, wide | {"cores": 1}, {"partition": "a,both"}, {"partition": "both", "nodes": 2}]
    assert said({}, *alone) == {}
    assert said({}, {"partition": "short", "walltime_s": 7200.0}, oversized="drop") == {}
    assert of_all({"partition": ACROSS}) == [] and of_all({"partition": POOL}) == ["partition"]
    both = {"easy": {"partition": ACROSS}, "slurm": {}}
    assert sentences(both) == [f"Under easy: {ACROSS}."] and sentences({"easy": both["easy"]}) == [f"J{ACROSS[1:]}."]


NARROW, NARROWER = site(A, replace(B, max_nodes=1)), site(A, replace(BOTH, max_nodes=2))
TASKS = {"tasks": 2, "cores_per_task": 5, "cores": 10}


@pytest.mark.parametrize(
    ("at", "row", "why"),
    [
        (NARROW, {"partition": "b", "cores": 9}, "'b' has 0 nodes that could run it, and it needs 1"),
        (NARROW, {"partition": "b", **TASKS}, "'b' has 0 nodes that could run it, and it needs 1"),
        (NARROWER, {"partition": "both", "cores": 17}, "'both' could give it 16 cores, and it needs 17"),
        (
            NARROWER,
            {"partition": "both", "tasks": 3, "cores_per_task": 5, "cores": 15},
            "'both' could give it 10 cores, and it needs 15",
        ),
    ],
)
@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
def test_what_the_nodes_that_a_partition_allows_cannot_hold_is_refused(
    scheduler: str, at: Site, row: dict[str, Any], why: str
) -> None:
    jobs = log({"tasks": None, "cores_per_task": None} | row, {})
    with pytest.raises(
        EscalaError, match=f"^job '1' of workload 'workload' can never run on site 'four': .*{why}: mend"
    ):
        escala.simulate(jobs, at, scheduler)
    dropped = escala.simulate(jobs, at, scheduler, oversized="drop")
    assert dropped.jobs["state"][0] == "REJECTED" and dropped.unseen == {}


def test_where_a_partition_allows_one_node_jobs_are_of_one() -> None:
    """Beside a job of five cores on each node, six more lie nowhere, though both have three to spare."""
    rows = [{"partition": "b", "cores": 5}, {"partition": "b", "cores": 5}, {"partition": "b", "cores": 6}]
    narrow, wide = (escala.simulate(log(*rows), at, "easy") for at in (NARROW, site(A, B)))
    assert narrow.jobs["start_s"].to_list() == [0.0, 0.0, 10.0] and narrow.unseen == {}
    assert wide.jobs["start_s"].to_list() == [0.0, 0.0, 0.0]
    every = site(replace(BOTH, default=True, max_nodes=1))
    assert escala.simulate(log({"cores": 5}, {"cores": 5}), every, "easy").jobs["nodes"][1] == "1"


def test_no_jobs_are_of_no_partition() -> None:
    assert len(escala.simulate(log({}).head(0), NARROW, "easy").jobs) == 0


def test_jobs_that_may_take_more_nodes_than_their_partition_allows_are_said() -> None:
    with pytest.warns(EscalaWarning, match=f"^{BEYOND}$"):
        assert escala.simulate(log({"partition": "both", "cores": 8}), NARROWER, "easy").unseen == {"max_nodes": BEYOND}
    few = [{"cores": 2}, {"cores": 8, "nodes": 1}, {"cores": 8, "nodes": 2}]
    assert said(*({"partition": "both"} | row for row in few), {"cores": 8}, at=NARROWER) == {}


STRANGE = "jobs of queues that are no partition of the site lie in its default"


def test_queues_that_are_no_partitions_are_said_and_lists_of_them_are_lists() -> None:
    assert nodes_of({"queue": "short, b"}) == "a2 b1 b2" and nodes_of({"queue": "b,night"}) == "a1 a2"
    rows = [{"queue": one} for one in ("b", "night", "b,night", "", "night", "4", "5")]
    assert said(*rows) == {"queue": f"{STRANGE} ('night', 'b,night', '4' and 1 more)"}
    assert said({"queue": "b"}, {"queue": "night", "partition": "b"}) == {}
    assert of_all(said(*rows)) == []
    with pytest.warns(EscalaWarning) as told:
        found = escala.compare(log(*rows), FOUR, schedulers=["easy", "fcfs", "slurm"])
    assert [str(one.message) for one in told] == [said(*rows)["queue"]]
    assert [one.unseen for one in found.results.values()] == [said(*rows)] * 3


@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
def test_a_queue_that_is_no_partition_is_named_where_there_is_no_default(scheduler: str) -> None:
    none = "^workload 'workload': job '1': its queue 'night' is no partition, and site 'four' has no default: mark one"
    with pytest.raises(EscalaError, match=none):
        escala.simulate(log({"queue": "night"}), site(replace(A, default=False), B), scheduler)


PLAIN = Platform.uniform(4, 8)
ONE = site(Partition("batch", (0, 1, 2, 3), default=True, tier=3))
TWO = site(replace(BOTH, default=True), replace(BOTH, name="other", factor=7))


@pytest.mark.parametrize("at", [ONE, TWO, site()])
def test_partitions_that_leave_nobody_out_change_nothing(at: Site) -> None:
    drawn = generate.lublin(jobs=200, cores=32, load=1.1, seed=3)
    assert parts_of(drawn, at) is None
    for scheduler in ("easy", "conservative", "fcfs"):
        here, there = (escala.simulate(drawn, platform, scheduler) for platform in (at, PLAIN))
        assert here.jobs.equals(there.jobs) and here.unseen == {}
        assert list(here.manifest.get("columns", {})) == (["queue"] if at in (ONE, TWO) else [])
    named = drawn.with_jobs(drawn.jobs.with_columns(partition=pl.lit("both")))
    assert at is not TWO or parts_of(named, at) is None
    assert parts_of(named, PLAIN) is None and parts_of(named, site()) is None


def test_a_manifest_holds_what_partitions_went_by() -> None:
    rows = [{"partition": "b", "account": "ann"}, {"partition": "a"}]
    run = escala.simulate(log(*rows), FOUR, "easy")
    assert list(run.manifest["columns"]) == ["partition"]
    assert escala.rerun(run, log(*rows)).jobs.equals(run.jobs)
    with pytest.raises(EscalaError, match="its column 'partition' is not that of that run"):
        escala.rerun(run, log(rows[1], rows[0]))
    bound = escala.simulate(log(*rows), site(A, replace(B, accounts=("ann",))), "easy")
    assert sorted(bound.manifest["columns"]) == ["account", "partition"]


@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
@pytest.mark.parametrize("first", [[{}], [{"partition": "both"}]])
def test_a_rerun_wants_the_partitions_of_then_though_they_bound_nobody(
    scheduler: str, first: list[dict[str, Any]]
) -> None:
    at = site(replace(BOTH, default=True), B)
    run = escala.simulate(log(*first), at, scheduler)
    assert escala.rerun(run, log(*first)).jobs.equals(run.jobs)
    with pytest.raises(EscalaError, match="its column 'partition' is not that of that run"):
        escala.rerun(run, log({"partition": "b"}))


@pytest.fixture(params=["queue", "partition"])
def queued(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Jobs of two queues that are partitions, or of two partitions, as a table."""
    drawn = generate.lublin(jobs=300, cores=14, load=0.9, seed=7).jobs
    kept = drawn.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user")
    names = np.random.default_rng(1).choice(["a", "b"], len(kept)).tolist()
    kept = kept.with_columns(pl.Series(request.param, names))
    kept.write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "sjf-fit"])
def test_a_stream_keeps_to_partitions(queued: Path, scheduler: str, tmp_path: Path) -> None:
    at = site(A, B)
    whole = escala.simulate(queued, at, scheduler)
    assert whole.summary()["mean_wait_s"] > escala.simulate(queued, PLAIN, scheduler).summary()["mean_wait_s"]
    found = stream(queued, at, scheduler, out=tmp_path / "out", jobs=60)
    assert found.pieces >= 3
    both = whole.jobs.sort("job_id"), escala.Result.load(tmp_path / "out").jobs.sort("job_id")
    assert both[0].select("start_s", "nodes").equals(both[1].select("start_s", "nodes"))


def test_a_stream_refuses_jobs_that_make_one_queue_of_two(tmp_path: Path) -> None:
    """Which it cannot know before they come; greedy orders have no queues."""
    rows = [{"submit_s": float(k), "cores": 1, "partition": "a,b" if k == 9 else "ab"[k % 2]} for k in range(20)]
    jobs = log(*rows).jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "partition")
    jobs.write_csv(tmp_path / "log.csv")
    assert escala.simulate(tmp_path / "log.csv", site(A, B), "easy").jobs["start_s"].null_count() == 0
    assert stream(tmp_path / "log.csv", site(A, B), "first-fit", jobs=4).pieces == 5
    for scheduler in ("fcfs", "easy"):
        with pytest.raises(
            EscalaError, match=r"^stream: a job names the partitions 'a', 'b', which share no node and so"
        ):
            stream(tmp_path / "log.csv", site(A, B), scheduler, jobs=4)
    stream(tmp_path / "log.csv", site(A, B, BOTH), "easy", jobs=4)


def lanes_of(*rows: dict[str, Any], at: Site) -> tuple[list[int], list[int]]:
    """The queue of each node and of each job; of none where there is one."""
    found = parts_of(log(*rows), at)
    assert found is not None and found.parted is not None
    lanes = found.parted.lanes
    return (lanes.of_node.tolist(), lanes.of_job.tolist()) if lanes.n else ([], [])


def test_which_partitions_share_a_queue() -> None:
    """Those that share nodes, by way of others too, but for those that are down; and those that a job names together.
    Nodes of none are one more."""
    one, two, rows = Partition("one", (0,)), Partition("two", (1, 2)), ({}, {"partition": "b"})
    assert lanes_of(*rows, at=site(A, B)) == ([1, 1, 2, 2], [1, 2])
    assert lanes_of(*rows, at=site(A, B, two)) == ([], [])
    assert lanes_of(*rows, at=site(A, B, replace(two, up=False))) == ([1, 1, 2, 2], [1, 2])
    assert lanes_of(*rows, {"partition": "a,b"}, at=site(A, B)) == ([], [])
    assert lanes_of({}, {"partition": "one"}, at=site(replace(B, default=True), one)) == ([2, 1, 3, 3], [3, 2])
    three = site(one, replace(two, default=True), Partition("last", (2, 3)))
    assert lanes_of({}, {"partition": "one"}, {"partition": "last"}, at=three) == ([1, 2, 2, 2], [2, 1, 2])


def test_rollout_and_environments_take_a_site_as_one_pool_and_say_so(queued: Path) -> None:
    jobs, at = escala.read_workload(queued).head(20), site(A, B)
    switching = replace(at, profiles=(escala.power.GRID5000,))
    with pytest.warns(EscalaWarning, match=f"^what jobs ask for by partition does not count: {POOL}$"):
        run = escala.simulate(jobs, at, "rollout:2")
    assert run.unseen == {"partition": POOL} and run.manifest["platform"] == at.spec()
    assert run.jobs.equals(escala.simulate(jobs, PLAIN, "rollout:2").jobs)
    with pytest.warns(EscalaWarning, match=POOL):
        env = gymnasium.make("escala/Scheduling-v0", workload=jobs, platform=switching)
    env.reset(seed=1)
    env.close()


def test_a_desk_for_a_site_with_a_partition_of_some_nodes_keeps_to_them() -> None:
    """As a simulation does; a plain desk, which knows no partitions, takes no such site."""
    told = {"job_id": ["1", "2"], "submit_s": [0.0, 0.0], "walltime_s": [9.0, 9.0], "state": ["queued"] * 2}
    jobs = told | {"cores": [32, 16]}
    with pytest.raises(EscalaError, match=r"needs 32 tasks .* among the 2 of its 4 nodes"):
        escala.simulate(log({"cores": 32}), site(A), "easy")
    with pytest.raises(EscalaError, match=r"partition has only some of its nodes.*take a SiteDesk"):
        escala.live.Desk(site(A))
    orders = desk_of(site(A)).decide(escala.live.Snapshot.of(1.0, jobs, {"power": ["on"] * 4}))
    assert [(one.job_id, one.nodes) for one in orders.starts] == [("2", ((0, 1, 8),))]
    assert orders.refused == (("1", "it needs 32 cores, and platform 'four a' has 16"),)
