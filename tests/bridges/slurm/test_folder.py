"""The folder of what runs beside Slurm: its journal, its state, and whose they are."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm import journal as journal_file
from escala.bridges.slurm import shape as journals
from escala.bridges.slurm.journal import Journal, records
from escala.bridges.slurm.loop import JOURNAL, STATE, Beside, Setting
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.snapshots import layout
from escala.errors import EscalaError
from escala.live import Desk
from escala.live.state_file import write_state
from tests.bridges.slurm.fake import EPOCH, FakeSlurm
from tests.bridges.slurm.shadow import PERIOD, WATTS, beside_of, looks_of, run_beside, thirty_jobs


def test_killed_between_journal_and_state_a_look_counts_once(tmp_path: Path) -> None:
    """The state is that of the look before: the next one is written with the same number, and takes in the time of
    both."""
    slurm = FakeSlurm(8, thirty_jobs())
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
    told = looks_of(tmp_path)
    assert [one["seq"] for one in told] == [*range(1, 22), 21]
    assert told[-1]["lived"]["watched_s"] == 2 * PERIOD
    rows = {row[0] for row in told[-2].get("started", ())}
    assert rows <= {row[0] for row in told[-1].get("started", ())}


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
    """One of a later version, and one with a damaged line, stay as they are; what a killed process left unfinished is
    passed over."""
    run_beside(tmp_path, 3)
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
    """Begun anew, it reads what was written since its state, and the record of who began; all of it where the state is
    not of it."""
    run_beside(tmp_path, 30, 7)
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
    # restored from elsewhere, without the last looks
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-12]))
    parsed.clear()
    beside_of(FakeSlurm(8), tmp_path).journal.close()
    assert len(parsed) >= 25
    state.unlink()
    parsed.clear()
    beside_of(FakeSlurm(8), tmp_path).journal.close()
    assert len(parsed) >= 25


@pytest.mark.parametrize("cut", [0, 1, 5, 200])
def test_the_mark_of_a_journal_is_the_same_however_it_was_killed(cut: int, tmp_path: Path) -> None:
    """The machine fails within a line, again and again: the place that is remembered is that which reading all of it
    gives."""
    for _ in range(4):
        run_beside(tmp_path, 5)
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


def test_a_state_of_other_policies_is_refused(tmp_path: Path) -> None:
    run_beside(tmp_path, 3)
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
    def begin(
        mode: str = "shadow", power: str = WATTS, policies: str = "timeout:30", n: int = 8, **options: Any
    ) -> None:
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
    run_beside(tmp_path, 5)
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
