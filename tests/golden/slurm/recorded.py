"""Recorded runs of real Slurm daemons, as sites and workloads, and how far a replay agrees with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import escala
from escala.platform.hostlist import hosts_of
from escala.platform.site import nodes_of_intervals

OWN = Path(__file__).parent / "recorded"
"""Runs of Slurm 22.05.8 that were recorded for these tests; the others are in a folder of material beside the
repository."""
ASKED = {
    "mem_per_cpu_mb": "memory_mb_per_core",
    "mem_per_node_mb": "memory_mb_per_node",
    "cpus_per_task": "cores_per_task",
    "name": "job_name",
}
FORM = ("nodes", "tasks", "tasks_per_node", "exclusive", "partition", "features", "required_nodes", "excluded_nodes")
SAME = (*FORM, "dependency", "begin_s", "array_id", "array_limit", "reservation")
WHO = ("user", "account", "qos")


def conf_of(run: dict[str, Any]) -> str:
    """The slurm.conf of a recorded run."""
    nodes = [
        f"NodeName={one['name']} CPUs={one['cpus']} RealMemory={one['memory_mb']} {one.get('more', '')}".rstrip()
        for one in run["nodes"]
    ]
    partitions = [line for line in run["config"] if line.startswith("PartitionName")]
    return "\n".join(
        ["ClusterName=lab", *(line for line in run["config"] if line not in partitions), *nodes, *partitions, ""]
    )


@dataclass(frozen=True)
class Recorded:
    """A run: what was asked, where, and what Slurm did."""

    run: dict[str, Any]
    site: Any
    workload: escala.Workload

    @property
    def mean_wait_s(self) -> float:
        """Of real Slurm."""
        waits = [job["start_exact_s"] - job["submit_s"] for job in self.run["jobs"] if job["start_exact_s"] is not None]
        return sum(waits) / len(waits)

    def agreement(self, result: escala.Result, within_s: float = 5.0) -> tuple[float, float]:
        """Shares of starts within so many seconds of the recorded ones, and of jobs on the same nodes. Who never starts
        has neither; of those that were still to start when the recording ended nothing is asked."""
        jobs = {str(job["id"]): job for job in self.run["jobs"]}
        near, same = 0, 0
        seen = result.jobs.filter(~pl.col("job_id").is_in([ident for ident, job in jobs.items() if job.get("unseen")]))
        for ident, start, nodes in seen.select("job_id", "start_s", "nodes").iter_rows():
            real = jobs[ident]["start_exact_s"]
            near += start is None if real is None else start is not None and abs(start - real) <= within_s
            here = {self.site.names[node] for node in nodes_of_intervals(nodes or "")}
            same += here == (set(hosts_of(jobs[ident]["node_list"], "nodes")) if real is not None else set())
        return near / len(seen), same / len(seen)


def _ran_s(job: dict[str, Any]) -> float:
    """For how long it ran; of a job that lost its nodes or never started how long it would have run."""
    return float(job["run_s"] if "run_s" in job else job["end_exact_s"] - job["start_exact_s"])


def recorded(folder: Path, name: str, scratch: Path) -> Recorded:
    """The run of this name, its slurm.conf (or site.toml) written to `scratch` and read from there."""
    run = json.loads((folder / f"golden-{name}.json").read_text())
    conf = scratch / f"{name}.{'toml' if 'site' in run else 'conf'}"
    conf.write_text(run["site"] if "site" in run else conf_of(run))
    jobs = run["jobs"]
    names = {**ASKED, **{one: one for one in (*SAME, *WHO)}}
    columns = {
        "job_id": [str(job["id"]) for job in jobs],
        "submit_s": [job["submit_s"] for job in jobs],
        "runtime_s": [_ran_s(job) for job in jobs],
        "walltime_s": [float(job["limit_s"]) for job in jobs],
        **{
            names[key]: [job.get(key) for job in jobs] for key in names if any(job.get(key) is not None for job in jobs)
        },
    }
    workload = escala.Workload.from_jobs(columns, origin_s=float(run["epoch_start_s"]), name=name)
    return Recorded(run, escala.read_site(conf), workload)
