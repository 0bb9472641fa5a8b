"""Give a list of jobs to a real Slurm of its own once more, in real time, and write what it did as a recorded run.

`python -m tests.golden.slurm.record LIST.json OUT.json [--part 0.25] [--port 42000] [--lab FOLDER]`: needs Slurm (see
`examples/slurm/lab.sh`). `--part`: at which part of a second the lab begins, and with it the clocks of slurmctld;
where the list begins stays the same to half a minute of unix time, on which plans depend. Jobs are sleeps.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import time
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tests.bridges.slurm.lab import kept

LOGGED = "SlurmctldDebug=debug2\nDebugFlags=Backfill\nLogTimeFormat=iso8601_ms"
AHEAD_S = 5
"""So long before the list the lab begins."""
HALF_MINUTE_S, MORE_S = 30, 90
ASKED_AS = {
    "nodes": "--nodes",
    "tasks": "--ntasks",
    "tasks_per_node": "--ntasks-per-node",
    "cpus_per_task": "--cpus-per-task",
    "mem_per_cpu_mb": "--mem-per-cpu",
    "mem_per_node_mb": "--mem",
    "features": "--constraint",
    "required_nodes": "--nodelist",
    "excluded_nodes": "--exclude",
    "partition": "--partition",
}
_LINE = re.compile(r"\[(\S+)\] (?:debug\d?:\s+)?(.*)")
_ID = r"JobId=(?:(\d+)_(\d+)\()?(\d+)\)?"
_STARTED = re.compile(rf"(sched: Allocate|_start_job: Started) {_ID}.*?(?:NodeList=| on )(\S+)")
_CLEARED = re.compile(rf"(?:_slurm_rpc_epilog_complete|_job_complete): {_ID} (?:Node=|done)")
"""A job has ended, or a node of it is clear, where slurmctld says so: the last is its end."""


class Slurm:
    """A lab: its daemons, on ports from `port` on."""

    def __init__(self, folder: Path, run: dict[str, Any], port: int) -> None:
        self.folder = folder
        has = [f"CPUs={one['cpus']} RealMemory={one['memory_mb']} {one.get('more', '')}" for one in run["nodes"]]
        partitions = [line for line in run["config"] if line.startswith("PartitionName")]
        lines = [line for line in run["config"] if line not in partitions]
        self.about = [str(folder), str(len(run["nodes"]))]
        self.environment = {
            **os.environ,
            "LAB_PORT": str(port),
            "LAB_EXTRA": "\n".join([*lines, LOGGED]),
            "LAB_NODES": "\n".join(has),
            "LAB_PARTITIONS": "\n".join(partitions),
            "SLURM_CONF": str(folder / "slurm.conf"),
        }

    def up(self) -> AbstractContextManager[None]:
        """Up, and down at the end, also of this process."""
        return kept(self.about, self.environment)

    def submit(self, *options: str) -> str:
        command = ["sbatch", "--parsable", "--output=/dev/null", *options]
        told = subprocess.run(command, env=self.environment, timeout=20, check=True, stdout=subprocess.PIPE, text=True)
        return told.stdout.split(";")[0].strip()

    def log(self) -> list[tuple[float, str]]:
        """Unix seconds and text of each line of slurmctld."""
        lines = (self.folder / "log/slurmctld.log").read_text(errors="replace").splitlines()
        found = (_LINE.match(line) for line in lines)
        return [(datetime.fromisoformat(one[1]).astimezone().timestamp(), one[2]) for one in found if one]


def _asked_s(job: dict[str, Any]) -> int:
    """The sleep of a job: whole seconds, so many that it outruns its limit where it did."""
    ran = job["run_s"] if "run_s" in job else job["end_exact_s"] - job["start_exact_s"]
    return int(job["limit_s"] + 60 if ran >= job["limit_s"] else ran)


def _groups(jobs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Jobs, and the tasks of an array together, in the order of submission."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        found.setdefault(str(job.get("array_id") or job["id"]), []).append(job)
    return sorted(found.values(), key=lambda group: group[0]["submit_s"])


def _options(group: list[dict[str, Any]], numbers: dict[str, str], epoch: int, folder: Path) -> list[str]:
    """Of sbatch; the script sleeps as long as each task asks for."""
    job = group[0]
    found = [f"{option}={job[key]}" for key, option in ASKED_AS.items() if job.get(key) is not None]
    found += ["--exclusive"] if job.get("exclusive") else []
    found.append(f"--time={job['limit_s'] // 60}")
    if job.get("begin_s") is not None:
        found.append(f"--begin={datetime.fromtimestamp(epoch + job['begin_s']).isoformat()}")
    if job.get("dependency"):
        found.append("--dependency=" + re.sub(r":(\d+)", lambda one: f":{numbers[one[1]]}", job["dependency"]))
    if job.get("array_id") is not None:
        limit = f"%{job['array_limit']}" if job.get("array_limit") else ""
        found.append(f"--array=0-{len(group) - 1}{limit}")
    script = folder / f"job{job['id']}.sh"
    times = " ".join(str(_asked_s(task)) for task in group)
    script.write_text(f"#!/bin/bash\nasked=({times})\nexec sleep ${{asked[${{SLURM_ARRAY_TASK_ID:-0}}]}}\n")
    return [*found, str(script)]


def record(run: dict[str, Any], slurm: Slurm, part: float) -> dict[str, Any]:
    """The list once more; about as long as it took, and half a minute."""
    same = run["epoch_start_s"] % HALF_MINUTE_S
    epoch = int(time.time()) + 12
    epoch += (same - epoch) % HALF_MINUTE_S
    time.sleep(max(epoch - AHEAD_S + part - time.time(), 0))
    numbers: dict[str, str] = {}
    with slurm.up():
        for group in _groups(run["jobs"]):
            options = _options(group, numbers, epoch, slurm.folder)
            time.sleep(max(epoch + group[0]["submit_s"] - 0.02 - time.time(), 0))
            numbers[str(group[0].get("array_id") or group[0]["id"])] = slurm.submit(*options)
        last = max((job.get("start_exact_s") or job["submit_s"]) + _asked_s(job) for job in run["jobs"])
        time.sleep(max(epoch + last + MORE_S - time.time(), 0))
    return _recorded(run, slurm.log(), numbers, epoch)


def _recorded(run: dict[str, Any], log: list[tuple[float, str]], numbers: dict[str, str], epoch: int) -> dict[str, Any]:
    """What the log says of each job, of backfill passes, and of event passes as a line."""
    starts: dict[str, tuple[float, str, str]] = {}
    ends: dict[str, float] = {}
    submits: dict[str, float] = {}
    passes, events, began = [], [], 0.0
    for at, text in log:
        at -= epoch
        if text.startswith("slurmctld version"):
            began = at
        elif "_attempt_backfill: beginning" in text:
            passes.append(round(at, 3))
        elif "sched: Running job scheduler" in text:
            events.append(at)
        elif (one := re.search(r"_slurm_rpc_submit_batch_job: JobId=(\d+)", text)) is not None:
            submits[one[1]] = at
        elif one := _STARTED.search(text):
            by = "main" if one[1].startswith("sched") else "backfill"
            starts[_name(one[2], one[3], one[4])] = (at, by, one[5])
        elif (one := _CLEARED.search(text)) is not None:
            ends[_name(one[1], one[2], one[3])] = at
    jobs = []
    for job in run["jobs"]:
        array = job.get("array_id")
        number = numbers[str(array or job["id"])]
        key = f"{number}_{str(job['id']).rpartition('_')[2]}" if array is not None else number
        new = {name: value for name, value in job.items() if name not in ("run_s", "node_list", "start_exact_s")}
        start, by, nodes = starts.get(key, (None, None, None))
        new |= {"submit_s": round(submits[number], 3), "started_by": by, "node_list": nodes}
        new["start_exact_s"] = None if start is None else round(start, 3)
        new["run_s"] = float(_asked_s(job)) if start is None or key not in ends else round(ends[key] - start, 3)
        jobs.append(new)
    ticks = np.cumsum(np.round(np.diff(events, prepend=events[0])))  # which drift by milliseconds a second
    every, first = np.polyfit(ticks, events, 1)
    return {
        **run,
        "jobs": jobs,
        "epoch_start_s": epoch,
        "backfill_pass_times_s": passes,
        "event_passes": {
            "started_s": round(began, 3),
            "tick_s": round(float(first), 4),
            "tick_every_s": round(float(every), 6),
        },
    }


def _name(array: str | None, task: str | None, number: str) -> str:
    return f"{array}_{task}" if array is not None else number


def text_of(run: dict[str, Any]) -> str:
    """As JSON: a job a line, and what was not asked left out."""
    kept = ("start_exact_s", "started_by", "node_list")
    jobs = [{key: value for key, value in job.items() if value is not None or key in kept} for job in run["jobs"]]
    told = {key: json.dumps(value) for key, value in run.items()}
    for key, rows in (("config", run["config"]), ("nodes", run["nodes"]), ("jobs", jobs)):
        told[key] = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]"
    return "{\n" + ",\n".join(f' "{key}": {value}' for key, value in told.items()) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", type=float, default=0.0)
    parser.add_argument("--port", type=int, default=42000)
    parser.add_argument("--lab", type=Path, required=True)
    asked = parser.parse_args()
    run = json.loads(asked.list.read_text())
    found = record(run, Slurm(asked.lab, run, asked.port), asked.part)
    asked.out.write_text(text_of(found))


if __name__ == "__main__":
    main()
