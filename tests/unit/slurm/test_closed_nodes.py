"""Nodes that are closed for a while: outages, drains, reservations (https://slurm.schedmd.com/reservations.html), and
their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import EscalaError
from escala.kernel.slurm import tables as t
from escala.platform.closures import Closure
from escala.platform.exports import read_exports
from escala.platform.site_write import site_text
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.run import play

ORIGIN = 1_800_000_000.0
SITE = """\
name = "closed"
[[nodes]]
names = "n[1-4]"
cores = 1
[slurm]
SelectTypeParameters = "CR_CPU"
SchedulerParameters = "bf_interval=1,sched_interval=2,bf_resolution=1,batch_sched_delay=0"
"""


def site(tmp_path: Path, *closed: Closure, more: str = "") -> Any:
    (tmp_path / "site.toml").write_text(SITE + more)
    return replace(escala.read_site(tmp_path / "site.toml"), closed=closed)


def span(nodes: tuple[int, ...], begin: float, end: float, kind: str = "down", requeue: bool = True) -> Closure:
    return Closure(nodes, ORIGIN + begin, ORIGIN + end, kind, requeue)


def jobs(*rows: tuple[float, float, float, int], **columns: Any) -> escala.Workload:
    """Rows of (submit_s, runtime_s, walltime_s, nodes)."""
    table = {name: [row[k] for row in rows] for k, name in enumerate(("submit_s", "runtime_s", "walltime_s", "nodes"))}
    return escala.Workload.from_jobs({**table, **columns}, origin_s=ORIGIN)


def table(workload: escala.Workload, place: Any, more: str = "tick=0.4") -> list[tuple[int, int, str, str]]:
    """(start, finish, state, nodes) of each job, whole seconds."""
    result = escala.simulate(workload, place, scheduler=f"slurm:started=-2.5:tick=0.4:{more}").jobs
    return [
        (int(a), int(b), state, nodes)
        for a, b, state, nodes in result.select("start_s", "finish_s", "state", "nodes").iter_rows()
    ]


def test_what_runs_on_a_failing_node_is_queued_again(tmp_path: Path) -> None:
    """Job 1 on n1 and n2 loses them at 20 s and may start anew 121 s later (requeue_delay of slurm.conf is 120 s by
    default, and slurmctld adds one), or 6 s later with requeue_delay=5; job 2 on n3 is left alone."""
    work = jobs((0.0, 50.0, 60.0, 2), (0.0, 40.0, 60.0, 1))
    place = site(tmp_path, span((0,), 20, 500))
    assert table(work, place) == [(141, 191, "COMPLETED", "1-2"), (0, 40, "COMPLETED", "2")]
    assert table(work, place, "requeue_delay=5") == [(26, 76, "COMPLETED", "1 3"), (0, 40, "COMPLETED", "2")]
    lost = escala.simulate(work, place, scheduler="slurm").jobs["lost_s"]
    assert lost.round(0).to_list() == [20.0, 0.0]


def test_a_job_that_never_gets_through_is_an_error(tmp_path: Path) -> None:
    """A node fails each 2 s, for a job of 50 s."""
    place = site(tmp_path, *(span((0, 1, 2, 3), at, at + 0.5) for at in range(2, 20_100, 2)))
    with pytest.raises(EscalaError, match="job '1' has lost its nodes more than 10,000 times"):
        table(jobs((0.0, 50.0, 60.0, 1)), place, "requeue_delay=0")


def test_without_requeue_it_is_over(tmp_path: Path) -> None:
    work = jobs((0.0, 50.0, 60.0, 2), (1.0, 10.0, 60.0, 4), dependency=[None, "afterany:1"])
    found = table(work, site(tmp_path, span((0,), 20, 40, requeue=False)))
    assert found[0] == (0, 20, "KILLED", "0-1")
    assert found[1][0] == 40, "its follower needs all nodes, and has them when the node is back"


def test_a_drained_node_takes_nothing_new(tmp_path: Path) -> None:
    """Job 1 runs on; job 2 of all nodes waits until the drain is over, and job 3, behind it, is backfilled beside the
    drained node."""
    work = jobs((0.0, 50.0, 60.0, 1), (5.0, 10.0, 60.0, 4), (6.0, 10.0, 60.0, 3))
    found = table(work, site(tmp_path, span((0,), 2, 100, "drain")))
    assert found[0] == (0, 50, "COMPLETED", "0")
    assert found[1][0] == 100
    assert found[2][0] == 6


def test_no_job_runs_into_a_reservation(tmp_path: Path) -> None:
    """Nodes are reserved from 120 to 200 s: a limit of 60 s fits before, one of 180 s waits, and the short one passes
    it."""
    whole = span((0, 1, 2, 3), 120, 200, "reserved")
    work = jobs((5.0, 10.0, 180.0, 1), (6.0, 10.0, 60.0, 4), (70.0, 10.0, 60.0, 1))
    found = table(work, site(tmp_path, whole))
    assert [one[0] for one in found] == [200, 6, 200]
    some = table(work, site(tmp_path, whole._replace(nodes=(0, 1, 2))))
    assert some[0][::3] == (5, "3"), "the node that is not reserved is free for it"


def test_a_reservation_lasts_to_the_end_of_its_last_second(tmp_path: Path) -> None:
    """It ends at 200.5 s; passes come 0.4 s behind each second."""
    found = table(jobs((5.0, 10.0, 60.0, 1)), site(tmp_path, span((0, 1, 2, 3), 0, 200.5, "reserved")))
    assert found[0][0] == 201


def test_backfill_plans_around_a_reservation(tmp_path: Path) -> None:
    """Job 2 of all nodes cannot end before the reservation of n1 and is planned behind it, at 300 s. Job 3 may use the
    time until then."""
    work = jobs((0.0, 90.0, 100.0, 4), (1.0, 50.0, 240.0, 4), (2.0, 100.0, 120.0, 3))
    found = table(work, site(tmp_path, span((0,), 200, 300, "reserved")))
    assert found[1][0] == 300
    assert found[2][0] == 90


def test_nobody_is_where_it_is_closed(tmp_path: Path) -> None:
    """On random worlds: no job overlaps an outage or a reservation of its nodes, none starts in a drain, nothing is
    lost."""
    for seed in range(30):
        draw = np.random.default_rng([seed, 91])
        closed = []
        for _ in range(draw.integers(1, 5)):
            begin = float(draw.integers(0, 1500))
            nodes = tuple(int(k) for k in np.flatnonzero(draw.random(4) < 0.5)) or (0,)
            closed.append(
                span(
                    nodes, begin, begin + float(draw.integers(20, 400)), str(draw.choice(["down", "drain", "reserved"]))
                )
            )
        place = site(tmp_path, *closed)
        n = 40
        run = draw.exponential(100, n).clip(1)
        rows = list(
            zip(
                np.sort(draw.uniform(0, 1500, n)),
                run,
                run + draw.exponential(100, n),
                draw.integers(1, 5, n).tolist(),
                strict=True,
            )
        )
        work = jobs(*rows, user=draw.choice(["a", "b"], n).tolist())
        settings = settings_of(place)
        world = play(work, place, settings, Asking(work, place, settings).asked())
        assert (world.jobs.state == t.ENDED).all()
        assert (world.free.cpus == world.machine.cpus).all()
        assert (world.free.jobs == 0).all()
        for j in range(n):
            start, end = world.jobs.start[j] / t.SECOND, world.jobs.finish[j] / t.SECOND
            on = set(world.allocated.node[world.jobs.first[j] : world.jobs.last[j]].tolist())
            for one in closed:
                low, high = one.from_s - ORIGIN, one.until_s - ORIGIN
                if on & set(one.nodes):
                    assert not low < start < high, (seed, j, one)
                    assert one.kind == "drain" or end <= low + 1e-6 or start >= high - 1 or world.jobs.cut[j], (
                        seed,
                        j,
                        one,
                    )


def test_limits_and_fair_share_go_on_over_an_outage(tmp_path: Path) -> None:
    more = "[qos]\nnormal = {max_jobs_per_user = 1}\n"
    work = jobs((0.0, 50.0, 60.0, 1), (1.0, 50.0, 60.0, 1), user=["a", "a"], qos=["normal"] * 2)
    found = table(work, site(tmp_path, span((0, 1, 2, 3), 20, 40), more=more))
    assert [one[:2] for one in found] == [(141, 191), (40, 90)], "the second runs while the first may not"


RESERVATIONS = """\
ReservationName=maint_nov StartTime=2027-01-15T08:00:00 EndTime=2027-01-15T18:00:00 Duration=10:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=8
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=course StartTime=2027-01-16T08:00:00 EndTime=2027-01-16T10:00:00 Duration=02:00:00
   Nodes=n2 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=p Flags=
   Users=(null) Groups=(null) Accounts=teach Licenses=(null) State=INACTIVE BurstBuffer=(null)
