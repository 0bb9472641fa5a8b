"""The kernel: EASY on synthetic logs, growth with jobs, cores and queue, and one large real log."""

from __future__ import annotations

import functools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import escala
from bench.measure import Case, seconds
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation
from escala.workload.generate_lublin import CLASSES, runtimes, sizes

TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


LARGEST_JOB = 256  # cores


@functools.lru_cache(maxsize=2)
def synthetic(jobs: int, cores: int, load: float = 0.95, burst: int = 1) -> escala.Workload:
    """Sizes (up to 256 cores) and runtimes of the Lublin-Feitelson model's batch jobs, Poisson arrivals at the given load.

    Walltimes are 1 to 10 times the runtime. With `burst` > 1, that many jobs arrive at once: the queue is that much longer.
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


def kernel_seconds(workload: escala.Workload, platform: str, shutdown: str = "never", repeats: int = 5) -> float:
    """Median processor time of the replay alone, from filled arrays to the last event, s."""
    machine, options = escala.read_platform(platform), Options()
    chosen = policies.pair(workload, "easy", shutdown, options)
    taken = []
    for _ in range(repeats + 1):
        simulation = Simulation(workload, machine, chosen.plan, options)
        begin = time.process_time()
        policies.run(simulation, 0, chosen)
        taken.append(time.process_time() - begin)
    return statistics.median(taken[min(1, repeats) :])


def kernel_rate(jobs: int, platform: str, shutdown: str = "never", burst: int = 1, repeats: int = 5) -> tuple[float, str]:
    """Jobs/s of the replay alone."""
    workload = synthetic(jobs, escala.read_platform(platform).total_cores, burst=burst)
    return jobs / kernel_seconds(workload, platform, shutdown, repeats), "jobs/s"


def whole_rate(jobs: int, platform: str, shutdown: str = "never") -> tuple[float, str]:
    """Jobs/s of `escala.simulate`, with the tables of the Result that are made at once."""
    workload = synthetic(jobs, escala.read_platform(platform).total_cores)
    return jobs / seconds(lambda: run(workload, platform, shutdown), 3), "jobs/s"


def ten_million() -> tuple[float, str]:
    workload = synthetic(10_000_000, 10_000)
    return kernel_seconds(workload, POOL, repeats=1), "s"


def memory(work: str) -> tuple[float, str]:
    """Peak resident memory that `work` adds to a process that holds 2 M jobs and a warm kernel, per million jobs (Linux only)."""
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


def growth(small: float, large: float) -> tuple[float, str]:
    return small / large, "times the time per job"


def curie() -> tuple[float, str]:
    workload = escala.read_workload(TRACES / "swf" / "CEA-Curie-2011-2.1-cln.swf.gz")
    return kernel_seconds(workload, "5832x16:none", repeats=3), "s"


POOL, NODES = "1x10000:none", "500x20"

CASES = [
    Case("EASY, 1 M synthetic jobs, 10 000 cores as one pool, load 0.95", "≥ 1 M jobs/s", lambda: kernel_rate(1_000_000, POOL)),
    Case("the same, as a whole `escala.simulate`", "", lambda: whole_rate(1_000_000, POOL)),
    Case(
        "EASY, the same jobs, 500 nodes x 20 cores, timeout 300 s", "≥ 0.5 M jobs/s", lambda: kernel_rate(1_000_000, NODES, "timeout:300")
    ),
    Case("the same, as a whole `escala.simulate`, with nodes", "", lambda: whole_rate(1_000_000, NODES, "timeout:300")),
    Case("EASY, 10 M jobs, one pool", "≤ 15 s", ten_million),
    Case("memory of the replay", "≤ 120 MB per million jobs", lambda: memory("kernel_seconds(workload, POOL, repeats=0)")),
    Case("memory of a whole `escala.simulate`", "", lambda: memory("result = run(workload, POOL)")),
    Case("growth: 10 times the jobs", "about 1", lambda: growth(kernel_rate(100_000, POOL)[0], kernel_rate(1_000_000, POOL)[0])),
    Case(
        "growth: 100 times the cores",
        "almost 1",
        lambda: growth(kernel_rate(300_000, "1x1000:none")[0], kernel_rate(300_000, "1x100000:none")[0]),
    ),
    Case(
        "growth: a queue 1000 times longer",
        "≤ 3",
        lambda: growth(kernel_rate(300_000, POOL)[0], kernel_rate(300_000, POOL, burst=1000, repeats=1)[0]),
    ),
    Case("CEA-Curie (312 826 jobs, 93 312 cores), EASY, after reading", "≤ 2 s", curie),
]
