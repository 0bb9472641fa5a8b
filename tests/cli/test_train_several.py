"""The verb train with several seeds or presets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Escala

pytestmark = pytest.mark.learn
OFF = "escala/OffReservation-v0"


def test_the_verb(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        escala_("workload", "generate", "grid5000", "cluster=orion", "days=4", "--seed", "3", "--out", "m.swf").status
        == 0
    )
    words = [
        "train",
        OFF,
        "--workload",
        "m.swf",
        "--platform",
        "orion",
        "--days",
        "3",
        "--validation",
        "1",
        "--steps",
        "300",
    ]
    told = escala_(*words, "--seeds", "1,2", "--on", "local:1", "--out", "agents")
    assert told.status == 0, told.err
    assert (
        "tuned-seed-1" in told.out
        and "2 agents saved in agents" in told.out
        and "judged on the 1 days of --validation" in told.out
    )
    again = escala_(*words, "--seeds", "1,2", "--out", "agents", "--resume", "--on", "local:1", "--json")
    rows = json.loads(again.out)
    assert again.status == 0 and [row["seed"] for row in rows] == [1, 2] and rows[0]["energy_j"] > 0
    two = [
        *words,
        "--learn",
        "learning_rate=0.001,0.0003",
        "--learn",
        "n_epochs=1",
        "--on",
        "local:1",
        "--out",
        "tried",
    ]
    tried = escala_(*two, "--json")
    rows = json.loads(tried.out)
    assert tried.status == 0 and [(row["learning_rate"], row["n_epochs"]) for row in rows] == [(0.001, 1), (0.0003, 1)]
    told = escala_(*two, "--resume")
    (line,) = [line.split() for line in told.out.splitlines() if "tuned-learning_rate-0.0003-n_epochs-1-seed-0" in line]
    assert line[:2] == ["0.0003", "1"], "as given"
    assert escala_(*words, "--learn", "n_epochs=1", "--out", "one").status == 0
    assert json.loads(Path("one/manifest.json").read_text())["learn"]["n_epochs"] == 1
    for more, said in (
        (["--on", "ray"], "one agent is trained in this process"),
        (["--seeds", "1,x"], "--seeds holds 'x'"),
        (["--learn", "gamma=x"], "--learn gamma=x: give numbers"),
        (["--learn", "gamma"], "--learn needs NAME=VALUE, such as --learn learning_rate=0.001"),
        (["--learn", "gama=0.9,0.99"], "no algorithm has a setting 'gama'"),
        (["--seeds", "1,2", "--algorithm", "search"], "--seeds means nothing to --algorithm search"),
    ):
        wrong = escala_(*(words[:-2] if "search" in more else words), "--out", "more", *more)
        assert wrong.status == 2 and said in wrong.err and not Path("more").exists()
