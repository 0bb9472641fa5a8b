"""EASY with jobs of nodes on a large machine: 1 000 nodes of 64 cores and 4 GPUs.

Run: python -m bench.shapes [JOBS] [LOAD] [SCHEDULER] [PARTITIONS]. Prints jobs per second of processor time of the
second and the third of three replays; the first compiles. PARTITIONS: so many that share no node. Drawn jobs: 1 to 4
nodes, half of them 1, with 1 to 64 cores each; a third ask for 1 to 4 GPUs of each node; log-normal run times, requests
of 1 to 3 times the run time.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

import escala
from escala.platform import Platform, Site
from escala.platform.site import Partition

NODES, CORES, GPUS = 1000, 64, 4


def jobs_of(n: int, load: float, seed: int = 1) -> escala.Workload:
    """So many jobs that ask for this share of all cores."""
    draw = np.random.default_rng(seed)
    nodes = draw.choice([1, 2, 3, 4], n, p=[0.5, 0.25, 0.125, 0.125])
    cores = nodes * draw.choice([1, 2, 4, 8, 16, 32, 64], n, p=[1 / 9, 1 / 9, 1 / 9, 2 / 9, 2 / 9, 1 / 9, 1 / 9])
    run = np.minimum(np.exp(draw.normal(7.5, 1.3, n)) + 5, 3 * 86400.0)
    gpus = np.where(draw.random(n) < 0.3, draw.integers(1, GPUS + 1, n), 0)
    span = (cores * run).sum() / (NODES * CORES * load)
    columns = {
        "submit_s": np.sort(draw.random(n) * span),
        "runtime_s": run,
        "walltime_s": run * draw.uniform(1, 3, n),
        "cores": cores,
        "nodes": nodes,
        "gpus_per_node": pl.Series(gpus).replace(0, None),
    }
    return escala.Workload.from_jobs(pl.DataFrame(columns))


def parted(log: escala.Workload, machine: Platform, count: int) -> tuple[escala.Workload, Site]:
    """The jobs one by one in so many partitions, of as many nodes each."""
    nodes = np.array_split(np.arange(NODES), count)
    parts = tuple(Partition(f"p{k}", tuple(some.tolist())) for k, some in enumerate(nodes))
    names = [f"p{k % count}" for k in range(len(log))]
    site = Site("parted", machine.cores, machine.profiles, machine.profile_of, machine.resources, partitions=parts)
    return log.with_jobs(log.jobs.with_columns(pl.Series("partition", names))), site


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    load = float(sys.argv[2]) if len(sys.argv) > 2 else 0.8
    scheduler = sys.argv[3] if len(sys.argv) > 3 else "easy"
    log, machine = jobs_of(n, load), Platform.uniform(NODES, CORES, power=None, resources={"gpu": GPUS})
    if len(sys.argv) > 4:
        log, machine = parted(log, machine, int(sys.argv[4]))
    for k in range(3):
        began = time.process_time()
        result = escala.simulate(log, machine, scheduler, record=False)
        took = time.process_time() - began
        if k > 0:
            wait = result.summary()["mean_wait_s"]
            print(f"{n:,} jobs at load {load} under {scheduler}: {n / took:,.0f} jobs/s, mean wait {wait:.1f} s")


if __name__ == "__main__":
    main()
