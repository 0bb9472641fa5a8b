"""Sites asked from outside: partitions, jobs of one node with memory and GPUs, and nodes that are gone, against runs
inside the kernel."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.live import Desk, SiteDesk, Snapshot
from escala.live.site_desk import desk_of
from escala.platform.site import Partition, Site
from tests.laws.laws import rows
from tests.live import fuzz
from tests.live.machine import Machine
from tests.live.test_twin import NAMES, SHUTDOWNS
from tests.live.twin import ASKED
from tests.oracle.engines import job_differences
from tests.oracle.worlds import ASKED as ASKED_OF_NODES

WATTS = {"computing_w": 200.0, "idle_w": 100.0, "off_w": 10.0, "switching_off_w": 120.0, "switching_on_w": 150.0}
PROFILE = WATTS | {"switch_off_s": 2.0, "switch_on_s": 3.0, "can_switch": True}
CORES = [4, 8, 4, 8, 4, 8, 4]
MEMORY = [16, 64, 16, 64, 16, 64, 16]
GPUS = [0, 4, 0, 4, 0, 2, 0]
FEATURES = ["x", "xy", "y", "x", "xy", "y", "x"]
PARTS = {"batch": (0, 2, 4, 6), "gpu": (1, 3, 5)}  # interleaved: no partition is a range of nodes
PAIRS = [
    ("easy", "timeout:2"),
    ("saf", "hold:0.5"),
    ("conservative", "never"),
    ("fcfs", "timeout:0"),
    ("easy++", "timeout:3"),
]

ALL = [*NAMES, *(name for name in ASKED if name not in NAMES)]
QUICK = ("fcfs", "saf")
EACH = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in ALL]
AGEING = ("wfp3", "unicep", "xfactor")
"""Orders that change while jobs wait."""


def _site(parts: dict[str, tuple[int, ...]] = PARTS) -> Site:
    profile = escala.PowerProfile(name="node", **PROFILE)
    partitions = tuple(Partition(name, nodes, default=name == "batch") for name, nodes in parts.items())
    names, features = tuple(f"n{k}" for k in range(7)), tuple(map(tuple, FEATURES))
    resources = {"memory": MEMORY, "gpu": GPUS}
    return Site("site", CORES, (profile,), [0] * 7, resources, names, partitions=partitions, features=features)


def _world(nodes: Any = range(7)) -> dict[str, Any]:
    """The nodes as the machine of the tests knows them."""
    kept = list(nodes)
    resources = {"memory": [MEMORY[n] for n in kept], "gpu": [GPUS[n] for n in kept]}
    return {
        "cores": [CORES[n] for n in kept],
        "profiles": [PROFILE],
        "profile_of": [0] * len(kept),
        "resources": resources,
        "names": [f"n{n}" for n in kept],
        "features": [FEATURES[n] for n in kept],
    }


def _shaped(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """The same, and half of them ask for one or two nodes with memory and GPUs, of a feature, or but for one node."""
    draw, jobs = random.Random(f"shapes/{seed}"), _jobs(count, seed)
    for job in jobs:
        job |= dict.fromkeys(ASKED_OF_NODES)
        if draw.random() < 0.5:
            nodes, gpu = draw.choice((1, 2)), job["partition"] == "gpu"
            job |= {"nodes": nodes, "single_node": False, "demand_memory": 0, "demand_gpu": 0}
            job |= {"cores": nodes * draw.randint(1, 4), "memory_mb_per_node": draw.choice((None, 4, 12))}
            job |= {"gpus_per_node": draw.choice((None, 2)) if gpu else None}
            job |= {"features": draw.choice((None, "x", "x|y")), "excluded_nodes": draw.choice((None, "n[2,5]"))}
    return jobs


def _jobs(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Jobs of both partitions; half take one node with memory and GPUs, the others any cores of several."""
    draw = random.Random(f"site/{seed}")
    out, now = [], 0.0
    for k in range(count):
        now += draw.choice((0.0, 1.0, 1.0, 4.0))
        part, single = draw.choice(tuple(PARTS)), draw.random() < 0.5
        length = float(draw.randint(1, 20))
        job = {
            "job_id": f"{k:03}",
            "submit_s": now,
            "runtime_s": length,
            "walltime_s": length * draw.choice((1, 1, 2)),
            "load": 1.0,
        }
        job |= {
            "cores": draw.randint(1, 4 if single else 12),
            "single_node": single,
            "user": draw.choice("abc"),
            "partition": part,
        }
        memory, gpus = draw.choice((0, 8, 16)), draw.choice((0, 1, 2))
        job |= {"demand_memory": memory if single else 0, "demand_gpu": gpus if single and part == "gpu" else 0}
        out.append(job)
    return out


