"""Single rules of Slurm by hand. Times of unix: the clock's zero is a multiple of 30 s; slurmctld's passes come 1 s
apart unless said.

The rules are those of Slurm's documentation (slurm.conf, "Scheduling Configuration Guide") and of tests/golden/slurm.
"""

from __future__ import annotations

from typing import Any

import pytest

import escala
from tests.unit.slurm.by_hand import QUICK, jobs, nodes, starts


def test_a_job_starts_at_the_first_tick_of_either_pass(site: Any) -> None:
    """Ticks of the event pass at .4 (late by 1.4 ms a second), looks of backfill at .5 (by 1 ms)."""
    assert starts(jobs((0.1, 10, 60, 1), (5.45, 10, 60, 1)), site()) == [0.4, 5.5]


def test_batch_sched_delay_holds_event_passes_apart(site: Any) -> None:
    calm = site(more="SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=3,sched_interval=60")
    assert starts(jobs((0.1, 10, 60, 1), (1.1, 10, 60, 1), (2.0, 10, 60, 1)), calm) == [0.4, 3.4, 3.4]


def test_an_end_that_nobody_waits_for_has_its_event_pass_too(site: Any) -> None:
    """The first job begins and ends before the next submission: the pass at 3.4 is its end's, and the second job waits
    for none."""
    calm = site(more="SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=3,sched_interval=60")
    assert starts(jobs((0.1, 2, 60, 1), (20.1, 10, 60, 1)), calm) == [0.4, 20.4]


def test_builtin_never_passes_the_first(site: Any) -> None:
    work = jobs((0, 50, 60, 3), (1, 50, 60, 2), (2, 20, 60, 1))
    assert starts(work, site(more="SchedulerType=sched/builtin\n" + QUICK))[2] > 50
    assert starts(work, site())[2] < 3


def test_jobs_of_one_core_are_put_at_the_end_where_that_is_asked(site: Any) -> None:
    """Nodes of two cores. A, C and D have one core each: the last node has room for two of them. B has two."""
    work = jobs(*[(k, 50, 60, 1) for k in range(4)], tasks=[1, 2, 1, 1])
    for more, expected in (("", ["0", "1", "0", "2"]), (",pack_serial_at_end", ["3", "0", "3", "2"])):
        assert nodes(work, site(nodes="NodeName=n[1-4] CPUs=2", more=QUICK + more)) == expected


def test_backfill_must_end_before_the_reservation(site: Any) -> None:
    """A holds three nodes until 120 s, B gets a reservation there. A limit of 60 s fits before; one of 180 s does
    not."""
    work = jobs((0, 110, 120, 3), (1, 50, 60, 4), (2, 20, 60, 1), (2, 20, 180, 1))
    found = starts(work, site())
    assert found[2] < 3
    assert found[3] > found[1] > 110


def test_limits_are_whole_minutes(site: Any) -> None:
    """61 s count as 120 s: at 59 s that would end at 179 s, behind the reservation at 120 s."""
    late = jobs((0, 110, 120, 3), (1, 50, 60, 4), (58, 20, 60, 1))
    assert starts(late, site())[2] < 60
    assert starts(jobs((0, 110, 120, 3), (1, 50, 60, 4), (58, 20, 61, 1)), site())[2] > 110


def test_a_job_that_would_outlive_its_limit_is_killed_at_a_beat_of_30_s(site: Any) -> None:
    """slurmctld started at -2.5 s, and kills in the ticks of its event passes at 27.4, 57.5, 87.5 s, 30 whole seconds
    behind each other (PERIODIC_TIMEOUT in controller.c); the nodes are clear 0.05 s later. A recorded end up to a
    minute late is kept."""
    result = escala.simulate(jobs((0, 1000, 60, 1), (0, 75, 60, 1)), site(), scheduler="slurm:started=-2.5:tick=0.4")
    assert result.jobs["state"].to_list() == ["KILLED", "KILLED"]
    assert [round(one, 1) for one in result.jobs["finish_s"]] == [87.6, 75.4]


def test_ends_are_grouped_in_windows_on_the_half_minute_of_unix_time(site: Any) -> None:
    """Ends planned at 60 s and 90 s lie in one window (from 60 s to the multiple of 30 s behind it and 30 s more): both
    go at 90 s."""
    work = jobs((0, 50, 60, 2), (0, 80, 90, 2), (1, 50, 60, 2), (2, 20, 60, 1))
    result = escala.simulate(work, site(), scheduler="slurm:started=-2.5:tick=0.4")
    assert result.jobs["start_s"][2] == pytest.approx(50.5, abs=1)  # it starts when they are free, whatever was planned
    other = jobs((0, 50, 60, 2), (0, 290, 300, 2), (1, 50, 60, 2), (2, 20, 60, 1))
    assert starts(other, site())[2] == pytest.approx(50.5, abs=1)


