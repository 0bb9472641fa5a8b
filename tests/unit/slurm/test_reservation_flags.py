"""Reservations with the flags FLEX and MAGNETIC, by hand: https://slurm.schedmd.com/reservations.html#flex and
#magnetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import escala
from escala import EscalaError
from escala.platform.closures import Closure
from escala.platform.exports import read_exports
from escala.platform.site_write import site_text
from tests.unit.slurm.test_closed_nodes import jobs, own, site, table

BUILTIN = 'SchedulerType = "sched/builtin"\n'


def flagged(
    nodes: tuple[int, ...],
    begin: float,
    end: float,
    *flags: str,
    name: str = "course",
    users: tuple[str, ...] = ("ann",),
) -> Closure:
    return own(nodes, begin, end, name, users=users, flags=flags)


def test_a_flexible_one_binds_its_jobs_to_no_time(tmp_path: Path) -> None:
    """ "With the FLEX flag jobs are able to start before the reservation begins or continue after it ends." Without it
    job 1 waits for the begin, and is killed behind the end."""
    work = jobs((0.0, 400.0, 480.0, 1), (1.0, 30.0, 180.0, 4), reservation=["course", None], user=["ann"] * 2)
    assert table(work, site(tmp_path, flagged((2,), 100, 200, "flex")))[0] == (0, 400, "COMPLETED", "2")
    assert table(work, site(tmp_path, flagged((2,), 100, 200)))[0] == (100, 207, "KILLED", "2")


def test_others_keep_off_its_nodes_while_it_lasts(tmp_path: Path) -> None:
    """A typical use "is to prevent jobs not explicitly requesting the reservation from using those reserved resources"
    (scontrol)."""
    work = jobs((1.0, 30.0, 180.0, 4), (2.0, 30.0, 180.0, 3), reservation=[None] * 2)
    assert [one[0] for one in table(work, site(tmp_path, flagged((2,), 100, 200, "flex")))] == [200, 2]


def test_its_jobs_use_its_nodes_first_and_others_with_them(tmp_path: Path) -> None:
    """ "They are also able to use the reserved node(s) along with additional nodes if required and available." """
    flex, plain = flagged((2,), 0, 500, "flex"), flagged((2,), 0, 500)
    two = jobs((0.0, 30.0, 60.0, 2), reservation=["course"], user=["ann"])
    assert table(two, site(tmp_path, flex)) == [(0, 30, "COMPLETED", "2-3")]
    with pytest.raises(EscalaError, match="has 1 node that could run it, and it needs 2"):
        table(two, site(tmp_path, plain))
    each = jobs((0.0, 30.0, 60.0, 1), (0.1, 30.0, 60.0, 1), reservation=["course"] * 2, user=["ann"] * 2)
    assert [one[::3] for one in table(each, site(tmp_path, flex))] == [(0, "2"), (0, "3")], (
        "the second has the smallest run beside it"
    )


def test_one_that_asks_for_more_than_it_has_is_left_to_backfill(tmp_path: Path) -> None:
    """An event pass does not look at jobs of more nodes than the reservation has (_job_runnable_test3 in
    job_scheduler.c of 22.05)."""
    two = jobs((0.0, 30.0, 60.0, 2), (1.0, 5.0, 60.0, 1), reservation=["course", None], user=["ann", "bob"])
    run = escala.simulate(
        two, site(tmp_path, flagged((2,), 0, 500, "flex")), scheduler="slurm:started=-2.5:tick=0.4"
    ).jobs
    assert run["started_by"].to_list()[0] == "backfill"
    run = escala.simulate(two, site(tmp_path, flagged((2,), 0, 500, "flex"), more=BUILTIN), scheduler="slurm").jobs
    assert run["state"].to_list() == ["QUEUED", "COMPLETED"]


def test_once_a_flexible_one_is_over_its_jobs_wait_for_ever(tmp_path: Path) -> None:
    work = jobs((70.0, 40.0, 60.0, 1), (71.0, 5.0, 60.0, 1), reservation=["course", None], user=["ann"] * 2)
    result = escala.simulate(work, site(tmp_path, flagged((0,), 0, 40, "flex")), scheduler="slurm")
    assert result.jobs["state"].to_list() == ["QUEUED", "COMPLETED"]


def test_a_magnetic_one_draws_the_jobs_that_may_run_in_it(tmp_path: Path) -> None:
    """ "The MAGNETIC flag allows you to create a reservation that will allow jobs to run in it without requiring that
    they specify the name of the reservation. The reservation will only "attract" jobs that meet the access control
    requirements." """
    work = jobs((0.0, 30.0, 300.0, 1), (0.1, 30.0, 300.0, 1), (0.2, 30.0, 300.0, 1), user=["ann", "bob", None])
    found = table(work, site(tmp_path, flagged((3,), 0, 500, "magnetic")))
    assert [one[3] for one in found] == ["3", "0", "1"], "nobody knows whose the last is"
    assert table(work, site(tmp_path, flagged((3,), 0, 500)))[0][3] == "0"


