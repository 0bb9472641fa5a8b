"""What the recorder of runs reads in slurmctld's log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden.slurm.record import Slurm, _groups, _options, _recorded, text_of
from tests.golden.slurm.recorded import recorded

LOG = """\
[2026-11-29T10:00:00.250] slurmctld version 22.05.8 started on cluster lab
[2026-11-29T10:00:10.100] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=340
[2026-11-29T10:00:10.200] _slurm_rpc_submit_batch_job: JobId=3 InitPrio=4294901758 usec=340
[2026-11-29T10:00:10.900] debug:  sched: Running job scheduler for default depth.
[2026-11-29T10:00:10.901] sched: Allocate JobId=1_0(2) NodeList=n[1-2] #CPUs=2 Partition=batch
[2026-11-29T10:00:11.000] sched/backfill: _attempt_backfill: beginning
[2026-11-29T10:00:11.001] sched/backfill: _start_job: Started JobId=1_1(1) in batch on n[3-4]
[2026-11-29T10:00:12.902] debug:  sched: Running job scheduler for full queue.
[2026-11-29T10:00:15.950] _job_complete: JobId=1_0(2) done
[2026-11-29T10:00:16.010] debug2: _slurm_rpc_epilog_complete: JobId=1_0(2) Node=n2
[2026-11-29T10:01:19.000] debug2: _slurm_rpc_epilog_complete: JobId=1_1(1) Node=n3
"""
NODES = [{"name": f"n{k}", "cpus": 1, "memory_mb": 4000} for k in range(1, 5)]
TASK = {"submit_s": 0.1, "limit_s": 60, "nodes": 2, "array_id": "1", "array_limit": 2}


def _run() -> dict[str, Any]:
    """A list: an array of two tasks, of which the second outruns its limit, and a job behind it."""
    jobs = [
        {**TASK, "id": "1_0", "run_s": 5.08},
        {**TASK, "id": "1_1", "run_s": 68.0},
        {"id": "b", "submit_s": 0.2, "limit_s": 120, "nodes": 1, "run_s": 7.0, "dependency": "afterok:1"},
    ]
    config = ["SelectTypeParameters=CR_CPU", "PartitionName=batch Nodes=n[1-4] Default=YES"]
    return {"slurm": "22.05.8", "name": "T", "config": config, "nodes": NODES, "jobs": jobs, "epoch_start_s": 10}


def test_what_a_log_says_of_each_job(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path, _run(), 42000)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/slurmctld.log").write_text(LOG)
    log = slurm.log()
    epoch = int(log[0][0]) + 10
    found = _recorded(_run(), log, {"1": "1", "b": "3"}, epoch)
    first, second, third = found["jobs"]
    assert [first[key] for key in ("submit_s", "start_exact_s", "started_by", "node_list")] == [
        0.1, 0.901, "main", "n[1-2]"
    ]  # fmt: skip
    assert first["run_s"] == 5.109 and second["run_s"] == 67.999 and second["started_by"] == "backfill"
    assert third["start_exact_s"] is None and third["run_s"] == 7.0
    assert found["backfill_pass_times_s"] == [1.0]
    assert found["event_passes"] == {"started_s": -9.75, "tick_s": 0.9, "tick_every_s": 1.001}
    (tmp_path / "golden-T.json").write_text(text_of(found))
    assert json.loads((tmp_path / "golden-T.json").read_text())["jobs"][1]["array_id"] == "1"
    assert len(recorded(tmp_path, "T", tmp_path).workload) == 3


def test_what_is_asked_of_sbatch(tmp_path: Path) -> None:
    array, job = _groups(_run()["jobs"])
    *options, script = _options(array, {}, 10, tmp_path)
    assert options == ["--nodes=2", "--time=1", "--array=0-1%2"]
    assert "asked=(5 120)" in Path(script).read_text()
    assert _options(job, {"1": "17"}, 10, tmp_path)[:-1] == ["--nodes=1", "--time=2", "--dependency=afterok:17"]
