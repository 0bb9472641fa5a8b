"""`python -m tests.growth`: how the steps of compiled code grow, for every scheduler and shutdown policy that has a
name; JSON.

Axes, each a small and a large world: *jobs* (the same machine and load), *more jobs* (up to 64 000 at load 0.9: what is
left behind in a table shows late), *overload* (jobs, at load 1.2: the queue grows to the end) and *more overload* (up
to 64 000 jobs), *waiting* (all jobs arrive at once, so that all of them wait), *nodes* (the same number of jobs on a
larger machine, at the same load) and *more nodes* (up to 4 096); *waiting* and *overload by nodes*, where each job
takes cores and memory of one node, in one of three partitions. A row says how the steps a job grow: exponent 0 is a
cost that does not depend on the axis, 1 one that is proportional to it.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import polars as pl

import escala
from escala.options import Options
from escala.platform.site import Partition
from escala.policies import run as policies
from escala.simulation import Simulation
from tests.growth.axes import AXES, SMALLER, pairs
from tests.growth.counted import steps_of


def jobs_of(jobs: int, cores: int, at_once: bool, load: float) -> escala.Workload:
    """1 to 8 cores, 1 to 60 minutes, walltimes of 1 to 5 times that, twelve users; at this load, or all at once."""
    random = np.random.default_rng(1)
    size = random.integers(1, 9, jobs)
    runtime = np.ceil(np.exp(random.uniform(np.log(60), np.log(3600), jobs)))
    gaps = random.exponential(float((runtime * size).mean()) / (load * cores), jobs)
    submit = np.zeros(jobs) if at_once else np.cumsum(gaps).round()
    walltime = (runtime * random.uniform(1, 5, jobs)).round()
    users = [f"u{user}" for user in random.integers(0, 12, jobs)]
    columns = {"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": size, "user": users}
    return escala.Workload.from_jobs(columns)


def by_nodes(log: escala.Workload, platform: escala.Platform) -> tuple[escala.Workload, escala.Site]:
    """The same jobs on 1 to 4 cores of one node, half of them with 1 to 4 units of memory, in one of three partitions
    that overlap; and nodes with these."""
    random = np.random.default_rng(2)
    n = len(log)
    memory = random.integers(1, 5, n) * random.integers(0, 2, n)
    names = random.choice(["low", "high", "all"], n).tolist()
    columns = log.jobs.with_columns(
        cores=(pl.col("cores") + 1) // 2, single_node=True, demand_memory=pl.Series(memory), partition=pl.Series(names)
    )
    nodes = platform.n_nodes
    parts = {"low": range(2 * nodes // 3), "high": range(nodes // 2, nodes), "all": range(nodes)}
    site = escala.Site(
        name=platform.name,
        cores=platform.cores,
        profiles=platform.profiles,
        profile_of=platform.profile_of,
        resources={"memory": np.full(nodes, 8)},
        names=tuple(f"n{k}" for k in range(nodes)),
        features=((),) * nodes,
        partitions=tuple(Partition(name, tuple(of)) for name, of in parts.items()),
    )
    return escala.Workload.from_jobs(columns), site


def steps(scheduler: str, shutdown: str, **world: Any) -> dict[str, int]:
    """Steps of one run, by function. world: see `axes`."""
    jobs, nodes, load = world.get("jobs", 400), world.get("nodes", 16), world.get("load", 0.7)
    options = Options(record=False)
    platform = escala.read_platform(f"{nodes}x4" + ("" if shutdown == "never" else ":grid5000"))
    workload = jobs_of(jobs, platform.total_cores, world.get("at_once", False), load)
    if world.get("by_nodes", False):
        workload, platform = by_nodes(workload, platform)
    chosen = policies.pair(workload, scheduler, shutdown, options)
    simulation = Simulation(workload, platform, chosen.plan, options)
    return steps_of(lambda: policies.run(simulation, 0, chosen))


def growth(scheduler: str, shutdown: str, axis: str) -> dict[str, Any]:
    """Exponent of the steps a job, and the functions that took most of them in the larger world."""
    small, large = SMALLER.get((scheduler.partition(":")[0], axis), AXES[axis])
    a, b = steps(scheduler, shutdown, **small), steps(scheduler, shutdown, **large)
    factor = max(large[key] / small[key] for key in small if key in ("jobs", "nodes"))
    per_job = large.get("jobs", 1) / small.get("jobs", 1)
    return {
        "scheduler": scheduler,
        "shutdown": shutdown,
        "axis": axis,
        "steps": [sum(a.values()), sum(b.values())],
        "exponent": math.log(sum(b.values()) / sum(a.values()) / per_job, factor),
        "most": dict(sorted(b.items(), key=lambda item: -item[1])[:3]),
    }


def main(words: list[str]) -> None:
    wanted = [pair for pair in pairs() if not words or any(word in ("+".join(pair), *pair) for word in words)]
    json.dump([growth(*pair, axis) for pair in wanted for axis in AXES], sys.stdout)