def test_who_finds_no_room_in_a_magnetic_one_runs_elsewhere(tmp_path: Path) -> None:
    """Job 2 is tried in the reservation first, which job 1 fills, and closes that alone; then outside of it."""
    work = jobs((0.0, 90.0, 120.0, 1), (1.0, 30.0, 60.0, 1), (2.0, 30.0, 60.0, 2), user=["ann"] * 3)
    assert [one[::3] for one in table(work, site(tmp_path, flagged((3,), 0, 500, "magnetic"), more=BUILTIN))] == [
        (0, "3"),
        (1, "0"),
        (2, "1-2"),
    ]


def test_what_a_magnetic_one_has_drawn_ends_with_it(tmp_path: Path) -> None:
    work = jobs((0.0, 400.0, 480.0, 1), user=["ann"])
    assert table(work, site(tmp_path, flagged((3,), 0, 100, "magnetic")))[0] == (0, 117, "KILLED", "3")
    both = site(tmp_path, flagged((3,), 50, 100, "magnetic", "flex"))
    assert table(work, both)[0] == (0, 400, "COMPLETED", "3"), "a flexible one draws before its begin, and ends nothing"


def test_one_to_come_keeps_others_off_its_nodes_in_event_passes(tmp_path: Path) -> None:
    """In the pass in which it looks at a job for it slurmctld takes those nodes away from jobs behind
    (ESLURM_RESERVATION_NOT_USABLE in job_scheduler.c)."""
    work = jobs((0.0, 30.0, 60.0, 2), (0.1, 500.0, 600.0, 2), (1.0, 30.0, 60.0, 1), user=["bob", "ann", "bob"])
    magnetic = site(tmp_path, flagged((0, 1), 300, 400, "magnetic"), more=BUILTIN)
    plain = site(tmp_path, flagged((0, 1), 300, 400), more=BUILTIN)
    assert [one[::3] for one in table(work, plain)][:2] == [(0, "0-1"), (0, "2-3")]
    assert table(work, magnetic)[0][3] == "2-3", (
        "behind ann's job in the queue, which is looked at in the reservation first"
    )


def test_jobs_in_reservations_stand_before_all_others(tmp_path: Path) -> None:
    """ "1. Jobs that can preempt 2. Jobs with an advanced reservation 3. Partition PriorityTier 4. Job priority"
    (https://slurm.schedmd.com/priority_multifactor.html): job 4 comes before job 3 at 50 s, which waits for its
    node."""
    work = jobs(
        (0.0, 50.0, 60.0, 2),
        (0.0, 300.0, 360.0, 2),
        (1.0, 50.0, 60.0, 2),
        (2.0, 30.0, 60.0, 1),
        reservation=[None, "course", None, "course"],
        user=["ann"] * 4,
        priority=[9, 9, 9, 1],
    )
    found = table(work, site(tmp_path, flagged((0, 1), 0, 500, "flex"), more=BUILTIN))
    assert [one[0] for one in found] == [0, 0, 80, 50]


def test_flags_of_scontrol_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=lab\nNodeName=n[1-3] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    (tmp_path / "reservations.txt").write_text(
        "ReservationName=open StartTime=2027-01-15T08:00:00 EndTime=2027-01-15T18:00:00 Duration=10:00:00\n"
        "   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=p Flags=FLEX,SPEC_NODES,MAGNETIC\n"
        "   Users=ann Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)\n"
    )
    place = read_exports([tmp_path / "slurm.conf", tmp_path / "reservations.txt"])
    assert [one.flags for one in place.closed] == [("flex", "magnetic")] and not place.unread
    assert escala.platform.Platform.from_spec(place.spec()) == place
    (tmp_path / "written.toml").write_text(site_text(replace(place, unread=())))
    assert escala.read_site(tmp_path / "written.toml").closed == place.closed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind = 'reserved'\nname = 'x'\nflags = ['flexible']", "unknown flag 'flexible'; did you mean"),
        ("kind = 'reserved'\nflags = ['flex']", "flags need a name"),
        ("flags = ['flex']", "those of a reservation"),
        ("kind = 'reserved'\nname = 'x'\nflags = 'flex'", "is no list of names"),
    ],
)
def test_bad_flags_are_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(EscalaError, match=says) as error:
        site(tmp_path, more=f"[[closed]]\nfrom = 5\n{text}\n")
    assert "\n" not in str(error.value)


def test_nobody_is_drawn_who_may_not(tmp_path: Path) -> None:
    def node(closure: Closure, **who: Any) -> str:
        more = '[accounts]\nteach = {}\nlab = {parent = "teach"}\n'
        return table(jobs((0.0, 5.0, 60.0, 1), **who), site(tmp_path, closure, more=more))[0][3]

    of_account = Closure(
        (3,), 1_800_000_000.0, 1_800_001_000.0, "reserved", True, "course", (), ("teach",), ("magnetic",)
    )
    assert node(of_account, user=["ann"], account=["lab"]) == "3"
    assert node(of_account, user=["ann"], account=["other"]) == "0"
    assert node(of_account, user=["ann"]) == "0"
    assert node(of_account._replace(accounts=(), users=("-bob",)), user=["ann"]) == "3"
