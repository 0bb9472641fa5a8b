"""Studies from the command line: what they take, and what they say when they are ended from outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from escala.studies.lab.looks import looks
from escala.studies.replay import Figure, Replay
from tests.cli.program import Escala


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["grid2020"], "did you mean 'grid2019'"),
        (["grid2019", "--log", "x.swf"], "--log: grid2019 does not take it"),
        (["a2c2020", "--log", "missing.swf"], "--log missing.swf: no such file"),
        (["grid2019", "--author", "."], "holds no workloads.csv.gz"),
        (["grid2019", "--scale", "huge"], "smoke, short, paper"),
        (["grid2019", "--on", "moon"], "unknown engine 'moon' (--on)"),
        (["grid2019", "--on", "slurm:tasks=0"], "engine slurm (--on): tasks='0'"),
        (["grid2019", "--on", "local:2", "--jobs", "3"], "give one of the two; --jobs 3 is --on local:3"),
    ],
)
def test_bad_input_is_one_clear_line_and_writes_nothing(
    escala_: Escala, tmp_path: Path, arguments: list[str], words: str
) -> None:
    told = escala_("study", "run", *arguments, "--out", tmp_path / "out")
    assert told.status == 2 and words in told.err and told.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent, word", [(signal.SIGINT, "interrupted"), pytest.param(signal.SIGTERM, "terminated", marks=pytest.mark.long)]
)
def test_a_study_that_is_ended_says_that_it_can_go_on(tmp_path: Path, sent: signal.Signals, word: str) -> None:
    out = tmp_path / "out"
    program = [
        sys.executable,
        "-c",
        "from escala.cli import main; main()",
        "study",
        "run",
        "grid2019",
        "--scale",
        "smoke",
        "--jobs",
        "1",
    ]
    study = subprocess.Popen(
        [*program, "--out", str(out)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        # the tests may run where Ctrl-C is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        end = time.monotonic() + 120
        while not list(out.glob("cells/*_*.json")) and time.monotonic() < end:  # until a cell is done
            time.sleep(0.1)
        study.send_signal(sent)
        _, told = study.communicate(timeout=120)
    finally:
        study.kill()
    assert study.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
    assert f"error: {word}; {out} keeps what is done: the same command goes on" in told


@pytest.mark.slow
def test_a_replay_is_counted_as_a_look(escala_: Escala, tmp_path: Path) -> None:
    """On the study's own lists; lists drawn by another seed are new."""
    folder = tmp_path / "a2c2020"
    shutil.copytree(Path(__file__).resolve().parents[2] / "docs" / "studies" / "a2c2020", folder)
    before = len(looks(folder))
    assert escala_("study", "replay", "a2c2020", "--from", folder, "--agent", "agent-0.6-0").status == 0
    assert len(looks(folder)) == before + 1 and looks(folder)[-1]["agents"] == ["agent-0.6-0"]
    assert escala_("study", "replay", "a2c2020", "--from", folder, "--agent", "agent-0.6-0", "--seed", "1").status == 0
    assert len(looks(folder)) == before + 1


def test_an_author_s_lists_are_not_drawn_anew(escala_: Escala) -> None:
    refused = escala_("study", "replay", "grid2019", "--agent", "published-190-0", "--seed", "5")
    assert refused.status == 2 and refused.err.count("\n") == 1
    assert "published-190-0: plays the author's lists, of which no seed draws new ones: leave --seed out" in refused.err


def test_looks_are_counted_by_the_agent() -> None:
    agents = ["g5k-1-1", "kth-1-0", "orion-1-0"]
    figures = tuple(Figure(one, "", "", 0, 0, 1) for one in agents)
    for study, seed, looked in (("deepshutdown2020", 1, 2), ("deepshutdown2020", None, 3), ("grid2019", 1, 0)):
        assert Replay(study, Path(), seed, figures, ()).looked == agents[:looked], "days of real logs stay"


def test_verdicts_of_a_kept_study(escala_: Escala, tmp_path: Path) -> None:
    done = escala_("study", "verdicts", "marl2024", "--json")
    rows = json.loads(done.out)
    assert done.status == 0 and {"id", "verdict", "paper", "ours", "reason"} <= set(rows[0])
    wide = escala_("study", "verdicts", "marl2024").out
    assert "how ours came about" in wide and all(row["by"] in wide for row in rows)
    page = tmp_path / "page.md"
    assert escala_("study", "verdicts", "marl2024", "--out", page).status == 0
    assert page.read_text().count("| **") == len(rows)
    again = escala_("study", "verdicts", "marl2024", "--out", page)
    assert (
        again.status != 0
        and "exists" in again.err
        and escala_("study", "verdicts", "marl2024", "--out", page, "--force").status == 0
    )


def test_the_report_of_a_study_begins_with_its_paper(escala_: Escala, tmp_path: Path) -> None:
    kept = Path(__file__).resolve().parents[2] / "docs" / "studies" / "marl2024"
    assert escala_("report", kept, "--out", tmp_path / "page.html").status == 0
    text = re.sub(r"<[^>]+>", " ", (tmp_path / "page.html").read_text(encoding="utf-8"))
    places = [
        text.index(words)
        for words in ("what the paper claims", "what came out", "Row by row", "What became of the claims")
    ]
    assert (
        places == sorted(places) and "the paper contradicts itself" in text and "`" not in text[places[0] : places[3]]
    )
