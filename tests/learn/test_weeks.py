"""A scheduling agent that learns on a queue that goes on, and is judged by the later weeks of one replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import escala
from escala.agents import weeks
from escala.agents.weeks import evaluate_weeks
from escala.cli.app import app
from escala.errors import EscalaError
from escala.sharing import evidence
from escala.tuning.measures import FIGURES
from escala.tuning.weekly import Weekly
from escala.workload import generate

pytestmark = pytest.mark.learn
DAY_S = 86400.0


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return generate.lublin(jobs=450, cores=16, load=0.6, seed=8)


@pytest.fixture(scope="module")
def agent(log: escala.Workload, tmp_path_factory: pytest.TempPathFactory) -> escala.Agent:
    past = log.with_jobs(log.jobs.filter(log.jobs["submit_s"] < 5 * DAY_S))
    folder = tmp_path_factory.mktemp("weeks") / "agent"
    return escala.train(
        "escala/Scheduling-v0", past, "16x1", preset="queue", steps=2048, seed=1, day_s=2 * DAY_S, out=folder
    )


def test_weeks_are_judged_in_one_replay(log: escala.Workload, agent: escala.Agent) -> None:
    after_s = 5 * DAY_S
    found = evaluate_weeks(agent, log, "16x1", after_s, ["easy", "sjf-fit"])
    later = log.jobs["submit_s"].to_numpy() >= after_s
    waits = {name: escala.simulate(log, "16x1", name).jobs["wait_s"].to_numpy()[later] for name in ("easy", "sjf-fit")}
    assert list(found.figures) == ["easy", "sjf-fit", "agent", "agent (greedy)"]
    assert all(set(figures) == set(FIGURES) for figures in found.figures.values())
    for name, expected in waits.items():
        assert found.figures[name]["mean_wait_s"] == pytest.approx(expected.mean())
        assert found.figures[name]["longest_wait_s"] == expected.max()
    value, low, high = found.ratios["sjf-fit"]["wait"]
    assert value == pytest.approx(waits["sjf-fit"].mean() / waits["easy"].mean())
    assert low is not None and high is not None and low <= value <= high
    assert found.weeks == int((log.jobs["submit_s"].max() - after_s) // (7 * DAY_S)) + 1  # type: ignore[operator]


def test_the_guard_of_training_holds_in_the_replay(log: escala.Workload) -> None:
    """An agent that has learnt nothing, with a guard of an hour: no job waits longer than under FCFS with EASY by more
    than that."""
    unlearnt = escala.train(
        "escala/Scheduling-v0", log.head(200), "16x1", preset="queue", steps=1, seed=3, guard_s=3600.0
    )
    first = log.head(250)
    guarded = escala.simulate(first, "16x1", unlearnt.policy(seed=2)).jobs["wait_s"].to_numpy()
    free = escala.simulate(
        first,
        "16x1",
        escala.train(
            "escala/Scheduling-v0", log.head(200), "16x1", preset="queue", steps=1, seed=3, guard_s=0.0
        ).policy(seed=2),
    )
    assert guarded.max() < free.jobs["wait_s"].max()


def test_by_the_command(
    log: escala.Workload, agent: escala.Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged once: the table is of the figures of the document."""
    judged: list[Weekly] = []

    def once(*given: Any, **named: Any) -> Any:
        if not judged:
            judged.append(evaluate_weeks(*given, **named))
        return judged[0]

    monkeypatch.setattr(weeks, "evaluate_weeks", once)
    agent.save(tmp_path / "agent")
    escala.workload.write_swf(log, tmp_path / "log.swf")
    asked = [
        "evaluate",
        str(tmp_path / "agent"),
        str(tmp_path / "log.swf"),
        "--window",
        "weeks",
        "--after",
        "5",
        "--runs",
        "1",
    ]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert set(document["ratios"]) == {"easy-sjf", "sjf-fit", "agent", "agent (greedy)"}
    assert np.isfinite(document["figures"]["agent"]["bounded_slowdown"])
    (kept,) = evidence.kept(tmp_path / "agent")
    assert (kept["reference"], kept["acts"], kept["stands"]) == ("easy", "agent", "other"), "it learnt from lublin"
    card = evidence.told(kept)
    value, low, high = document["ratios"]["agent"]["wait"]
    mean = document["figures"]["agent"]["mean_wait_s"]
    assert f"{mean:.6g} ({value - 1:+.1%} [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}])".replace("%", " %") in card
    assert "in one replay of the whole log. It learnt from a log of another name. Means, and in brackets" in card
    assert f"95 % interval over weeks ({document['weeks']})" in card and "| **agent** |" in card
    shown = CliRunner().invoke(app, asked)
    assert "Ratios to easy, with 95 % intervals over" in shown.stdout
    refused = CliRunner().invoke(app, [*asked, "--days", "3"])
    assert "--days goes by days" in str(refused.exception)


def test_what_cannot_be_judged_is_one_line(log: escala.Workload, agent: escala.Agent) -> None:
    with pytest.raises(EscalaError, match="less than a week"):
        evaluate_weeks(agent, log, "16x1", float(log.jobs["submit_s"].max()) - DAY_S)  # type: ignore[arg-type]
