"""Acting on a fake Slurm: orders and power do what the policy wants, guards refuse what they must, and nothing is left behind."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm import leases
from escala.bridges.slurm.actor import CHANGES, Actor, Changes
from escala.bridges.slurm.alone import alone, cluster_of, refuse_others
from escala.bridges.slurm.commands import Failed
from escala.bridges.slurm.guard import FREE, NICE, OFF_NODE, RENEW, WAKE, Allowed, Guard, Limits, Wanted
from escala.bridges.slurm.hands import Steering
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, Beside, Setting
from escala.bridges.slurm.ranks import nices
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.shape import LOOK
from escala.bridges.slurm.snapshots import is_lease, layout
from escala.bridges.slurm.story import explain, status
from escala.bridges.slurm.undoing import leased_by, undone
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.slurm.fake import BOOT_TIMEOUT_S, EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.test_shadow import WATTS

PERIOD = 5
ALL = frozenset(f"n{k}" for k in range(1, 9))
FAST = Limits(spare=0, switches=100, min_on_s=0, min_off_s=0, boot_s=90, lease_s=60, allowed=ALL)


class World:
    """A fake Slurm, and what runs beside it; it can die and begin anew."""

    def __init__(self, slurm: FakeSlurm, folder: Path, mode: str, limits: Limits = FAST, run: Any = None, **policies: str) -> None:
        self.slurm, self.folder, self.mode, self.limits, self.run = slurm, folder, mode, limits, run or slurm
        self.policies = {"scheduler": "easy", "shutdown": "timeout:0", **policies}
        folder.mkdir(exist_ok=True)
        self.begin()

    def begin(self) -> None:
        reader = Reader(self.run, clock=self.slurm.clock)
        at = layout(Reader(self.slurm, clock=self.slurm.clock).read(), "batch", WATTS)
        changes = Changes(self.folder)
        self.guard = Guard(at, self.limits, reader.known, PERIOD, changes.owns, self.slurm.clock)
        actor = Actor(self.run, self.guard.seal, "ann", self.limits.lease_s, changes, self.guard.failed)
        hands = Steering(self.mode, at, self.guard, actor)
        desk = Desk(at.platform, self.policies["scheduler"], self.policies["shutdown"])
        self.beside = Beside(reader, desk, at, self.folder, Setting(self.mode, PERIOD), hands)
        self.beside.begin(self.slurm.clock())

    def die(self) -> None:
        self.beside.journal.close()

    def go(self, cycles: int) -> None:
        for _ in range(cycles):
            self.beside.cycle()
            self.slurm.advance(PERIOD)

    def told(self, name: str) -> list[Any]:
        return [entry for one in records(self.folder / JOURNAL) if one["kind"] == LOOK for entry in one.get(name, ())]


def _queue(*seconds: int, nodes: int = 8) -> FakeSlurm:
    """A machine that is full for 100 s, and jobs of these limits behind."""
    full = FakeJob(1, EPOCH + 1, nodes, 100, priority=5000)
    waiting = [FakeJob(k + 2, EPOCH + 2, nodes, 20, limit=60 * limit, priority=1000 - k) for k, limit in enumerate(seconds)]
    slurm = FakeSlurm(nodes, [full, *waiting])
    slurm.advance(3)
    return slurm


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A first decision that compiles takes longer than a period, and what is decided late is refused."""
    for scheduler, shutdown in (("sjf", "never"), ("easy", "timeout:0"), ("easy", "hold:0.25")):
        World(_queue(2, 1), tmp_path_factory.mktemp("compiled"), "order", scheduler=scheduler, shutdown=shutdown).go(3)


