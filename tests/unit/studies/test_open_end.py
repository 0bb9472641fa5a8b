"""Agents that know no end: the search is a step of the study, and chooses by lists that no test is made of."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from escala.envs.slots.state import HOLD_PILE
from escala.studies.a2c2020 import recipe as a2c2020
from escala.studies.grid2019 import cells as work
from escala.studies.grid2019 import recipe as grid2019
from escala.studies.lab import horizons, open_end
from escala.studies.lab.claims import read_rows


def _look(cost: float) -> dict[str, Any]:
    return {"steps": 10, "worst": cost, "mean": cost}


def _trained(*costs: float) -> dict[str, Any]:
    best = min(range(len(costs)), key=lambda k: costs[k])
    return {"looks": [_look(cost) for cost in costs], "chosen": best, "worst": costs[best]}


def test_no_list_is_of_two_sets() -> None:
    seeds = [
        open_end.CHOOSING,
        open_end.TAUGHT,
        horizons.VALIDATION,
        horizons.TEST,
        work.TRAINING,
        work.VALIDATION,
        work.TEST,
    ]
    assert len(set(seeds)) == len(seeds)


def test_the_agent_is_the_look_with_the_least_largest_excess() -> None:
    cells = {"open/0": _trained(0.3, 0.2), "open/1": _trained(0.1, 0.4), "open/rules/40/50": {}}
    assert open_end.chosen_seed(cells) == 1 and open_end.chosen_seed({}) is None
    table = open_end.frame(cells)
    assert table.filter("chosen").select("seed", "worst").rows() == [(1, 0.1)] and len(table) == 4


def test_a_run_that_does_not_end_is_an_excess_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, int, int]] = []

    def played(made: Any, world: str, load: float, steps: int, seed: int) -> list[float | None]:
        seen.append((load, steps, seed))
        return [2.0, None] if load == 70 else [2.0, 4.0]

    monkeypatch.setattr(horizons, "played", played)
    found = open_end.excesses(object(), "pool", [(40, 50, 2.0), (70, 50, 2.0)])
    assert found == [0.5, float("inf")]
    assert {seed for _, _, seed in seen} == {open_end.CHOOSING}


@pytest.mark.slow
@pytest.mark.learn
def test_what_did_best_of_the_looks_is_kept(tmp_path: Path) -> None:
    """A training cut short after its first cell: the same call gives the same agent from what is there."""
    import escala

    given: dict[str, Any] = {"world": "pool", "pile": HOLD_PILE, "best": [(100, 20, 2.0)], "seed": 0,
                             "budget": asdict(open_end.Budget(32_768, (1,), 1, 32, (20,), 60)),
                             "keep": str(tmp_path / "open-all-0")}  # fmt: skip
    found = open_end.learn(**given)
    assert [look["steps"] for look in found["looks"]] == [32_768, 32_768] and open_end.learn(**given) == found
    made = escala.load_agent(tmp_path / "open-all-0")
    ours = np.mean(horizons.played(made, "pool", 100, 20, seed=open_end.CHOOSING))
    assert ours / 2.0 - 1.0 == pytest.approx(found["looks"][found["chosen"]]["worst"])
    assert "arrivals_end" not in made.env_options and made.env_options["queue"] == "shortest"


def test_the_claim_is_that_of_the_chosen_agent(tmp_path: Path) -> None:
    rules = {"sjf": [2.0, 4.0], "sjf-strict": [4.0, 4.0], "hold-back": [3.0, 5.0]}
    cells = {"open/0": _trained(0.3), "open/1": _trained(0.1), "horizon/rules/40/50": rules}
    cells |= {
        f"horizon/{name}/40/50": {"slowdown": [value, value], horizons.SEEN: [1.0]}
        for name, value in (("open-all-1", 3.3), ("fresh-all-0", 9.0))
    }
    (claim,) = open_end.claims("r1", tmp_path, cells)
    assert claim.id == "r1.horizon.worst" and claim.ours == pytest.approx(0.1)
    assert (
        len(pl.read_csv(tmp_path / "tables" / "open.csv")) == 2
        and len(pl.read_csv(tmp_path / "tables" / "horizons.csv")) == 2
    )
    cells |= {
        "horizon/rules/10/50": rules,
        "horizon/open-all-1/10/50": {"slowdown": [3.009, 3.009], horizons.SEEN: [1.0]},
    }
    worst, light = open_end.claims("r1", tmp_path, cells, least=40)
    assert (
        worst == claim
        and light.id == "r1.horizon.light"
        and light.ours == pytest.approx(0.003)
        and "aim: at most 0.3 %" in light.note
    )
    cells |= {"horizon/open-10-0/10/50": {"slowdown": [3.0, 3.0], horizons.SEEN: [1.0]}}
    worst, light = open_end.claims("r1", tmp_path, cells, least=40)
    assert worst == claim and light.ours == pytest.approx(0.0) and "light load" in light.claim
    assert (
        open_end.claims("x", tmp_path, {name: cell for name, cell in cells.items() if not name.startswith("open/")})
        == []
    )


@pytest.mark.parametrize(
    "study, claimed, recipe", [("grid2019", "r1", grid2019), ("a2c2020", "r2", a2c2020)], ids=["grid2019", "a2c2020"]
)
def test_the_kept_agent_is_the_chosen_one_of_its_table(study: str, claimed: str, recipe: Any) -> None:
    kept = Path(__file__).resolve().parents[3] / "docs" / "studies" / study
    looks = pl.read_csv(kept / "tables" / "open.csv")
    best = looks.row(int(looks["worst"].arg_min() or 0), named=True)
    assert best["chosen"] and looks["chosen"].sum() == 1
    made = json.loads((kept / "agents" / open_end.name_of(best["seed"]) / "manifest.json").read_text(encoding="utf-8"))
    assert made["steps_done"] == best["decisions"] and made["seed"] == best["seed"]
    table = pl.read_csv(kept / "tables" / "horizons.csv", schema_overrides={"horizon": pl.String})
    ours = table.filter(agent=open_end.name_of(best["seed"]))
    learnt = [float(load) for load in recipe.open_world(recipe.SCALES["short"]).loads]
    usual, light = ours.filter(pl.col("load").is_in(learnt)), ours.filter(~pl.col("load").is_in(learnt))
    assert len(usual) == len(learnt) * (len(horizons.HORIZONS) + 1)
    judged = [10.0] * (len(horizons.HORIZONS) + 1) if study == "grid2019" else []
    own = table.filter(agent=open_end.light_name(10))
    assert own["load"].to_list() == judged, "and so does the agent of that load"
    assert light["load"].to_list() == judged, "R1's aim at 10 % is judged, too"
    claims = {row["id"]: row["ours"] for row in read_rows(kept)}
    assert claims[f"{claimed}.horizon.worst"] == pytest.approx(usual["excess"].max(), abs=1e-6)
    assert claims.get(f"{claimed}.horizon.light") == (
        pytest.approx(own["excess"].max(), abs=1e-6) if len(own) else None
    )
