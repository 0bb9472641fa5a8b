"""The kernel: EASY on synthetic logs, growth with jobs, cores and queue, and one large real log."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import escala
from bench.measure import Case, seconds

TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


@functools.lru_cache(maxsize=2)
def synthetic(jobs: int, cores: int, load: float = 0.95, burst: int = 1) -> escala.Workload:
    """Poisson arrivals at the given load; log-uniform runtimes of 1 min to 1 d; sizes powers of two up to a tenth of the machine.

    Walltimes are 1 to 10 times the runtime. With `burst` > 1, that many jobs arrive at once: the queue is that much longer.
    """
    random = np.random.default_rng(1)
    runtime = np.exp(random.uniform(np.log(60.0), np.log(86400.0), jobs)).round()
    size = 2 ** random.integers(0, max(1, int(np.log2(cores / 10)) + 1), jobs)
    rate = load * cores / float((runtime * size).mean())
    submit = np.cumsum(random.exponential(1.0 / rate, jobs)).round()
    submit = np.repeat(submit[::burst], burst)[:jobs]
    walltime = (runtime * random.uniform(1.0, 10.0, jobs)).round()
    return escala.Workload.from_jobs({"submit_s": submit, "runtime_s": runtime, "walltime_s": walltime, "cores": size})


def run(workload: escala.Workload, platform: str, shutdown: str = "never") -> escala.Result:
    return escala.simulate(workload, escala.read_platform(platform), scheduler="easy", shutdown=shutdown)


def jobs_per_s(jobs: int, platform: str, shutdown: str = "never", burst: int = 1, repeats: int = 5) -> tuple[float, str]:
    """Rate of a whole `escala.simulate`, tables included, jobs/s."""
    machine = escala.read_platform(platform)
    workload = synthetic(jobs, int(machine.cores.sum()), burst=burst)
    return jobs / seconds(lambda: run(workload, platform, shutdown), repeats), "jobs/s"


def ten_million() -> tuple[float, str]:
    workload = synthetic(10_000_000, 10_000)
    return seconds(lambda: run(workload, "1x10000:none"), 1), "s"


def memory() -> tuple[float, str]:
    """Growth of the peak resident memory from 1 M to 3 M jobs, each in its own process, per million jobs."""
    code = "import sys, resource; from bench.kernel import run, synthetic; run(synthetic(int(sys.argv[1]), 10_000), '1x10000:none'); "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    peak = [
        int(subprocess.run([sys.executable, "-c", code, str(n)], check=True, capture_output=True).stdout) for n in (1_000_000, 3_000_000)
    ]
    return (peak[1] - peak[0]) * 1024 / 2 / 1e6, "MB per million jobs"


def growth(small: float, large: float) -> tuple[float, str]:
    return small / large, "times the time per job"


def curie() -> tuple[float, str]:
    workload = escala.read_workload(TRACES / "swf" / "CEA-Curie-2011-2.1-cln.swf.gz")
    return seconds(lambda: run(workload, "5832x16:none"), 3), "s"


CASES = [
    Case("EASY, 1 M synthetic jobs, 10 000 cores as one pool, load 0.95", "≥ 1 M jobs/s", lambda: jobs_per_s(1_000_000, "1x10000:none")),
    Case(
        "the same, 500 nodes x 20 cores with power states, timeout 300 s",
        "≥ 0.5 M jobs/s",
        lambda: jobs_per_s(1_000_000, "500x20", "timeout:300"),
    ),
    Case("EASY, 10 M jobs", "≤ 15 s", ten_million),
    Case("memory of a run", "≤ 120 MB per million jobs", memory),
    Case(
        "growth: 10 times the jobs",
        "about 1",
        lambda: growth(jobs_per_s(100_000, "1x10000:none")[0], jobs_per_s(1_000_000, "1x10000:none")[0]),
    ),
    Case(
        "growth: 100 times the cores",
        "almost 1",
        lambda: growth(jobs_per_s(300_000, "1x1000:none")[0], jobs_per_s(300_000, "1x100000:none")[0]),
    ),
    Case(
        "growth: a queue 1000 times longer",
        "≤ 3",
        lambda: growth(jobs_per_s(300_000, "1x10000:none")[0], jobs_per_s(300_000, "1x10000:none", burst=1000)[0]),
    ),
    Case("CEA-Curie (312 826 jobs, 93 312 cores), EASY, after reading", "≤ 2 s", curie),
]
