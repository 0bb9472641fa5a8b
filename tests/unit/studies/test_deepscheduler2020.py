"""The study deepscheduler2020 at its smallest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from escala.errors import EscalaError
from escala.studies.deepscheduler2020 import cells as work
from escala.studies.deepscheduler2020 import recipe as study
from escala.studies.deepscheduler2020 import report
from escala.studies.lab.claims import read_rows
from tests.unit.envs.days import workload

TINY = replace(study.SCALES["smoke"], inputs=("orion",), most=2, days_each=2, other_days_each=2)


@pytest.mark.slow
@pytest.mark.learn
def test_claims_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(study.SCALES, "smoke", TINY)
    told = study.run("smoke", tmp_path, jobs=1)
    ids = {claim["id"] for claim in told["claims"]}
    keys = ("waste_vs_easy", "waste_vs_saf", "wait_vs_easy", "wait_vs_first_fit")
    assert {f"r3.{key}.orion{end}" for key in keys for end in ("", ".drain")} <= ids
    claims = {claim["id"]: claim for claim in read_rows(tmp_path)}
    table = pl.read_csv(tmp_path / "tables" / "policies.csv").filter(
        (pl.col("window") == "cut") & (pl.col("policy") == "agent")
    )
    assert claims["r3.waste_vs_easy.orion"]["ours"] == pytest.approx(table["waste_vs_easy"][0], abs=1e-6)
    for name in ("fig21-orion", "fig25-orion", "fig26-orion"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 1000 and (
            tmp_path / "figures" / f"{name}.svg"
        ).exists()
    assert (tmp_path / "figures" / "frontier-orion.png").stat().st_size > 1000
    assert (tmp_path / "agents" / "orion-0.95-0" / "weights.pt").exists()


def column(waste: float, wait: float) -> dict[str, list[float]]:
    """Three equal days of ten jobs."""
    given = {
        "waste_j": waste, "wait_s": wait, "jobs": 10.0, "energy_j": 100.0 + waste, "span_s": 50.0, "transitions": 2.0,
        "stretch": 1.0, "unstarted": 1.0, "pp_slowdown": 12.0, "delay_s": 0.0, "slowdown": 13.0,
    }  # fmt: skip
    return {name: [value] * 3 for name, value in given.items()}


def hand_made(**agents: tuple[float, float]) -> dict[str, Any]:
    """Cells of one input: schedulers waste 100 and wait 100 a day; the agents of each limit as given (waste, wait);
    three rules."""
    windows = ("cut", "drain")
    fixed = {
        policy: column(100.0, 100.0) for policy in ("first-fit", "easy", "saf", "sjf-fit", "easy-sjf", "conservative")
    }
    cells: dict[str, Any] = {}
    for part in ("validation", "test"):
        cells[f"fixed/orion/{part}"] = dict.fromkeys(windows, fixed) | {"asleep_w": 1.0}
    some = {"quick": (110.0, 80.0), "slow": (70.0, 150.0), "between": (90.0, 100.0)}
    cells["rules/orion"] = {
        name: {
            part: {window: {"waste_j": [waste] * 3, "wait_s": [wait] * 3} for window in windows}
            for part in ("validation", "test")
        }
        for name, (waste, wait) in some.items()
    }
    for limit, (waste, wait) in agents.items():
        both = {window: {how: column(waste, wait) for how in ("sampled", "likeliest")} for window in windows}
        cells[f"search/orion/{limit}/0"] = {"validation": both, "test": both}
        ruled = {window: {how: column(*some["between"]) for how in ("sampled", "likeliest")} for window in windows}
        cells[f"rule/orion/{limit}"] = {"validation": ruled, "test": ruled, "rule": "between"}
    return cells


def test_the_limit_that_counts_wastes_least_of_those_that_wait_no_longer_than_first_fit() -> None:
    cells = hand_made(**{"0.9": (95.0, 85.0), "0.95": (80.0, 99.0), "1": (60.0, 101.0), "0.95x3": (99.0, 70.0)})
    assert report.limits(cells, "orion") == ["0.9", "0.95", "0.95x3", "1"]
    best, over = report.chosen_limit(cells, "orion")
    assert best == "0.95" and over == pytest.approx(-0.01)
    best, over = report.chosen_limit(hand_made(**{"0.9": (60.0, 120.0), "0.95": (50.0, 110.0)}), "orion")
    assert best == "0.95" and over == pytest.approx(0.1)  # none keeps it: the one that waits least
    single = report.seeds_frame(cells, ["orion"]).filter(
        (pl.col("part") == "test") & (pl.col("window") == "drain") & (pl.col("limit") == 1.0)
    )
    assert single["waste_vs_easy"][0] == pytest.approx(-0.4) and single["wait_vs_first_fit"][0] == pytest.approx(0.01)
    frame = report.limits_frame(cells, ["orion"]).filter((pl.col("part") == "test") & (pl.col("window") == "cut"))
    assert frame.select("limit", "strata", "chosen").rows() == [
        (0.9, 1, False),
        (0.95, 1, True),
        (0.95, 3, False),
        (1.0, 1, False),
    ]


def test_agents_are_compared_with_the_rule_they_begin_with_and_with_all_that_wait_no_longer() -> None:
    cells = hand_made(**{"0.95": (80.0, 99.0), "0.95x3": (99.0, 70.0)})
    found = {claim.id: claim for claim in report._claims(cells, "orion", "drain")}
    assert found["r3.waste_vs_rule.orion.drain"].ours == pytest.approx(80 / 90 - 1)
    assert found["r3.wait_vs_rule.orion.drain"].ours == pytest.approx(-0.01)
    assert found["r3.rule.waste_vs_easy.orion.drain"].ours == pytest.approx(-0.1)
    line = 110.0 + (90.0 - 110.0) * (99.0 - 80.0) / (100.0 - 80.0)  # between the two rules next to its wait
    assert found["r3.waste_vs_rules_same_wait.orion.drain"].ours == pytest.approx(80.0 / line - 1)
    assert (
        found["r3.unstarted.agent.orion.drain"].ours == pytest.approx(0.1)
        and found["r3.unstarted.agent.orion.drain"].unit == "share"
    )
    table = report.rules_frame(cells, ["orion"]).filter((pl.col("part") == "test") & (pl.col("window") == "cut"))
    assert table.filter("begins")["policy"].to_list() == ["between"]
    rows = {row["policy"]: (row["waste_vs_easy"], row["wait_vs_first_fit"]) for row in table.iter_rows(named=True)}
    assert rows["slow"] == pytest.approx((-0.3, 0.5)) and rows["agent, 0.95x3"] == pytest.approx((-0.01, -0.3))


def test_slowdowns_are_told_run_by_run_and_a_job_that_never_started_waits_until_midnight() -> None:
    day = workload((0.0, 100.0, 200.0, 1), (86_000.0, 400.0, 300.0, 1))
    told = work._slowdowns([day], [np.array([50.0, 86_000.0]), np.array([0.0, np.nan])])
    assert told == [[1.5, 1.0], [1.0, round(1.0 + 400.0 / 300.0, 4)]]


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        study.run("huge", tmp_path)
