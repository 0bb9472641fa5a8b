"""`escala train --algorithm search`: an agent like any other, an interrupt that loses nothing, and options that mean
nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from tests.cli.program import Escala

pytest.importorskip("stable_baselines3")

ENVIRONMENT = "escala/OffReservation-v0"


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "week.swf"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=5, seed=2), path)
    return path


def verb(week: Path, out: Path, *more: str) -> list[Any]:
    given = [
        "train",
        ENVIRONMENT,
        "--algorithm",
        "search",
        "--workload",
        week,
        "--platform",
        "orion",
        "--days",
        "4",
        "--out",
        out,
    ]
    return [*given, "--generations", "4", "--population", "5", "--validation", "1", *more]


def score(folder: Path) -> Any:
    return np.array(list(json.loads((folder / "manifest.json").read_text())["score"].values()))


@pytest.mark.slow
@pytest.mark.learn
def test_an_interrupted_search_goes_on_and_ends_as_an_uninterrupted_one(
    escala_: Escala, week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from escala.agents.direct_search.search import CrossEntropy

    done = escala_(*verb(week, tmp_path / "whole", "--json"))
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert told["generations"] == 4 and told["workload"]["days"] == 3 and told["days_each"] == 3
    assert told["env_options"]["stretch_cost"] > 0.0 and told["env_options"]["window"] == "drain"

    step = CrossEntropy.step

    def interrupted(run: Any) -> None:
        if run.generation == 2:
            raise KeyboardInterrupt
        step(run)

    monkeypatch.setattr(CrossEntropy, "step", interrupted)
    ended = escala_(*verb(week, tmp_path / "again"))
    monkeypatch.undo()
    assert ended.status == 130 and "--resume" in ended.err and os.listdir(tmp_path / "again") == ["search.npz"]
    unasked = escala_(*verb(week, tmp_path / "again"))
    assert unasked.status == 2 and "--resume" in unasked.err
    other = escala_(*verb(week, tmp_path / "again", "--resume", "--seed", "1"))
    assert other.status == 2 and "seed=0, not 1" in other.err and other.err.count("\n") == 1
    resumed = escala_(*verb(week, tmp_path / "again", "--resume"))
    assert resumed.status == 0, resumed.err
    assert "generations" in resumed.out and "value of a validation day" in resumed.out
    assert np.array_equal(score(tmp_path / "again"), score(tmp_path / "whole"))
    over = escala_(*verb(week, tmp_path / "again", "--resume"))
    assert over.status == 2 and "no search.npz to resume from" in over.err

    page = tmp_path / "agent.html"
    assert escala_("report", tmp_path / "again", "--out", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "4 generations of 5 candidates" in text and "validation days" in text and text.count("<svg") == 1
    judged = escala_(
        "evaluate", tmp_path / "again", week, "--after", "4", "--runs", "1", "--baselines", "timeout:0", "--json"
    )
    assert judged.status == 0 and {row["policy"] for row in json.loads(judged.out)} == {
        "timeout:0",
        "agent",
        "agent (argmax)",
    }


@pytest.mark.slow
@pytest.mark.learn
def test_a_dearer_wait_is_a_dearer_wait(escala_: Escala, week: Path, tmp_path: Path) -> None:
    cost = []
    for worth in ("1", "3"):
        done = escala_(*verb(week, tmp_path / worth, "--worth", worth, "--json"))
        cost.append(json.loads(done.out)["env_options"]["stretch_cost"])
    assert cost[1] == pytest.approx(3.0 * cost[0])


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["--algorithm", "search", "--steps", "64"], "--steps means nothing"),
        (["--algorithm", "search", "--minutes", "1"], "--minutes means nothing"),
        (["--algorithm", "search", "--preset", "tuned"], "--preset means nothing"),
        (["--algorithm", "search", "--validation", "1", "--patience", "3"], "--patience means nothing"),
        (["--algorithm", "search", "--resume"], "no search.npz"),
        (["--algorithm", "search", "--population", "3"], "--population"),
        (["--algorithm", "search", "--worth", "-1"], "--worth"),
        (["--generations", "5"], "--algorithm search"),
        (["--worth", "2"], "--algorithm search"),
        (["--algorithm", "serch"], "search"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_options_that_mean_nothing_are_refused_in_one_line(
    escala_: Escala, week: Path, tmp_path: Path, given: list[str], word: str
) -> None:
    outcome = escala_(
        "train", ENVIRONMENT, "--workload", week, "--platform", "orion", "--out", tmp_path / "agent", *given
    )
    assert outcome.status == 2 and word in outcome.err and re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
    assert not os.listdir(tmp_path)


def test_schedulers_are_not_searched_here(escala_: Escala, week: Path, tmp_path: Path) -> None:
    given = ["--algorithm", "search", "--workload", week, "--platform", "orion", "--out", tmp_path / "agent"]
    outcome = escala_("train", "escala/Scheduling-v0", *given)
    assert outcome.status == 2 and "search_scheduler" in outcome.err and outcome.err.count("\n") == 1
