"""Trained agents as entries: judged as in single replays, with what they were trained on, and refused where that is
judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import leaderboard
from escala.leaderboard.seen import check_unseen
from escala.leaderboard.suite import jobs_digest
from escala.report.leaderboard import trained_rows, write_page
from escala.tuning.split import split_of

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
QUEUE, POWER = (
    STUDIES / "deepscheduler2020" / "agents" / "g5k-0.95-0",
    STUDIES / "deepshutdown2020" / "agents" / "g5k-1-0",
)
MADE = {"jobs": 1000, "cores": 16, "load": 0.75, "seed": 4}


@pytest.fixture
def log() -> escala.Workload:
    return escala.workload.generate.lublin(**MADE)


@pytest.fixture
def suite(log: escala.Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A suite of one log of four weeks, and an agent in a folder."""
    monkeypatch.chdir(tmp_path)
    escala.load_agent(QUEUE).export("night")
    entry = {"name": "one", "generator": "lublin", **MADE, "platform": "16x1:grid5000", "sha256": jobs_digest(log)}
    return {"name": "small", "logs": [entry]}


@pytest.mark.slow
def test_an_agent_is_judged_as_in_a_single_replay(log: escala.Workload, suite: dict[str, Any], tmp_path: Path) -> None:
    entry = leaderboard.enter(f"agent:{tmp_path}/night", "out", suite, on="local:1")
    found = entry.logs["one"]
    later = log.jobs["submit_s"].to_numpy() >= split_of(log, "60%").at_s
    wait = escala.simulate(log, "16x1:grid5000", "agent:night").jobs["wait_s"].to_numpy()[later]
    runtime = log.jobs["runtime_s"].to_numpy()[later]
    slowdown = np.maximum((wait + runtime) / np.maximum(runtime, 10.0), 1.0)
    assert found["figures"]["bounded_slowdown"] == pytest.approx(slowdown.mean(), rel=1e-12)
    assert entry.policy == "agent:night" and list(found["files"]) == ["manifest.json"]
    told = "lyon_1/train/1_train_0 to lyon_1/train/1_train_1205, 27139 jobs, on taurus"
    assert found["trained"] == {
        "scheduler": {"what": "escala/Scheduling-v0, cross-entropy, search", "on": told, "escala": "0.1.0", "from": ""}
    }
    assert str(tmp_path) not in Path("out", "entry.json").read_text() and leaderboard.read_entry("out") == entry
    noted = json.loads(Path("night", "manifest.json").read_text())
    noted |= {"pulled": {"repository": "you/night", "revision": "0123abc"}}
    Path("night", "manifest.json").write_text(json.dumps(noted))
    assert leaderboard.check(entry, on="local:1") == [], "who pulled it has the same"
    entry = leaderboard.enter("agent:night", "out", suite, on="local:1")
    assert entry.logs["one"]["trained"]["scheduler"]["from"] == "you/night@0123abc"
    escala.load_agent(STUDIES / "deepscheduler2020" / "agents" / "kth-0.95-0").export("other")
    unlike = leaderboard.check(entry, policy="agent:other", on="local:1")
    assert any(line.startswith("one, files, manifest.json: ") for line in unlike)
    assert any(line.startswith("one, trained, scheduler, on: ") for line in unlike)
    board = leaderboard.standing([entry, leaderboard.enter("fcfs", "fcfs", suite, on="local:1")])
    (row,) = trained_rows(board)
    assert (row["entry"], row["trained or chosen on"], row["judged on"]) == ("agent:night", told, "one")
    assert row["escala policy pull"] == "you/night@0123abc"
    write_page(board, Path("board.html"))
    assert (
        "Trained on what" in Path("board.html").read_text()
        and "27139 jobs, on taurus" in Path("board.html").read_text()
    )
    damaged = json.loads(Path("out", "entry.json").read_text())
    damaged["logs"]["one"]["trained"]["scheduler"]["on"] = "two\nlines"
    Path("damaged.json").write_text(json.dumps(damaged))
    with pytest.raises(escala.EscalaError, match="not a whole entry"):
        leaderboard.read_entry("damaged.json")


@pytest.mark.parametrize(
    ("policy", "shutdown", "said"),
    [
        ("agent:POWER", "never", "is a shutdown policy, given as scheduler: give it as shutdown"),
        ("easy", "agent:night", "is a scheduler policy, given as shutdown: give it as scheduler"),
        ("agent:{log}", "never", "one: no trained agent here"),
        (
            f"agent:{STUDIES / 'marl2024' / 'agents' / 'team-2x1-0'}",
            "never",
            "schedules 2 agents x 1 machines of several cores",
        ),
    ],
)
def test_an_agent_of_something_else_is_refused_in_one_line(
    suite: dict[str, Any], policy: str, shutdown: str, said: str
) -> None:
    with pytest.raises(escala.EscalaError) as told:
        leaderboard.enter(policy.replace("POWER", str(POWER)), "out", suite, shutdown=shutdown, on="local:1")
    assert said in str(told.value) and str(told.value).startswith("log 'one': ") and "\n" not in str(told.value)


def _about(days: list[escala.Workload], name: str | None = None) -> dict[str, Any]:
    """What a manifest says of days."""
    ends = [day.name if name is None else f"{name}#{day.name.rpartition('#')[2]}" for day in (days[0], days[-1])]
    return {"days": len(days), "jobs": sum(map(len, days)), "first": ends[0], "last": ends[1]}


def test_what_was_trained_on_the_judged_weeks_is_refused(log: escala.Workload, suite: dict[str, Any]) -> None:
    asked = leaderboard.read_suite(suite)
    run = asked.run(asked.logs[0], "agent:night", "never", [Path()])
    days = [day for day in log.split_days(origin_s=-(log.origin_s % 86400.0)) if len(day) >= 2]
    at_s = split_of(log, "60%").at_s
    past = [day for day in days if day.origin_s - log.origin_s + day.jobs["submit_s"][-1] <= at_s]
    assert 7 < len(past) < len(days) - 7
    whole = {"name": log.name, "source": log.source, "jobs": len(log)}
    within = {**whole, "jobs": int((log.jobs["submit_s"] < at_s).sum())}
    drawn = _about([*past[:3], *days[-3:]])
    named = replace(run, log=replace(run.log, path=f"there/{log.name}.swf"))

    def refused(one: Any, **manifest: Any) -> bool:
        told = json.loads((QUEUE / "manifest.json").read_text())
        Path("night", "manifest.json").write_text(json.dumps({**told, "validation_days": None, **manifest}))
        try:
            check_unseen(one, "60%")
        except escala.EscalaError as error:
            assert str(error) == (
                f"night: was trained on days of one that the suite judges it by: train it on the first {len(past)} at "
                f"most (--days {len(past)})"
            )
            return True
        return False

    assert not refused(run, workload=_about(past)) and refused(run, workload=_about(days[: len(past) + 1]))
    assert refused(run, workload=_about(past), validation_days=_about(days[len(past) :]))
    assert refused(run, workload=_about(days, "year")), "the same days under the name of another file"
    assert not refused(run, workload={**_about(days, "year"), "jobs": 1}) and not refused(run, workload={})
    assert not refused(run, workload={**_about(days), "jobs": 1}), "another log that the generator calls the same"
    assert not refused(run, workload=within) and refused(run, workload=whole)
    assert not refused(run, workload={**whole, "source": "another seed"})
    assert not refused(run, workload=drawn) and refused(named, workload=drawn), "a file of this name"
    assert refused(named, workload={"path": f"here/{log.name}.swf"}) and not refused(
        named, workload={"path": "other.swf"}
    )
