"""Slurm's rules on a large site: jobs of a year on 1 000 nodes of 64 cores and 4 GPUs, four overlapping partitions,
multifactor priority.

Run: python -m bench.slurm [JOBS] [LOAD] [SCHEDULER]. Prints processor seconds after one small run that compiles. Drawn
jobs: log-normal run times, half of them on one node, the others on 2 to 32; requests of 1.05 to 4 times the run time; a
fifth ask for GPUs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import escala

YEAR_S, YEAR_JOBS = 365 * 86400.0, 500_000
CONF = """\
ClusterName=large
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=4000
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=100
PriorityWeightPartition=1000
AccountingStorageType=accounting_storage/slurmdbd
NodeName=n[0001-1000] CPUs=64 RealMemory=256000 Gres=gpu:a100:4
PartitionName=batch Nodes=n[0001-0900] Default=YES MaxTime=2-0
PartitionName=gpu Nodes=n[0701-1000] MaxTime=2-0 PriorityTier=2
PartitionName=short Nodes=ALL MaxTime=0-4 PriorityJobFactor=10
PartitionName=big Nodes=ALL MaxTime=2-0
"""


def jobs_of(n: int, load: float, seed: int = 1) -> escala.Workload:
    """So many jobs at the pace of YEAR_JOBS a year, their run times scaled until they ask for this share of all
    cores."""
    draw = np.random.default_rng(seed)
    span = YEAR_S * n / YEAR_JOBS
    part = draw.choice(["batch", "gpu", "short", "big"], n, p=[0.55, 0.2, 0.2, 0.05])
    nodes = np.where(draw.random(n) < 0.5, 1, draw.choice([2, 4, 8, 16, 32], n, p=[0.3, 0.3, 0.2, 0.1, 0.1]))
    per_node = draw.choice([1, 4, 8, 16, 32, 64], n, p=[0.1, 0.1, 0.1, 0.2, 0.2, 0.3])
    drawn = np.exp(draw.normal(7.5, 1.6, n))
    longest = np.where(part == "short", 4 * 3600.0, 2 * 86400.0) - 60
    cores = nodes * per_node
    scale = 1.0
    for _ in range(20):
        run = np.clip(drawn * scale, 10, longest)
        scale *= load * 64_000 * span / float((cores * run).sum())
    columns = {
        "submit_s": np.sort(draw.random(n)) * span,
        "runtime_s": run,
        "walltime_s": np.minimum(np.ceil(run * draw.uniform(1.05, 4, n) / 60) * 60, longest + 60),
        "cores": cores,
        "nodes": nodes,
        "tasks": cores,
        "tasks_per_node": per_node,
        "gpus_per_node": np.where(part == "gpu", draw.choice([1, 2, 4], n), 0),
        "partition": part.tolist(),
    }
    return escala.Workload.from_jobs(columns, origin_s=1.7e9)


def main() -> None:
    """Measure and print one line."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else YEAR_JOBS
    load = float(sys.argv[2]) if len(sys.argv) > 2 else 0.7
    scheduler = sys.argv[3] if len(sys.argv) > 3 else "slurm"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slurm.conf"
        path.write_text(CONF)
        site = escala.read_site(path)
    escala.simulate(jobs_of(500, load), site, scheduler)
    jobs = jobs_of(n, load)
    began = time.process_time()
    result = escala.simulate(jobs, site, scheduler)
    spent = time.process_time() - began
    found = result.summary()
    print(
        f"{n} jobs, load {load}: {spent:.1f} s, mean wait {found['mean_wait_s']:.0f} s, utilisation "
        f"{found['utilisation']:.2f}"
    )


if __name__ == "__main__":
    main()
