"""Beside a fake Slurm: what a policy would do is written down, nothing is done, and whatever kills the process loses nothing."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm import journal as journal_file
from escala.bridges.slurm import shape as journals
from escala.bridges.slurm.journal import Journal, records
from escala.bridges.slurm.loop import JOURNAL, METRICS, STATE, Beside, Setting
from escala.bridges.slurm.metrics import Metrics
from escala.bridges.slurm.pretend import Lived, Pretend
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.replay import Recorded, looks
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import layout
from escala.bridges.slurm.story import explain, moment, status
from escala.errors import EscalaError
from escala.live import Desk
from escala.live.state_file import write_state
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeNode, FakeSlurm

WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=5,switch_on_s=20"
PERIOD = 10


def _jobs() -> list[FakeJob]:
    """Thirty jobs, of which some wait."""
    sizes = itertools.cycle((2, 5, 1, 3, 8, 1))
    return [FakeJob(k + 1, EPOCH + 17 * k + 3, next(sizes), 20 + 13 * k % 50, user=("ann", "bob")[k % 2]) for k in range(30)]


def beside_of(slurm: Any, folder: Path, shutdown: str = "timeout:30", scheduler: str = "easy", looks_at: Any = None) -> Beside:
    reader = looks_at or Reader(slurm, clock=slurm.clock)
    first = looks_at.first if looks_at else reader.read()
    at = layout(first, "batch", WATTS)
    folder.mkdir(exist_ok=True)
    beside = Beside(
        reader, Desk(at.platform, scheduler, shutdown), at, folder, Setting("shadow", PERIOD, {"slurm": "22.05", "cluster": "lab"})
    )
    beside.begin(first.now_s)
    return beside


def _run(folder: Path, cycles: int, restart_every: int = 0, **more: Any) -> FakeSlurm:
    """restart_every: the process dies without warning after so many cycles."""
    slurm = FakeSlurm(8, _jobs())
    slurm.advance(1)
    beside = beside_of(slurm, folder, **more)
    for k in range(cycles):
        if restart_every and k and k % restart_every == 0:
            beside.journal.close()  # the system does this for a process that dies
            beside = beside_of(slurm, folder, **more)
        beside.cycle()
        slurm.advance(PERIOD)
    beside.journal.close()
    return slurm


def _told(folder: Path) -> list[dict[str, Any]]:
    """The looks, without what differs from run to run."""
    left = ("read_ms", "decide_ms", "seen")
    return [{k: v for k, v in one.items() if k not in left} for one in records(folder / JOURNAL) if one["kind"] == journals.LOOK]


def _total(told: list[dict[str, Any]], name: str) -> float:
    return sum(one["lived"].get(name, 0.0) for one in told)


def test_it_changes_nothing_and_writes_all_down(tmp_path: Path) -> None:
    slurm = _run(tmp_path / "a", 72)
    told = _told(tmp_path / "a")
    assert slurm.commands == [] and [one["seq"] for one in told] == list(range(1, 73))
    started = [row for one in told for row in one.get("started", ())]
    ended = {row[0] for row in started}
    assert len(ended) == len(started) == 30 and {row[4] for row in started} <= {"same", "earlier", "later", "unasked"}
    assert all(row[3] >= row[2] for row in started) and any(row[4] == "later" for row in started)
    assert 0 < _total(told, "off_s") <= _total(told, "idle_s") and _total(told, "saved_j") > 0
    assert _total(told, "watched_s") == 71 * PERIOD
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
    rows = {row[0]: row for one in _told(tmp_path) for row in one.get("started", ())}
    assert [(row[4], row[8] is not None and row[8] > row[3]) for row in rows.values()] == [("later", True)] * 2
    assert all(row[8] is None for row in rows.values() if row[4] != "later")


def test_a_policy_that_does_as_slurm_does_agrees_with_every_start(tmp_path: Path) -> None:
    """The fake starts whatever fits, in the order of submission."""
    _run(tmp_path / "a", 72, scheduler="first-fit", shutdown="never")
    assert [row[4] for one in _told(tmp_path / "a") for row in one.get("started", ())] == ["same"] * 30


@pytest.mark.parametrize("every", [1, 7])
def test_killed_at_any_look_nothing_is_lost(every: int, tmp_path: Path) -> None:
    for name, restart in (("whole", 0), ("killed", every)):
        _run(tmp_path / name, 40, restart)
    assert _told(tmp_path / "killed") == _told(tmp_path / "whole")
    assert [seen.jobs for seen in looks(tmp_path / "killed" / JOURNAL)] == [seen.jobs for seen in looks(tmp_path / "whole" / JOURNAL)]


def test_killed_between_journal_and_state_a_look_counts_once(tmp_path: Path) -> None:
    """The state is that of the look before: the next one is written with the same number, and takes in the time of both."""
    slurm = FakeSlurm(8, _jobs())
    slurm.advance(1)
    beside = beside_of(slurm, tmp_path)
    for _ in range(20):
        beside.cycle()
        slurm.advance(PERIOD)
    kept = (tmp_path / STATE).read_text()
    beside.cycle()
    beside.journal.close()
    (tmp_path / STATE).write_text(kept)
    with open(tmp_path / JOURNAL, "a") as file:
        file.write('{"v":1,"kind":"look","t":18000')  # and a line that was not finished
    slurm.advance(PERIOD)
    again = beside_of(slurm, tmp_path)
    again.cycle()
    told = _told(tmp_path)
    assert [one["seq"] for one in told] == [*range(1, 22), 21]
    assert told[-1]["lived"]["watched_s"] == 2 * PERIOD
    rows = {row[0] for row in told[-2].get("started", ())}
    assert rows <= {row[0] for row in told[-1].get("started", ())}


def test_a_replay_of_the_journal_says_the_same_and_other_policies_may_be_asked(tmp_path: Path) -> None:
    _run(tmp_path / "live", 50)
    for name, shutdown in (("again", "timeout:30"), ("other", "never")):
        recorded = Recorded(tmp_path / "live" / JOURNAL)
        beside = beside_of(None, tmp_path / name, shutdown, looks_at=recorded)
        with pytest.raises(EOFError):
            while True:
                beside.cycle()
        beside.journal.close()
    strip = [
        [{k: v for k, v in one.items() if k not in ("started", "expected")} for one in _told(tmp_path / name)] for name in ("live", "again")
    ]
    assert strip[0] == strip[1]
    assert _total(_told(tmp_path / "other"), "off_s") == 0.0 < _total(_told(tmp_path / "live"), "off_s")


def test_what_is_pretended_by_hand() -> None:
    """Two nodes, of which the policy switches one off: 5 s at 120 W, then 10 W, against 100 W idle; a job that needs it wakes it."""
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
    assert pretend.power(seen.nodes["n1"]) == ("on", EPOCH + 30.0, None), "idle since it is on again, not since it was busy"


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


@pytest.mark.parametrize("how", [_fails, lambda text: text[: len(text) // 2 + 3], lambda _: "slurm_load_jobs error\n", lambda _: "\0\n"])
def test_a_look_that_fails_is_missed_and_the_next_one_goes_on(how: Any, tmp_path: Path) -> None:
    slurm = FakeSlurm(8, _jobs())
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
    assert [one["lived"].get("watched_s", 0.0) for one in _told(tmp_path)] == [0.0, 10.0, 20.0, 10.0], "no time is lost"


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


def test_a_journal_has_one_writer_and_one_version(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    with pytest.raises(EscalaError, match="another process writes this journal"):
        Journal(tmp_path / "j")
    journal.append({"kind": "look", "t": 1.0, "seq": 1})
    journal.close()
    assert list(records(tmp_path / "j")) == [{"v": 1, "kind": "look", "t": 1.0, "seq": 1}]
    (tmp_path / "j").write_text('{"v":2,"kind":"look","t":1.0}\n')
    with pytest.raises(EscalaError, match="a journal of version 2"):
        list(records(tmp_path / "j"))
    (tmp_path / "j").write_text("nothing\n" * 30)
    with pytest.raises(EscalaError, match="holds no record"):
        list(records(tmp_path / "j"))


def test_a_journal_that_could_not_be_read_later_is_not_gone_on_with(tmp_path: Path) -> None:
    """One of a later version, and one with a damaged line, stay as they are; what a killed process left unfinished is passed over."""
    _run(tmp_path, 3)
    path = tmp_path / JOURNAL
    lines = path.read_text().splitlines(keepends=True)
    later = [*lines[:-1], lines[-1].replace('"v":1', '"v":2')]
    middle = [*lines[:2], lines[2][:40] + "\n", *lines[3:]]
    for damaged, why in (
        (later, "line 4: a journal of version 2, this Escala reads 1: read it with its own; or give another --folder"),
        ([*later, lines[2][:40]], "line 4: a journal of version 2"),
        (middle, r"line 3: damaged \(it is no record\): take it out, as by sed -i 3d, .*; or give another --folder"),
        (["no record\n"] * 30, "holds no record"),
    ):
        path.write_text("".join(damaged))
        with pytest.raises(EscalaError, match=why) as refused:
            beside_of(FakeSlurm(8), tmp_path)
        assert str(refused.value).startswith(str(path)) and path.read_text() == "".join(damaged)
    for torn in ([*lines, lines[2][:40]], [lines[0][:30]], []):
        path.write_text("".join(torn))
        beside_of(FakeSlurm(8), tmp_path).journal.close()
        assert [one["kind"] for one in records(path)].count(journals.BEGIN) == 1 + (len(torn) > 1)


def _parsing(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines of journals that are parsed from now on."""
    parsed, read = list[bytes](), journal_file._parsed
    monkeypatch.setattr(journal_file, "_parsed", lambda line: (parsed.append(line), read(line))[1])
    return parsed


