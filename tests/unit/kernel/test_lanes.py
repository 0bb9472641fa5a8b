"""Queues of their own, by what the tables tell between decisions."""

from __future__ import annotations

from typing import Any

import pytest

import escala
from escala.options import Options
from escala.platform.site import Partition, Site
from escala.policies import run as policies
from escala.simulation import Simulation

PARTITIONS = ("a", "b", "c")
PLAIN = escala.Platform.uniform(3, 2)
SITE = Site(
    "three", PLAIN.cores, PLAIN.profiles, PLAIN.profile_of,
    partitions=tuple(Partition(name, (node,)) for node, name in enumerate(PARTITIONS)),
)  # fmt: skip


def job(partition: str, submit_s: float, length_s: float, cores: int) -> dict[str, Any]:
    times = {"submit_s": submit_s, "runtime_s": length_s, "walltime_s": length_s}
    return {**times, "cores": cores, "single_node": False, "partition": partition}


@pytest.mark.parametrize("scheduler", ["easy", "easy-sjf", "easy-fast"])
@pytest.mark.parametrize("first", PARTITIONS)
def test_the_reservation_that_is_told_is_that_of_the_oldest_job(first: str, scheduler: str) -> None:
    """A job of each partition leaves one core for so long, and behind each waits one of two cores, in one partition
    before the others."""
    length_s = dict(zip(PARTITIONS, (40.0, 70.0, 90.0), strict=True))
    order = [first, *(name for name in PARTITIONS if name != first)]
    jobs = [job(name, 0.0, length_s[name], 1) for name in PARTITIONS]
    jobs += [job(name, 1.0 + k, 5.0, 2) for k, name in enumerate(order)]
    log, options = escala.Workload.from_jobs(jobs), Options(until_s=10.0)
    chosen = policies.pair(log, scheduler, "never", options)
    simulation = Simulation(log, SITE, chosen.plan, options)
    policies.run(simulation, 0, chosen)
    s = simulation.world.s[0, 0]
    assert s["first"] == s["head"] == 3 and s["shadow_us"] == length_s[first] * 1e6
