"""Scores, smallest first, written out from their papers.

`walltime` in seconds as the order of the queue takes it, `cores` the request, `submit` and `now` in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.oracle.world import Job, World, microseconds

Score = Callable[[Job, World], float]
Scheduler = Callable[[World], None]


def sjf(job: Job, world: World) -> float:
    return microseconds(job.order_s)


def ljf(job: Job, world: World) -> float:
    return -microseconds(job.order_s)


def saf(job: Job, world: World) -> float:
    """Smallest area first: walltime x cores, exactly."""
    return microseconds(job.order_s) * job.cores


def smallest(job: Job, world: World) -> float:
    """Fewest cores first."""
    return job.cores


def wait_ratio(job: Job, world: World) -> float:
    """Wait / walltime, both in whole microseconds, so that equal ratios are equal numbers."""
    return (world.now - job.submit) / microseconds(job.order_s)


def wfp3(job: Job, world: World) -> float:
    """-(wait / walltime)^3 x cores (Tang et al. 2009)."""
    r = wait_ratio(job, world)
    return -(r * r * r) * job.cores


def unicep(job: Job, world: World) -> float:
    """-wait / (log2(cores) x walltime) (Tang et al. 2009); one core counts as two (log2(1) = 0)."""
    return -wait_ratio(job, world) / math.log2(max(job.cores, 2))


def xfactor(job: Job, world: World) -> float:
    """Expansion factor: -wait / walltime."""
    return -wait_ratio(job, world)


def sqrt_area(job: Job, world: World) -> float:
    """Walltime x sqrt(cores)."""
    return microseconds(job.order_s) * math.sqrt(job.cores)


def f1(job: Job, world: World) -> float:
    """Carastan-Santos and de Camargo 2017."""
    return math.log10(job.order_s) * job.cores + 870.0 * math.log10(max(job.submit / 1e6, 1.0))


def f2(job: Job, world: World) -> float:
    return math.sqrt(job.order_s) * job.cores + 25600.0 * math.log10(max(job.submit / 1e6, 1.0))


def f3(job: Job, world: World) -> float:
    return job.order_s * job.cores + 6860000.0 * math.log10(max(job.submit / 1e6, 1.0))


def f4(job: Job, world: World) -> float:
    return job.order_s * math.sqrt(job.cores) + 530000.0 * math.log10(max(job.submit / 1e6, 1.0))


SCORES: dict[str, Score] = {
    "sjf": sjf,
    "ljf": ljf,
    "saf": saf,
    "sqrt-area": sqrt_area,
    "smallest": smallest,
    "wfp3": wfp3,
    "unicep": unicep,
    "xfactor": xfactor,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
}


def ordered(world: World, jobs: list[Job], score: Score | None) -> list[Job]:
    """By score, smallest first, ties in queue order; without a score the queue order. In front, in queue order, those
    that have waited the guard."""
    old = [job for job in jobs if world.waited_the_guard(job)]
    rest = [job for job in jobs if not world.waited_the_guard(job)]
    return old + (rest if score is None else sorted(rest, key=lambda job: score(job, world)))  # sorted() is stable
