"""Small logs of whole numbers, drawn by Python's own generator: the same on every machine."""

from __future__ import annotations

import functools
import random
from typing import Any

import escala

PLATFORM = "6x4:grid5000"
DAY_S = 86400


@functools.cache
def days(count: int = 4, most_cores: int = 24) -> escala.Workload:
    """Days for six nodes of four cores; jobs of two users (over 20 a day each) come by day, in bursts, and most ask for
    too much time."""
    rng = random.Random(7)
    jobs: list[dict[str, Any]] = []
    for day in range(count):
        at = 3600 * rng.randint(0, 6)
        # the last day: fewer than min_jobs of a variant
        for _ in range(rng.randint(46, 64) if day < count - 1 else 12):
            at += rng.choice((0, 0, 20, 60, 240, 900, 2700))
            walltime = 60 * rng.choice((5, 10, 20, 30, 60, 120, 240))
            runtime = max(1, walltime * rng.choice((5, 20, 40, 80, 100)) // 100 + rng.randint(-30, 0))
            cores = rng.choice((1, 2, 3, 4, 6, 8, 12, 16, most_cores))
            jobs.append(
                {
                    "submit_s": day * DAY_S + min(at, DAY_S - 60),
                    "walltime_s": walltime,
                    "runtime_s": runtime,
                    "cores": cores,
                }
            )
            jobs[-1]["user"] = f"u{rng.randint(0, 1)}"
    return table(jobs, "days")


def table(jobs: list[dict[str, Any]], name: str) -> escala.Workload:
    """A workload of rows."""
    ordered = sorted(jobs, key=lambda job: job["submit_s"])
    rows = [{"job_id": str(k), **job} for k, job in enumerate(ordered)]
    return escala.Workload.from_jobs({key: [row[key] for row in rows] for key in rows[0]}, name=name)


def one_day() -> escala.Workload:
    """The first of the days."""
    return days().split_days()[0]


def units(unit_s: int = 1, early: bool = False, memory: bool = False) -> escala.Workload:
    """Jobs for one machine of ten cores, of whole units of time; early: they end before their walltime; memory: on a
    single node."""
    rng = random.Random(11)
    jobs: list[dict[str, Any]] = []
    at = 0
    for _ in range(40):
        at += rng.choice((0, 1, 1, 2, 3))
        length = rng.choice((1, 2, 3, 3, 10, 12, 15))
        runtime = max(1, length - rng.choice((0, 0, 1, 4))) if early else length
        job: dict[str, Any] = {"submit_s": at * unit_s, "walltime_s": length * unit_s, "runtime_s": runtime * unit_s}
        job["cores"] = rng.choice((1, 2, 2, 5, 7, 10))
        if memory:
            job |= {"single_node": True, "demand_memory": rng.randint(1, 6)}
        jobs.append(job)
    return table(jobs, "units")


def shared(resources: int = 2, early: bool = False) -> escala.Workload:
    """Single-node jobs for a team of machines with ten units of each resource."""
    rng = random.Random(13)
    names = [f"demand_{kind}" for kind in kinds(resources)]
    jobs: list[dict[str, Any]] = []
    at = 0
    for _ in range(60):
        at += rng.choice((0, 0, 1, 1, 2))
        length = rng.choice((1, 2, 4, 7, 10, 12))
        runtime = max(1, length - rng.choice((0, 2))) if early else length
        job: dict[str, Any] = {
            "submit_s": at,
            "walltime_s": length,
            "runtime_s": runtime,
            "cores": rng.randint(1, 8),
            "single_node": True,
        }
        jobs.append(job | {name: rng.randint(1, 6) for name in names})
    return table(jobs, "shared")


def kinds(resources: int) -> tuple[str, ...]:
    """Names of the resources behind the cores."""
    return ("memory", *(f"resource{k}" for k in range(3, resources + 1)))[: resources - 1]
