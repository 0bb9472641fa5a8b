"""The kernel: EASY on synthetic logs, growth with jobs, cores and queue, and one large real log."""

from __future__ import annotations

import functools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import escala
from bench.measure import Case, seconds
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation
from escala.workload.generate_lublin import CLASSES, runtimes, sizes

TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


Settings = dict[str, Any]
MILLION = 1_000_000
LARGEST_JOB = 256  # cores
POOL, NODES, FINE = "1x10000:none", "625x16:grid5000", "10000x1:grid5000"
SHORT: Settings = {"jobs": 300_000, "platform": POOL}
SHORT_NODES: Settings = {"jobs": 300_000, "platform": NODES, "shutdown": "timeout:300"}


@functools.lru_cache(maxsize=2)
def synthetic(jobs: int, cores: int, load: float = 0.95, burst: int = 1) -> escala.Workload:
    """Sizes (up to 256 cores) and runtimes of the Lublin-Feitelson model's batch jobs, Poisson arrivals at the given
    load.

    Walltimes are 1 to 10 times the runtime. With `burst` > 1, that many jobs arrive at once: the queue is that much
    longer.
    """
    random = np.random.default_rng(1)
    size = sizes(random, jobs, LARGEST_JOB, CLASSES["batch"])
    runtime = np.maximum(runtimes(random, size, CLASSES["batch"]), 1.0)
    rate = load * cores / float((runtime * size).mean())
    submit = np.cumsum(random.exponential(1.0 / rate, jobs)).round()
    submit = np.repeat(submit[::burst], burst)[:jobs]
    walltime = (runtime * random.uniform(1.0, 10.0, jobs)).round()
    return escala.Workload.from_jobs({"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": size})


def run(workload: escala.Workload, platform: str, shutdown: str = "never") -> escala.Result:
    return escala.simulate(workload, escala.read_platform(platform), scheduler="easy", shutdown=shutdown)


def kernel_seconds(
    workload: escala.Workload,
    platform: str,
    shutdown: str = "never",
    repeats: int = 5,
    scheduler: str = "easy",
    head: str = "lowest-id",
) -> float:
    """Median processor time of the replay alone, from filled arrays to the last event, s."""
    machine, options = escala.read_platform(platform), Options(head=head)
    chosen = policies.pair(workload, scheduler, shutdown, options)
    taken = []
    for _ in range(repeats + 1):
        simulation = Simulation(workload, machine, chosen.plan, options)
        begin = time.process_time()
        policies.run(simulation, 0, chosen)
        taken.append(time.process_time() - begin)
    return statistics.median(taken[min(1, repeats) :])


def kernel_rate(
    jobs: int, platform: str, shutdown: str = "never", load: float = 0.95, burst: int = 1, repeats: int = 5
) -> tuple[float, str]:
    """Jobs/s of the replay alone."""
    workload = synthetic(jobs, escala.read_platform(platform).total_cores, load, burst)
    return jobs / kernel_seconds(workload, platform, shutdown, repeats), "jobs/s"


def whole_rate(jobs: int, platform: str, shutdown: str = "never") -> tuple[float, str]:
    """Jobs/s of `escala.simulate`, with the tables of the Result that are made at once."""
    workload = synthetic(jobs, escala.read_platform(platform).total_cores)
    return jobs / seconds(lambda: run(workload, platform, shutdown), 3), "jobs/s"


def ten_million() -> tuple[float, str]:
    workload = synthetic(10_000_000, 10_000)
    return kernel_seconds(workload, POOL, repeats=1), "s"


def memory(work: str) -> tuple[float, str]:
    """Peak resident memory that `work` adds to a process that holds 2 M jobs and a warm kernel, per million jobs (Linux
    only)."""
    code = f"""
import pathlib
from bench.kernel import POOL, kernel_seconds, run, synthetic
def memory(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
kernel_seconds(synthetic(1000, 10_000), POOL, repeats=1)
workload = synthetic(2_000_000, 10_000)
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = memory("VmRSS")
{work}
print(memory("VmHWM") - before)
"""
    added = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
    return added * 1024 / 2 / 1e6, "MB per million jobs"


def growth(before: Settings, after: Settings, repeats: int = 5) -> tuple[float, str]:
    """How many times longer a job takes after something grew."""
    return kernel_rate(**before, repeats=repeats)[0] / kernel_rate(**after, repeats=repeats)[
        0
    ], "times the time per job"


def curie(platform: str, shutdown: str = "never") -> tuple[float, str]:
    workload = escala.read_workload(TRACES / "swf" / "CEA-Curie-2011-2.1-cln.swf.gz")
    return kernel_seconds(workload, platform, shutdown, repeats=3), "s"


