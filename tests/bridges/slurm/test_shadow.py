"""Beside a fake Slurm: what a policy would do is written down, nothing is done, and whatever kills the process loses
nothing."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm import replay
from escala.bridges.slurm import shape as journals
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, METRICS, Beside, Setting
from escala.bridges.slurm.metrics import Metrics
from escala.bridges.slurm.pretend import Lived, Pretend
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.replay import Recorded, looks
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import layout
from escala.bridges.slurm.story import explain, moment, status
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeNode, FakeSlurm
from tests.bridges.slurm.shadow import PERIOD, WATTS, beside_of, looks_of, run_beside, thirty_jobs, total_of


def test_it_changes_nothing_and_writes_all_down(tmp_path: Path) -> None:
    slurm = run_beside(tmp_path / "a", 72)
    told = looks_of(tmp_path / "a")
    assert slurm.commands == [] and [one["seq"] for one in told] == list(range(1, 73))
    started = [row for one in told for row in one.get("started", ())]
    ended = {row[0] for row in started}
    assert len(ended) == len(started) == 30 and {row[4] for row in started} <= {"same", "earlier", "later", "unasked"}
    assert all(row[3] >= row[2] for row in started) and any(row[4] == "later" for row in started)
    assert 0 < total_of(told, "off_s") <= total_of(told, "idle_s") and total_of(told, "saved_j") > 0
    assert total_of(told, "watched_s") == 71 * PERIOD
    assert any(one["lived"].get("delays") for one in told), "some job started on a node that the policy had off"


def test_a_start_that_the_policy_would_make_later_is_told_when_by_its_plan(tmp_path: Path) -> None:
    """It holds jobs for half their walltime, 300 s of them."""
    slurm = FakeSlurm(8, [FakeJob(1, EPOCH + 13, 2, 60), FakeJob(2, EPOCH + 24, 1, 60)])
    slurm.advance(1)
    beside = beside_of(slurm, tmp_path, "hold:0.5")
    for _ in range(4):
        beside.cycle()
        slurm.advance(PERIOD)
    beside.journal.close()
    rows = {row[0]: row for one in looks_of(tmp_path) for row in one.get("started", ())}
    assert [(row[4], row[8] is not None and row[8] > row[3]) for row in rows.values()] == [("later", True)] * 2
    assert all(row[8] is None for row in rows.values() if row[4] != "later")


def test_a_policy_that_does_as_slurm_does_agrees_with_every_start(tmp_path: Path) -> None:
    """The fake starts whatever fits, in the order of submission."""
    run_beside(tmp_path / "a", 72, scheduler="first-fit", shutdown="never")
    assert [row[4] for one in looks_of(tmp_path / "a") for row in one.get("started", ())] == ["same"] * 30


@pytest.mark.parametrize("every", [1, 7])
def test_killed_at_any_look_nothing_is_lost(every: int, tmp_path: Path) -> None:
    for name, restart in (("whole", 0), ("killed", every)):
        run_beside(tmp_path / name, 40, restart)
    assert looks_of(tmp_path / "killed") == looks_of(tmp_path / "whole")
    assert [seen.jobs for seen in looks(tmp_path / "killed" / JOURNAL)] == [
        seen.jobs for seen in looks(tmp_path / "whole" / JOURNAL)
    ]


def test_a_replay_of_the_journal_says_the_same_and_other_policies_may_be_asked(tmp_path: Path) -> None:
    run_beside(tmp_path / "live", 50)
    for name, shutdown in (("again", "timeout:30"), ("other", "never")):
        recorded = Recorded(tmp_path / "live" / JOURNAL)
        beside = beside_of(None, tmp_path / name, shutdown, looks_at=recorded)
        with pytest.raises(EOFError):
            while True:
                beside.cycle()
        beside.journal.close()
    strip = [
        [{k: v for k, v in one.items() if k not in ("started", "expected")} for one in looks_of(tmp_path / name)]
        for name in ("live", "again")
    ]
    assert strip[0] == strip[1]
    assert total_of(looks_of(tmp_path / "other"), "off_s") == 0.0 < total_of(looks_of(tmp_path / "live"), "off_s")


def test_what_is_pretended_by_hand() -> None:
    """Two nodes, of which the policy switches one off: 5 s at 120 W, then 10 W, against 100 W idle; a job that needs it
    wakes it."""
    slurm = FakeSlurm(2)
    reader = Reader(slurm, clock=slurm.clock)
    pretend = Pretend(layout(reader.read(), "batch", WATTS), 100.0)
    lived = Lived()
    pretend.advance(reader.read(), lived)
    pretend.order([], ["n2"], slurm.now)
    slurm.advance(25)
    pretend.advance(reader.read(), lived)
    assert (lived.switching_s, lived.off_s, lived.watched_s, lived.idle_s) == (5.0, 20.0, 25.0, 50.0)
    assert lived.saved_j == 5 * (100 - 120) + 20 * (100 - 10)
    slurm.coming = [FakeJob(1, slurm.now + 10, 2, 60)]
    slurm.advance(15)
    seen, more = reader.read(), Lived()
    pretend.advance(seen, more)
    pretend.settle(seen, list(seen.jobs.values()), more)
    assert more.delays == [("1", "ann", 20.0)] and more.off_s == 10.0 and pretend.nodes == {}
    assert more.saved_j == 10 * (100 - 10) - 20 * (150 - 100), "the switch on is paid for"
    slurm.advance(500)
    gap = Lived()
    pretend.advance(reader.read(), gap)
    assert gap.gap_s == 500.0 and gap.watched_s == gap.saved_j == 0.0, "nobody watched, so nothing is counted"


def test_a_node_that_wakes_is_on_when_its_switch_has_ended() -> None:
    slurm = FakeSlurm(2)
    reader = Reader(slurm, clock=slurm.clock)
    pretend = Pretend(layout(reader.read(), "batch", WATTS), 100.0)
    pretend.advance(reader.read(), Lived())
    pretend.order([], ["n1"], slurm.now)
    slurm.advance(10)
    pretend.advance(reader.read(), Lived())
    pretend.order(["n1"], [], slurm.now)
    slurm.advance(30)
    lived = Lived()
    seen = reader.read()
    pretend.advance(seen, lived)
    assert lived.switching_s == 20.0 and lived.off_s == 0.0
    assert pretend.power(seen.nodes["n1"]) == ("on", EPOCH + 30.0, None), (
        "idle since it is on again, not since it was busy"
    )


class _Failing:
    """A Slurm whose k-th command goes wrong in a way of the test's."""

    def __init__(self, slurm: FakeSlurm, how: Iterator[Any]) -> None:
        self._slurm, self._how = slurm, how
        self.clock = slurm.clock

    def __call__(self, client: str, *words: str) -> str:
        printed = self._slurm(client, *words)
        return printed if "--version" in words else next(self._how, lambda text: text)(printed)


