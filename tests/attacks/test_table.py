"""The table of docs/reliability.md is what the kept answers say, and an answer that did not hold shows in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks import __main__ as attacks
from tests.attacks.planted import BUGS

KILLS = {
    "kills": 3,
    "tried": {"simulate, fresh target": 3},
    "held": 2,
    "failed": [{"verb": "simulate", "wrong": ["half a | result"]}],
}
MUTATIONS = {"inputs": 4, "held": 4, "files": {"swf": {"read": 1, "refused": 2}, "pbs": {"refused": 1}}, "finds": []}
FUTURE = {"attack": "future", "tried": 2, "held": ["a"], "found": ["b: view.x"], "objects": 9, "not_tried": []}


def test_the_page_shows_the_answers_that_stand_beside_it() -> None:
    text = attacks.PAGE.read_text(encoding="utf-8")
    answers = json.loads(attacks.KEPT.read_text(encoding="utf-8"))
    assert attacks.page_with(attacks.table(answers), text) == text, (
        "python -m tests.attacks --from DIR --write makes it"
    )
    assert attacks.broken(answers) == [], "what is kept held"


def test_what_did_not_hold_is_shown_and_counts() -> None:
    answers = attacks.gathered([KILLS, KILLS, MUTATIONS, FUTURE], {})
    rows = attacks.table(answers).splitlines()
    assert '| 6 | 4 | `{"verb": "simulate", "wrong": ["half a / result"]}`;' in rows[2]
    assert rows[2].startswith("| a command killed at a change of a file: simulate |") and ": pbs, swf |" in rows[3]
    assert rows[3].endswith("| 4 | 4 | - |") and answers["mutations"]["by"] == {"pbs": 1, "swf": 3}
    assert rows[4].endswith("| 2 | 1 | `b: view.x` |")
    assert attacks.broken(answers) == ["kills", "future"]
    assert "not run" in rows[5]
    assert attacks.gathered([], answers) == answers, "what nobody ran stays"


def test_planted_bugs_of_several_runs_come_together() -> None:
    here = attacks.names_of("metrics")
    parts = [{"noticed": {here[0]: False}}, {"noticed": {here[1]: True, "gone.py: no such bug": False}}]
    answers = attacks.gathered(parts, {})
    row = next(line for line in attacks.table(answers).splitlines() if "metrics" in line)
    assert f"| 2 ({len(here) - 2} not planted) | 1 | `{here[0]}` |" in row
    assert attacks.broken(answers) == [] and attacks.left("metrics", answers["mutants"]["metrics"]) == here[2:]
    assert attacks.broken(attacks.gathered([{"noticed": dict.fromkeys(here[:4], False)}], {})) == ["mutants"]
    kernel = [{"noticed": dict.fromkeys(attacks.names_of("kernel"), True)}]
    both = attacks.gathered(kernel, answers)["mutants"]
    assert both["metrics"] == answers["mutants"]["metrics"], "one area run anew"
    assert attacks.left("kernel", both["kernel"]) == []


def test_a_run_of_some_bugs_of_an_area_leaves_the_others() -> None:
    here = attacks.names_of("metrics")
    before = attacks.gathered([{"noticed": {here[2]: False, here[0]: False, here[1]: True}}], {})
    found = attacks.gathered([{"noticed": {here[0]: True, here[1]: False, here[3]: True}}], before)["mutants"]
    outcomes = dict(zip(here, (True, False, False, True)))
    assert attacks.planted("metrics", found["metrics"]) == outcomes, "planted anew: its last outcome"


def test_every_bug_has_a_mark_of_its_own() -> None:
    for area in {bug.area for bug in BUGS}:
        names = attacks.names_of(area)
        assert len({attacks.mark(name) for name in names}) == len(names)


def test_a_run_of_earlier_answers_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "kills.json").write_text(json.dumps(KILLS))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{attacks.BEGIN}\nold\n{attacks.END}\nafter\n")
    monkeypatch.setattr(attacks, "PAGE", page)
    monkeypatch.setattr(attacks, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr("sys.argv", ["attacks", "--write", "--from", str(tmp_path / "earlier")])
    assert attacks.main() == 1, "one did not hold"
    assert json.loads((tmp_path / "kept.json").read_text())["kills"] == attacks.kills([KILLS])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "\nold\n" not in text and "| 3 | 2 |" in text


def test_an_attack_that_is_not_there_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert attacks.run("nothing_of_that_name", []) is None
    assert "not there" in capfd.readouterr().err
