"""Recorded runs of real Slurm daemons, as sites and workloads, and how far a replay agrees with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import escala
from escala.platform.hostlist import hosts_of
from escala.platform.site import nodes_of_intervals


def conf_of(run: dict[str, Any]) -> str:
    """The slurm.conf of a recorded run."""
    nodes = [f"NodeName={one['name']} CPUs={one['cpus']} RealMemory={one['memory_mb']}" for one in run["nodes"]]
    partitions = [line for line in run["config"] if line.startswith("PartitionName")]
    return "\n".join(["ClusterName=lab", *(line for line in run["config"] if line not in partitions), *nodes, *partitions, ""])


@dataclass(frozen=True)
class Recorded:
    """A run: what was asked, where, and what Slurm did."""

    run: dict[str, Any]
    site: Any
    workload: escala.Workload

    @property
    def mean_wait_s(self) -> float:
        """Of real Slurm."""
        waits = [job["start_exact_s"] - job["submit_s"] for job in self.run["jobs"]]
        return sum(waits) / len(waits)

    def agreement(self, result: escala.Result, within_s: float = 5.0) -> tuple[float, float]:
        """Shares of starts within so many seconds of the recorded ones, and of jobs on the same nodes."""
        jobs = {str(job["id"]): job for job in self.run["jobs"]}
        rows = result.jobs.select("job_id", "start_s", "nodes").rows()
        near = sum(abs(start - jobs[ident]["start_exact_s"]) <= within_s for ident, start, _ in rows)
        names = self.site.names
        same = sum(
            {names[node] for node in nodes_of_intervals(text)} == set(hosts_of(jobs[ident]["node_list"], "nodes"))
            for ident, _, text in rows
        )
        return near / len(rows), same / len(rows)


def recorded(folder: Path, name: str, scratch: Path) -> Recorded:
    """The run of this name, its slurm.conf written to `scratch` and read from there."""
    run = json.loads((folder / f"golden-{name}.json").read_text())
    conf = scratch / f"{name}.conf"
    conf.write_text(conf_of(run))
    jobs = run["jobs"]
    columns = {
        "job_id": [str(job["id"]) for job in jobs],
        "submit_s": [job["submit_s"] for job in jobs],
        "runtime_s": [job["end_exact_s"] - job["start_exact_s"] for job in jobs],
        "walltime_s": [float(job["limit_s"]) for job in jobs],
        "memory_mb_per_core": [job["mem_per_cpu_mb"] for job in jobs],
        "cores_per_task": [job["cpus_per_task"] for job in jobs],
        **{key: [job[key] for job in jobs] for key in ("nodes", "tasks", "tasks_per_node", "exclusive", "partition")},
    }
    workload = escala.Workload.from_jobs(columns, origin_s=float(run["epoch_start_s"]), name=name)
    return Recorded(run, escala.read_site(conf), workload)