def _fails(_: str) -> str:
    raise EscalaError("scontrol: no answer within 10 s")


@pytest.mark.parametrize(
    "how", [_fails, lambda text: text[: len(text) // 2 + 3], lambda _: "slurm_load_jobs error\n", lambda _: "\0\n"]
)
def test_a_look_that_fails_is_missed_and_the_next_one_goes_on(how: Any, tmp_path: Path) -> None:
    slurm = FakeSlurm(8, thirty_jobs())
    slurm.advance(60)
    good = [lambda text: text] * 9  # three commands a look; the first look is the layout's
    beside = beside_of(_Failing(slurm, itertools.chain(good, [how], itertools.repeat(lambda text: text))), tmp_path)
    waits = []
    for _ in range(5):
        waits.append(beside.cycle())
        slurm.advance(PERIOD)
    assert beside.misses == 1 and beside.seq == 4
    missed = [one for one in records(tmp_path / JOURNAL) if one["kind"] == journals.MISS]
    assert len(missed) == 1 and missed[0]["why"] and "\n" not in missed[0]["why"]
    assert [one["lived"].get("watched_s", 0.0) for one in looks_of(tmp_path)] == [0.0, 10.0, 20.0, 10.0], (
        "no time is lost"
    )


def test_the_clock_goes_back(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    beside = beside_of(slurm, tmp_path)
    beside.cycle()
    slurm.now -= 100
    assert [beside.cycle() for _ in range(4)] == [10.0, 20.0, 40.0, 60.0], "tries get rarer"
    assert beside.misses == 4 and "the clock went back by 100 s" in beside.why
    slurm.now += 101
    beside.cycle()
    assert beside.failures == 0 and beside.seq == 2


def test_status_explain_and_metrics(tmp_path: Path) -> None:
    slurm = FakeSlurm(8, thirty_jobs())
    slurm.advance(1)
    beside = beside_of(slurm, tmp_path)
    metrics = Metrics(beside)
    for _ in range(30):
        beside.cycle()
        metrics.add()
        slurm.advance(PERIOD)
    found = status(tmp_path / JOURNAL)
    assert (found["mode"], found["looks"], found["nodes"], found["missed"]) == ("shadow", 30, 8, 0)
    text = (tmp_path / METRICS).read_text()
    assert metrics.text == text
    assert 'info{mode="shadow",policies="easy + timeout:30",partition="batch",slurm="22.05"} 1\n' in text
    assert sum(int(n) for n in re.findall(r'nodes\{state="\w+"\} (\d+)', text)) == 8
    assert beside.seen is not None
    states = Counter(job.state for job in beside.seen.jobs.values())
    assert f'jobs{{state="waiting"}} {states["pending"]}\n' in text
    assert f'jobs{{state="running"}} {states["running"] + states["booting"]}\n' in text
    total = float(
        re.search(
            r"^escala_beside_off_node_seconds_total "
            r"(.*)$",
            text,
            re.MULTILINE,
        )[1]
    )  # type: ignore[index]
    assert total == pytest.approx(total_of(looks_of(tmp_path), "off_s"), abs=1e-2)
    starts = sum(int(n) for n in re.findall(r'starts_total\{taken="\w+"\} (\d+)', text))
    assert starts == sum(len(one.get("started", ())) for one in looks_of(tmp_path))
    row = next(row for one in looks_of(tmp_path) for row in one.get("started", ()) if row[4] == "same")
    story = "\n".join(explain(tmp_path / JOURNAL, row[0]))
    assert f"Slurm started it at {moment(row[3])}" in story and "UTC" in story and "the same" in story
    with pytest.raises(EscalaError, match="job 999 was never seen"):
        explain(tmp_path / JOURNAL, "999")


def test_status_and_explain_read_the_journal_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = FakeSlurm(8, [FakeJob(7, EPOCH, 4, 60)])
    slurm.advance(1)
    beside = beside_of(slurm, tmp_path)
    beside.cycle()
    beside.journal.close()
    opened = list[Path]()
    read = replay.numbered
    monkeypatch.setattr(replay, "numbered", lambda path: opened.append(path) or read(path))  # type: ignore[func-returns-value]
    assert status(tmp_path / JOURNAL)["looks"] == 1 and explain(tmp_path / JOURNAL, "7")
    assert opened == [tmp_path / JOURNAL] * 2


class _Counting:
    """First-fit, and counts of a shield that overrules nothing."""

    name = "counting"

    def __init__(self) -> None:
        self.counts = {"choices": 0, "unlike": 0, "overruled": 0}

    def decide(self, view: Any, act: Any) -> None:
        self.counts["choices"] += 1
        for job in view.queue:
            act.start(job)

    def state(self) -> Any:
        return dict(self.counts)

    def restore(self, state: Any) -> None:
        self.counts = dict(state)


def test_a_job_larger_than_the_partition_is_said_and_holds_back_nobody(tmp_path: Path) -> None:
    """Slurm itself may let it wait for ever (EnforcePartLimits=NO)."""
    slurm = FakeSlurm(8, [FakeJob(7, EPOCH, 9, 60), FakeJob(8, EPOCH + 3, 8, 60)])
    slurm.advance(1)
    beside = beside_of(slurm, tmp_path, scheduler="fcfs")
    beside.cycle()
    slurm.advance(PERIOD)
    beside.cycle()
    beside.journal.close()
    said = "job 7: it needs 36 cores, and platform 'Slurm partition batch' has 32: no policy can start it"
    assert looks_of(tmp_path)[1]["started"][0][:5] == ["8", "ann", EPOCH + 3.0, EPOCH + 3.0, "same"]
    assert status(tmp_path / JOURNAL)["left_out"] == [said] and explain(tmp_path / JOURNAL, "7")[-1] == said
    assert beside.left_out == 0, "Slurm said nothing strange"


def test_a_job_that_ran_before_the_first_look_is_told_with_its_start_and_nodes(tmp_path: Path) -> None:
    slurm = FakeSlurm(4, [FakeJob(1, EPOCH + 1, 1, 300), FakeJob(2, EPOCH + 2, 2, 300)])
    slurm.advance(20)
    beside = beside_of(slurm, tmp_path)
    for _ in range(2):
        beside.cycle()
        slurm.advance(PERIOD)
    beside.journal.close()
    one, two = ("\n".join(explain(tmp_path / JOURNAL, job)) for job in "12")
    assert " on 1 node, submitted" in one and " on 2 nodes, submitted" in two
    started = (
        f"Slurm started it at {moment(EPOCH + 1)} on n1, 0 s after its submission: before the first look, so "
        "that nobody was asked"
    )
    assert started in one and " on n2, n3, " in two


def test_counts_of_a_shield_are_in_every_look_and_in_the_metrics(tmp_path: Path) -> None:
    slurm = FakeSlurm(8, thirty_jobs())
    slurm.advance(1)
    reader = Reader(slurm, clock=slurm.clock)
    at = layout(reader.read(), "batch", WATTS)
    for begun in range(2):
        beside = Beside(
            reader, Desk(at.platform, _Counting(), "never"), at, tmp_path, Setting("shadow", PERIOD, {"slurm": "22.05"})
        )
        beside.begin(slurm.clock())
        metrics = Metrics(beside)
        for _ in range(4):
            beside.cycle()
            metrics.add()
            slurm.advance(PERIOD)
        beside.journal.close()
        told = looks_of(tmp_path)[-1]["counts"]
        assert told == beside.counts and told["choices"] >= 4 * (begun + 1), "they go on"
        assert f'escala_beside_shield_total{{what="choices"}} {told["choices"]}\n' in metrics.text
    assert status(tmp_path / JOURNAL)["counts"] == told


def test_nodes_that_come_and_go(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    beside = beside_of(slurm, tmp_path)
    del slurm.nodes["n4"]
    beside.cycle()
    assert "node 'n4' is gone from partition batch: begin anew" in beside.why
    assert "n4" in status(tmp_path / JOURNAL)["last_miss"] and status(tmp_path / JOURNAL)["added_nodes"] == []
    assert isinstance(Reader(slurm, clock=slurm.clock).read(), Seen)
    slurm.nodes["n4"] = FakeNode("n4")
    slurm.nodes["n5"] = FakeNode("n5")
    slurm.advance(PERIOD)
    beside.cycle()
    assert looks_of(tmp_path)[-1]["added"] == ["n5"] == status(tmp_path / JOURNAL)["added_nodes"], (
        "it goes on with those that it knows"
    )
    slurm.nodes["n5"].partition = "other"
    slurm.advance(PERIOD)
    beside.cycle()
    assert "added" not in looks_of(tmp_path)[-1]
    slurm.nodes["n1"].partition = "other"
    beside.cycle()
    assert "node 'n1' is gone from partition batch" in beside.why
