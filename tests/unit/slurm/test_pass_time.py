"""How long a backfill pass takes, by hand: bf_continue, bf_yield_interval, bf_yield_sleep and bf_max_time."""

from __future__ import annotations

from typing import Any

import pytest

import escala
from escala import EscalaError
from tests.unit.slurm.by_hand import jobs, starts

PARAMETERS = "bf_interval=60,bf_resolution=1,bf_yield_interval=1000000,bf_yield_sleep=500000,sched_interval=-1"
BEHIND = 8
"""Short jobs behind one of all nodes: backfill alone starts them."""


def crowd(*more: tuple[Any, ...]) -> escala.Workload:
    """Job 1 on three of four nodes until 300 s, job 2 of all nodes, then jobs of one node of which one at a time has
    room, and others."""
    rows = [(0, 290, 300, 3), (1, 10, 60, 4), *((2 + 0.1 * k, 2, 60, 1) for k in range(BEHIND)), *more]
    return jobs(*rows)


def passes(work: escala.Workload, place: Any, test: float) -> list[float]:
    """When the pass is that has started each, s; slurmctld starts at -50, so that backfill first looks at 10 s."""
    return starts(work, place, f"slurm:started=-50:tick=0.4:phase=10:drift=0:bf_test={test}")


def place(site: Any, more: str = "") -> Any:
    return site(more=f"SchedulerParameters={PARAMETERS}{more}")


def test_without_a_time_for_a_test_a_pass_takes_none(site: Any) -> None:
    """Job 1 and one short job start in the first pass, job 2 is planned."""
    found = passes(crowd(), place(site), 0)
    assert found[:3] == [10, 310, 10]


def test_it_ends_with_the_first_sleep_in_which_something_has_happened(site: Any) -> None:
    """bf_continue: "Setting this option will cause the backfill scheduler to continue processing pending jobs from its
    original job list after releasing locks even if job or node state changes" (slurm.conf). Tests take 0.5 s, so that
    it sleeps after two, at 11 s, until 11.5 s; a submission at 11.2 s ends it there. Job 3 is the third to be
    tested."""
    quiet, busy = crowd(), crowd((11.2, 5, 60, 4))
    assert passes(quiet, place(site), 0.5)[:3:2] == [10, 10], "nothing happens: it goes on"
    found = passes(busy, place(site), 0.5)
    assert found[0] == 10 and found[2] > 60, "the next pass sees it"
    assert passes(busy, place(site, ",bf_continue"), 0.5)[2] == 10
    late = crowd((12.6, 5, 60, 4))
    assert passes(late, place(site), 0.5)[2] == 10, "four are tested before the sleep of 12.5 to 13 s"


def test_it_goes_on_no_longer_than_bf_max_time(site: Any) -> None:
    """ "The maximum time in seconds the backfill scheduler can spend (including time spent sleeping when locks are
    released) before discontinuing, even if maximum job counts have not been reached." Tests of 0.5 s: two in the first
    second, none behind it."""
    assert passes(crowd(), place(site, ",bf_max_time=1"), 0.5)[2] > 60
    assert passes(crowd(), place(site, ",bf_max_time=2"), 0.5)[2] == 10


def test_the_next_pass_comes_an_interval_behind_its_end(site: Any) -> None:
    """Ten tests of 0.5 s with four sleeps of 0.5 s: 7 s. In the second pass one has room again."""
    found = sorted(passes(crowd(), place(site, ",bf_continue"), 0.5)[2:])
    assert found[:2] == pytest.approx([10, 77], abs=0.01)
    assert sorted(passes(crowd(), place(site), 0)[2:])[:2] == [10, 70]


def test_a_bad_time_is_one_line(site: Any) -> None:
    with pytest.raises(EscalaError, match="bf_test: '-1' is no number of seconds"):
        passes(crowd(), place(site), -1)
