"""Runs under Slurm's rules: what is refused, and what they take and give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import escala
from escala import EscalaError
from tests.unit.slurm.by_hand import jobs, starts


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"nodes": [5]}, "needs 5"),
        ({"tasks": [9], "nodes": [None]}, "needs 9"),
        ({"gpus_per_node": [1]}, "0 nodes that could run it"),
        ({"partition": ["nowhere"]}, "no partition 'nowhere'"),
        ({"gpus_per_node": [1], "gpu_kind": ["h100"]}, "kind 'h100'"),
        ({"walltime_s": [1e6]}, "allows 86400 s"),
        ({"dependency": ["afterwards:1"]}, "afterwards:1"),
        ({"nodes": [2], "tasks": [1]}, "no more than its tasks"),
        ({"nodes": [2], "single_node": [True]}, "has nodes = 2: a job with single_node lies on one node: give 1, or"),
        ({"gpus_per_node": [1], "gpus_per_task": [1]}, "not for both"),
        ({"memory_mb_per_node": [-1]}, "0 or more"),
    ],
)
def test_what_cannot_be_is_one_line(site: Any, columns: dict[str, Any], says: str) -> None:
    parts = "PartitionName=p Nodes=ALL Default=YES MaxTime=1-0"
    table = {"submit_s": [0.0], "runtime_s": [5.0], "walltime_s": [60.0], "nodes": [1], **columns}
    with pytest.raises(EscalaError) as error:
        escala.simulate(escala.Workload.from_jobs(table), site(partitions=parts), scheduler="slurm")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_circles_of_dependencies_are_refused(site: Any) -> None:
    work = jobs((0, 5, 60, 1), (1, 5, 60, 1), job_id=["a", "b"], dependency=["afterok:b", "afterok:a"])
    with pytest.raises(EscalaError, match="circle"):
        escala.simulate(work, site(), scheduler="slurm")


@pytest.mark.parametrize(
    ("scheduler", "says"),
    [
        ("slurm:bf_intervall=3", "did you mean bf_interval"),
        ("slurm:bf_interval=x", "not a whole number"),
        ("slurm:bf_interval", "needs a value"),
        ("slurm:phase=soon", "no number of seconds"),
    ],
)
def test_wrong_keys_behind_the_name(site: Any, scheduler: str, says: str) -> None:
    with pytest.raises(EscalaError, match=says):
        starts(jobs((0, 5, 60, 1)), site(), scheduler)


def test_options_and_policies_that_mean_nothing_here_are_refused(site: Any) -> None:
    work = jobs((0, 5, 60, 1))
    with pytest.raises(EscalaError, match="option head means nothing"):
        starts(work, site(), head="latest-released")
    with pytest.raises(EscalaError, match="leaves nodes on"):
        escala.simulate(work, site().with_power("taurus"), "slurm", "timeout:60")


def test_jobs_that_can_never_run_can_be_dropped(site: Any) -> None:
    result = escala.simulate(jobs((0, 5, 60, 9), (1, 5, 60, 1)), site(), scheduler="slurm", oversized="drop")
    assert result.jobs["state"].to_list() == ["REJECTED", "COMPLETED"]


def test_a_plain_platform_is_one_partition(site: Any) -> None:
    work = escala.Workload.from_jobs(
        {"submit_s": [0.0, 1.0], "runtime_s": [10.0, 10.0], "walltime_s": [60.0, 60.0], "cores": [40, 4]}
    )
    result = escala.simulate(work, "4x16:taurus", "slurm")
    assert result.summary()["n_completed"] == 2
    assert result.totals["joules"].sum() > 0


def test_a_run_can_be_saved_and_run_again(site: Any, tmp_path: Path) -> None:
    work = jobs((0, 20, 60, 3), (1, 50, 60, 2), (2, 20, 60, 1))
    result = escala.simulate(work, site(), scheduler="slurm:tick=0.2")
    result.save(tmp_path / "run")
    again = escala.rerun(tmp_path / "run", work)
    assert again.jobs.equals(result.jobs)
    assert escala.Result.load(tmp_path / "run").jobs.equals(result.jobs)


def test_shapes_are_read_from_files(site: Any, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "submit_s,runtime_s,walltime_s,cores,nodes,partition,exclusive,gpu_kind,memory_mb_per_core\n"
        "0,50,60,2,2,p,true,,\n1,5,60,4,1,p,no,,10\n"
    )
    work = escala.read_workload(path)
    assert work.jobs.select("nodes", "exclusive", "gpu_kind", "memory_mb_per_core").rows() == [
        (2, True, None, None),
        (1, False, None, 10),
    ]
    assert escala.simulate(work, site("NodeName=n[1-2] CPUs=4"), scheduler="slurm").jobs["start_s"][1] > 50


REPLAY = """
import sys
import escala
jobs = {"submit_s": [0.0, 1.0], "runtime_s": [900.0, 9.0], "walltime_s": [999.0, 60.0], "cores": [8, 4]}
result = escala.simulate(escala.Workload.from_jobs(jobs), "4x2:taurus", "slurm")
print(result.summary()["n_completed"], "numba" in sys.modules)
"""


def test_a_replay_needs_no_numba_once_it_is_compiled() -> None:
    # checked code is Numba's own
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    for _ in range(2):  # the first one may compile
        outcome = subprocess.run([sys.executable, "-c", REPLAY], capture_output=True, text=True, timeout=600, env=env)
    assert outcome.stdout == "2 False\n", outcome.stderr[-2000:]
