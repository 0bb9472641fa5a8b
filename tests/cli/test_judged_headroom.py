"""`escala evaluate --headroom`: shares with intervals in the table, in the folder and on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import escala
from tests.cli.program import Escala


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "week.swf"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=5, seed=2), path)
    return path


@pytest.fixture(scope="module")
def agent(week: Path) -> Path:
    """An off-reservation agent that has hardly learnt anything."""
    pytest.importorskip("stable_baselines3")
    days = escala.workload.read_workload(week).split_days()
    out = week.parent / "agent"
    escala.agents.search(
        days[:2], "orion", generations=1, population=4, seed=0, stretch_cost=0.15, window="drain", out=out
    )
    return out


@pytest.mark.slow
@pytest.mark.learn
def test_shares_in_the_table_the_folder_and_the_page(
    escala_: Escala, week: Path, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = [
        "evaluate",
        agent,
        week,
        "--after",
        "2",
        "--days",
        "2",
        "--runs",
        "1",
        "--baselines",
        "timeout:0,hold:0.25",
        "--headroom",
        "waste",
    ]
    done = escala_(*judge, "--stretch", "0.2", "--json", "--out", tmp_path / "judged")
    assert done.status == 0, done.err
    rows = {row["policy"]: row for row in json.loads(done.out) if row["metric"] == "waste_j"}
    assert all("headroom_proved" not in row for row in json.loads(done.out) if row["metric"] != "waste_j")
    assert rows["timeout:0"]["headroom_proved"] == 0.0 and rows["timeout:0"]["late_jobs"] == 0.0
    assert (
        rows["hold:0.25"]["headroom_proved_low"]
        <= rows["hold:0.25"]["headroom_proved"]
        <= rows["hold:0.25"]["headroom"] + 1e-9
    )
    kept = json.loads((tmp_path / "judged" / "headroom.json").read_text())
    assert kept["policies"]["hold:0.25"]["proved"] == rows["hold:0.25"]["headroom_proved"] and len(kept["bounded"]) == 2
    assert escala_("report", tmp_path / "judged").status == 0
    page = (tmp_path / "judged" / "report.html").read_text(encoding="utf-8")
    assert "Head-room in waste, 2 days: 0 is timeout:0" in page and "For the operator" in page and "clairvoyant" in page
    (tmp_path / "judged" / "headroom.json").write_text("{")
    broken = escala_("report", tmp_path / "judged")
    assert broken.status == 2 and broken.err.count("\n") == 1

    from escala.bounds import headroom

    bound_at, asked = headroom.waste_bound.bound_at, []

    def once(day: Any, *given: Any, **options: Any) -> Any:
        asked.append(day.name)
        if len(set(asked)) == 2:
            raise KeyboardInterrupt
        return bound_at(day, *given, **options)

    monkeypatch.setattr(headroom.waste_bound, "bound_at", once)
    ended = escala_(*judge, "--out", tmp_path / "ended")
    assert (
        ended.status == 130
        and "bounded until then" in ended.err
        and "1 of 2 days have a bound (ended by Ctrl-C)" in ended.out
    )
    assert len(json.loads((tmp_path / "ended" / "headroom.json").read_text())["bounded"]) == 1
    assert (tmp_path / "ended" / "days.csv").exists()


@pytest.mark.learn
def test_agents_and_machines_without_a_bound_are_refused_before_anything_is_judged(
    escala_: Escala, week: Path, agent: Path
) -> None:
    waits = escala_("evaluate", agent, week, "--headroom", "wait")
    assert waits.status == 2 and "escala/Scheduling-v0" in waits.err and waits.err.count("\n") == 1
    plain = escala_("evaluate", agent, week, "--headroom", "waste", "--platform", "4x12:none")
    assert plain.status == 2 and "no power data" in plain.err and plain.err.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--headroom", "power"], "power"),
        (["--headroom", "makespan"], "makespan"),
        (["--headroom", "waste", "--window", "cut"], "--window"),
        (["--headroom", "wait", "--stretch", "1"], "--stretch"),
        (["--headroom", "waste", "--stretch", "-1"], "--stretch"),
        (["--headroom", "waste", "--limit", "0"], "--limit"),
        (["--stretch", "1"], "--headroom"),
        (["--limit", "10"], "--headroom"),
    ],
    ids=" ".join,
)
def test_what_has_no_headroom_is_refused_before_anything_is_read(escala_: Escala, more: list[str], word: str) -> None:
    outcome = escala_("evaluate", "nowhere", "nowhere.swf", *more)
    assert outcome.status == 2 and word in outcome.err and re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
