"""The study deepshutdown2020 at its smallest, on a generated cluster and, where they are at hand, on the author's days."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.studies import deepshutdown2020 as study
from escala.studies import deepshutdown2020_inputs as inputs

KEYS = (
    "waste_vs_t0", "waste_vs_t300", "transitions_vs_t0", "stretch", "stretch_minus_t0", "waste_vs_oracle", "waste_vs_hold_same_stretch",
    "hold25_vs_t0", "hold25_if_busy_vs_t0", "arrivals_known_vs_t0",
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("deepshutdown2020")
    study.run("smoke", out, jobs=1)
    return out


@pytest.mark.slow
@pytest.mark.learn
def test_claims_tables_figures_and_agents(found: Path) -> None:
    claims = {claim["id"]: claim for claim in json.loads((found / "claims.json").read_text())}
    names = {"orion"} | ({inputs.AUTHOR} if inputs.folder_of_traces() is not None else set())
    assert {f"r3.{key}.{name}" for key in KEYS for name in names} <= set(claims)
    t0 = pl.read_csv(found / "tables" / "table5-policies.csv").filter((pl.col("input") == "orion") & (pl.col("window") == "cut"))
    changes = dict(t0.select("policy", "waste_vs_t0").iter_rows())
    assert changes["timeout:0"] == 0.0
    assert claims["r3.waste_vs_t0.orion"]["ours"] == pytest.approx(changes["agent"], abs=1e-6)
    assert claims["r3.waste_vs_hold_same_stretch.orion"]["episodes"] > 0
    frontier = pl.read_csv(found / "tables" / "frontier.csv")
    on_line = frontier.filter(pl.col("policy").is_in(["timeout:0", "hold:0.5"]) & (pl.col("input") == "orion"))
    assert on_line["against_hold"].min() > -1e-9  # no rule is below its own frontier
    shown = set(frontier.filter(pl.col("input") == "orion")["policy"]) & set(changes)
    assert {"hold:0.25:if-busy", "hold:0.5:1200", "hold:0.25:if-busy:1200", "arrivals-known", "hold:0.25", "oracle"} <= shown
    random = pl.read_csv(found / "tables" / "table5-policies.csv").filter(pl.col("policy") == "random")["input"].to_list()
    assert random == [inputs.AUTHOR] * (inputs.AUTHOR in names)
    for name in ("frontier-orion", "fig22-orion", "fig23-orion"):
        assert (found / "figures" / f"{name}.png").stat().st_size > 1000 and (found / "figures" / f"{name}.svg").exists()
    assert (found / "agents" / "orion-1-0" / "weights.pt").exists()
    assert json.loads((found / "manifest.json").read_text())["study"] == study.NAME


@pytest.mark.slow
@pytest.mark.learn
def test_what_is_done_is_not_done_again(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads((found / "claims.json").read_text())
    monkeypatch.setattr(study.work, "searched", None)
    study.run("smoke", found, jobs=1)
    assert json.loads((found / "claims.json").read_text()) == before
    monkeypatch.setitem(study.SCALES, "smoke", replace(study.SCALES["smoke"], seeds=2))
    with pytest.raises(EscalaError, match="other settings"):
        study.run("smoke", found, jobs=1)


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        study.run("huge", tmp_path)


def test_without_traces_only_the_generated_clusters_are_left() -> None:
    assert inputs.names(None) == list(inputs.GENERATED)
    with pytest.raises(EscalaError, match="ESCALA_TRACES"):
        inputs.days("kth", None, 10, None)