class Partitioned(Machine):
    """Says of each job which partition it is in; nodes of `gone` are told as gone."""

    def __init__(self, jobs: list[dict[str, Any]], gone: tuple[int, ...] = (), parts: bool = True) -> None:
        super().__init__(_world(), jobs)
        self.part_of = {job["job_id"]: job["partition"] for job in jobs} if parts else {}
        self.gone = set(gone)

    def snapshot(self) -> Snapshot:
        told = super().snapshot().columns()
        if self.part_of:
            told["jobs"]["partition"] = [self.part_of[name] for name in told["jobs"]["job_id"]]
        told["nodes"]["gone"] = [k in self.gone for k in range(len(self.nodes))]
        return Snapshot.of(told["now_s"], told["jobs"], told["nodes"], told["placed"], told["ended"])


def _inside(jobs: list[dict[str, Any]], platform: escala.Platform, scheduler: str, shutdown: str) -> Any:
    options = {"rebuild": True} if scheduler.startswith("conservative") else {}
    plain = [{name: value for name, value in job.items() if name != "partition"} for job in jobs]
    for job in plain:  # alone, a partition knows no nodes of others
        if job.get("excluded_nodes"):
            job["excluded_nodes"] = next(name for name in ("n2", "n5") if name in platform.names)
    return escala.simulate(escala.Workload.from_jobs(plain), platform, scheduler, shutdown, **options)


def _differences(
    result: Any, jobs: list[dict[str, Any]], places: list[dict[str, Any]], nodes: tuple[int, ...]
) -> list[str]:
    """What starts, ends and nodes (of the site) of a run inside the kernel have otherwise."""
    expected = rows(result.jobs)
    for row in expected:
        row.pop("estimate_s", None)
    own = sorted((row["job_id"], nodes[row["node"]], row["cores"]) for row in rows(result.allocations))
    names = {row["job_id"] for row in expected}
    mine = sorted((row["job_id"], row["node"], row["cores"]) for row in places if row["job_id"] in names)
    told = [{**row, "nodes": None} for row in jobs if row["job_id"] in names]
    return job_differences(told, [{**row, "nodes": None} for row in expected]) + (["places"] if own != mine else [])


