"""Agents at other horizons: what they are shown, what they are held against, and which figure is the worst."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from escala.envs.slots.playing import play
from escala.studies.lab import horizons

KEPT = Path(__file__).resolve().parents[3] / "docs" / "studies"


def _cells(ours: list[float | None]) -> dict[str, Any]:
    rules = {"sjf": [2.0, 4.0], "sjf-strict": [4.0, 4.0], "hold-back": [3.0, 5.0], "hold": [3, 2, 0]}
    return {
        "horizon/rules/40/50": rules,
        "horizon/rules/40/100": {**rules, "hold-back": [1.0, 1.0]},
        "horizon/a/40/50": {"slowdown": [3.0, 3.0], "sjf-seen": [6.0, 8.0]},
        "horizon/a/40/100": {"slowdown": ours, "sjf-seen": [6.0, 8.0]},
        "horizon/a/40/endless": {"slowdown": [2.0, 2.0], "sjf-seen": [6.0, 8.0]},
    }


def test_an_agent_is_held_against_the_best_rule_of_its_horizon() -> None:
    rows = horizons.frame(_cells([4.0, 4.0])).to_dicts()
    assert [(row["horizon"], row["steps"], row["best"]) for row in rows] == [
        ("50", 50, "sjf"), ("100", 100, "hold-back"), ("endless", 100, "hold-back"),
    ]  # fmt: skip
    assert [row["excess"] for row in rows] == pytest.approx([0.0, 3.0, 1.0])
    assert {row["sjf-seen"] for row in rows} == {7.0}
    (claim,) = horizons.worst_claim("x", horizons.frame(_cells([4.0, 4.0])), ["a"], "an agent")
    assert claim.ours == pytest.approx(3.0) and claim.meets_aim is False and "at load 40, 100 (100 steps)" in claim.note
    assert horizons.worst_claim("x", horizons.frame(_cells([4.0, 4.0])), ["b"], "another") == []


def test_a_run_that_does_not_end_is_no_figure() -> None:
    table = horizons.frame(_cells([4.0, None]))
    assert table.filter(pl.col("horizon") == "100").row(0, named=True)["excess"] is None
    (claim,) = horizons.worst_claim("x", table, ["a"], "an agent")
    assert (
        claim.ours is None
        and claim.meets_aim is False
        and "1 runs did not end, the first at load 40, 100" in claim.note
    )


def test_the_rules_are_those_of_the_lists() -> None:
    found = horizons.rules("cpu-memory", 0.7, 20)
    lists = horizons.lists_of("cpu-memory", 0.7, 20, horizons.STEPS // 20, horizons.TEST)
    for rule in ("sjf", "sjf-strict"):
        assert found[rule] == play(lists, rule, slots=32)["slowdown"].to_list()
    held = play(lists, "hold-back", hold=tuple(found["hold"]), slots=32)["slowdown"]  # type: ignore[arg-type]
    assert found["hold-back"] == held.to_list() and np.mean(found["hold-back"]) < np.mean(found["sjf"])


def test_sjf_beside_an_agent_sees_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the whole queue, as the three rules do."""
    lists = horizons.lists_of("cpu-memory", 0.9, 100, horizons.STEPS // 100, horizons.TEST)
    for given in ({"slots": 2}, {"slots": 3, "queue": "shortest"}):
        monkeypatch.setattr(
            horizons, "load_agent", lambda folder, given=given: SimpleNamespace(env_options={**given, "rate": 0.9})
        )
        monkeypatch.setattr(horizons, "played", lambda *given: [1.0])
        found = horizons.agent("folder", "cpu-memory", 0.9, 100, False)
        assert (
            found["sjf-seen"]
            == play(lists, "sjf", **given)["slowdown"].to_list()
            != play(lists, "sjf", slots=32)["slowdown"].to_list()
        )


def test_endless_lists_are_the_longest_with_a_far_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    made = SimpleNamespace(env_options={"slots": 5, "arrivals_end": 50, "load": 1.0})
    monkeypatch.setattr(horizons, "load_agent", lambda folder: made)

    def played(lists: Any, act: Any, **given: Any) -> pl.DataFrame:
        if act != "sjf":
            seen.append((len(lists), given["arrivals_end"]))
        return pl.DataFrame({"slowdown": [1.0]})

    monkeypatch.setattr(horizons, "play", played)
    for cell in horizons.cells_of({"a": ("folder", [0.7])}, "cpu-memory", (20, 40)):
        if "rules" not in cell.name:
            cell.work(**cell.given)
    assert seen == [(1000, 20), (500, 40), (500, horizons.FAR)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "study, world, agent, load, horizon",
    [("a2c2020", "cpu-memory", "agent-0.9-0", 0.9, "50"), ("a2c2020", "cpu-memory", "agent-0.6-0", 0.6, "endless"),
     ("grid2019", "pool", "fresh-all-0", 40, "400")],
)  # fmt: skip
def test_the_kept_table_comes_out_again(study: str, world: str, agent: str, load: float, horizon: str) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    table = pl.read_csv(KEPT / study / "tables" / "horizons.csv", schema_overrides={"horizon": pl.String})
    row = table.row(
        by_predicate=(pl.col("agent") == agent) & (pl.col("load") == load) & (pl.col("horizon") == horizon), named=True
    )
    played = horizons.agent(str(KEPT / study / "agents" / agent), world, load, row["steps"], horizon == "endless")
    assert np.mean(played["slowdown"]) == pytest.approx(row["mean_slowdown"], abs=2e-6)
