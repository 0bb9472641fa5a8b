"""The study deepshutdown2020 at its smallest, on a generated cluster and, where they are at hand, on the author's
days."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from escala.agents.presets import ORDERED_HOLDS
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.errors import EscalaError
from escala.studies.deepshutdown2020 import figures as drawing
from escala.studies.deepshutdown2020 import headroom as room
from escala.studies.deepshutdown2020 import paper, report, returns
from escala.studies.deepshutdown2020 import recipe as study
from escala.studies.deepshutdown2020.cells import as_published
from escala.studies.deepshutdown2020.claims import all_claims
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.claims import read_rows
from escala.studies.lab.days import played, simulated

KEYS = (
    "waste_vs_t0", "waste_vs_t300", "transitions_vs_t0", "stretch", "stretch_minus_t0", "waste_vs_oracle",
    "waste_vs_hold_same_stretch",
    "hold25_vs_t0", "hold25_if_busy_vs_t0", "arrivals_known_vs_t0", "return_r3_minus_t0", "return_r3_minus_constants",
)  # fmt: skip


DAYS = 2  # of the author's, judged


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The study, with half the days of its scale."""
    out = tmp_path_factory.mktemp("deepshutdown2020")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            study.SCALES, "smoke", replace(study.SCALES["smoke"], most=DAYS, days_each=DAYS, other_days_each=DAYS)
        )
        study.run("smoke", out, jobs=1)
        yield out


@pytest.mark.slow
@pytest.mark.learn
def test_claims_tables_figures_and_agents(found: Path) -> None:
    claims = {claim["id"]: claim for claim in read_rows(found)}
    names = {"orion"} | ({inputs.AUTHOR} if inputs.folder_of_traces() is not None else set())
    assert {f"r3.{key}.{name}" for key in KEYS for name in names} <= set(claims)
    t0 = pl.read_csv(found / "tables" / "table5-policies.csv").filter(
        (pl.col("input") == "orion") & (pl.col("window") == "cut")
    )
    changes = dict(t0.select("policy", "waste_vs_t0").iter_rows())
    assert changes["timeout:0"] == 0.0
    assert claims["r3.waste_vs_t0.orion"]["ours"] == pytest.approx(changes["agent"], abs=1e-6)
    assert claims["r3.waste_vs_hold_same_stretch.orion"]["episodes"] > 0
    if inputs.AUTHOR in names:
        assert {
            f"r3.price2.waste_vs_hold_{key}.g5k{end}" for key in ("same_stretch", "mixtures") for end in ("", ".drain")
        } <= set(claims)
        share = claims["r3.headroom.agent.g5k"]
        assert share["episodes"] == DAYS and share["ours"] <= 1 and (found / "figures" / "headroom-g5k.png").exists()
    frontier = pl.read_csv(found / "tables" / "frontier.csv")
    on_line = frontier.filter(pl.col("policy").is_in(["timeout:0", "hold:0.5"]) & (pl.col("input") == "orion"))
    assert on_line["against_hold"].min() > -1e-9  # no rule is below its own frontier
    shown = set(frontier.filter(pl.col("input") == "orion")["policy"]) & set(changes)
    assert {
        "hold:0.25:if-busy",
        "hold:0.5:1200",
        "hold:0.25:if-busy:1200",
        "arrivals-known",
        "hold:0.25",
        "oracle",
    } <= shown
    random = (
        pl.read_csv(found / "tables" / "table5-policies.csv").filter(pl.col("policy") == "random")["input"].to_list()
    )
    assert random == [inputs.AUTHOR] * (inputs.AUTHOR in names)
    years = pl.read_csv(found / "tables" / "fig11-years.csv")
    assert (
        years["input"].to_list() == ["orion", "orion"]
        and years["sequential"].is_between(0.2, 0.6).all()
        and years["error"].min() > 0.4
    )
    for name in ("fig22-orion", "fig23-orion", "table2-logs"):
        assert (found / "tables" / f"{name}.csv").stat().st_size > 100
    for name in ("fig11", "frontier-orion", "fig22-orion", "fig23-orion"):
        assert (found / "figures" / f"{name}.png").stat().st_size > 1000 and (
            found / "figures" / f"{name}.svg"
        ).exists()
    assert (found / "agents" / "orion-1-0" / "weights.pt").exists()
    assert json.loads((found / "manifest.json").read_text())["study"] == study.NAME


