"""Beside a fake Slurm: each guard refuses what it is for, and nothing is done without one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.actor import Actor, Changes
from escala.bridges.slurm.guard import FREE, NICE, OFF_NODE, RENEW, WAKE, Allowed, Guard, Limits, Wanted
from escala.bridges.slurm.ranks import nices
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import is_lease, layout, snapshot
from escala.cli.acting import hands_of
from escala.errors import EscalaError
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.shadow import WATTS
from tests.bridges.slurm.world import FAST, PERIOD, World, queue

pytestmark = pytest.mark.usefixtures("compiled")


def _guard(slurm: FakeSlurm, clock: Callable[[], float] | None = None, **limits: Any) -> tuple[Guard, Any]:
    reader = Reader(slurm, clock=slurm.clock)
    seen = reader.read()
    guard = Guard(
        layout(seen, "batch", WATTS), Limits(**{**vars(FAST), **limits}), True, PERIOD, is_lease, clock or slurm.clock
    )
    guard.look(seen)
    return guard, seen


def _why(guard: Guard, seen: Any, *wanted: Wanted) -> list[str]:
    return [why for _, _, why in guard.sort(seen, wanted)[1]]


def test_each_guard_refuses_what_it_is_for() -> None:
    slurm = FakeSlurm(8, [FakeJob(1, EPOCH + 1, 2, 500)])
    slurm.advance(2)
    offs = [Wanted(OFF_NODE, f"n{k}") for k in range(3, 9)]
    guard, seen = _guard(slurm, spare=2)
    assert _why(guard, seen, *offs) == ["spare", "spare"] and _why(guard, seen, Wanted(OFF_NODE, "n1")) == ["not-idle"]
    assert _why(*_guard(slurm, most_off=2), *offs) == ["most-off"] * 4
    assert _why(*_guard(slurm, switches=3), *offs) == ["rate"] * 3
    assert _why(*_guard(slurm, allowed=frozenset(["n3", "n4"])), *offs) == ["not-allowed"] * 4
    guard, seen = _guard(slurm)
    assert _why(guard, seen, Wanted(FREE, "n3")) == ["no-lease"] and _why(guard, seen, Wanted(RENEW, "n3")) == ["on"]
    assert _why(guard, seen, Wanted(WAKE, "n3")) == ["not-off"] and _why(guard, seen, Wanted(OFF_NODE, "n9")) == [
        "not-allowed"
    ]
    slurm.nodes["n3"].state = "DOWN"
    slurm.reservations["theirs"] = (["n4"], EPOCH, EPOCH + 9999)
    assert _why(*_guard(slurm), *offs[:2]) == ["unusable", "unusable"], "down; reserved by others"
    slurm.nodes["n5"].power = "POWERED_DOWN"
    guard, seen = _guard(slurm, switches=2)
    guard.memory.switched = [float(slurm.now)] * 2
    assert _why(guard, seen, Wanted(OFF_NODE, "n6"), Wanted(WAKE, "n5")) == ["rate"], (
        "what was switched off delays no wake"
    )
    guard.memory.woken = [float(slurm.now)] * 2
    assert _why(guard, seen, Wanted(WAKE, "n5")) == ["rate"]
    guard, seen = _guard(slurm, min_off_s=600)
    guard.memory.off_at["n5"] = float(slurm.now - 10)
    assert _why(guard, seen, Wanted(WAKE, "n5")) == ["min-off"]
    guard.memory.on_since["n6"] = float(slurm.now - 10)
    guard.limits = Limits(**{**vars(FAST), "min_on_s": 600})
    assert _why(guard, seen, Wanted(OFF_NODE, "n6")) == ["min-on"]
    guard.memory.boots["n5"] = [1, slurm.now + 100.0]
    assert _why(guard, seen, Wanted(WAKE, "n5")) == ["set-aside"]
    for bad in (Wanted(OFF_NODE, "n3;reboot"), Wanted(NICE, "1 2")):
        with pytest.raises(EscalaError, match="nothing is done"):
            guard.sort(seen, [bad])


def test_a_job_that_waits_too_long_ends_all_holding_back(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    limits = Limits(**{**vars(FAST), "longest_wait_s": 40, "lease_s": 300})
    world = World(slurm, tmp_path, "power", limits, shutdown="hold:99")
    world.go(4)
    slurm.coming = [FakeJob(1, slurm.now + 1, 8, 30, limit=600)]
    world.go(7)
    assert slurm.jobs[0].state == "PENDING"
    world.go(9)
    assert slurm.jobs[0].state == "RUNNING", "leases were given up, and Slurm woke the nodes"
    assert 40 <= (slurm.jobs[0].start or 0) - slurm.jobs[0].submit <= 40 + 4 * PERIOD + 20


def test_time_in_which_a_job_waits_for_anything_but_nodes_is_none_that_leases_cause(tmp_path: Path) -> None:
    """Held, after another job, and not to begin yet, each for longer than anybody may wait."""
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", Limits(**{**vars(FAST), "longest_wait_s": 40}), shutdown="hold:99")
    world.go(4)
    held = FakeJob(1, slurm.now + 1, 1, 30, priority=0)
    slurm.coming = [
        held,
        FakeJob(2, slurm.now + 1, 1, 30, after=1),
        FakeJob(3, slurm.now + 1, 1, 30, eligible=slurm.now + 900),
    ]
    world.go(12)
    assert len(slurm.reservations) == 8 and world.guard.memory.caused == {}
    held.priority = 1000
    world.go(3)
    world.die()
    world.begin()
    world.go(4)
    assert len(slurm.reservations) == 8 and {job.state for job in slurm.jobs} == {"PENDING"}
    assert 20 <= world.guard.memory.caused["1"] <= 35, "from when it was released, also by the process before"
    world.go(9)
    assert held.start is not None and "2" not in world.guard.memory.caused


def test_a_job_that_was_held_does_not_jump_the_queue_when_it_is_released(tmp_path: Path) -> None:
    slurm = FakeSlurm(8, [FakeJob(1, EPOCH + 1, 8, 100, priority=5000)])
    held = FakeJob(2, EPOCH + 2, 8, 5, limit=420, priority=0)
    slurm.coming += [held, *(FakeJob(k, EPOCH + 60, 8, 5, limit=60 * k, priority=1000) for k in (3, 4))]
    slurm.advance(3)
    limits = Limits(**{**vars(FAST), "longest_wait_s": 50})
    world = World(slurm, tmp_path, "order", limits, scheduler="sjf", shutdown="never")
    world.go(14)
    held.priority = 2000
    world.go(20)
    assert [job.number for job in sorted(slurm.jobs, key=lambda job: job.start or 0)] == [1, 3, 4, 2]


def test_a_wait_begins_with_the_look_that_first_finds_the_job_free_and_what_is_not_understood_ends_none() -> None:
    slurm = FakeSlurm(4, [FakeJob(1, EPOCH + 1, 4, 300)])
    slurm.advance(2)
    guard, _ = _guard(slurm, longest_wait_s=15)
    slurm.coming = [FakeJob(2, EPOCH + 10, 1, 30)]
    waits = []
    for spent in (20, 15, 1):
        slurm.advance(spent)
        seen = Reader(slurm, clock=slurm.clock).read()
        guard.look(seen)
        waits.append((guard.memory.waited.get("2"), guard.late()))
    assert waits == [(None, frozenset()), (15.0, frozenset()), (16.0, {"2"})]
    fewer = {name: job for name, job in seen.jobs.items() if name != "2"}
    guard.look(Seen(seen.now_s, fewer, seen.nodes, left_out=("job 2: odd",)))
    assert guard.memory.waited["2"] == 16.0, "it may still be there"
    guard.look(Seen(seen.now_s, fewer, seen.nodes))
    assert "2" not in guard.memory.waited


def test_a_node_that_does_not_boot_is_set_aside_for_ten_minutes_then_twice_as_long_each_time() -> None:
    slurm = FakeSlurm(4)
    slurm.nodes["n1"].power = "POWERED_DOWN"
    guard, seen = _guard(slurm)
    times = []
    for _ in range(10):
        guard.memory.woken_at["n1"] = seen.now_s
        seen = Seen(seen.now_s + FAST.boot_s + 1, seen.jobs, seen.nodes)
        guard.look(seen)
        times.append(guard.memory.boots["n1"][1] - seen.now_s)
    assert times == [600.0 * 2**k for k in range(8)] + [86400.0] * 2 and guard.memory.in_a_row == 10


def test_a_lease_of_others_is_not_renewed() -> None:
    slurm = FakeSlurm(4)
    slurm.nodes["n1"].power = slurm.nodes["n2"].power = "POWERED_DOWN"
    slurm.reservations["escala_n1"] = (["n1"], EPOCH, EPOCH + 9999)
    seen = Reader(slurm, clock=slurm.clock).read()
    at, wanted = layout(seen, "batch", WATTS), Wanted(RENEW, "n1")
    ours, theirs = (
        Guard(at, FAST, True, PERIOD, lambda one, own=own: own and is_lease(one), slurm.clock) for own in (True, False)
    )
    assert _why(ours, seen, wanted) == [] and _why(theirs, seen, wanted) != []
    assert _why(ours, seen, Wanted(RENEW, "n2")) == ["no-lease"]


def test_advice_counts_nowhere() -> None:
    slurm = FakeSlurm(8)
    guard, seen = _guard(slurm, switches=3)
    offs = [Wanted(OFF_NODE, f"n{k}") for k in range(1, 6)]
    before = guard.told()
    for _ in range(2):
        allowed, refused = guard.sort(seen, offs, done=False)
        assert [one.wanted for one in allowed] == offs and refused == []
    assert guard.told() == before and guard.memory.switched == []
    guard.sort(seen, offs)
    assert len(guard.memory.switched) == 3


def test_what_guards_remember_of_waits_may_be_missing_in_an_older_state() -> None:
    guard, _ = _guard(FakeSlurm(4))
    told = {name: value for name, value in guard.told().items() if name not in ("free", "looked_s", "waited", "caused")}
    guard.restore(told)
    assert guard.late() == guard.overdue() == frozenset() and guard.memory.looked_s is None


def test_nodes_that_another_partition_waits_for_are_not_kept_off(tmp_path: Path) -> None:
    """The policy does not see its jobs; leases come back when it has gone."""
    slurm = FakeSlurm(8)
    for k in (7, 8):
        slurm.nodes[f"n{k}"].partition = "batch,debug"
    world = World(slurm, tmp_path, "full", shutdown="timeout:0")
    world.go(4)
    assert len(slurm.reservations) == 8
    slurm.coming = [FakeJob(1, slurm.now + 1, 1, 30, partition="debug")]
    world.go(8)
    assert slurm.jobs[0].start is not None and slurm.jobs[0].start - slurm.jobs[0].submit <= 4 * PERIOD + 20
    assert {f"escala_n{k}" for k in range(1, 7)} <= set(slurm.reservations), "nodes that it may not have stay off"
    guard, seen = _guard(FakeSlurm(2, [FakeJob(1, EPOCH, 9, 30, partition="debug")]))
    assert guard.claimed(seen) == frozenset()
    world.go(14)
    assert len(slurm.reservations) == 8


def test_leases_are_given_up_where_slurm_does_not_start_what_the_policy_starts(tmp_path: Path) -> None:
    """A job that needs a node by name: the policy has started it on another, which is on, and Slurm cannot wake what is
    reserved."""
    slurm = FakeSlurm(4)
    limits = Limits(**{**vars(FAST), "allowed": frozenset(slurm.nodes)})
    world = World(slurm, tmp_path, "full", limits, shutdown="timeout:0")
    world.go(4)
    assert len(slurm.reservations) == 4
    slurm.coming = [FakeJob(1, slurm.now + 1, 1, 30, limit=120, only=("n4",))]
    world.go(9)
    assert slurm.jobs[0].state == "PENDING" and "escala_n4" in slurm.reservations, "another node is being woken for it"
    world.go(22)
    assert slurm.jobs[0].start is not None and slurm.jobs[0].hosts == ["n4"]
    world.go(20)
    assert len(slurm.reservations) == 4 and not world.guard.memory.unmet


def test_a_job_that_waits_for_something_else_does_not_keep_nodes_on_for_ever(tmp_path: Path) -> None:
    slurm = FakeSlurm(4, [FakeJob(1, EPOCH + 1, 1, 30, only=("n9",))])
    world = World(
        slurm, tmp_path, "power", Limits(**{**vars(FAST), "allowed": frozenset(slurm.nodes)}), shutdown="timeout:0"
    )
    held = []
    for _ in range(70):
        world.go(1)
        held.append(len(slurm.reservations))
    assert held[10] == 3 and 0 in held[12:40] and held[-1] == 3, held


def test_without_watts_nodes_that_slurm_has_put_to_sleep_are_as_good_as_on() -> None:
    """Slurm wakes them for jobs; nobody else may keep them off."""
    slurm = FakeSlurm(4)
    for k in (1, 2):
        slurm.nodes[f"n{k}"].power = "POWERED_DOWN"
    seen = Reader(slurm, clock=slurm.clock).read()
    told = {power: snapshot(seen, layout(seen, "batch", power))[0].nodes["power"] for power in (None, WATTS)}
    on, off = told[WATTS][3], told[WATTS][0]
    assert on != off and list(told[WATTS]) == [off, off, on, on] and list(told[None]) == [on] * 4
    guards = {"allow": "n[1-4]", "as_root": True, "limits": {}}
    with (
        pytest.raises(EscalaError, match="--mode power switches nodes: say by --power what that takes"),
        ExitStack() as held,
    ):
        hands_of("power", layout(seen, "batch", None), guards, None, Path("nowhere"), 5.0, seen, held)


def test_a_late_job_is_not_made_to_wait_longer_and_goes_first(tmp_path: Path) -> None:
    slurm = queue(7, 3, 1)
    guard, seen = _guard(slurm, longest_wait_s=1e9)
    at = layout(seen, "batch", WATTS)
    assert [(one.name, one.value) for one in nices(seen, at, ["4", "3", "2"])[0]] == [("4", -2), ("2", 2)]
    level = Seen(seen.now_s, {name: job._replace(priority=1) for name, job in seen.jobs.items()}, seen.nodes)
    assert [(one.name, one.value) for one in nices(level, at, ["4", "3", "2"])[0]] == [("4", -20), ("3", -10)], (
        "ties are broken upwards"
    )
    assert nices(seen, at, ["2", "3", "4"]) == ([], []) == nices(seen, at, [])
    guard, seen = _guard(slurm, longest_wait_s=10)
    slurm.advance(11)
    seen = Reader(slurm, clock=slurm.clock).read()
    guard.look(seen)
    assert guard.late() == {"2", "3", "4"}
    assert nices(seen, at, ["4", "3", "2"], guard.late()) == ([], []), "all are late, so they stay as Slurm has them"
    assert (
        _why(guard, seen, Wanted(NICE, "2", 5)) == ["longest-wait"] and _why(guard, seen, Wanted(NICE, "2", -5)) == []
    )
    assert _why(guard, seen, Wanted(NICE, "1", 0), Wanted(NICE, "99", 0)) == ["not-waiting"] * 2
    assert _why(guard, seen, Wanted(NICE, "2", -(3 * 10**9))) == ["range"]


def test_what_blocks_everything() -> None:
    slurm = FakeSlurm(4)
    other = [float(EPOCH)]
    guard, seen = _guard(slurm, lambda: other[0])
    assert guard.blocked(seen, 0.1, 0.0) == ""
    assert guard.blocked(seen, PERIOD + 1.0, 0.0) == "slow" and guard.blocked(seen, 0.0, 3 * PERIOD + 1.0) == "stale"
    slurm.advance(PERIOD)
    other[0] += PERIOD + 100
    guard.look(Reader(slurm, clock=slurm.clock).read())
    assert guard.blocked(seen, 0.0, 0.0) == "clock"
    slurm.advance(PERIOD)
    other[0] += PERIOD
    guard.look(Reader(slurm, clock=slurm.clock).read())
    assert guard.blocked(seen, 0.0, 0.0) == ""
    for _ in range(2):
        guard.failed()
    assert guard.blocked(seen, 0.0, 0.0) == "errors"
    for _ in range(3):
        guard.good()
    assert guard.blocked(seen, 0.0, 0.0) == ""
    unknown = Guard(layout(seen, "batch", WATTS), FAST, False, PERIOD, is_lease)
    assert unknown.blocked(seen, 0.0, 0.0) == "version"


def test_nothing_is_done_without_a_guard(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    guard, seen = _guard(slurm)
    actor = Actor(slurm, guard.seal, "ann", 60, Changes(tmp_path), guard.failed)
    with pytest.raises(EscalaError, match="no guard let through"):
        actor.act(Allowed(Wanted(OFF_NODE, "n1"), object()), seen, float, bool)
    assert slurm.commands == []
    with pytest.raises(EscalaError, match="cannot stand in a command"):
        Actor(slurm, guard.seal, "a b", 60, Changes(tmp_path), guard.failed)


class Slow:
    """A Slurm whose commands that change something take their time."""

    def __init__(self, slurm: FakeSlurm, seconds: int) -> None:
        self.slurm, self.seconds = slurm, seconds

    def __call__(self, client: str, *words: str) -> str:
        if words[0] in ("update", "create", "delete"):
            self.slurm.advance(self.seconds)
        return self.slurm(client, *words)


def test_what_was_seen_is_not_acted_on_for_longer_than_three_periods(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    run = Slow(slurm, 0)
    world = World(slurm, tmp_path, "power", Limits(**{**vars(FAST), "lease_s": 300}), run=run)
    run.seconds = 9
    world.beside.cycle()
    given = slurm.commands[:]
    assert len(given) == 2 and slurm.now == EPOCH + 18, "no command after 15 s"
    refused = world.told("refused")
    assert {why for _, _, why in refused} == {"stale"} and len(refused) == 7
    assert set(world.guard.memory.off_at) == {"n1"} and len(world.guard.memory.switched) == 1, (
        "the others count as never switched"
    )
    run.seconds = 0
    world.go(8)
    assert len(slurm.reservations) == 8
    slurm.advance(140)
    slurm.coming = [FakeJob(1, slurm.now + 1, 4, 30)]
    slurm.advance(1)
    count, run.seconds = len(slurm.commands), 9
    world.beside.cycle()
    assert (
        all("endtime=now+300" in command for command in slurm.commands[count:]) and len(slurm.commands) == count + 2
    ), "leases first"
    assert "stale" in {why for _, _, why in world.told("refused")} and not world.guard.memory.woken_at