QUEUES = {"easy:queue=saf:guard=24h": "≥ 0.7 M jobs/s", "easy:queue=escala:guard=24h": "≥ 0.3 M jobs/s"}
"""A queue in order of a fixed score, and of a linear one of eight features computed at each decision -> what it must
reach."""
QUEUED = {"lublin_256": ("swf-synthetic/lublin_256.swf.gz", 256), "KTH-SP2": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", 100)}


def queued(scheduler: str, log: str) -> tuple[float, str]:
    """Jobs/s of the replay of a log on one pool of cores."""
    path, cores = QUEUED[log]
    workload = escala.read_workload(TRACES / path)
    return len(workload) / kernel_seconds(
        workload, f"1x{cores}:none", scheduler=scheduler, head="latest-released"
    ), "jobs/s"


CASES = [
    Case(
        "EASY, 1 M synthetic jobs, 10 000 cores as one pool, load 0.95",
        "≥ 1 M jobs/s",
        lambda: kernel_rate(MILLION, POOL),
    ),
    Case("the same, as a whole `escala.simulate`", "", lambda: whole_rate(MILLION, POOL)),
    Case("EASY, the same jobs, 625 nodes x 16 cores", "≥ 0.5 M jobs/s", lambda: kernel_rate(MILLION, f"{NODES}:none")),
    Case("the same, timeout 300 s", "≥ 0.5 M jobs/s", lambda: kernel_rate(MILLION, NODES, "timeout:300")),
    Case("the same, as a whole `escala.simulate`, with nodes", "", lambda: whole_rate(MILLION, NODES, "timeout:300")),
    Case(
        "EASY, the same jobs, 10 000 nodes of one core", "≥ 0.5 M jobs/s", lambda: kernel_rate(MILLION, f"{FINE}:none")
    ),
    Case(
        "the same, timeout 300 s, 10 000 nodes",
        "≥ 0.5 M jobs/s",
        lambda: kernel_rate(MILLION, FINE, "timeout:300", repeats=3),
    ),
    Case("EASY, 10 M jobs, one pool", "≤ 15 s", ten_million),
    Case(
        "memory of the replay", "≤ 120 MB per million jobs", lambda: memory("kernel_seconds(workload, POOL, repeats=0)")
    ),
    Case("memory of a whole `escala.simulate`", "", lambda: memory("result = run(workload, POOL)")),
    Case("growth: 10 times the jobs", "about 1", lambda: growth(SHORT | {"jobs": 100_000}, SHORT | {"jobs": MILLION})),
    Case("growth: load 0.7 to 0.95", "", lambda: growth(SHORT | {"load": 0.7}, SHORT)),
    Case("growth: load 0.95 to 1.2 (the queue grows to the end)", "", lambda: growth(SHORT, SHORT | {"load": 1.2})),
    Case(
        "growth: load 0.95 to 1.2, 625 nodes, timeout 300 s",
        "",
        lambda: growth(SHORT_NODES, SHORT_NODES | {"load": 1.2}, 3),
    ),
    Case(
        "growth: 100 times the cores, one pool",
        "almost 1",
        lambda: growth(SHORT | {"platform": "1x1000:none"}, SHORT | {"platform": "1x100000:none"}),
    ),
    Case(
        "growth: 100 times the nodes (62 to 6250 of 16 cores), timeout 300 s",
        "almost 1",
        lambda: growth(SHORT_NODES | {"platform": "62x16:grid5000"}, SHORT_NODES | {"platform": "6250x16:grid5000"}, 3),
    ),
    Case("growth: a queue 1000 times longer", "≤ 3", lambda: growth(SHORT, SHORT | {"burst": 1000}, 3)),
    Case(
        "growth: a queue 1000 times longer, 625 nodes, timeout 300 s",
        "≤ 3",
        lambda: growth(SHORT_NODES, SHORT_NODES | {"burst": 1000}, 1),
    ),
    Case(
        "CEA-Curie (312 826 jobs, 93 312 cores), EASY, after reading, 5832 nodes",
        "≤ 2 s",
        lambda: curie("5832x16:none"),
    ),
    Case("the same, timeout 300 s, CEA-Curie", "", lambda: curie("5832x16:grid5000", "timeout:300")),
    Case("the same, one pool, CEA-Curie", "", lambda: curie("1x93312:none")),
    *(
        Case(f"Queue in order of priority, `{one}`, {log}", must, functools.partial(queued, one, log))
        for one, must in QUEUES.items()
        for log in QUEUED
    ),
]