@pytest.mark.parametrize(("scheduler", "shutdown"), PAIRS)
@pytest.mark.parametrize(
    ("seed", "count"), [(0, 80), (1, 80), *(pytest.param(seed, 300, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_each_partition_is_as_if_it_were_alone(
    scheduler: str, shutdown: str, seed: int, count: int, tmp_path: Path
) -> None:
    assert _otherwise(scheduler, shutdown, seed, count, tmp_path) == []


@pytest.mark.parametrize("scheduler", EACH)
def test_every_pair_of_names_on_a_site(scheduler: str, tmp_path: Path) -> None:
    """All that a `SiteDesk` may be asked for; the two quick ones with three shutdown policies each."""
    for shutdown in SHUTDOWNS if scheduler not in QUICK else SHUTDOWNS[::4]:
        assert _otherwise(scheduler, shutdown, 0, 60, tmp_path) == [], shutdown


@pytest.mark.long
@pytest.mark.parametrize("scheduler", QUICK)
def test_every_shutdown_policy_on_a_site(scheduler: str, tmp_path: Path) -> None:
    for shutdown in SHUTDOWNS:
        assert _otherwise(scheduler, shutdown, 1, 300, tmp_path) == [], shutdown


@pytest.mark.parametrize(("scheduler", "shutdown"), PAIRS)
def test_jobs_with_shapes_on_a_site(scheduler: str, shutdown: str, tmp_path: Path) -> None:
    assert _otherwise(scheduler, shutdown, 0, 80, tmp_path, _shaped) == []


def _otherwise(
    scheduler: str, shutdown: str, seed: int, count: int, folder: Path, draw: Callable[..., Any] = _jobs
) -> list[str]:
    """What goes otherwise on a site than in each of its partitions alone; through JSON, with a restart from the state
    file at every 10th decision. Where the order changes while jobs wait, partitions get their jobs one after the other:
    with others beside, each is asked at more instants than a run of it alone decides at."""
    site, jobs = _site(), draw(count, seed)
    options = {"rebuild": True} if scheduler.startswith("conservative") else {}
    mine = {name: [job for job in jobs if job["partition"] == name] for name in PARTS}
    found = []
    for names in [[name] for name in PARTS] if any(one in scheduler for one in AGEING) else [list(PARTS)]:
        machine = Partitioned([job for job in jobs if job["partition"] in names])
        machine.run(lambda: SiteDesk(site, scheduler, shutdown, **options), folder / "state.json")  # type: ignore[arg-type,return-value]
        told, places, *_ = machine.tables()
        found += [] if len({row["job_id"] for row in places}) == sum(len(mine[name]) for name in names) else ["jobs"]
        for name in names:
            inside = _inside(mine[name], site.machine(name), scheduler, shutdown)
            found += _differences(inside, told, places, PARTS[name])
    return found


@pytest.mark.parametrize("scheduler", ["fcfs", "sjf", "wfp3", "easy", "saf", "easy:queue=wfp3", "easy-fast", "sjf-fit"])
@pytest.mark.parametrize("shutdown", ["never", "timeout:2", "hold:0.5"])
def test_a_replay_of_the_site_goes_as_its_desk_decides(scheduler: str, shutdown: str, tmp_path: Path) -> None:
    """Both are asked at each event of the site."""
    site, jobs = _site(), _shaped(60, 3)
    machine = Partitioned(jobs)
    machine.run(lambda: SiteDesk(site, scheduler, shutdown), tmp_path / "state.json")  # type: ignore[arg-type,return-value]
    told, places, *_ = machine.tables()
    inside = escala.simulate(escala.Workload.from_jobs(jobs), site, scheduler, shutdown)
    assert _differences(inside, told, places, tuple(range(7))) == []


@pytest.mark.parametrize(("scheduler", "shutdown"), PAIRS)
@pytest.mark.parametrize("count", [80, pytest.param(300, marks=pytest.mark.long)])
def test_nodes_that_are_gone_are_as_if_they_were_not_there(
    scheduler: str, shutdown: str, count: int, tmp_path: Path
) -> None:
    gone, left = (1, 4), (0, 2, 3, 5, 6)
    jobs = _jobs(count)
    options = {"rebuild": True} if scheduler == "conservative" else {}
    machine = Partitioned(jobs, gone, parts=False)
    whole = _site({"batch": tuple(range(7))})
    machine.run(lambda: Desk(whole, scheduler, shutdown, **options), tmp_path / "state.json")
    told, places, *_ = machine.tables()
    world = _world(left)
    profile = escala.PowerProfile(name="node", **PROFILE)
    rest = escala.Platform("left", world["cores"], (profile,), world["profile_of"], world["resources"])
    assert _differences(_inside(jobs, rest, scheduler, shutdown), told, places, left) == []
    assert not {row["node"] for row in places} & set(gone)


def test_random_sites_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fuzz, "SAID", 1)
    assert fuzz.check_sites(0, 2) == (2, [])
    assert capsys.readouterr().err == "1 of 2 site worlds, 0 otherwise\n2 of 2 site worlds, 0 otherwise\n"


def _snapshot(**jobs: Any) -> Snapshot:
    told = {
        "job_id": ["1", "2"],
        "submit_s": [1.0, 2.0],
        "walltime_s": [60.0, 60.0],
        "cores": [8, 4],
        "state": ["queued", "queued"],
    }
    return Snapshot.of(10.0, told | jobs, {"power": ["on"] * 7, "idle_since_s": [0.0] * 7})


def test_what_a_site_gives_by_hand() -> None:
    desk = desk_of(_site(), "easy", "timeout:5")
    orders = desk.decide(Snapshot.from_json(_snapshot(partition=["gpu", None]).to_json()))
    assert [(start.job_id, start.nodes) for start in orders.starts] == [("2", ((0, 0, 4),)), ("1", ((1, 1, 8),))]
    assert orders.offs == (2, 3, 4, 5, 6) and [one.job_id for one in desk.plan(_snapshot(partition=["gpu", None]))] == [
        "2",
        "1",
    ]
    assert type(desk_of(_site({"batch": (0, 1)}))) is SiteDesk
    assert type(desk_of(_site({"batch": tuple(range(7))}))) is Desk


def _giving_whole_nodes() -> Site:
    site = _site()
    return replace(site, partitions=tuple(replace(one, exclusive=one.name == "gpu") for one in site.partitions))


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "saf"])
def test_a_partition_that_gives_whole_nodes_gives_them_here_too(scheduler: str) -> None:
    site, plain = _giving_whole_nodes(), {"submit_s": [1.0, 2.0], "runtime_s": [9.0] * 2, "walltime_s": [9.0] * 2}
    log = escala.Workload.from_jobs(plain | {"cores": [1, 9], "partition": ["gpu", "gpu"]})
    inside = escala.simulate(log, site, scheduler).allocations.select("node", "cores").rows()
    orders = SiteDesk(site, scheduler).decide(_snapshot(cores=[1, 9], partition=["gpu", "gpu"]))
    assert [part for start in orders.starts for part in start.nodes] == [(1, 1, 8), (3, 3, 8), (5, 5, 8)]
    assert inside == [(1, 8), (3, 8), (5, 8)]
    shared = SiteDesk(site, scheduler).decide(_snapshot(cores=[1, 2]))
    assert [start.nodes for start in shared.starts] == [((0, 0, 1),), ((0, 0, 2),)]


def test_a_desk_of_a_partition_alone_gives_whole_nodes() -> None:
    alone = _giving_whole_nodes().machine("gpu")
    told = _snapshot(cores=[1, 9])
    told = replace(told, nodes=told.nodes[:3])
    for desk in (Desk(alone), desk_of(alone)):
        assert [start.nodes for start in desk.decide(told).starts] == [((0, 0, 8),), ((1, 2, 8),)]
        assert [one.job_id for one in desk.plan(told)] == ["1", "2"]
    assert type(desk_of(alone)) is SiteDesk


def test_select_linear_gives_whole_nodes_here_too() -> None:
    alone = replace(_site().machine("gpu"), settings={"selecttype": "select/linear"})
    told = _snapshot(cores=[1, 9])
    told = replace(told, nodes=told.nodes[:3])
    for desk in (Desk(alone), desk_of(alone)):
        assert [start.nodes for start in desk.decide(told).starts] == [((0, 0, 8),), ((1, 2, 8),)]


def test_jobs_that_run_in_a_partition_of_whole_nodes_lie_where_they_lie() -> None:
    """The second has a core of node 1 and 16 GB a core, which eight cores there would not have; 3 and 5 are left."""
    site = _giving_whole_nodes()
    told = _snapshot(cores=[9, 1], memory_mb_per_core=[None, 16], partition=["gpu", "gpu"]).columns()
    jobs = told["jobs"] | {"state": ["queued", "running"], "start_s": [None, 5.0]}
    placed = {"job": [1], "first": [1], "last": [1], "cores": [1]}
    orders = SiteDesk(site).decide(Snapshot.of(10.0, jobs, told["nodes"], placed))
    assert [start.nodes for start in orders.starts] == [((3, 3, 8), (5, 5, 8))]
    with pytest.raises(escala.EscalaError, match="cores that it has there, or exclusive if it has whole nodes"):
        Snapshot.of(10.0, jobs | {"memory_mb_per_core": [None] * 2}, told["nodes"], placed | {"cores": [8]})


def test_a_job_that_names_a_node_of_others_is_refused_alone() -> None:
    told = _snapshot(
        partition=["gpu", "gpu"], required_nodes=["n2", None], excluded_nodes=[None, "n1,n2"], nodes=[1, 1]
    )
    orders = SiteDesk(_site()).decide(told)
    assert [(start.job_id, start.nodes) for start in orders.starts] == [("2", ((3, 3, 4),))]
    assert [(one.job_id, one.why[:49]) for one in orders.refused] == [
        ("1", "names node 'n2', which site 'site gpu' has not: m")
    ]
    broken = _snapshot(partition=["gpu", "gpu"], excluded_nodes=["n[", None])
    assert [one.job_id for one in SiteDesk(_site()).decide(broken).starts] == ["2"]


def test_a_partition_that_is_down_starts_nothing() -> None:
    site = _site()
    down = Site(
        *(getattr(site, name) for name in ("name", "cores", "profiles", "profile_of", "resources")),
        partitions=(Partition("batch", (0, 2, 4, 6), default=True), Partition("gpu", (1, 3, 5), up=False)),
    )
    orders = SiteDesk(down).decide(_snapshot(partition=["gpu", "batch"]))
    assert [start.job_id for start in orders.starts] == ["2"] and orders.refused == (("1", "partition 'gpu' is down"),)


def test_a_job_larger_than_its_partition_holds_back_nobody(tmp_path: Path) -> None:
    """Sixteen cores in batch, twenty in gpu: what fits in one does not in the other."""
    orders = SiteDesk(_site(), "fcfs").decide(_snapshot(partition=["batch", None], cores=[17, 1]))
    assert [start.job_id for start in orders.starts] == ["2"]
    assert orders.refused == (("1", "it needs 17 cores, and platform 'site batch' has 16"),)
    assert SiteDesk(_site(), "fcfs").decide(_snapshot(partition=["gpu", None], cores=[17, 1])).refused == ()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SiteDesk(_site({"batch": (0, 1), "gpu": (1, 2)})), "partitions 'batch' and 'gpu' share node"),
        (lambda: SiteDesk(_site(), "slurm"), "scheduler slurm has rules of its own"),
        (
            lambda: SiteDesk(_site()).decide(_snapshot(partition=["gpu", "none"])),
            "has no partition 'none': it has batch, gpu",
        ),
        (
            lambda: Desk(_site({"gpu": tuple(range(7))})).decide(_snapshot(partition=["gpu", "gpu"])),
            "this desk knows no partitions: ask a SiteDesk",
        ),
        (
            lambda: Desk(_site()),
            "a partition has only some of its nodes, and a Desk knows no partitions: take a SiteDesk",
        ),
        (
            lambda: SiteDesk(_site({"a": (0,), "b": (1,)})).decide(_snapshot()),
            "job '1' names no partition, and none is the default",
        ),
        (lambda: _snapshot(partition=["gpu", 3]), "jobs.partition[1] is 3: give a text, or null"),
    ],
)
def test_refused_in_one_line(make: Any, said: str) -> None:
    with pytest.raises(escala.EscalaError) as raised:
        make()
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_a_decision_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    """One partition has decided when the next refuses."""
    desk = SiteDesk(_site(), "easy-fast", "hold:0.5")
    desk.decide(_snapshot())
    desk.save(tmp_path / "before.json")
    bad = _snapshot(partition=["batch", "gpu"]).columns()
    bad["jobs"] |= {"state": ["queued", "running"], "start_s": [None, 5.0]}
    bad["placed"] = {"job": [1], "first": [1], "last": [1], "cores": [4]}
    bad["nodes"]["power"][1] = "off"
    with pytest.raises(escala.EscalaError, match="which is not on"):
        desk.decide(Snapshot.of(11.0, bad["jobs"], bad["nodes"], bad["placed"]))
    desk.save(tmp_path / "after.json")
    assert (tmp_path / "before.json").read_text() == (tmp_path / "after.json").read_text()
    with pytest.raises(escala.EscalaError, match="of other partitions"):
        SiteDesk(_site({"a": PARTS["batch"], "b": PARTS["gpu"]}), "easy-fast", "hold:0.5").restore(
            tmp_path / "after.json"
        )
