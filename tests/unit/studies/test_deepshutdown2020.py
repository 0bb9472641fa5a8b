"""The study deepshutdown2020 at its smallest, on a generated cluster and, where they are at hand, on the author's days."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from escala.agents.presets import ORDERED_HOLDS
from escala.envs.offreservation import OffReservationBatch
from escala.errors import EscalaError
from escala.studies import deepshutdown2020 as study
from escala.studies import deepshutdown2020_headroom as room
from escala.studies import deepshutdown2020_inputs as inputs
from escala.studies.days import played, simulated

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
    if inputs.AUTHOR in names:
        share = claims["r3.headroom.agent.g5k"]
        assert share["episodes"] == 8 and share["ours"] <= 1 and (found / "figures" / "headroom-g5k.png").exists()
    frontier = pl.read_csv(found / "tables" / "frontier.csv")
    on_line = frontier.filter(pl.col("policy").is_in(["timeout:0", "hold:0.5"]) & (pl.col("input") == "orion"))
    assert on_line["against_hold"].min() > -1e-9  # no rule is below its own frontier
    shown = set(frontier.filter(pl.col("input") == "orion")["policy"]) & set(changes)
    assert {"hold:0.25:if-busy", "hold:0.5:1200", "hold:0.25:if-busy:1200", "arrivals-known", "hold:0.25", "oracle"} <= shown
    random = pl.read_csv(found / "tables" / "table5-policies.csv").filter(pl.col("policy") == "random")["input"].to_list()
    assert random == [inputs.AUTHOR] * (inputs.AUTHOR in names)
    years = pl.read_csv(found / "tables" / "fig11-years.csv")
    assert years["input"].to_list() == ["orion", "orion"] and years["sequential"].is_between(0.2, 0.6).all() and years["error"].min() > 0.4
    for name in ("fig22-orion", "fig23-orion", "table2-logs"):
        assert (found / "tables" / f"{name}.csv").stat().st_size > 100
    for name in ("fig11", "frontier-orion", "fig22-orion", "fig23-orion"):
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


def test_headroom_of_rules_and_agents_lies_between_its_ends(tmp_path: Path, traces: Path) -> None:
    """On a few of the author's days: at T(0)'s own waits T(0) saves nothing; no share is above that of the best rule; what holds jobs
    longer could waste less. An agent whose choice is always hold(0) is T(0)."""
    source = {"name": inputs.AUTHOR, "traces": str(traces), "generated_days": 10, "most": 12}
    cells = {f"headroom/{inputs.AUTHOR}/rules": room.of_rules(source)}
    frame = {row["policy"]: row for row in room.frame(cells, inputs.AUTHOR).to_dicts()}
    assert list(frame) == list(room.SHOWN) and frame["timeout:0"]["proved"] == 0.0
    for row in frame.values():
        assert row["days"] == 12 and row["bound_vs_t0"] < row["best_rule_vs_t0"] <= row["waste_vs_t0"]
        assert row["of_best_rule"] is None or row["proved"] <= row["of_best_rule"] <= 1 + 1e-9
    assert frame["hold:0.5"]["bound_vs_t0"] < frame["hold:0.1"]["bound_vs_t0"] < frame["timeout:0"]["bound_vs_t0"]
    claims = {claim.id: claim for claim in room.claims(cells, inputs.AUTHOR)}
    assert claims["r3.headroom.hold0.25.g5k"].ours == pytest.approx(frame["hold:0.25"]["proved"])
    assert room.claims({}, inputs.AUTHOR) == []  # a folder of before

    one = inputs.days(**source)
    rules = {name: simulated(one.test, one.platform, "saf", name, "drain") for name in ("timeout:0", "hold:0.25")}
    batch = OffReservationBatch(
        len(one.test), list(one.test), one.platform, action="hold", holds=ORDERED_HOLDS, window="drain", drain_days=7.0
    )
    rows, starts, _ = played(batch, lambda seen, mask: np.zeros(len(seen), np.int64), one.test)
    found = room.possible(one, (rows, starts), rules)
    assert found["waste"] == pytest.approx(found["t0"]) and None not in found["lower"]
    starts[0][0] = np.nan
    assert room.possible(one, (rows, starts), rules)["lower"][0] is None


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        study.run("huge", tmp_path)


def test_without_traces_only_the_generated_clusters_are_left() -> None:
    assert inputs.names(None) == list(inputs.GENERATED)
    with pytest.raises(EscalaError, match="ESCALA_TRACES"):
        inputs.days("kth", None, 10, None)
