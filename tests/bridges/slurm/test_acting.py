"""Acting on a fake Slurm: orders and power do what the policy wants, and say so."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from escala.bridges.slurm import leases
from escala.bridges.slurm.commands import Failed
from escala.bridges.slurm.guard import Limits
from escala.bridges.slurm.loop import JOURNAL
from escala.bridges.slurm.metrics import Metrics
from escala.bridges.slurm.ranks import nices
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.snapshots import is_lease, layout
from escala.bridges.slurm.story import explain, status
from tests.bridges.slurm.fake import BOOT_TIMEOUT_S, EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.shadow import WATTS
from tests.bridges.slurm.world import FAST, PERIOD, World, queue, reserve

pytestmark = pytest.mark.usefixtures("compiled")


def test_order_mode_makes_slurm_start_jobs_as_the_policy_wants(tmp_path: Path) -> None:
    slurm = queue(7, 3, 8, 1, 6, 2, 5, 4)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    before = {job.number: job.priority for job in slurm.jobs if job.number > 1}
    world.go(2)
    given = list(slurm.commands)
    assert (
        all(command[:2] == ("scontrol", "update") and command[2].startswith("jobid=") for command in given)
        and len(given) <= 8
    )
    after = {job.number: job.priority for job in slurm.jobs if job.number > 1}
    assert set(after.values()) <= set(before.values()), "no job has a priority that none had"
    world.go(60)
    limits = [job.limit // 60 for job in sorted(slurm.jobs, key=lambda job: job.start or 0) if job.number > 1]
    assert limits == [1, 2, 3, 4, 5, 6, 7, 8]
    assert slurm.commands == given, "the order stands, so nothing more was changed"
    assert all(not refused for refused in world.told("refused")) and all(done for _, done in world.told("acted"))


def test_a_long_queue_starts_in_the_order_of_the_policy_too(tmp_path: Path) -> None:
    limits = [1 + 37 * k % 90 for k in range(90)]  # of which the first 50 are planned
    full = FakeJob(1, EPOCH + 1, 8, 300, limit=6000, priority=50000)
    waiting = [FakeJob(k + 2, EPOCH + 2, 8, 5, limit=60 * limit, priority=10000 - k) for k, limit in enumerate(limits)]
    slurm = FakeSlurm(8, [full, *waiting])
    slurm.advance(3)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    before = {job.priority for job in slurm.jobs}
    started: dict[int, int] = {}  # the limit of a job, in the order in which they started
    for _ in range(150):
        world.go(1)
        started |= {
            job.number: job.limit // 60
            for job in slurm.jobs
            if job.start and job.number > 1 and job.number not in started
        }
    assert list(started.values()) == list(range(1, 91))
    assert {job.priority for job in slurm.jobs} <= before


def test_parts_of_a_whole_and_jobs_of_several_partitions_keep_their_place() -> None:
    slurm = queue(7, 3, 8)
    seen = Reader(slurm, clock=slurm.clock).read()
    at = layout(seen, "batch", WATTS)
    first, second, third = (f"{k}" for k in (2, 3, 4))
    jobs = {name: job for name, job in seen.jobs.items() if name != first}
    jobs["2+0"] = seen.jobs[first]._replace(job_id="2+0")
    jobs[third] = jobs[third]._replace(partition="batch,night")
    wish = [third, second, "2+0"]
    assert nices(replace(seen, jobs=jobs), at, wish) == ([], []), (
        "the second alone may be moved, and stands first of those"
    )
    assert [one.name for one in nices(seen, at, [third, second])[0]] == [third, first], "the first makes room"


def test_status_and_explain_tell_of_nices_promises_and_refusals(tmp_path: Path) -> None:
    slurm = queue(7, 3, 1, 5)
    world = World(slurm, tmp_path, "order", Limits(**{**vars(FAST), "changes": 2}), scheduler="sjf", shutdown="never")
    world.go(2)
    found = status(tmp_path / JOURNAL)
    given = [command[2].removeprefix("jobid=") for command in slurm.commands]
    assert len(given) == 2 and found["changed_jobs"] == given and found["done"] == []
    assert found["refused"] and all(line.startswith("nice ") and line.endswith(": rate") for line in found["refused"])
    job = next(job for job in slurm.jobs if str(job.number) == given[0])
    told = "\n".join(explain(tmp_path / JOURNAL, given[0]))
    assert f"its nice was set from 0 to {job.nice} at 2027-01-15 08:00:0" in told
    assert re.search(
        r"its start was expected, as of 2027-01-15 08:00:03 UTC: by the policy 2027-01-15 08:\d\d:\d\d UTC \(in \d+ "
        r"s\)",
        told,
    )
    assert not re.search(r"\d{9}", told), "times are dates"
    other = found["refused"][0].split()[1].rstrip(":")
    told = "\n".join(explain(tmp_path / JOURNAL, other))
    assert re.search(
        r"a guard refused a change of its nice \(rate\) in \d of the looks of its wait, the last at 2027", told
    ), told
    world.go(80)
    assert status(tmp_path / JOURNAL)["changed_jobs"] == []
    assert "Slurm started it at 2027-01-15" in "\n".join(explain(tmp_path / JOURNAL, given[0]))


def test_status_and_explain_tell_of_switches_leases_and_refusals(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(
        slurm,
        tmp_path,
        "power",
        Limits(**{**vars(FAST), "spare": 1, "boot_s": 600, "switches": 8}),
        shutdown="hold:0.25",
    )
    world.go(1)
    found = status(tmp_path / JOURNAL)
    assert found["refused"] == ["off n8: spare"] and found["would_switch_off"] == []
    assert [
        line for line in found["done"] if "n8" in line
    ] == [] and "scontrol update nodename=n1 state=power_down" in found["done"]
    world.go(3)
    slurm.coming = [FakeJob(1, slurm.now + 2, 4, 30, limit=60)]
    world.go(3)
    assert status(tmp_path / JOURNAL)["leases"] == [f"n{k}" for k in range(1, 8)]
    world.guard.limits = Limits(**{**vars(FAST), "spare": 1, "boot_s": 600, "switches": 2})
    world.go(5)
    told = "\n".join(explain(tmp_path / JOURNAL, "1"))
    assert "while it waited, leases kept 7 nodes off; the last ones seen: n1, n2" in told
    assert re.search(
        r"a guard refused switching n\d on \(rate\) in \d of the looks of its wait, the last at 2027", told
    ), told
    world.go(25)
    assert "had leases before it started" in "\n".join(explain(tmp_path / JOURNAL, "1"))


def test_its_files_are_for_user_and_group_alone_whatever_the_umask_lets_through(tmp_path: Path) -> None:
    """The mark in Slurm is noted before the first look, and so its file is made before any other."""
    before = os.umask(0o022)
    try:
        world = World(FakeSlurm(8), tmp_path, "power", marks=True)
        world.go(2)
        Metrics(world.beside).add()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {name: mode for name, mode in modes.items() if not name.endswith(".lock")} == dict.fromkeys(
        ("changes.jsonl", "journal.jsonl", "metrics.prom", "state.json"), 0o640
    )


def test_a_reservation_of_an_administrator_is_none_of_ours_whatever_its_name(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    reserve(slurm, "escala_meeting", "n1,n2")
    world = World(slurm, tmp_path, "power", shutdown="timeout:0")
    world.go(4)
    assert {name for name, node in slurm.nodes.items() if node.power} == {"n3", "n4"}
    assert "escala_meeting" in slurm.reservations and world.told("leases") and "meeting" not in world.told("leases")


def test_power_mode_switches_nodes_off_under_leases_and_wakes_them_for_jobs(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", shutdown="hold:0.25")
    world.go(4)
    assert {node.power for node in slurm.nodes.values()} == {"POWERED_DOWN"} and len(slurm.reservations) == 8
    slurm.coming = [FakeJob(1, slurm.now + 2, 2, 30, limit=60)]
    world.go(3)
    assert slurm.jobs[0].state == "PENDING", "held back by the policy, and Slurm cannot wake what is reserved"
    world.go(12)
    job = slurm.jobs[0]
    assert job.state in ("RUNNING", "COMPLETED") and job.start is not None
    assert not any(host in _leased(slurm) for host in job.hosts) or job.state == "COMPLETED"
    world.go(15)
    assert {node.power for node in slurm.nodes.values()} == {"POWERED_DOWN"} and len(slurm.reservations) == 8, (
        "off again"
    )


def test_killed_it_leaves_nothing_and_begun_again_it_takes_over(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power")
    world.go(5)
    assert len(slurm.reservations) == 8
    world.die()
    slurm.advance(10)
    world.begin()
    world.go(3)
    assert len(slurm.reservations) == 8 and {node.power for node in slurm.nodes.values()} == {"POWERED_DOWN"}
    world.die()
    slurm.coming = [FakeJob(1, slurm.now + 1, 4, 30)]
    slurm.advance(int(FAST.lease_s) + 25)
    assert slurm.reservations == {} and slurm.jobs[0].state == "RUNNING", "Slurm woke its nodes itself"
    world.begin()
    world.go(4)
    assert len(slurm.reservations) >= 4, "nodes that are off get their leases again"


def test_nodes_that_do_not_boot_are_set_aside_and_tried_rarely(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", shutdown="timeout:0")
    world.go(4)
    for node in slurm.nodes.values():
        node.broken = node.name in ("n1", "n2")
    slurm.coming = [FakeJob(1, slurm.now + 1, 2, 30), FakeJob(2, slurm.now + 1, 2, 30, priority=900)]
    world.go((BOOT_TIMEOUT_S + 400) // PERIOD)
    woken = [command[2] for command in slurm.commands if "state=power_up" in command]
    assert woken.count("nodename=n1") == woken.count("nodename=n2") == 1 and set(world.guard.memory.boots) == {
        "n1",
        "n2",
    }
    assert all(job.state in ("RUNNING", "COMPLETED") for job in slurm.jobs if job.number in (1, 2)), (
        "other nodes were woken"
    )
    assert not {"n1", "n2"} & _leased(slurm), "an operator finds them as Slurm left them"


def test_where_nothing_boots_few_nodes_are_tried_until_an_operator_resumes_one(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "full", shutdown="timeout:0")
    world.go(4)
    for node in slurm.nodes.values():
        node.broken = True
    slurm.coming = [FakeJob(1, slurm.now + 1, 2, 30)]
    world.go((BOOT_TIMEOUT_S + 500) // PERIOD)
    woken = [command[2].removeprefix("nodename=") for command in slurm.commands if "state=power_up" in command]
    assert woken == ["n1", "n2", "n3", "n4"], "two by two, and no more after three have failed in a row"
    found = status(tmp_path / JOURNAL)
    assert found["set_aside"] == woken and {"wake n5: boots", "wake n6: boots"} <= set(found["refused"])
    assert [name for name, node in slurm.nodes.items() if node.state == "DOWN"] == woken
    for node in slurm.nodes.values():
        node.broken = False
    slurm("scontrol", "update", "nodename=n1", "state=resume")
    world.go(10)
    assert slurm.jobs[0].state in ("RUNNING", "COMPLETED"), "what an operator has resumed is no longer set aside"
    assert status(tmp_path / JOURNAL)["set_aside"] == ["n2", "n3", "n4"]


def _leased(slurm: FakeSlurm) -> set[str]:
    return set(leases.held(Reader(slurm, clock=slurm.clock).read(), is_lease))


def test_advise_says_the_commands_and_gives_none(tmp_path: Path) -> None:
    slurm = FakeSlurm(3)
    world = World(slurm, tmp_path, "advise", Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2"])}))
    world.go(3)
    assert slurm.commands == []
    advice = world.told("advice")
    assert "scontrol update nodename=n1 state=power_down" in advice and not any("n3" in line for line in advice)
    lease = "scontrol create reservation reservationname=escala_n1 starttime=now endtime=now+60 nodes=n1"
    assert any(line.startswith(lease) for line in advice)


def test_a_node_that_slurm_does_not_let_us_switch_keeps_no_lease(tmp_path: Path) -> None:
    """An operator may make reservations, and switch nothing: what was reserved would be kept from jobs for nothing."""
    slurm = FakeSlurm(8)

    def operator(*words: str) -> str:
        if any(word.startswith("state=") for word in words):
            slurm.commands.append(words)
            raise Failed("scontrol update: status 1: slurm_update error: Invalid user id")
        return slurm(*words)

    world = World(slurm, tmp_path, "power", run=operator)
    for _ in range(12):
        world.go(1)
        assert not slurm.reservations
    assert [words[1] for words in slurm.commands[:6]] == ["create", "update", "delete"] * 2 and len(slurm.commands) < 20
    assert not [node for node in slurm.nodes.values() if node.power]