@pytest.mark.slow
@pytest.mark.learn
def test_what_is_done_is_not_done_again(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_rows(found)
    monkeypatch.setattr(study.work, "searched", None)
    study.run("smoke", found, jobs=1)
    assert read_rows(found) == before
    monkeypatch.setitem(study.SCALES, "smoke", replace(study.SCALES["smoke"], seeds=2))
    with pytest.raises(EscalaError, match="other settings"):
        study.run("smoke", found, jobs=1)


@pytest.mark.slow
@pytest.mark.learn
def test_every_learner_stands_on_the_frontier_among_the_claims_and_in_figure_24(
    found: Path, traces: Path, tmp_path: Path
) -> None:
    """MaskablePPO's agents, here the searched one under their names: the same figures as the searched one's, by either
    way."""
    cells = {
        cell.name: json.loads((found / "cells" / f"{cell.name.replace('/', '_')}.json").read_text())
        for cell in study.cells_of(study.SCALES["smoke"], inputs.folder_of_traces(), found)
    }
    agent = cells["search/g5k/1/0"]
    cells["ppo/g5k/ordered/0"] = agent | {"curve": [[10, -15.0], [20, -14.0]]}
    cells["ppo/g5k/printed/0"] = agent | {"curve": [[10, -30.0], [20, -20.0]], "cost": 0.0}
    frontier = report.frontier_frame(cells, ["g5k"]).filter(pl.col("window") == "drain")
    told = {
        row["policy"]: (row["stretch"], row["waste_vs_t0"], row["against_hold"])
        for row in frontier.iter_rows(named=True)
    }
    assert told["MaskablePPO, ordered"] == told["MaskablePPO, printed"] == told["agent, waiting at 1 prices"]
    assert told["agent, waiting at 2 prices"][0] > 0
    claims = {claim.id: claim.ours for claim in all_claims(cells)}
    for preset in ("ordered", "printed"):
        for key in ("waste_vs_t0", "stretch_minus_t0", "waste_vs_hold_same_stretch", "waste_vs_hold_mixtures"):
            assert claims[f"r3.{preset}.{key}.g5k"] == pytest.approx(claims[f"r3.{key}.g5k"])
        for key in ("return_r3_minus_t0.g5k", "return_r3_minus_constants.g5k.cut"):
            assert claims[f"r3.{preset}.{key}"] == pytest.approx(claims[f"r3.{key}"])
    table = returns.frame(cells, ["g5k"]).filter(pl.col("window") == "cut")
    by_r3 = dict(table.select("policy", "return_r3").iter_rows())
    assert claims["r3.return_r3_minus_t0.g5k.cut"] == pytest.approx(by_r3["agent"] - by_r3["hold:0"])
    best = max(value for policy, value in by_r3.items() if policy.startswith("hold:"))
    assert claims["r3.return_r3_minus_constants.g5k.cut"] == pytest.approx(by_r3["agent"] - best)
    (tmp_path / "figures").mkdir()
    drawing._curve(cells, "g5k", tmp_path)
    levels = pl.read_csv(tmp_path / "tables" / "fig24-levels-g5k.csv")
    assert levels["learner"].unique(maintain_order=True).to_list() == ["search", "ordered", "printed"]
    days = cells["levels/g5k"]["cut"]["hold:0"]  # 14 nodes of 12 cores that idle at 95 W
    by_hand = -np.mean(
        [w / (60 * 14 * 95) + late / 168 for w, late in zip(days["waste_j"][::4], days["late"][::4], strict=True)]
    )
    assert levels.filter(learner="printed", policy="hold:0")["value"].item() == pytest.approx(by_hand, abs=1e-5)
    known = cells["chance/g5k"]["oracle"]
    by_hand = -np.mean(
        [w / (60 * 14 * 95) + late / 168 for w, late in zip(known["waste_j"][::4], known["late"][::4], strict=True)]
    )
    assert levels.filter(learner="printed", policy="oracle")["value"].item() == pytest.approx(by_hand, abs=1e-5)
    assert (
        sum(known["waste_j"]) != sum(days["waste_j"]) and levels.filter(learner="printed", policy="random").height == 1
    )
    assert pl.read_csv(tmp_path / "tables" / "fig24-g5k.csv").filter(learner="printed")["value"].to_list() == [
        -30.0,
        -20.0,
    ]


def test_a_day_returns_what_the_measures_say(traces: Path) -> None:
    """R3's own reward and that of a search, summed minute by minute in the environment, and from a day's columns."""
    source = {"name": inputs.AUTHOR, "traces": str(traces), "generated_days": 10, "most": 6}
    one = inputs.days(**source)
    cells = {"about/g5k": {"nodes": one.platform.n_nodes, "cores": one.platform.total_cores}}
    random = np.random.default_rng(0)
    for measure, options in (
        (returns.printed(cells, "g5k"), {"action": "count"}),
        (returns.priced(cells, "g5k", 0.2), {"action": "hold", "tau": 1e6, "stretch_cost": 0.2, "window": "drain"}),
    ):
        batch = OffReservationBatch(len(one.validation), list(one.validation), one.platform, **options)
        rows, _, _ = played(batch, lambda seen, mask: (random.random(mask.shape) * mask).argmax(axis=1), one.validation)
        columns = {name: [row[name] for row in rows] for name in ("waste_j", "late", "waited")}
        assert measure(columns) == pytest.approx([row["return"] for row in rows], rel=1e-6, abs=1e-6)
        assert min(columns["waited"]) >= 0 and max(measure(columns)) < 0


def test_the_printed_table_5_is_what_the_text_beside_it_says() -> None:
    """Waste of DS against T(0) -2.9 to -30 %, against T(5) -40.6 to -56.5 %, switches -11.6 to -33.8 % against T(0);
    and with T(0) every switch costs 214 W min."""
    of = {quantity: 4 * k for k, quantity in enumerate(paper.QUANTITIES)}
    clusters = sorted({cluster for cluster, _ in paper.TABLE5})
    assert len(paper.TABLE5) == 20 and {len(row) for row in paper.TABLE5.values()} == {16}

    def change(what: str, against: str) -> list[float]:
        return [paper.TABLE5[c, "DS"][of[what]] / paper.TABLE5[c, against][of[what]] - 1 for c in clusters]

    for what, against, least, most in (
        ("waste_Wmin", "T(0)", -0.30, -0.029), ("waste_Wmin", "T(5)", -0.565, -0.406),
        ("transitions", "T(0)", -0.338, -0.116),
    ):  # fmt: skip
        found = change(what, against)
        assert min(found) == pytest.approx(least, abs=2e-3) and max(found) == pytest.approx(most, abs=2e-3)
    for cluster in clusters:
        row = paper.TABLE5[cluster, "T(0)"]
        assert row[of["waste_Wmin"]] / row[of["transitions"]] == pytest.approx(214.0, rel=0.015)
    assert (
        paper.beside("g5k", "agent")["paper_transitions"] == 72.53
        and paper.beside("g5k", "hold:0.25")["paper_waste_vs_t0"] is None
    )
    assert set(paper.beside("kth", "agent").values()) == {None}


def test_headroom_of_rules_and_agents_lies_between_its_ends(tmp_path: Path, traces: Path) -> None:
    """On a few of the author's days: at T(0)'s own waits T(0) saves nothing; no share is above that of the best rule;
    what holds jobs longer could waste less. An agent whose choice is always hold(0) is T(0)."""
    source = {"name": inputs.AUTHOR, "traces": str(traces), "generated_days": 10, "most": 6}
    cells = {f"headroom/{inputs.AUTHOR}/rules": room.of_rules(source)}
    frame = {row["policy"]: row for row in room.frame(cells, inputs.AUTHOR).to_dicts()}
    assert list(frame) == list(room.SHOWN) and frame["timeout:0"]["proved"] == 0.0
    for row in frame.values():
        assert row["days"] == 6 and row["bound_vs_t0"] < row["best_rule_vs_t0"] <= row["waste_vs_t0"]
        assert row["of_best_rule"] is None or row["proved"] <= row["of_best_rule"] <= 1 + 1e-9
    assert frame["hold:0.5"]["bound_vs_t0"] < frame["hold:0.1"]["bound_vs_t0"] < frame["timeout:0"]["bound_vs_t0"]
    claims = {claim.id: claim for claim in room.claims(cells, inputs.AUTHOR)}
    assert claims["r3.headroom.hold0.25.g5k"].ours == pytest.approx(frame["hold:0.25"]["proved"])
    assert room.claims({}, inputs.AUTHOR) == []  # a folder of before

    one = inputs.days(**source)
    rules = {
        name: simulated(one.test, one.platform, "saf", as_published(name), "drain")
        for name in ("timeout:0", "hold:0.25")
    }
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
