"""The study marl2024 at its smallest: what it writes, and that it is done once only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.envs.slots import heuristics
from escala.errors import EscalaError
from escala.studies.lab.claims import read_rows
from escala.studies.marl2024 import learning as marl2024_learning
from escala.studies.marl2024 import recipe, report
from escala.studies.marl2024.claims import chosen, claims_of


@pytest.mark.long
@pytest.mark.learn
def test_smoke_writes_claims_tables_and_figures(tmp_path: Path) -> None:
    found = recipe.run("smoke", tmp_path, jobs=1)
    claims = {claim["id"]: claim for claim in read_rows(tmp_path)}
    assert {
        "r4.vs_best_heuristic.2x1.50",
        "r4.vs_best_heuristic.2x1.90",
        "r4.worst_against_best_heuristic",
        "r4.vs_tetris.2x1.50",
    } <= set(claims)
    further = (
        "r4.vs_central.2x1.90",
        "r4.sampled.vs_best_heuristic.2x1.90",
        "r4.void.vs_tetris.2x1.90",
        "r4.void.vs_best_heuristic.2x1.50",
    )
    assert set(further) <= set(claims)
    worst = claims["r4.worst_against_best_heuristic"]["ours"]
    assert worst == max(claims[f"r4.vs_best_heuristic.2x1.{load}"]["ours"] for load in (50, 90))
    table = pl.read_csv(tmp_path / "tables" / "slowdown.csv")
    row = table.filter((pl.col("load") == 90) & (pl.col("policy") == "sjf"))
    assert row["episodes"][0] == 10 and row["overload"][0]
    best = claims["r4.vs_best_heuristic.2x1.90"]["note"].split(": ")[1].split(";")[0]
    theirs = table.filter((pl.col("load") == 90) & (pl.col("policy") == best))["mean_slowdown"][0]
    ours = table.filter((pl.col("load") == 90) & (pl.col("policy") == "in turns, global, likeliest"))["mean_slowdown"][
        0
    ]
    assert claims["r4.vs_best_heuristic.2x1.90"]["ours"] == pytest.approx(ours / theirs - 1, abs=1e-4)
    room = pl.read_csv(tmp_path / "tables" / "headroom.csv").filter(pl.col("load") == 90)
    mean = dict(room.select("policy", "mean_slowdown").iter_rows())
    assert mean["bound"] <= mean["best found"] <= mean["sjf, every job seen"] < mean["sjf"] and room["lists"][0] == 2
    share, proved = (claims[f"r4.{key}.2x1.90"]["ours"] for key in ("headroom", "headroom_proved"))
    assert share == pytest.approx((mean["sjf"] - mean["teams"]) / (mean["sjf"] - mean["best found"]), abs=1e-4)
    assert abs(proved) <= abs(share)  # there is more room to the bound
    trained = pl.read_csv(tmp_path / "tables" / "seeds.csv")
    assert (
        set(trained["kind"]) == {"in turns, global", "imitates dense", "in turns, until void"}
        and trained["kept"].max() <= 4096
    )
    theirs = table.filter((pl.col("load") == 90) & (pl.col("policy") == "tetris-normalised, until void"))[
        "mean_slowdown"
    ][0]
    ours = trained.filter((pl.col("load") == 90) & (pl.col("kind") == "in turns, until void"))["mean_slowdown"][0]
    assert claims["r4.void.vs_tetris.2x1.90"]["ours"] == pytest.approx(ours / theirs - 1, abs=1e-4)
    for name in ("fig1", "fig4-2x1", "fig4-2x1-relative"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 1000
    assert json.loads((tmp_path / "manifest.json").read_text())["study"] == "marl2024" and not found["missing"]
    again = recipe.run("smoke", tmp_path, jobs=1)
    assert again["claims"] == found["claims"]


def test_bad_requests_give_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        recipe.run("huge", tmp_path)
    with pytest.raises(EscalaError, match="jobs=0"):
        recipe.run("smoke", tmp_path, jobs=0)


def test_the_better_kind_of_team_is_chosen_on_validation_lists() -> None:
    def cells(*slowdowns: float | None) -> dict[str, Any]:
        kinds = zip(("team", "ahead"), slowdowns, strict=False)
        return {f"{kind}/2x1/0": {"50": {"validation": {"slowdown": [2.0, s]}}} for kind, s in kinds}

    assert chosen(cells(2.0, 1.9), "2x1", (50,)) == "ahead"
    assert chosen(cells(2.0, 2.1), "2x1", (50,)) == "team"
    assert chosen(cells(2.0, None), "2x1", (50,)) == "team"  # a run that was not finished
    assert chosen(cells(2.0), "2x1", (50,)) == "team"
    assert chosen({}, "2x1", (50,)) == "team"


RULES = ("sjf", "packer", "tetris", "tetris-normalised", "random", "dense")
LOADS = (50, 90)
CUT = ("finished_slowdown", "finished_runtime", "left", "submitted", "slowdown")


def _rules(slowdown: float) -> dict[str, Any]:
    """Every rule on two lists, as a team, until the no-op and as one central scheduler, the later the better."""

    def figures(value: float) -> dict[str, Any]:
        return {
            "slowdown": [value, value],
            "turnaround": [value, value],
            "wait": [value - 1.0, value - 1.0],
            "finished": [True, True],
        }

    cut = {name: [slowdown, slowdown] for name in CUT}
    one = figures(slowdown) | {"cut": cut, "void": figures(0.9 * slowdown), "central": figures(0.8 * slowdown)}
    return dict.fromkeys((*heuristics.TEAM_RULES, *RULES), one)


def _team(
    slowdown: float | None, *judged: float, sampled: float | None = None, kept: int = 0, loads: tuple[int, ...] = LOADS
) -> dict[str, Any]:
    """A cell of a training: its greedy actions, and sampled ones (by default the same)."""

    def figures(value: float | None) -> dict[str, Any]:
        less = None if value is None else value - 1.0
        return {
            "slowdown": [value, value],
            "turnaround": [value, value],
            "wait": [less, less],
            "finished": [value is not None] * 2,
        }

    drawn = slowdown if sampled is None else sampled
    ways = {
        "likeliest": figures(slowdown),
        "sampled": figures(drawn),
        "validation": figures(slowdown),
        "validation_sampled": figures(drawn),
    }
    cut = {"cut": {name: [2.0, 2.0] for name in CUT}}
    looks = [[1000 * k, value] for k, value in enumerate(judged)]
    took = {
        "steps": 2000,
        "elapsed_s": 3.0,
        "processor_s": 2.0,
        "kept": kept,
        "curve": [[1000, 0, -2.0, 4]],
        "judged": looks,
    }
    return {str(load): ways | cut for load in LOADS} | took


def _only(cell: dict[str, Any], load: int) -> dict[str, Any]:
    """A cell of a team that learnt one load."""
    return {key: content for key, content in cell.items() if not key.isdigit() or int(key) == load}


def _every_team() -> dict[str, Any]:
    """Cells of two seeds of every kind of team, and of the rules."""
    cells: dict[str, Any] = {f"rules/{shape}/{load}": _rules(2.0) for shape in ("3x1", "2x1") for load in LOADS}
    for seed in range(2):
        own: dict[str, Any] = {
            "team/3x1": _team(1.9, 1.0, 0.9, kept=1000),
            "imitated/3x1": _team(2.0),
            "ahead/3x1": _team(2.1),
            "void/3x1": _team(1.71),
            "local/3x1": _team(1.995),
            "printed/3x1": _team(None if seed else 6.0, 1.9, 1.8, sampled=3.6),
        }
        for load in (50, 90):
            own |= {
                f"nothing-{load}/3x1": _team(2.8, 1.5, 1.2, sampled=2.4),
                f"nothing-local-{load}/3x1": _team(3.0, 1.6, 1.5, sampled=3.0),
                f"nothing-shared-{load}/3x1": _team(2.6, 1.5, 1.04, sampled=2.1),
                f"nothing-simultaneous-{load}/3x1": _team(2.6, 1.5, 1.3, sampled=2.5),
                f"growth-{load}/2": _team(3.6, sampled=2.7),
                f"central-{load}/2": _team(1.8, kept=500),
            }
            apart = ("nothing", "growth", "central")
            own |= {
                kind: _only(cell, load) for kind, cell in own.items() if kind.startswith(apart) and f"-{load}/" in kind
            }
        cells |= {f"{kind}/{seed}": cell for kind, cell in own.items()}
    return cells


def test_every_kind_of_team_has_its_claims_table_rows_and_figures(tmp_path: Path) -> None:
    scale = replace(recipe.SCALES["smoke"], shapes=((3, 1),), ahead=((3, 1),), growth=(2,), test=2)
    report.write_all(tmp_path, scale, _every_team(), "tiny")
    found = {claim["id"]: claim for claim in read_rows(tmp_path)}

    def ours(ident: str) -> Any:
        return found[ident]["ours"]

    assert ours("r4.vs_best_heuristic.3x1.50") == ours("r4.turns.vs_best_heuristic.3x1.50") == pytest.approx(-0.05)
    assert "kept after 1000, 1000 decisions" in found["r4.vs_best_heuristic.3x1.50"]["note"]
    assert ours("r4.ppo_gain.3x1.90") == pytest.approx(-0.05) and found["r4.ppo_gain.3x1.90"]["meets_aim"]
    assert ours("r4.ahead.vs_best_heuristic.3x1.50") == pytest.approx(0.05)
    assert "0, 0 decisions" in found["r4.void.vs_tetris.3x1.90"]["note"]
    assert ours("r4.void.vs_tetris.3x1.90") == pytest.approx(-0.05) and ours("r4.vs_central.3x1.50") == pytest.approx(
        1.9 / 1.6 - 1
    )
    assert ours("r4.local_vs_global.50") == pytest.approx(0.05)
    assert ours("r4.nothing.shared_vs_turns.90") == pytest.approx(2.1 / 2.4 - 1)
    assert ours("r4.nothing.simultaneous_vs_turns.50") == pytest.approx(2.5 / 2.4 - 1)
    assert (
        ours("r4.nothing.shared.50.sampled") == pytest.approx(0.05) and ours("r4.nothing.decisions.shared.50") == 1000
    )
    assert "r4.nothing.shared.10" not in found and "a team for this load" in found["r4.nothing.shared.50"]["note"]
    stuck = found["r4.nothing.printed.50"]
    assert stuck["ours"] is None and "2 runs not finished" in stuck["note"] and ours("r4.nothing.early.printed") == 1.9
    assert (
        ours("r4.growth.2.50") == pytest.approx(2.7 / 1.8 - 1) and "sampled actions" in found["r4.growth.2.50"]["note"]
    )
    # each by the actions that do better on validation lists
    assert ours("r4.team_vs_central.2.90") == pytest.approx(0.5)
    assert "0, 0 decisions (0: untrained)" in found["r4.growth.2.50"]["note"]
    assert "0, 0, 500, 500 decisions (0: untrained)" in found["r4.team_vs_central.2.90"]["note"]
    assert ours("r4.growth_cost.2") == 2.0 and "1 s for 1000 decisions" in found["r4.growth_cost.2"]["note"]
    rows = pl.read_csv(tmp_path / "tables" / "seeds.csv", infer_schema_length=None)
    assert set(rows.filter(kind="growth")["acting"]) == {"sampled"} and set(rows.filter(kind="central")["acting"]) == {
        "likeliest"
    }
    learning = pl.read_csv(tmp_path / "tables" / "learning.csv")
    assert learning["learns"].unique().len() == 5 and set(learning["load"]) == {50, 90, None}
    for name in ("fig2-global", "fig3-local", "learning-50", "learning-90", "growth", "fig4-3x1"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 1000


def test_a_shape_with_unfinished_runs_is_not_forgotten() -> None:
    cells = {f"rules/{shape}/50": _rules(2.0) for shape in ("3x1", "2x1")} | {
        "team/3x1/0": _team(None),
        "team/2x1/0": _team(2.02),
    }
    scale = replace(recipe.SCALES["smoke"], shapes=((3, 1), (2, 1)), loads=(50,))
    worst = next(claim for claim in claims_of(scale, cells) if claim.id == "r4.worst_against_best_heuristic")
    assert worst.ours == pytest.approx(0.01) and worst.meets_aim is False
    assert worst.note.endswith("not among them, as runs did not finish: 3x1.50")


def test_learning_from_nothing_is_told_by_kind(tmp_path: Path) -> None:
    def cell(slowdown: float, *judged: float | None) -> dict[str, Any]:
        looks = [[1000 * k, value] for k, value in enumerate(judged)]
        both = {how: {"slowdown": [slowdown, slowdown]} for how in ("likeliest", "sampled")}
        return {"50": both, "judged": looks, "kept": 0}

    rules = {rule: {"slowdown": [2.0, 2.0]} for rule in ("sjf", "packer", "tetris", "tetris-normalised", "random")}
    cells = {
        "rules/3x1/50": rules,
        "nothing-50/3x1/0": cell(2.02, 1.5, 1.04, 1.1),
        "nothing-50/3x1/1": cell(2.02, 1.5, 1.2, 1.0),
        "nothing-local-50/3x1/0": cell(2.2, 1.5, 1.4, 1.3),
        "nothing-local-50/3x1/1": cell(2.2, 1.5, 1.4, 1.05),
        "nothing-shared-50/3x1/0": cell(2.2, None, 1.4, None),
        "nothing-shared-50/3x1/1": cell(2.2, 1.5, 1.4, 1.2),
    }
    found = {claim.id: claim for claim in marl2024_learning.claims((50,), cells)}
    assert found["r4.nothing.global.50"].ours == pytest.approx(0.01) and found["r4.nothing.global.50"].meets_aim
    assert found["r4.nothing.local.50"].ours == pytest.approx(0.1) and found["r4.nothing.local.50"].meets_aim is False
    assert found["r4.nothing.local_vs_global.50"].ours == pytest.approx(2.2 / 2.02 - 1)
    assert found["r4.nothing.global.50.sampled"].ours == pytest.approx(0.01)
    assert found["r4.nothing.early.global.50"].ours == 1.5  # of three looks until 2000 decisions the last one until 400
    assert (
        found["r4.nothing.decisions.global.50"].ours == 1500
        and "1000, 2000" in found["r4.nothing.decisions.global.50"].note
    )
    late = found["r4.nothing.decisions.local.50"]
    assert late.ours is None and "2000 (1 never)" in late.note  # a seed that came nowhere near
    idle = found["r4.nothing.early.shared.50"]
    assert idle.ours is None and "1.50, does not end" in idle.note  # runs that do not end are told, not left out
    rows = [
        ("nothing-90", "3x1", seed, step, agent, -2.0 + agent)
        for seed in (0, 1)
        for step in (0, 1000)
        for agent in (0, 1)
    ]
    curve = pl.DataFrame(rows, schema=["kind", "shape", "seed", "step", "agent", "value"], orient="row")
    (tmp_path / "figures").mkdir()
    marl2024_learning.write_figures(tmp_path, curve, marl2024_learning.judged_table(cells))
    assert sorted(path.name for path in (tmp_path / "figures").glob("*.png")) == ["fig2-global.png", "learning-50.png"]
