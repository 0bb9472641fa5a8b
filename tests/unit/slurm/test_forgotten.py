"""What slurmctld knows of jobs that have ended, and for how long: dependencies on them.

"MinJobAge: The minimum age of a completed job before its record is cleared from the list of jobs slurmctld keeps in
memory" (https://slurm.schedmd.com/slurm.conf.html). In memory it looks each minute, or each MinJobAge where that is
less, and at most each 10 s (_slurmctld_background in controller.c); "job is gone, dependency lifted"
(test_job_dependency in job_scheduler.c).
"""

from __future__ import annotations

from typing import Any

import pytest

import escala
from tests.unit.slurm.by_hand import QUICK, jobs, starts

SHORT = f"{QUICK}\nMinJobAge=20"


@pytest.mark.parametrize(("kind", "starts_at"), [("afterok", None), ("afternotok", 88.2), ("afterany", 88.2)])
@pytest.mark.parametrize("ran", [400.0, 87.4], ids=["cut", "recorded as cut"])
def test_who_is_killed_at_its_limit_has_not_gone_well(
    site: Any, kind: str, starts_at: float | None, ran: float
) -> None:
    """ "afterok: ... successfully executed (ran to completion with an exit code of zero)"
    (https://slurm.schedmd.com/sbatch.html)"""
    work = jobs((0, ran, 60, 1), (1, 10, 60, 1), job_id=["a", "b"], dependency=[None, f"{kind}:a"])
    result = escala.simulate(work, site(), scheduler="slurm")
    assert result.jobs["state"][0] == "KILLED"
    assert result.jobs["start_s"][1] == (starts_at and pytest.approx(starts_at, abs=1.1))
    assert result.jobs["state"][1] == ("REJECTED" if starts_at is None else "COMPLETED")


def test_a_log_that_says_completed_is_believed(site: Any) -> None:
    """Some seconds over the limit, before it was killed."""
    work = jobs(
        (0, 61, 60, 1), (1, 5, 60, 1), job_id=["a", "b"], status=["COMPLETED", None], dependency=[None, "afterok:a"]
    )
    assert starts(work, site())[1] == pytest.approx(61.8, abs=1)


def test_of_an_array_one_task_killed_is_enough(site: Any) -> None:
    work = jobs(
        *((0, 5, 60, 1), (0, 90, 60, 1), (1, 5, 60, 1), (1, 5, 60, 1)),
        job_id=["a_0", "a_1", "b", "c"],
        array_id=["a", "a", None, None],
        dependency=[None, None, "afternotok:a", "afterok:a"],
    )
    _, _, b, c = starts(work, site())
    assert b is not None and b > 85 and c is None


def test_who_comes_when_a_job_is_forgotten_does_not_wait_for_it(site: Any) -> None:
    """The first ends at 5.4 s and is forgotten at the beat of 37.4 s, the second beat that comes 20 s behind the one
    before, from the start at -2.5 s on."""
    work = jobs(
        *((0, 5, 60, 1), (36, 5, 60, 1), (39, 5, 60, 1), (39, 5, 60, 1)),
        job_id=["a", "b", "c", "d"],
        dependency=[None, "afternotok:a", "afternotok:a", "afterok:b,afternotok:a"],
    )
    _, b, c, d = starts(work, site(more=SHORT))
    assert b is None and c == pytest.approx(39.5, abs=1)
    assert d is None  # the second never ends
    assert starts(work, site())[2] is None  # 300 s unless said
    assert starts(work, site(more=f"{QUICK}\nMinJobAge=0"))[2] is None  # "A value of zero prevents any purging"


def test_minutes_behind_a_start_are_over_when_it_is_forgotten(site: Any) -> None:
    work = jobs(
        *((0, 5, 60, 1), (0, 100, 120, 1), (1, 5, 60, 1), (1, 5, 60, 1)),
        job_id=["a", "b", "c", "d"],
        dependency=[None, None, "after:a+3", "after:b+1"],
    )
    _, _, c, d = starts(work, site(more=SHORT))
    assert c == pytest.approx(37.9, abs=1) and d == pytest.approx(60.9, abs=1.1)
    assert starts(work, site())[2] == pytest.approx(180.9, abs=1.1)


@pytest.mark.parametrize(("age", "first"), [(1, 7.4), (45, 87.4), (90, 117.4)])
def test_how_often_it_forgets(site: Any, age: int, first: float) -> None:
    """Each 10 s at the most, from 60 s on each minute: who comes a second before the beat is too early."""
    for at, waits in ((first - 1, True), (first + 1, False)):
        work = jobs((0, 0.5, 60, 1), (at, 5, 60, 1), job_id=["a", "b"], dependency=[None, "afternotok:a"])
        assert (starts(work, site(more=f"{QUICK}\nMinJobAge={age}"))[1] is None) == waits