def test_what_was_read_before_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun anew, it reads what was written since its state, and the record of who began; all of it where the state is not of it."""
    _run(tmp_path, 30, 7)
    path, state = tmp_path / JOURNAL, tmp_path / STATE
    parsed = _parsing(monkeypatch)
    for torn, most in (("", 1), ('{"v":1,"kind":"look","t":18', 3), ('{"v":1,"kind":"look","t":18', 5)):
        parsed.clear()
        with open(path, "a") as file:
            file.write(torn)
        beside_of(FakeSlurm(8), tmp_path).journal.close()
        assert len(parsed) <= most
    with open(path, "a") as file:
        file.write("no record\n" * 3)
    with pytest.raises(EscalaError, match=f"line {len(path.read_text().splitlines()) - 2}: damaged"):
        beside_of(FakeSlurm(8), tmp_path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-12]))  # restored from elsewhere, without the last looks
    parsed.clear()
    beside_of(FakeSlurm(8), tmp_path).journal.close()
    assert len(parsed) >= 25
    state.unlink()
    parsed.clear()
    beside_of(FakeSlurm(8), tmp_path).journal.close()
    assert len(parsed) >= 25


@pytest.mark.parametrize("cut", [0, 1, 5, 200])
def test_the_mark_of_a_journal_is_the_same_however_it_was_killed(cut: int, tmp_path: Path) -> None:
    """The machine fails within a line, again and again: the place that is remembered is that which reading all of it gives."""
    for _ in range(4):
        _run(tmp_path, 5)
        path = tmp_path / JOURNAL
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) - cut])
        before = json.loads((tmp_path / STATE).read_text())["note"]["journal"]
        marks = []
        for mark in (before, None):
            journal = Journal(path)
            assert journal.goes_on(mark) is not None
            journal.append({"kind": journals.MISS, "t": 1.0, "why": "none"})
            marks.append(journal.mark)
            journal.close()
            path.write_bytes(whole[: len(whole) - cut])
        assert marks[0] == marks[1] and marks[0].lines == whole.count(b"\n") + 1


def test_status_explain_and_metrics(tmp_path: Path) -> None:
    slurm = FakeSlurm(8, _jobs())
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
    total = float(re.search(r"^escala_beside_off_node_seconds_total (.*)$", text, re.MULTILINE)[1])  # type: ignore[index]
    assert total == pytest.approx(_total(_told(tmp_path), "off_s"), abs=1e-2)
    starts = sum(int(n) for n in re.findall(r'starts_total\{taken="\w+"\} (\d+)', text))
    assert starts == sum(len(one.get("started", ())) for one in _told(tmp_path))
    row = next(row for one in _told(tmp_path) for row in one.get("started", ()) if row[4] == "same")
    story = "\n".join(explain(tmp_path / JOURNAL, row[0]))
    assert f"Slurm started it at {moment(row[3])}" in story and "UTC" in story and "the same" in story
    with pytest.raises(EscalaError, match="job 999 was never seen"):
        explain(tmp_path / JOURNAL, "999")


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
    assert _told(tmp_path)[1]["started"][0][:5] == ["8", "ann", EPOCH + 3.0, EPOCH + 3.0, "same"]
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
    started = f"Slurm started it at {moment(EPOCH + 1)} on n1, 0 s after its submission: before the first look, so that nobody was asked"
    assert started in one and " on n2, n3, " in two


def test_counts_of_a_shield_are_in_every_look_and_in_the_metrics(tmp_path: Path) -> None:
    slurm = FakeSlurm(8, _jobs())
    slurm.advance(1)
    reader = Reader(slurm, clock=slurm.clock)
    at = layout(reader.read(), "batch", WATTS)
    for begun in range(2):
        beside = Beside(reader, Desk(at.platform, _Counting(), "never"), at, tmp_path, Setting("shadow", PERIOD, {"slurm": "22.05"}))
        beside.begin(slurm.clock())
        metrics = Metrics(beside)
        for _ in range(4):
            beside.cycle()
            metrics.add()
            slurm.advance(PERIOD)
        beside.journal.close()
        told = _told(tmp_path)[-1]["counts"]
        assert told == beside.counts and told["choices"] >= 4 * (begun + 1), "they go on"
        assert f'escala_beside_shield_total{{what="choices"}} {told["choices"]}\n' in metrics.text
    assert status(tmp_path / JOURNAL)["counts"] == told


def test_a_state_of_other_policies_is_refused(tmp_path: Path) -> None:
    _run(tmp_path, 3)
    slurm = FakeSlurm(8)
    with pytest.raises(EscalaError, match="policies 'easy"):
        beside_of(slurm, tmp_path, "never")
    whole = json.loads((tmp_path / STATE).read_text())
    told = {name: one for name, one in whole.items() if name != "sha256"}
    write_state(tmp_path / STATE, "", told, {"seq": 1})
    with pytest.raises(EscalaError, match="not the state of escala beside"):
        beside_of(slurm, tmp_path)
    for what, other in (("cluster", "other"), ("partition", "night"), ("nodes", "0")):
        note = told["note"] | {"at": told["note"]["at"] | {"cluster": "lab", what: other}}
        write_state(tmp_path / STATE, "", told, note)
        with pytest.raises(EscalaError, match=f"of (other )?{what}.*: name another folder"):
            beside_of(slurm, tmp_path)


def test_a_folder_of_other_watts_or_options_is_refused_and_any_mode_goes_on(tmp_path: Path) -> None:
    def begin(mode: str = "shadow", power: str = WATTS, policies: str = "timeout:30", n: int = 8, **options: Any) -> None:
        slurm = FakeSlurm(n)
        at = layout(Reader(slurm, clock=slurm.clock).read(), "batch", power)
        setting = Setting(mode, PERIOD, {}, {"rules": "escala", "depth": None, **options})
        beside = Beside(Reader(slurm, clock=slurm.clock), Desk(at.platform, "easy", policies), at, tmp_path, setting)
        beside.begin(EPOCH)
        beside.journal.close()

    begin()
    told = list(records(tmp_path / JOURNAL))
    assert told[0]["options"] == {"rules": "escala", "depth": None} and told[0]["mode"] == "shadow"
    for given, why in (
        ({"power": WATTS.replace("=100", "=90")}, r"of other watts \(--power\)"),
        ({"depth": 4}, "of depth None"),
        ({"policies": "never"}, r"of policies 'easy \+ timeout:30'"),
        ({"n": 7}, "of other nodes"),
    ):
        with pytest.raises(EscalaError, match=rf"journal\.jsonl: {why}.*: name another folder"):
            begin(**given)
    assert list(records(tmp_path / JOURNAL)) == told
    begin("power")
    begin(seed=0)
    older = [{key: value for key, value in one.items() if key != "options"} for one in told]
    (tmp_path / JOURNAL).write_text("".join(json.dumps(one) + "\n" for one in older))
    begin(depth=4)


def test_a_state_that_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    _run(tmp_path, 5)
    kept = json.loads((tmp_path / STATE).read_text())
    draw = random.Random(29)
    for _ in range(60):
        told = json.loads(json.dumps(kept))
        inside, key = told, draw.choice(sorted(told))
        while isinstance(inside[key], dict | list) and inside[key] and draw.random() < 0.8:
            inside = inside[key]
            key = draw.choice(sorted(inside) if isinstance(inside, dict) else range(len(inside)))
        inside[key] = draw.choice([None, "x", -1, 1e300, [], {}, [[1]], 10**30])
        if told == kept:
            continue
        (tmp_path / STATE).write_text(json.dumps(told))
        with pytest.raises(EscalaError, match=r"state\.json"):
            beside_of(FakeSlurm(8), tmp_path)


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
    assert _told(tmp_path)[-1]["added"] == ["n5"] == status(tmp_path / JOURNAL)["added_nodes"], "it goes on with those that it knows"
    slurm.nodes["n5"].partition = "other"
    slurm.advance(PERIOD)
    beside.cycle()
    assert "added" not in _told(tmp_path)[-1]
    slurm.nodes["n1"].partition = "other"
    beside.cycle()
    assert "node 'n1' is gone from partition batch" in beside.why
