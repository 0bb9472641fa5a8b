"""Switches that are none in truth go through the guards of mode power: the figures of a shadow are those of a guarded
machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.as_if import AsIf
from escala.bridges.slurm.findings import find
from escala.bridges.slurm.guard import Limits
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, Beside, Setting
from escala.bridges.slurm.pretend import Lived
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.sentences import conditions
from escala.bridges.slurm.shape import BEGIN
from escala.bridges.slurm.snapshots import layout
from escala.bridges.slurm.story import status
from escala.live import Desk
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.shadow import PERIOD, WATTS, beside_of, looks_of, run_beside, total_of
from tests.bridges.slurm.world import FAST, World

pytestmark = pytest.mark.usefixtures("compiled")

MOST = frozenset(f"n{k}" for k in range(2, 8))
TIGHT: dict[str, Any] = {"spare": 2, "switches": 2, "min_on_s": 60.0, "allowed": MOST}


def _shadow(slurm: FakeSlurm, folder: Path, cycles: int, shutdown: str = "timeout:0", **limits: Any) -> Beside:
    beside = beside_of(slurm, folder, shutdown, **limits)
    for _ in range(cycles):
        beside.cycle()
        slurm.advance(PERIOD)
    beside.journal.close()
    return beside


def _refused(folder: Path) -> list[tuple[str, ...]]:
    return [tuple(row) for one in looks_of(folder) for row in one.get("refused", ())]


@pytest.mark.parametrize(
    "limits", [TIGHT, {"switches": 3}, {"most_off": 2}, {"spare": 5, "allowed": frozenset(["n1", "n8", "n3"])}]
)
def test_hours_off_are_those_of_mode_power_with_the_same_guards(tmp_path: Path, limits: dict[str, Any]) -> None:
    """An idle machine, on which Slurm and the policy cannot differ."""
    _shadow(FakeSlurm(8), tmp_path / "shadow", 30, **limits)
    told = looks_of(tmp_path / "shadow")
    given = {**vars(FAST), "lease_s": 300, "allowed": frozenset(f"n{k}" for k in range(1, 9)), **limits}
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path / "power", "power", Limits(**given))
    for _ in range(30):
        world.beside.cycle()
        slurm.advance(PERIOD)
    world.die()
    off = sum(lived.get("truly_off_s", 0.0) for lived in world.told_of("lived"))
    assert 0 < off == total_of(told, "off_s") + total_of(told, "switching_s")
    free = total_of(_raw(tmp_path / "raw"), "off_s")
    assert total_of(told, "off_s") < free - 100, "and not those of the policy alone"
    kinds = {name for name in _refused(tmp_path / "shadow") if name[0] == "off"}
    assert kinds and status(tmp_path / "shadow" / JOURNAL)["would_switch_off"] == []


def _raw(folder: Path) -> list[dict[str, Any]]:
    _shadow(FakeSlurm(8), folder, 30)
    return looks_of(folder)


def test_a_job_that_leases_would_have_kept_waiting_ends_switching(tmp_path: Path) -> None:
    """It waits for eight nodes, of which four are taken; what comes on meanwhile does not go off again."""
    jobs = [
        FakeJob(1, EPOCH + 1, 4, 900, limit=900),
        FakeJob(2, EPOCH + 2, 8, 10),
        FakeJob(3, EPOCH + 61, 1, 10, limit=60),
    ]
    slurm = FakeSlurm(8, jobs)
    slurm.advance(3)
    _shadow(slurm, tmp_path / "a", 20, longest_wait_s=40.0)
    assert {row[2] for row in _refused(tmp_path / "a")} == {"longest-wait"}
    assert jobs[2].start is not None and status(tmp_path / "a" / JOURNAL)["would_switch_off"] == []
    slurm = FakeSlurm(8, [FakeJob(one.number, one.submit, one.nodes, one.runtime, one.limit) for one in jobs])
    slurm.advance(3)
    _shadow(slurm, tmp_path / "b", 20, longest_wait_s=400.0)
    assert _refused(tmp_path / "b") == []
    assert total_of(looks_of(tmp_path / "a"), "off_s") < total_of(looks_of(tmp_path / "b"), "off_s")


def test_a_node_that_came_on_stays_on_for_as_long_as_guards_say(tmp_path: Path) -> None:
    slurm = FakeSlurm(4, [FakeJob(1, EPOCH + 41, 4, 5)])
    slurm.advance(1)
    _shadow(slurm, tmp_path, 14, min_on_s=50.0)
    on = [one["t"] for one in looks_of(tmp_path) if "min-on" in {row[2] for row in one.get("refused", ())}]
    assert on and on[0] - EPOCH <= 61 and on[-1] - EPOCH >= 81
    later = [one for one in looks_of(tmp_path) if one["t"] > on[-1]]
    assert total_of(later, "switching_s") > 0, "then it goes off again"


def test_what_guards_remember_outlives_the_process(tmp_path: Path) -> None:
    run_beside(tmp_path / "whole", 40, shutdown="timeout:0", **TIGHT)
    run_beside(tmp_path / "killed", 40, restart_every=3, shutdown="timeout:0", **TIGHT)
    assert looks_of(tmp_path / "whole") == looks_of(tmp_path / "killed")
    assert {"spare", "rate", "min-on", "not-allowed"} <= {row[2] for row in _refused(tmp_path / "whole")}


def test_a_state_of_before_there_were_guards_is_gone_on_with(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    beside = beside_of(slurm, tmp_path)
    beside.cycle()
    told = beside._as_if.told
    beside._as_if.told = lambda: None  # type: ignore[method-assign]
    beside.save()
    assert told()
    beside.journal.close()
    again = beside_of(slurm, tmp_path)
    assert again.seq == 1
    again.journal.close()


def test_guards_of_the_process_itself_do_not_count(tmp_path: Path) -> None:
    """A replay takes no time to read, and its clock is that of the looks."""
    slurm = FakeSlurm(4)
    reader = Reader(slurm, clock=slurm.clock)
    at = layout(reader.read(), "batch", WATTS)
    beside = Beside(reader, Desk(at.platform, "easy", "timeout:0"), at, tmp_path, Setting("shadow", 1.0))
    beside.begin(slurm.clock())
    beside.cycle()
    beside._missed("x")
    beside._missed("x")
    slurm.advance(2)
    beside.cycle()
    beside.journal.close()
    assert set(status(tmp_path / JOURNAL)["refused"]) == {"off n4: spare"}, "the usual guards, for all nodes"
    lived = Lived()
    beside._pretend.advance(reader.read(), lived)
    assert {name for name, one in beside._pretend.nodes.items() if one[0] != "on"} == {"n1", "n2", "n3"}


def test_its_leases_are_of_nodes_that_it_has_off_from_the_look_that_put_them_off(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    seen = Reader(slurm, clock=slurm.clock).read()
    at = layout(seen, "batch", WATTS)
    one = AsIf(at, 60.0, Limits(**{**vars(FAST), "allowed": frozenset(at.names)}), PERIOD)
    one.pretend.advance(seen, Lived())
    assert one.order(seen, {}, [], ["n1", "n2"])[1] == ["n1", "n2"] and one.told()["leased"] == ["n1", "n2"]
    assert sorted(one.shown(seen).reservations) == ["escala_n1", "escala_n2"] and not seen.reservations
    slurm.advance(61)
    later = Reader(slurm, clock=slurm.clock).read()
    one.pretend.advance(later, Lived())
    assert one.pretend.nodes == {}, "nobody watched for too long"
    assert not one.shown(later).reservations and one.told()["leased"] == []


def test_no_node_is_woken_while_a_job_waits_for_too_long(tmp_path: Path) -> None:
    """Its leases are given up, and Slurm wakes what it needs."""
    slurm = FakeSlurm(4, [FakeJob(1, EPOCH + 1, 4, 900), FakeJob(2, EPOCH + 2, 4, 30)])
    slurm.advance(3)
    seen = Reader(slurm, clock=slurm.clock).read()
    at = layout(seen, "batch", WATTS)
    one = AsIf(at, 60.0, Limits(**{**vars(FAST), "longest_wait_s": 40.0}), PERIOD)
    assert one.order(seen, {}, ["n1"], [])[2] == []
    told = one.told()
    one.restore({**told, "guard": {**told["guard"], "caused": {"2": 41.0}}})
    assert one.order(seen, {}, ["n1"], [])[2] == [["wake", "n1", "longest-wait"]]


def test_the_report_says_which_guards_stood_before_its_figures(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    _shadow(slurm, tmp_path, 3, **TIGHT)
    said = " ".join(conditions(find(tmp_path / JOURNAL)))
    assert (
        "behind its guards: 2 spare, 2 a minute, on for 60 s and off for 0 s at least, no wait longer than 1e+09 s, 6 "
        "nodes allowed." in said
    )
    assert "asked no guard" not in said and "otherwise" not in said
    _shadow(slurm, tmp_path, 2)
    assert "The guards were set otherwise before" in " ".join(conditions(find(tmp_path / JOURNAL)))
    lines = [{k: v for k, v in one.items() if k != "guards"} for one in records(tmp_path / JOURNAL)]
    assert sum(one["kind"] == BEGIN for one in lines) == 2
    (tmp_path / JOURNAL).write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    said = " ".join(conditions(find(tmp_path / JOURNAL)))
    assert "The journal is of an Escala that asked no guard" in said and "behind its guards" not in said