"""


def test_reservations_of_scontrol(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=lab\nNodeName=n[1-3] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    (tmp_path / "reservations.txt").write_text(RESERVATIONS)
    place = read_exports([tmp_path / "slurm.conf", tmp_path / "reservations.txt"])
    assert place.closed == (
        Closure((0, 1), 1_800_000_000.0, 1_800_036_000.0, "reserved", True, "maint_nov", ("root",)),
        Closure((1,), 1_800_086_400.0, 1_800_093_600.0, "reserved", True, "course", (), ("teach",)),
    )
    assert not [one for one in place.unread if "course" in one or "maint" in one]
    assert escala.platform.Platform.from_spec(place.spec()) == place
    (tmp_path / "written.toml").write_text(site_text(replace(place, unread=())))
    assert escala.read_site(tmp_path / "written.toml").closed == place.closed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes = 'n9'\nfrom = 1", "node 'n9' is not described"),
        ("from = 'soon'", "is no moment"),
        ("from = 5\nuntil = 5", "not after it begins"),
        ("from = 5\nkind = 'gone'", "unknown kind"),
        ("from = 5\nrequeue = 'no'", "neither true nor false"),
        ("from = 5\nwhen = 3", "unknown entry `when`"),
        ("nodes = 'n1'", "is no moment"),
        ("from = 5\nname = 'x'", "those of a reservation"),
        ("from = 5\nkind = 'reserved'\nusers = ['x']", "need a name"),
        ("from = 5\nkind = 'reserved'\nname = 'x'\nusers = 'x'", "is no list of names"),
        ("from = 5\nkind = 'reserved'\nname = 3", "is no name"),
    ],
)
def test_bad_closures_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        site(tmp_path, more=f"[[closed]]\n{text}\n")
    assert "\n" not in str(caught.value)


def own(nodes: tuple[int, ...], begin: float, end: float, name: str = "course", **who: Any) -> Closure:
    return Closure(nodes, ORIGIN + begin, ORIGIN + end, "reserved", True, name, **who)


def test_a_job_of_a_reservation_runs_in_it_alone(tmp_path: Path) -> None:
    """ "Jobs using that reservation can use only those resources [...] and no other jobs can use those resources." Job
    1 waits for it to begin on idle nodes, job 2 for a node in it while two others are idle; job 3 has those, and job 4
    may not pass through it."""
    work = jobs(
        (0.0, 30.0, 60.0, 1),
        (110.0, 30.0, 60.0, 2),
        (120.0, 30.0, 60.0, 2),
        (121.0, 30.0, 240.0, 3),
        reservation=["course", "course", None, None],
    )
    found = table(work, site(tmp_path, own((0, 1), 100, 400)))
    assert found[0] == (100, 130, "COMPLETED", "0")
    assert found[1] == (130, 160, "COMPLETED", "0-1")
    assert found[2][::3] == (120, "2-3")
    assert found[3][0] == 400


def test_what_runs_at_the_end_of_its_reservation_is_killed(tmp_path: Path) -> None:
    """ResvOverRun: "how long a job already running in a reservation should be permitted to execute after the end time
    [...] the default value is 0 (kill the job immediately)" (slurm.conf); slurmctld looks each 30 s, and its jobs may
    start whatever their limits are."""
    work = jobs(
        (0.0, 500.0, 600.0, 1), (1.0, 5.0, 60.0, 1), reservation=["course", None], dependency=[None, "afternotok:1"]
    )
    place = site(tmp_path, own((0, 1), 0, 100))
    assert table(work, place)[0] == (0, 117, "KILLED", "0"), "beats are 30 s apart from 27.4 s on"
    assert table(work, place)[1][2] == "COMPLETED", "it has not gone well"
    for over, end, state in (("1", 177, "KILLED"), ("UNLIMITED", 500, "COMPLETED")):
        longer = site(tmp_path, own((0, 1), 0, 100), more=f'ResvOverRun = "{over}"\n')
        assert table(jobs((0.0, 500.0, 600.0, 1), reservation=["course"]), longer)[0][1:3] == (end, state)


def test_a_job_that_finds_no_room_in_it_closes_it_and_no_partition(tmp_path: Path) -> None:
    """In the event pass jobs behind it in the reservation wait, those outside do not."""
    builtin = 'SchedulerType = "sched/builtin"\n'
    work = jobs(
        (0.0, 50.0, 60.0, 1),
        (1.0, 5.0, 60.0, 2),
        (2.0, 5.0, 60.0, 1),
        (3.0, 5.0, 60.0, 2),
        reservation=["course"] * 3 + [None],
    )
    found = table(work, site(tmp_path, own((0, 1), 0, 1000), more=builtin))
    assert [one[0] for one in found] == [0, 50, 55, 3]


def test_backfill_plans_in_it_and_around_it(tmp_path: Path) -> None:
    """Job 2 is planned behind job 1 in the reservation, and job 3 may not delay it; job 4 of all nodes comes behind the
    reservation, and job 5 fits before it."""
    work = jobs(
        (0.0, 90.0, 100.0, 1),
        (1.0, 50.0, 60.0, 2),
        (2.0, 200.0, 240.0, 1),
        (3.0, 10.0, 60.0, 4),
        (4.0, 300.0, 360.0, 2),
        reservation=["course"] * 3 + [None, None],
    )
    found = table(work, site(tmp_path, own((0, 1), 0, 500)))
    assert [one[0] for one in found] == [0, 90, 140, 500, 4]


def test_a_reservation_comes_more_than_once(tmp_path: Path) -> None:
    """Daily ones have one name: a job that does not find room in the first waits for the second."""
    work = jobs((0.0, 40.0, 60.0, 4), (1.0, 40.0, 60.0, 4), reservation=["course"] * 2)
    found = table(work, site(tmp_path, own((0, 1, 2, 3), 0, 35), own((0, 1, 2, 3), 300, 400)))
    assert [one[0] for one in found] == [0, 300]


def test_who_waits_for_one_that_is_over_waits_for_ever(tmp_path: Path) -> None:
    work = jobs((50.0, 40.0, 60.0, 1), (60.0, 5.0, 60.0, 1), reservation=["course", None])
    result = escala.simulate(work, site(tmp_path, own((0,), 0, 40)), scheduler="slurm")
    assert result.jobs["state"].to_list() == ["QUEUED", "COMPLETED"]


def test_who_may_ask_for_it(tmp_path: Path) -> None:
    """Users and accounts must both be right where both are said; an account stands for those below it, a - denies."""
    more = '[accounts]\nteach = {}\nlab = {parent = "teach"}\n'

    def refused(closure: Closure, **who: Any) -> bool:
        work = jobs((0.0, 5.0, 60.0, 1), reservation=["course"], **who)
        states = escala.simulate(work, site(tmp_path, closure, more=more), scheduler="slurm", oversized="drop").jobs[
            "state"
        ]
        return states[0] == "REJECTED"

    both = own((0,), 0, 1000, users=("ann",), accounts=("teach",))
    assert not refused(both, user=["ann"], account=["lab"])
    assert refused(both, user=["bob"], account=["lab"])
    assert refused(both, user=["ann"], account=["other"])
    assert refused(own((0,), 0, 1000, users=("-bob",)), user=["bob"])
    assert not refused(own((0,), 0, 1000, users=("-bob",)), user=["ann"])
    with pytest.raises(EscalaError, match=r"job '1' .* can never run .* 'course' is for others than user 'bob'"):
        table(
            jobs((0.0, 5.0, 60.0, 1), reservation=["course"], user=["bob"]),
            site(tmp_path, own((0,), 0, 1000, users=("ann",))),
        )


@pytest.mark.parametrize(
    ("reservation", "nodes", "says"),
    [
        ("curse", 1, r"reservation 'curse' is not there \(there are course\)"),
        ("course", 3, "has 2 nodes that could run it, and it needs 3"),
    ],
)
def test_reservations_that_cannot_be_are_one_line(tmp_path: Path, reservation: str, nodes: int, says: str) -> None:
    with pytest.raises(EscalaError, match=says) as error:
        table(jobs((0.0, 5.0, 60.0, nodes), reservation=[reservation]), site(tmp_path, own((0, 1), 0, 1000)))
    assert "\n" not in str(error.value)


def test_where_a_site_has_none_they_are_left_out(tmp_path: Path) -> None:
    """As in logs whose sites are described without them."""
    assert table(jobs((0.0, 5.0, 60.0, 1), reservation=["x"]), site(tmp_path))[0][0] == 0
    assert table(jobs((0.0, 5.0, 60.0, 1), reservation=["x"]), site(tmp_path, span((0,), 0, 9, "reserved")))[0][0] == 0


def test_nobody_is_in_a_reservation_of_others(tmp_path: Path) -> None:
    """On random worlds: jobs with a reservation run on its nodes and begin in it, and no other job overlaps it."""
    inside = 0
    for seed in range(30):
        draw = np.random.default_rng([seed, 92])
        closed = []
        for name in ("a", "b"):
            begin = float(draw.integers(0, 800))
            nodes = tuple(int(k) for k in np.flatnonzero(draw.random(4) < 0.6)) or (0,)
            closed.append(own(nodes, begin, begin + float(draw.integers(200, 900)), name))
        place = site(tmp_path, *closed)
        n = 40
        run = draw.exponential(100, n).clip(1)
        named = [None if k == "" else str(k) for k in draw.choice(["", "a", "b"], n, p=[0.6, 0.2, 0.2])]
        wide = [1 if name else int(draw.integers(1, 5)) for name in named]
        rows = list(zip(np.sort(draw.uniform(0, 1500, n)), run, run + draw.exponential(100, n), wide, strict=True))
        work = jobs(*rows, reservation=named)
        settings = settings_of(place)
        world = play(work, place, settings, Asking(work, place, settings).asked())
        assert (world.free.cpus == world.machine.cpus).all()
        assert all(world.jobs.state[j] == t.ENDED or named[j] is not None for j in range(n))
        for j in np.flatnonzero(world.jobs.state == t.ENDED):
            start, end = world.jobs.start[j] / t.SECOND, world.jobs.finish[j] / t.SECOND
            on = set(world.allocated.node[world.jobs.first[j] : world.jobs.last[j]].tolist())
            for one in closed:
                low, high = one.from_s - ORIGIN, one.until_s - ORIGIN
                if named[j] == one.name:
                    assert on <= set(one.nodes) and low <= start < high and end <= high + 31.1, (seed, j)
                    inside += 1
                elif on & set(one.nodes):
                    assert end <= low + 1e-6 or start >= high - 1 or world.jobs.cut[j], (seed, j, one)
    assert inside > 100