def test_of_one_planned_end_the_job_that_came_first_leaves_first(site: Any) -> None:
    """n2 and n1 end at 120 s, n3 at 600 s; 2 nodes of n2-4 are wanted. Before the sort by end, slurmctld's list of jobs
    is in the order of their submission: n2 goes, n1 is next, and so close that the group is not over; n1 does not
    count, and n3 goes into it too. The plan is 600 s, on n2-3, and a job of 3 minutes has n4 in the meantime. (If n1,
    which was the first to start, went first, it would be 120 s.)"""
    two = site(partitions="PartitionName=one Nodes=n1\nPartitionName=rest Nodes=n[2-4]")
    work = jobs(
        *((0, 110, 120, 1), (0, 110, 120, 1), (0, 590, 600, 1), (1, 50, 60, 2), (1, 20, 180, 1)),
        partition=["rest", "one", "rest", "rest", "rest"],
        priority=[2, 3, 1, 5, 1],
    )
    assert starts(work, two)[4] == 1.5


def test_a_closed_partition_closes_its_nodes_for_the_event_pass(site: Any) -> None:
    """q shares n1-2 with p. p's first job waits for four nodes, so that q's job may start on n5 alone, and by backfill
    elsewhere."""
    parts = "PartitionName=p Nodes=n[1-4] Default=YES\nPartitionName=q Nodes=n[1-2,5]"
    both = site("NodeName=n[1-5] CPUs=1", parts, "SchedulerType=sched/builtin\n" + QUICK)
    work = jobs((0, 50, 60, 1), (1, 20, 60, 4), (2, 20, 60, 1), (2, 20, 60, 1), partition=["p", "p", "q", "q"])
    found = starts(work, both)
    assert found[2] < 3
    assert found[3] > 20


def test_tiers_stand_before_priorities_and_priorities_before_time(site: Any) -> None:
    parts = "PartitionName=p Nodes=ALL Default=YES\nPartitionName=q Nodes=ALL PriorityTier=5"
    work = jobs(
        (0, 50, 60, 4), (1, 5, 60, 4), (2, 5, 60, 4), (3, 5, 60, 4), partition=["p", "p", "p", "q"], nice=[0, 100, 0, 0]
    )
    found = starts(work, site(partitions=parts))
    assert found[0] < found[3] < found[2] < found[1]


def test_age_needs_accounting_and_grows_in_steps(site: Any) -> None:
    """A big young job overtakes an older small one by size, until age has been counted, once a minute."""
    weights = "PriorityWeightAge=1000\nPriorityWeightJobSize=40"
    more = f"PriorityType=priority/multifactor\nPriorityMaxAge=10\nPriorityCalcPeriod=1\n{weights}\n{QUICK}"
    work = jobs((0, 100, 120, 4), (1, 5, 60, 1), (90, 5, 60, 4))
    aged = starts(work, site(more=f"AccountingStorageType=accounting_storage/slurmdbd\n{more}"))
    young = starts(work, site(more=more))
    assert aged[1] < aged[2]
    assert young[2] < young[1]


def test_a_given_priority_stands_in_place_of_the_sites(site: Any) -> None:
    work = jobs((0, 50, 60, 4), (1, 5, 60, 4), (2, 5, 60, 4), priority=[None, 5, 10])
    found = starts(work, site(more="PriorityType=priority/multifactor\n" + QUICK))
    assert found[2] < found[1]


def test_several_partitions_the_first_that_can(site: Any) -> None:
    parts = "PartitionName=p Nodes=n[1-2] Default=YES\nPartitionName=q Nodes=n[3-4]"
    work = jobs((0, 50, 60, 2), (1, 20, 60, 2), (2, 20, 60, 2), partition=["p", "p,q", "p"])
    found = starts(work, site(partitions=parts))
    assert found[1] < 2
    assert found[2] > 50


def test_dependencies(site: Any) -> None:
    work = escala.Workload.from_jobs(
        {
            "job_id": ["a", "b", "c", "d", "e"],
            "submit_s": [0.0, 1.0, 1.0, 1.0, 1.0],
            "runtime_s": [50.0, 5.0, 5.0, 5.0, 5.0],
            "walltime_s": [60.0] * 5,
            "nodes": [1] * 5,
            "status": ["FAILED", None, None, None, None],
            "dependency": [None, "afterany:a", "afterok:a", "after:a", "afternotok:a,afterany:b"],
        }
    )
    result = escala.simulate(work, site(), scheduler="slurm")
    _, b, c, d, e = result.jobs["start_s"]
    assert d < 3 and 50 < b < 53 and c is None and e > b + 5
    assert result.jobs["state"][2] == "REJECTED"