def test_order_mode_makes_slurm_start_jobs_as_the_policy_wants(tmp_path: Path) -> None:
    slurm = _queue(7, 3, 8, 1, 6, 2, 5, 4)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    before = {job.number: job.priority for job in slurm.jobs if job.number > 1}
    world.go(2)
    given = list(slurm.commands)
    assert all(command[:2] == ("scontrol", "update") and command[2].startswith("jobid=") for command in given) and len(given) <= 8
    after = {job.number: job.priority for job in slurm.jobs if job.number > 1}
    assert set(after.values()) <= set(before.values()), "no job has a priority that none had"
    world.go(60)
    limits = [job.limit // 60 for job in sorted(slurm.jobs, key=lambda job: job.start or 0) if job.number > 1]
    assert limits == [1, 2, 3, 4, 5, 6, 7, 8]
    assert slurm.commands == given, "the order stands, so nothing more was changed"
    assert all(not refused for refused in world.told("refused")) and all(done for _, done in world.told("acted"))


def test_status_and_explain_tell_of_nices_promises_and_refusals(tmp_path: Path) -> None:
    slurm = _queue(7, 3, 1, 5)
    world = World(slurm, tmp_path, "order", Limits(**{**vars(FAST), "changes": 2}), scheduler="sjf", shutdown="never")
    world.go(2)
    found = status(tmp_path / JOURNAL)
    given = [command[2].removeprefix("jobid=") for command in slurm.commands]
    assert len(given) == 2 and found["changed_jobs"] == given and found["done"] == []
    assert found["refused"] and all(line.startswith("nice ") and line.endswith(": rate") for line in found["refused"])
    job = next(job for job in slurm.jobs if str(job.number) == given[0])
    told = "\n".join(explain(tmp_path / JOURNAL, given[0]))
    assert f"its nice was set from 0 to {job.nice} at 2027-01-15 08:00:0" in told
    assert re.search(r"its start was expected, as of 2027-01-15 08:00:03 UTC: by the policy 2027-01-15 08:\d\d:\d\d UTC \(in \d+ s\)", told)
    assert not re.search(r"\d{9}", told), "times are dates"
    other = found["refused"][0].split()[1].rstrip(":")
    told = "\n".join(explain(tmp_path / JOURNAL, other))
    assert re.search(r"a guard refused a change of its nice \(rate\) in \d of the looks of its wait, the last at 2027", told), told
    world.go(80)
    assert status(tmp_path / JOURNAL)["changed_jobs"] == []
    assert "Slurm started it at 2027-01-15" in "\n".join(explain(tmp_path / JOURNAL, given[0]))


def test_status_and_explain_tell_of_switches_leases_and_refusals(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", Limits(**{**vars(FAST), "spare": 1, "boot_s": 600, "switches": 8}), shutdown="hold:0.25")
    world.go(1)
    found = status(tmp_path / JOURNAL)
    assert found["refused"] == ["off n8: spare"] and found["would_switch_off"] == []
    assert [line for line in found["done"] if "n8" in line] == [] and "scontrol update nodename=n1 state=power_down" in found["done"]
    world.go(3)
    slurm.coming = [FakeJob(1, slurm.now + 2, 4, 30, limit=60)]
    world.go(3)
    assert status(tmp_path / JOURNAL)["leases"] == [f"n{k}" for k in range(1, 8)]
    world.go(5)
    told = "\n".join(explain(tmp_path / JOURNAL, "1"))
    assert "while it waited, leases kept 7 nodes off; the last ones seen: n1, n2" in told
    assert re.search(r"a guard refused switching n\d on \(rate\) in \d of the looks of its wait, the last at 2027", told), told
    world.go(25)
    assert "had leases before it started" in "\n".join(explain(tmp_path / JOURNAL, "1"))


def test_undo_gives_jobs_their_nice_back_but_not_what_others_have_set(tmp_path: Path) -> None:
    slurm = _queue(7, 3, 1, 5)
    before = {job.number: (job.priority, job.nice) for job in slurm.jobs}
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    world.die()
    changed = [job for job in slurm.jobs if (job.priority, job.nice) != before[job.number]]
    assert len(changed) > 2
    changed[0].nice += 5  # by an administrator
    with open(tmp_path / CHANGES, "a") as file:
        file.write('{"job": "9')
    count = len(slurm.commands)
    assert _undo(slurm, tmp_path, dry=True)[0] and len(slurm.commands) == count
    done, left = _undo(slurm, tmp_path)
    assert all(good for _, good in done) and left == [f"job {changed[0].number}: its nice was set by somebody else since"]
    assert [job.number for job in slurm.jobs if (job.priority, job.nice) != before[job.number]] == [changed[0].number]
    assert _undo(slurm, tmp_path) == ([], left)


def _undo(slurm: FakeSlurm, folder: Path, user: str = "ann", dry: bool = False) -> tuple[list[tuple[str, bool]], list[str]]:
    changes = Changes(folder)
    seen = Reader(slurm, clock=slurm.clock).read()
    return undone(slurm, seen, changes, leased_by(changes, folder / JOURNAL, user), dry)


def _reserve(slurm: FakeSlurm, name: str, nodes: str, user: str = "root") -> None:
    slurm("scontrol", "create", "reservation", f"reservationname={name}", "endtime=now+9999", f"nodes={nodes}", f"user={user}")


def test_undo_gives_up_what_its_own_process_made_and_nothing_else(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2"])}))
    world.go(3)
    world.die()
    assert set(slurm.reservations) == {"escala_n1", "escala_n2"}
    slurm("scontrol", "delete", "reservationname=escala_n2")
    slurm.advance(200)
    others = {"escala_meeting": ("n3,n4", "root"), "escala_n5": ("n5", "ann"), "escala_n2": ("n2", "ann"), "escala_n1": ("n1", "ann")}
    for name, (nodes, user) in others.items():
        _reserve(slurm, name, nodes, user)
    done, left = _undo(slurm, tmp_path)
    assert done == [] and set(slurm.reservations) == set(others), "leases that have run out: what bears their names by now is another's"
    assert [line.split(":")[0] for line in left] == [f"reservation {name} of {user}" for name, (_, user) in others.items()]
    for name in ("escala_n1", "escala_n2", "escala_n5"):
        slurm("scontrol", "delete", f"reservationname={name}")
    world.begin()
    world.go(3)
    world.die()
    _reserve(slurm, "escala_n5", "n5", "ann")
    assert sorted(line for line, _ in _undo(slurm, tmp_path)[0]) == [f"scontrol delete reservationname=escala_n{k}" for k in (1, 2)]
    assert set(slurm.reservations) == {"escala_meeting", "escala_n5"}


def test_undo_without_the_record_goes_by_form_node_and_user(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    for folder, mode in ((tmp_path / "order", "order"), (tmp_path / "power", "power")):
        world = World(slurm, folder, mode, Limits(**{**vars(FAST), "allowed": frozenset(["n1"])}))
        world.go(3)
        world.die()
        (folder / CHANGES).unlink()
    for name, nodes, user in (("escala_meeting", "n3", "ann"), ("escala_n4", "n4", "bob"), ("escala_m1", "m1", "ann")):
        _reserve(slurm, name, nodes, user)
    assert _undo(slurm, tmp_path / "order", dry=True)[0] == [], "it has never switched a node"
    done, left = _undo(slurm, tmp_path / "power")
    assert done == [("scontrol delete reservationname=escala_n1", True)] and len(left) == 3
    assert set(slurm.reservations) == {"escala_meeting", "escala_n4", "escala_m1"}


def test_a_reservation_of_an_administrator_is_none_of_ours_whatever_its_name(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    _reserve(slurm, "escala_meeting", "n1,n2")
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
    assert {node.power for node in slurm.nodes.values()} == {"POWERED_DOWN"} and len(slurm.reservations) == 8, "off again"


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
    assert woken.count("nodename=n1") == woken.count("nodename=n2") == 1 and set(world.guard.memory.boots) == {"n1", "n2"}
    assert all(job.state in ("RUNNING", "COMPLETED") for job in slurm.jobs if job.number in (1, 2)), "other nodes were woken"
    assert not {"n1", "n2"} & _leased(slurm), "an operator finds them as Slurm left them"


def _leased(slurm: FakeSlurm) -> set[str]:
    return set(leases.held(Reader(slurm, clock=slurm.clock).read(), is_lease))


def _guard(slurm: FakeSlurm, clock: Callable[[], float] | None = None, **limits: Any) -> tuple[Guard, Any]:
    reader = Reader(slurm, clock=slurm.clock)
    seen = reader.read()
    guard = Guard(layout(seen, "batch", WATTS), Limits(**{**vars(FAST), **limits}), True, PERIOD, is_lease, clock or slurm.clock)
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
    assert _why(guard, seen, Wanted(WAKE, "n3")) == ["not-off"] and _why(guard, seen, Wanted(OFF_NODE, "n9")) == ["not-allowed"]
    slurm.nodes["n3"].state = "DOWN"
    slurm.reservations["theirs"] = (["n4"], EPOCH, EPOCH + 9999)
    assert _why(*_guard(slurm), *offs[:2]) == ["unusable", "unusable"], "down; reserved by others"
    slurm.nodes["n5"].power = "POWERED_DOWN"
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


def test_a_late_job_is_not_made_to_wait_longer_and_goes_first(tmp_path: Path) -> None:
    slurm = _queue(7, 3, 1)
    guard, seen = _guard(slurm, longest_wait_s=1e9)
    at = layout(seen, "batch", WATTS)
    assert [(one.name, one.value) for one in nices(seen, at, ["4", "3", "2"], 1e9)] == [("4", -2), ("2", 2)]
    level = Seen(seen.now_s, {name: job._replace(priority=1) for name, job in seen.jobs.items()}, seen.nodes)
    assert [(one.name, one.value) for one in nices(level, at, ["4", "3", "2"], 1e9)] == [("4", -20), ("3", -10)], "ties are broken upwards"
    assert nices(seen, at, ["2", "3", "4"], 1e9) == [] and nices(seen, at, [], 1e9) == []
    slurm.advance(50)
    guard, seen = _guard(slurm, longest_wait_s=10)
    assert nices(seen, at, ["4", "3", "2"], 10.0) == [], "all are late, so they stay as Slurm has them"
    assert _why(guard, seen, Wanted(NICE, "2", 5)) == ["longest-wait"] and _why(guard, seen, Wanted(NICE, "2", -5)) == []
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


def test_two_folders_do_not_both_act_on_a_partition(tmp_path: Path, state_home: Path) -> None:
    refused = pytest.raises(EscalaError, match=r"lab, partition batch: another process acts on it \(--folder .*first\): end it first")
    with alone("lab", "batch", tmp_path / "first"), alone("lab", "other", tmp_path / "second"), refused:
        alone("lab", "batch", tmp_path / "third").__enter__()
    with alone("lab", "batch", tmp_path / "third"):
        pass
    shutil.rmtree(state_home)
    state_home.write_text("")
    with pytest.raises(EscalaError, match="set XDG_STATE_HOME"):
        alone("lab", "batch", tmp_path).__enter__()
    assert cluster_of(lambda *_: "Configuration data as of x\nClusterName             = lab-1\nX = 3\n") == "lab-1"
    for printed in ("nothing", "ClusterName = a/b\n"):
        with pytest.raises(EscalaError, match="nothing is"):
            cluster_of(lambda *_, said=printed: said)


def test_leases_of_others_stop_everything(tmp_path: Path) -> None:
    """Two processes that know nothing of each other, as on two machines: the second does nothing while the first has leases."""
    slurm = FakeSlurm(8)
    first = World(slurm, tmp_path / "first", "full")
    second = World(slurm, tmp_path / "second", "full")
    first.go(2)
    given = len(slurm.commands)
    for _ in range(5):
        second.go(1)
        assert len(slurm.commands) == given
    assert _undo(slurm, tmp_path / "second", dry=True)[0] == [], "it made none of them"
    assert second.told("refused") == [["all", "", "others"]] * 5 and second.told("acted") == [] and first.told("acted")
    first.go(2)
    assert "others" not in {why for _, _, why in first.told("refused")}
    seen = Reader(slurm, clock=slurm.clock).read()
    at = layout(seen, "batch", WATTS)
    refuse_others(seen, at, Changes(tmp_path / "first").owns)
    with pytest.raises(EscalaError, match=r"escala_n1 of ann is a lease that this folder did not make: .* \(in \d+ s\)"):
        refuse_others(seen, at, Changes(tmp_path / "second").owns)


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
    assert set(world.guard.memory.off_at) == {"n1"} and len(world.guard.memory.switched) == 1, "the others count as never switched"
    run.seconds = 0
    world.go(8)
    assert len(slurm.reservations) == 8
    slurm.advance(140)
    slurm.coming = [FakeJob(1, slurm.now + 1, 4, 30)]
    slurm.advance(1)
    count, run.seconds = len(slurm.commands), 9
    world.beside.cycle()
    assert all("endtime=now+300" in command for command in slurm.commands[count:]) and len(slurm.commands) == count + 2, "leases first"
    assert "stale" in {why for _, _, why in world.told("refused")} and not world.guard.memory.woken_at


def test_advise_says_the_commands_and_gives_none(tmp_path: Path) -> None:
    slurm = FakeSlurm(3)
    world = World(slurm, tmp_path, "advise", Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2"])}))
    world.go(3)
    assert slurm.commands == []
    advice = world.told("advice")
    assert "scontrol update nodename=n1 state=power_down" in advice and not any("n3" in line for line in advice)
    lease = "scontrol create reservation reservationname=escala_n1 starttime=now endtime=now+60 nodes=n1"
    assert any(line.startswith(lease) for line in advice)


FAULTS: list[Callable[[str], str]] = [
    lambda printed: (_ for _ in ()).throw(Failed("no answer within 10 s")),
    lambda printed: (_ for _ in ()).throw(Failed("status 1: Access/permission denied")),
    lambda printed: printed[: len(printed) // 2],
    lambda printed: "slurm_load error: Unable to contact slurm controller\n",
    lambda printed: "\udcff\0garbage|" * 20 + "\n",
]


class Faulty:
    """A Slurm of which any command may go wrong, before or after it was carried out."""

    def __init__(self, slurm: FakeSlurm, drawn: random.Random, share: float) -> None:
        self.slurm, self.drawn, self.share, self.faults = slurm, drawn, share, 0
        self.clock = slurm.clock

    def __call__(self, client: str, *words: str) -> str:
        wrong = "--version" not in words and self.drawn.random() < self.share
        if wrong and self.drawn.random() < 0.5 and words[0] in ("update", "create", "delete"):
            self.faults += 1
            raise Failed("refused before anything was done")
        printed = self.slurm(client, *words)
        if not wrong:
            return printed
        self.faults += 1
        return self.drawn.choice(FAULTS)(printed)


def _faulty(seed: int, folder: Path) -> int:
    """One run with faults, deaths and a restart. The number of faults."""
    drawn = random.Random(seed)
    jobs = [FakeJob(k + 1, EPOCH + 5 * drawn.randrange(40), drawn.randint(1, 4), drawn.randint(10, 60)) for k in range(8)]
    slurm = FakeSlurm(4, jobs)
    for node in slurm.nodes.values():
        node.broken = drawn.random() < 0.1
    faulty = Faulty(slurm, drawn, drawn.choice((0.05, 0.2, 0.5)))
    limits = Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2", "n3"]), "spare": 1, "switches": 3, "lease_s": 30})
    mode, shutdown = drawn.choice(("order", "power", "full")), drawn.choice(("timeout:0", "hold:0.25"))
    world = World(slurm, folder, mode, limits, faulty, shutdown=shutdown)
    passed: set[tuple[str, str]] = set()
    sort = world.guard.sort

    def noted(*given: Any, **more: Any) -> Any:
        allowed, refused = sort(*given, **more)
        passed.update((one.wanted.kind, one.wanted.name) for one in allowed)
        return allowed, refused

    world.guard.sort = noted  # type: ignore[method-assign]
    for k in range(30):
        world.go(1)
        if k == 15 and drawn.random() < 0.5:
            world.die()
            world.begin()
            world.guard.sort = noted  # type: ignore[method-assign]
            sort = Guard.sort.__get__(world.guard)
    world.die()
    _only_passed(slurm.commands, passed)
    slurm.advance(int(limits.lease_s) + 1)
    assert slurm.reservations == {}, "nothing is left behind after the lease"
    return faulty.faults


def _only_passed(commands: list[tuple[str, ...]], passed: set[tuple[str, str]]) -> None:
    """Every command that reached Slurm is one of something that a guard let through."""
    kinds: dict[str, tuple[str, ...]] = {"create": (OFF_NODE, "lease"), "delete": (FREE,), "power_down": (OFF_NODE,)}
    kinds |= {"power_up": (WAKE,), "nice": (NICE,), "endtime": (RENEW,)}
    for command in commands:
        told = dict(word.split("=", 1) for word in command if "=" in word)
        what = told.get("jobid") or told.get("nodename") or told["reservationname"].removeprefix("escala_")
        verb = command[1] if command[1] != "update" else told.get("state") or ("nice" if "nice" in told else "endtime")
        assert any((kind, what) in passed for kind in kinds[verb]), command
        assert what not in ("n4",), "not among the nodes that are allowed"


@pytest.mark.slow
def test_faults_at_every_command(tmp_path: Path) -> None:
    faults = sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40))
    assert faults > 300


@pytest.mark.long
def test_faults_at_every_command_a_thousand_times(tmp_path: Path) -> None:
    assert sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40, 1040)) > 8000
