"""Jobs of whole nodes are jobs of Batsim's hosts, and the others are refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.parts import parts_of
from escala.platform import Platform, PowerProfile
from escala.workload import Workload, read_workload, write_batsim
from escala.workload.whole_nodes import on_hosts
from tests.oracle.worlds import draw_shape

TIMES = {"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 20.0, "single_node": False}
WHOLE: dict[str, tuple[dict[str, Any], int, float]] = {
    "all cores of its nodes": ({"cores": 8, "nodes": 2}, 2, 1.0),
    "whole nodes, some cores idle": ({"cores": 6, "nodes": 3, "exclusive": True}, 3, 0.5),
    "the fewest nodes": ({"cores": 5, "exclusive": True}, 2, 0.625),
    "the fewest nodes by tasks": ({"cores": 6, "tasks": 2, "cores_per_task": 3, "exclusive": True}, 2, 0.75),
    "by tasks on a node": ({"cores": 4, "tasks_per_node": 1, "exclusive": True}, 4, 0.25),
    "cores of any nodes": ({"cores": 12}, 3, 1.0),
    "one node": ({"cores": 4, "single_node": True}, 1, 1.0),
    "memory and GPUs of given nodes": ({"cores": 4, "nodes": 1, "memory_mb_per_node": 9, "gpus_per_node": 1}, 1, 1.0),
}
SHARED: dict[str, dict[str, Any]] = {
    "some cores of any nodes": {"cores": 3},
    "some cores of its nodes": {"cores": 7, "nodes": 2},
    "one node": {"cores": 3, "single_node": True},
    "tasks that pack, one on a node": {"cores": 4, "tasks_per_node": 1},
    "tasks that do not fill a node": {"cores": 12, "tasks": 4, "cores_per_task": 3},
    "memory says how many nodes": {"cores": 4, "exclusive": True, "memory_mb_per_core": 9},
    "more cores than its nodes have": {"cores": 9, "nodes": 2, "exclusive": True},
    "whole tasks that fit no node": {"cores": 12, "nodes": 3, "tasks": 4, "cores_per_task": 3},
}


@pytest.mark.parametrize("what", WHOLE)
def test_a_job_of_whole_nodes_is_one_of_hosts(what: str) -> None:
    job, hosts, load = WHOLE[what]
    found = on_hosts(Workload.from_jobs([{**TIMES, **job}], max_cores=32), 4)
    assert found.jobs.select("cores", "load", "single_node").rows() == [(hosts, load, False)]
    assert found.max_cores == 8 and "nodes" not in found.jobs.columns


@pytest.mark.parametrize("what", SHARED)
def test_a_job_that_may_share_a_node_is_refused(what: str, tmp_path: Path) -> None:
    log = Workload.from_jobs([{**TIMES, "cores": 4}, {**TIMES, **SHARED[what]}], name="mixed")
    with pytest.raises(EscalaError, match=r"^workload 'mixed': job '2', of .* does not take whole nodes of 4 cores"):
        write_batsim(log, tmp_path / "out.json", speed=1e9, node_cores=4)
    assert not list(tmp_path.iterdir())


def test_what_hosts_do_not_know_is_refused(tmp_path: Path) -> None:
    log = Workload.from_jobs([{**TIMES, "cores": 4, "nodes": 1, "features": "ib"}])
    with pytest.raises(EscalaError, match="Batsim's hosts know no features"):
        write_batsim(log, tmp_path / "out.json", speed=1e9, node_cores=4)


def test_flops_of_nodes_that_are_used_in_part_are_refused(tmp_path: Path) -> None:
    log = Workload.from_jobs({"submit_s": [0.0], "flops": [1e12], "cores": [6], "nodes": [3], "exclusive": [True]})
    with pytest.raises(EscalaError, match="job '1' leaves cores of its nodes idle, and runtimes are flops: give"):
        write_batsim(log, tmp_path / "out.json", node_cores=4)
    write_batsim(log, tmp_path / "out.json", node_cores=2)
    assert read_workload(tmp_path / "out.json").jobs.select("cores", "flops").rows() == [(3, 1e12)]


def test_what_is_written_of_hosts(tmp_path: Path) -> None:
    log = Workload.from_jobs([{**TIMES, "cores": 6, "nodes": 3, "exclusive": True, "user": "ann"}])
    path = tmp_path / "out.json"
    with pytest.raises(EscalaError, match=r"cannot hold nodes: write Parquet .*node_cores=16 \(--node-cores 16\)"):
        write_batsim(log, path, speed=1e9)
    write_batsim(log, path, speed=1e9, node_cores=4)
    document = json.loads(path.read_text())
    assert document["nb_res"] == 3
    (job,) = document["jobs"]
    assert (job["res"], job["walltime"], job["user"]) == (3, 20, "ann")


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "sjf-fit", "easy-fast"])
def test_the_schedule_on_hosts_is_that_on_nodes(scheduler: str, tmp_path: Path) -> None:
    """Random jobs; those that take whole nodes by their columns are those that `parts_of` gives whole nodes."""
    draw, rows = random.Random(scheduler), list[dict[str, Any]]()
    profile = PowerProfile(name="p", computing_w=200.0, idle_w=100.0)
    cells = Platform(name="cells", cores=[4] * 5, profiles=(profile,), profile_of=[0] * 5)
    hosts = Platform(name="hosts", cores=[1] * 5, profiles=(profile,), profile_of=[0] * 5)
    kept = shared = 0
    while kept < 40:
        asked = {name: value for name, value in draw_shape(draw, 5).items() if not name.startswith(("gpu", "memory"))}
        one = {**TIMES, "exclusive": None, "tasks": None, "cores_per_task": None, "tasks_per_node": None, **asked}
        made = parts_of(Workload.from_jobs([one]), cells)
        if made is not None and made.too_large(cells).any():
            continue
        try:
            told = on_hosts(Workload.from_jobs([one]), 4).jobs["cores"].item()
        except EscalaError:
            shared += 1
            assert made is None or (made.share.item(), made.less.item()) != (4, 4)
            continue
        if made is not None and made.parts.item() > 0 and made.most.item() == 1:
            assert (told, made.share.item(), made.less.item()) == (made.parts.item(), 4, 4)
        kept += 1
        length = draw.randint(1, 30)
        rows.append({**one, "submit_s": draw.randint(0, 200), "runtime_s": length, "walltime_s": length + 5})
    assert shared > 5
    log = Workload.from_jobs(sorted(rows, key=lambda row: row["submit_s"]))
    write_batsim(log, tmp_path / "out.json", speed=1e9, node_cores=4)
    by_nodes = escala.simulate(log, cells, scheduler)
    by_hosts = escala.simulate(read_workload(tmp_path / "out.json", speed=1e9), hosts, scheduler)
    same = ["job_id", "start_s", "finish_s", "nodes"]
    assert by_hosts.jobs.select(same).equals(by_nodes.jobs.select(same))
    assert by_hosts.summary()["energy_j"] == pytest.approx(by_nodes.summary()["energy_j"], rel=1e-9)