def test_a_pass_sees_the_queue_as_it_was_when_it_began(site: Any) -> None:
    """Job 3 may begin when job 1 has started (`after`): the pass that starts job 1 starts job 2 on the nodes that are
    left, and job 3, of the highest priority, is looked at in the next."""
    work = jobs((0, 50, 60, 1), (0, 50, 60, 3), (0, 50, 60, 3), priority=[3, 1, 2], dependency=[None, None, "after:1"])
    assert starts(work, site()) == [0.4, 0.4, pytest.approx(50.4, abs=0.3)]


def test_singleton_waits_for_the_namesake_before(site: Any) -> None:
    work = jobs(
        (0, 50, 60, 1),
        (1, 5, 60, 1),
        (1, 5, 60, 1),
        user=["u", "u", "v"],
        job_name=["x", "x", "x"],
        dependency=[None, "singleton", "singleton"],
    )
    found = starts(work, site())
    assert found[1] > 50
    assert found[2] < 3


def test_singleton_waits_for_every_namesake_that_runs(site: Any) -> None:
    """The first outlasts the second, and the fourth, which is no singleton, came later but has started: the third waits
    for all of them."""
    work = jobs(
        *((0, 50, 60, 1), (1, 5, 60, 1), (2, 5, 60, 1), (3, 70, 120, 1)),
        user=["u"] * 4,
        job_name=["x"] * 4,
        dependency=[None, None, "singleton", None],
    )
    found = starts(work, site())
    assert found[3] < 5 and 73 < found[2] < 75


def test_bf_max_job_test_and_windows_bound_what_is_planned(site: Any) -> None:
    """With one job tested, the second that could pass the first is never looked at."""
    work = jobs((0, 100, 120, 3), (1, 50, 60, 4), (2, 20, 60, 1))
    assert starts(work, site(more=QUICK + ",bf_max_job_test=1"))[2] > 100
    assert (
        starts(work, site(more=QUICK + ",bf_max_job_user=1"), "slurm:started=-2.5:tick=0.4:bf_max_job_user=1")[2] > 100
    )


MULTIFACTOR = f"{QUICK}\nPriorityType=priority/multifactor\nAccountingStorageType=accounting_storage/slurmdbd\n"


def test_priorities_are_cut_from_sums_as_slurmctld_makes_them(site: Any) -> None:
    """3/11 x 110 is a hair less than 30: the second has 29, and the third, with 30, goes first."""
    parts = "PartitionName=p Nodes=ALL Default=YES PriorityJobFactor=3\nPartitionName=q Nodes=ALL PriorityJobFactor=11"
    place = site("NodeName=n1 CPUs=1", parts, MULTIFACTOR + "PriorityWeightPartition=110")
    found = starts(jobs((0, 50, 60, 1), (1, 50, 60, 1), (2, 50, 60, 1), priority=[99, None, 30]), place)
    assert found[2] < found[1]


def test_an_exclusive_job_is_as_large_as_the_nodes_that_were_found_for_it(site: Any) -> None:
    """It asks for 1 of 8 cores. Once backfill has planned it, it counts with 8 (total_cpus), more than the 5 of the job
    before it."""
    place = site("NodeName=n[1-2] CPUs=8", more=MULTIFACTOR + "PriorityWeightJobSize=1000\nPriorityCalcPeriod=1")
    work = jobs(
        *((0, 90, 120, 2), (1, 50, 60, 1), (2, 50, 120, 1), (2, 50, 120, 1)),
        tasks=[16, 5, 1, 8], exclusive=[False, False, True, False], priority=[9999, None, None, 9998],
    )  # fmt: skip
    found = starts(work, place)
    assert found[2] < found[1]


def test_who_could_not_run_on_what_is_left_closes_nothing(site: Any) -> None:
    """Job 2 of the higher tier waits, so its nodes 1 to 3 are kept. On node 4 alone job 3 of two cores could not run
    even if it were idle: its partition stays open for job 4. Where job 3 asks for two nodes, of which one is left, it
    is closed. Real slurmctlds did so."""
    parts = "PartitionName=low Nodes=n[1-4] Default=YES\nPartitionName=high Nodes=n[1-3] PriorityTier=2"
    more = "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=0,sched_interval=2"
    kept = {"partition": ["low", "high", "low", "low"]}
    for asked, tasks, goes_on in ((None, 2, True), (2, 2, False)):
        rows = [(0.0, 50, 60, 3), (1.1, 10, 60, 3), (1.2, 10, 60, asked), (1.3, 10, 60, 1)]
        found = starts(jobs(*rows, tasks=[3, 3, tasks, 1], **kept), site(partitions=parts, more=more))
        assert (found[3] < 4) is goes_on, found
