"""The study grid2019 at its smallest scale: what it writes, that it resumes, and that it refuses a folder of other
settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.envs.slots.options import options_of
from escala.errors import EscalaError
from escala.studies.grid2019 import cells as work
from escala.studies.grid2019 import recipe
from escala.studies.grid2019.printed import pass_claim
from escala.studies.grid2019.published import folder_of_author
from escala.studies.lab.cells import Cell, run_cells, spent
from escala.studies.lab.claims import read_rows


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("grid2019")
    recipe.run("smoke", out, jobs=2)
    return out


@pytest.mark.long
@pytest.mark.learn
def test_claims_have_all_fields_and_ids_of_their_own(found: Path) -> None:
    claims = read_rows(found)
    fields = {
        "id",
        "claim",
        "paper",
        "ours",
        "low",
        "high",
        "unit",
        "seeds",
        "episodes",
        "reproduces",
        "meets_aim",
        "note",
    }
    assert all(set(claim) == fields for claim in claims)
    ids = [claim["id"] for claim in claims]
    assert len(ids) == len(set(ids))
    assert {"r1.published.slowdown.100", "r1.published.vs_author.100", "r1.published.alone.100"} <= set(
        ids
    ) or not folder_of_author()
    fresh = ("slowdown", "vs_strict", "vs_holdback", "vs_holdback_end", "headroom")
    assert {f"r1.fresh.{what}.100" for what in fresh} | {"r1.fresh.worst_load"} <= set(ids)
    assert {
        "r1.all.slowdown.100",
        "r1.ten.slowdown.100",
        "r1.rollout.headroom.100",
        "r1.variant.headroom.190.50.clip10",
    } <= set(ids)
    if folder_of_author():
        assert {"r1.published.printed.100", "r1.steps_to_pass_sjf.100"} <= set(ids)


@pytest.mark.long
@pytest.mark.learn
def test_tables_of_fresh_lists_agree(found: Path) -> None:
    table = pl.read_csv(found / "tables" / "fresh.csv")
    assert {"load", "policy", "mean_slowdown", "makespan_s", "mean_turnaround_s", "mean_wait_s", "unfinished"} <= set(
        table.columns
    )
    finished = table.filter(pl.col("unfinished") == 0)
    for _, same in finished.group_by("load"):
        runtime = same["mean_turnaround_s"] - same["mean_wait_s"]
        assert runtime.max() - runtime.min() < 1e-4  # every policy is judged on the same jobs, all of them
    other = pl.read_csv(found / "tables" / "fresh_other.csv", infer_schema_length=None)
    assert other["metric"].to_list() == ["makespan_s", "mean_turnaround_s", "mean_wait_s"] * 2 and other[
        "load"
    ].unique().sort().to_list() == [40, 100]
    for row in other.drop_nulls("change").iter_rows(named=True):
        same = table.filter((pl.col("load") == row["load"]) & (pl.col("policy") == "sjf"))
        assert row["sjf"] == pytest.approx(same[row["metric"]][0], rel=1e-4)
        assert row["change"] == pytest.approx(row["agent"] / row["sjf"] - 1, rel=1e-3, abs=1e-6)
        assert row["change_low"] <= row["change"] <= row["change_high"]


@pytest.mark.long
@pytest.mark.learn
def test_figures_agents_and_manifest(found: Path) -> None:
    for name in ("fig2-fresh", "fig3-fresh", "fig5"):
        assert (found / "figures" / f"{name}.png").stat().st_size > 1000 and (
            found / "figures" / f"{name}.svg"
        ).exists()
    if folder_of_author():
        assert (found / "figures" / "fig4.png").exists()
        curve = pl.read_csv(found / "tables" / "curve.csv")
        assert curve.filter(line="sampled")["step"].to_list() == [1536, 3072] and curve.height == 4
        # the last look is the agent itself
        printed = pl.read_csv(found / "tables" / "published.csv").filter(policy="printed setting")
        last = curve.filter(line="sampled", step=3072)
        assert (printed["mean_slowdown"][0], printed["unfinished"][0]) == (
            pytest.approx(last["value"][0], rel=1e-5),
            last["unfinished"][0],
        )
    shown = pl.read_csv(found / "tables" / "fig5.csv")
    looks = shown["look"].unique().sort().to_list()
    assert looks == list(range(looks[0], looks[0] + 4)) and shown["time"].is_sorted()
    manifest = json.loads((found / "manifest.json").read_text())
    assert manifest["study"] == "grid2019" and manifest["command"]
    assert (found / "agents" / "fresh-all-0" / "weights.pt").exists()


@pytest.mark.long
@pytest.mark.learn
def test_heuristics_equal_the_authors_table(found: Path, traces: Path) -> None:
    claims = {claim["id"]: claim for claim in read_rows(found)}
    assert claims["r1.published.heuristics"]["ours"] == 0.0 and claims["r1.published.heuristics"]["meets_aim"] is True


def _square(x: int, log: str) -> dict[str, Any]:
    with open(log, "a") as file:
        file.write(f"{x}\n")
    return {"square": x * x}


def test_cells_are_done_once_and_only_with_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    cells = [Cell(f"a/{x}", _square, {"x": x, "log": str(log)}) for x in range(3)]
    assert run_cells(tmp_path, cells[:2], {"scale": 1}, 1) == {"a/0": {"square": 0}, "a/1": {"square": 1}}
    assert run_cells(tmp_path, cells, {"scale": 1}, 1)["a/2"] == {"square": 4}
    assert log.read_text().split() == ["0", "1", "2"]
    seconds = json.loads((tmp_path / "cells" / "seconds.json").read_text())
    assert set(seconds) == {"a/0", "a/1", "a/2"}
    assert spent(tmp_path) == sum(seconds.values()) >= 0.0
    with pytest.raises(EscalaError, match="other settings"):
        run_cells(tmp_path, cells, {"scale": 2}, 1)
    monkeypatch.setattr("escala.studies.lab.cells.source_digest", lambda: "changed")
    with pytest.raises(EscalaError, match="another version of the program"):
        run_cells(tmp_path, cells, {"scale": 1}, 1)


@pytest.mark.long
@pytest.mark.learn
def test_a_study_tells_how_long_it_computed(found: Path) -> None:
    """Processor seconds of all cells, in the manifest."""
    assert json.loads((found / "manifest.json").read_text())["processor_s"] == round(spent(found), 1) > 1.0


def test_steps_until_sjf_is_passed_seed_by_seed() -> None:
    """The first look whose episodes all end below SJF, of each seed; a later one that left episodes unfinished is
    told."""

    def look(steps: int, *slowdown: float | None) -> dict[str, Any]:
        return {"steps": steps, "sampled": {"slowdown": list(slowdown)}}

    cells: dict[str, Any] = {"published/rules": {"100": {"sjf": {"slowdown": [3.0]}}}}
    runs = {
        10: [(4.0, 4.0), (2.0, 3.0), (4.0, 2.5)],
        20: [(2.9, 2.9), (1.0, None), (3.0, 3.0)],
        30: [(1.0, 1.0), (1.0, 1.0), (2.9, 3.0)],
    }
    for seed in range(3):
        cells[f"printed/100/{seed}"] = {"looks": [look(budget + 2, *of[seed]) for budget, of in runs.items()]}
    scale = replace(recipe.SCALES["smoke"], curve=(20, 10, 30), printed_seeds=3, episodes=2)
    found = pass_claim(scale, cells)
    assert (found.ours, found.low, found.high, found.seeds, found.meets_aim) == (22.0, 12.0, 32.0, 3, None)
    assert "of these left episodes unfinished: 22 (seed 1);" in found.note
    late = {f"printed/100/{seed}": {"looks": [look(12, 4.0, 4.0)]} for seed in range(3)}
    none = pass_claim(scale, cells | late)
    assert none.ours is None and none.low is None and "unfinished" not in none.note


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        recipe.run("huge", tmp_path)


def test_larger_steps_are_tried_where_a_plan_is_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of hand-made quality: the better of both is kept in the agent's own folder, and nothing is tried where the
    first follows its plan. Ended before the cell was written, the same call gives the same again."""
    quality: dict[float, list[float | None]] = {}
    folders: dict[str, Any] = {}
    made: list[tuple[str | None, float]] = []

    class Hand:
        def __init__(self, rate: float) -> None:
            self.manifest, self.quality = {"learn": {"learning_rate": rate}}, quality[rate]

        def save(self, folder: str) -> None:
            folders[folder] = self

    def trained(steps: int, seed: int, *, keep: str | None, learn: dict[str, float] | None = None, **given: Any) -> Any:
        rate = 3e-5 if learn is None else learn["learning_rate"]
        if keep not in folders:
            made.append((keep, rate))
            folders[keep or ""] = Hand(rate)
        return folders[keep or ""]

    monkeypatch.setattr(work, "_trained", trained)
    monkeypatch.setattr(work, "judge", lambda agent, lists, seed: {"sampled": {"slowdown": agent.quality}})
    lists = options_of({"lists": 1, "lists_seed": 3, "window": 5}).job_lists()
    usual, larger = ("agents/x", 3e-5), ("agents/x-larger", work.LARGER)
    for first, second, trainings, longer in (
        ([2.1] * 2, None, [usual], 1.0),
        ([2.5, 2.5], [2.3, 2.3], [usual, larger], 10.0),
        ([2.5, 2.5], [2.6, 2.6], [usual, larger], 1.0),
        ([2.5, 2.5], [2.0, None], [usual, larger], 1.0),  # a run that did not end
    ):
        quality.update({3e-5: first, work.LARGER: second or []})
        folders.clear(), made.clear()
        for _ in range(2):
            agent, found = work._planned({"planned": 2.0}, lists, 10, 0, "agents/x")
            assert agent.quality == (first if longer == 1.0 else second) and found == pytest.approx(longer)
            assert folders["agents/x"] is agent and made == trainings
    made.clear(), folders.clear()
    quality[3e-5] = [9.0, 9.0]
    assert work._planned({"planned": 2.0}, lists, 0, 0, None)[1] == 1.0 and len(made) == 1  # imitation alone
