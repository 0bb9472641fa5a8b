"""The sweep of horizons of R4: who is told what of the end, and against whom teams are held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from escala.agents import load_team
from escala.studies.marl2024 import horizons

KEPT = Path(__file__).resolve().parents[3] / "docs" / "studies"


@pytest.mark.slow
def test_a_team_is_told_the_end_of_the_lists_that_it_plays_or_one_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        horizons, "by_greedy", lambda made, lists, **end: asked.append(end | {"n": len(lists)}) or {"slowdown": [1.0]}
    )
    for name in ("ahead-2x1-0", "team-2x2-0"):
        for endless in (False, True):
            horizons.team(str(KEPT / "marl2024" / "agents" / name), horizons.shape_of(name), 50, 1000, endless)
    assert asked == [{"arrivals_end": 1000, "n": 20}, {"arrivals_end": horizons.FAR, "n": 20}, {"n": 20}, {"n": 20}]
    assert load_team(KEPT / "marl2024" / "agents" / "ahead-2x1-0").options["arrivals_end"] == 200


def test_a_team_is_held_against_the_best_heuristic_of_its_own_lists() -> None:
    beside = {
        "sjf": [1.0, 3.0],
        "packer": [4.0, 4.0],
        "tetris": [3.0, 3.0],
        "tetris-normalised": [2.5, 2.5],
        "random": [9.0, 9.0],
    }
    cells: dict[str, Any] = {"horizon/rules/2x1/50/50": beside, "horizon/rules/2x1/50/1000": beside}
    cells |= {"horizon/ahead-2x1-0/50/50": [1.0, 2.0], "horizon/ahead-2x1-0/50/1000": [3.0, 3.0]}
    cells["horizon/ahead-2x1-0/50/endless"] = [3.0, None]
    rows = {row["horizon"]: row for row in horizons.frame(cells).to_dicts()}
    assert rows["50"]["best"] == "sjf" and rows["50"]["excess"] == pytest.approx(-0.25)
    assert rows["1000"]["excess"] == pytest.approx(0.5) and rows["endless"]["steps"] == 1000
    assert rows["endless"]["unfinished"] == 1 and rows["endless"]["excess"] is None
    (claim,) = horizons.claims(horizons.frame({key: cell for key, cell in cells.items() if "endless" not in key}))
    assert claim.ours == pytest.approx(0.5) and "1000 steps" in claim.note
