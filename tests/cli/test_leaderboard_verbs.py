"""The verbs under leaderboard: what they print and write, the page that explains them, and what is wrong in one
line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.program import Escala

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "leaderboard.md"


@pytest.fixture
def suite(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The suite of the page, with the hash that the command says."""
    monkeypatch.chdir(tmp_path)
    assert (
        escala_("workload", "generate", "lublin", "jobs=1500", "cores=16", "load=0.8", "--out", "year.swf").status == 0
    )
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    told = escala_("leaderboard", "run", "easy", "--suite", "mine.toml", "--out", "out")
    assert (
        told.status == 2
        and "log 'year' holds other jobs than the suite's" in told.err
        and len(told.err.splitlines()) == 1
    )
    path.write_text(text.replace("0" * 64, re.findall(r"[0-9a-f]{64}", told.err)[0]))
    return path


def test_entries_are_made_ranked_and_checked(escala_: Escala, suite: Path) -> None:
    for k, policy in enumerate(("easy:queue=sjf", "fcfs", "easy:queue=saf:order_estimate=runtime")):
        told = escala_("leaderboard", "run", policy, "--suite", suite, "--on", "local:1", "--out", f"e{k}")
        assert told.status == 0 and f"The entry: e{k}/entry.json; the page: e{k}/index.html" in told.out, told.err
        assert sorted(path.name for path in Path(f"e{k}").iterdir()) == ["entry.json", "index.html", "runs.journal"]
    shown = escala_("leaderboard", "show", "e1", "e2/entry.json", "e0", "--out", "board.html")
    assert shown.status == 0, shown.err
    first = shown.out.splitlines()[0]
    assert first.startswith("On the suite mine (1 logs, ") and " easy:queue=sjf has the least mean wait, 0." in first
    assert re.search(r"^ –\s+easy:queue=saf:order_estimate=runtime †", shown.out, re.MULTILINE) and re.search(
        r"^ 1\s+easy:queue=sjf ", shown.out, re.MULTILINE
    )
    assert "Not ranked, since no scheduler of a real machine knows the future" in shown.out and re.search(
        r"^ 2\s+fcfs ", shown.out, re.MULTILINE
    )
    page = Path("board.html").read_text()
    assert (
        "Leaderboard mine: 3 entries" in page
        and "Log by log" in page
        and "Who pays" in page
        and "The promise under fcfs" in page
    )
    assert "group by group" not in page and "group by group" in Path("e0/index.html").read_text()
    found = json.loads(escala_("leaderboard", "show", "e0", "e1", "e2", "--json").out)
    assert found["best"] == "easy:queue=sjf" and [row["entry"] for row in found["entries"] if row["knows"]] == [
        "easy:queue=saf:order_estimate=runtime"
    ]
    same = escala_("leaderboard", "check", "e0", "--on", "local:1")
    assert (same.status, same.out) == (0, "easy:queue=sjf: the same on all 1 logs.\n")
    other = escala_("leaderboard", "check", "e0", "--on", "local:1", "--policy", "easy:queue=saf", "--json")
    assert other.status == 1 and json.loads(other.out)["unlike"][0].startswith("year, figures, ")


def test_energy_stands_beside_waits(escala_: Escala, suite: Path) -> None:
    suite.write_text(suite.read_text().replace('"16x1"', '"16x1:grid5000"'))
    told = escala_(
        "leaderboard",
        "run",
        "easy",
        "--shutdown",
        "timeout:0",
        "--name",
        "off",
        "--suite",
        suite,
        "--on",
        "local:1",
        "--out",
        "off",
    )
    assert told.status == 0 and "energy / easy's" in told.out and "easy + timeout:0" in told.out, told.err
    assert (
        "that is not told apart from easy" in told.out
        and "Energy of the later weeks" in Path("off/index.html").read_text()
    )


def test_what_is_wrong_is_one_line(escala_: Escala, suite: Path) -> None:
    assert escala_("leaderboard", "run", "easy", "--suite", suite, "--on", "local:1", "--out", "e").status == 0
    Path("other.json").write_text("{}")
    for words, said in (
        (["run", "eazy", "--suite", suite, "--out", "x"], "eazy"),
        (["run", "easy", "--suite", "reel", "--out", "x"], "unknown suite 'reel' (--suite): did you mean real? give"),
        (["run", "easy", "--suite", "none.toml", "--out", "x"], "none.toml: no such file"),
        (["run", "easy", "--suite", "real", "--logs", "nowhere", "--out", "x"],
         "3 logs of the suite are missing in nowhere: ALCF-"),
        (["run", "easy", "--suite", suite, "--shutdown", "timeout:0", "--out", "x"], "needs a power profile"),
        (["run", "agent:x", "--suite", suite, "--out", "x"], "log 'year': x: no trained agent here"),
        (["run", "easy", "--suite", suite, "--on", "lokal", "--out", "x"], "unknown engine 'lokal'"),
        (["run", "easy", "--suite", suite, "--name", "", "--out", "x"], "name of the entry (--name) ''"),
        (["run", "policy:none/{log}", "--suite", suite, "--out", "x"],
         "log 'year': scheduler 'policy:none/year': none/year/policy.toml"),
        (["show", "other.json"], "other.json: is no entry of a leaderboard"),
        (["show", "e", "e"], "two entries are called 'easy'"),
        (["check", "nothing.json"], "nothing.json: no such file"),
    ):  # fmt: skip
        told = escala_("leaderboard", *words)
        assert told.status == 2 and said in told.err and len(told.err.strip().splitlines()) == 1, told.err
        assert not Path("x").exists(), words


@pytest.mark.slow
def test_the_commands_of_the_page_work(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^escala (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        told = escala_(*line.split(), *(["--on", "local:1"] if " show " not in line else []))
        assert told.status == 0, told.err
