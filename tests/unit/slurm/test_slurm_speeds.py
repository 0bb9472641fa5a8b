"""Nodes of other speeds under Slurm's rules, by hand: a job runs as long as on its slowest node, and its limit is that
of any node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import escala
from tests.unit.slurm.by_hand import jobs


def played(site: Any, speed: float, work: escala.Workload) -> Any:
    halves = replace(site, node_speed=[speed] * site.n_nodes)
    return escala.simulate(work, halves, scheduler="slurm:started=-2.5:tick=0.4").jobs


def test_a_job_that_does_not_compute_takes_its_time(site: Any) -> None:
    """Of 20 s at speed 1, the second at half of it: 40 s."""
    found = played(site(), 0.5, jobs((0, 20, 60, 1), (0, 20, 60, 1), load=[0.0, 1.0]))
    assert (found["finish_s"] - found["start_s"]).round(3).to_list() == [20, 40]


def test_a_minute_beyond_the_limit_is_kept_and_a_microsecond_more_is_not(site: Any) -> None:
    """On half the speed the first runs 120 s of its 60, as long as a recorded end may be late; the others run longer,
    and are killed at the beat of 87.4 s."""
    found = played(site(), 0.5, jobs((0, 60, 60, 1), (0, 60.000001, 60, 1), (0, 59, 60, 1)))
    assert (found["finish_s"] - found["start_s"]).round(1).to_list() == [120, 87.2, 118]


def test_who_runs_to_its_limit_has_not_gone_well(site: Any) -> None:
    """Of 60 s on half the speed: 30 s are too long for who waits for the good end of the first, 29.9 s are not."""
    for run_s, starts in ((30, False), (29.9, True)):
        work = jobs((0, run_s, 60, 1), (1, 5, 60, 1), job_id=["a", "b"], dependency=[None, "afterok:a"])
        assert (played(site(), 0.5, work)["start_s"][1] is not None) == starts


def test_the_slowest_node_counts(site: Any) -> None:
    site = replace(site(), node_speed=[1.0, 0.5, 2.0, 1.0])
    found = escala.simulate(jobs((0, 20, 60, 4), (1, 20, 60, 1)), site, scheduler="slurm").jobs
    assert (found["finish_s"] - found["start_s"]).round(3).to_list() == [40, 20]
