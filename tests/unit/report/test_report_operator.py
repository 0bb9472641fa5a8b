"""The operator's part of the page: a year's energy, money and CO2, by hand."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.metrics.energy import to_one_end
from escala.report import JudgedDays, render
from escala.report.operator import OF_DAYS, STATES, energy_table, tables_of_days, year, year_table

DAY_S = 86400.0


def summary(energy_j: float, window_s: float = DAY_S) -> dict[str, Any]:
    states = {f"{state}_j": energy_j / 5 for state in STATES}
    return {**states, "energy_j": energy_j, "waste_j": 3 * energy_j / 5, "transitions": 4, "window_s": window_s,
            "mean_wait_s": 60.0, "mean_stretch": 0.1, "mean_delay_s": 0.0}  # fmt: skip


def test_a_year_by_hand() -> None:
    """A day of 36 MJ is 10 kWh, a year of them 3652.5 kWh; a policy with 27 MJ for the same jobs saves a quarter."""
    reference, other = summary(36e6), summary(27e6, window_s=2 * DAY_S)
    told = year(other, reference, price=0.2, carbon=50.0)
    assert told["kwh"] == pytest.approx(2739.375)  # by the reference's span: taking longer is no saving
    assert told["saved_kwh"] == pytest.approx(913.125)
    assert told["saved_money"] == pytest.approx(182.625)
    assert told["saved_co2_kg"] == pytest.approx(45.65625)
    assert year(reference, reference)["saved_kwh"] == 0.0
    assert math.isnan(year(other, summary(1.0, window_s=0.0))["kwh"])


def test_tables_hold_what_was_given_only() -> None:
    both = {"a": summary(36e6), "b": summary(27e6)}
    assert len(year_table(both, "a").headers) == 3
    table = year_table(both, "a", price=0.2, carbon=50.0, currency="EUR")
    assert [header[1] for header in table.headers] == ["", "kWh", "kWh", "EUR", "kg CO2"]
    assert len(table.rows) == 2
    assert {"Energy waste", "Transitions", "Mean wait", "Mean stretch", "Mean delay"} <= {
        header[0] for header in energy_table(both).headers
    }


@pytest.mark.parametrize("given", [{"price": -1.0}, {"carbon": float("inf")}])
def test_bad_figures_are_one_line(given: dict[str, float]) -> None:
    with pytest.raises(EscalaError, match="at least 0"):
        year(summary(1.0), summary(1.0), **given)


def test_the_page_has_the_operators_part(runs: dict[str, Any]) -> None:
    page = render(runs, title="runs", price=0.25, carbon=60.0, currency="EUR")
    assert "For the operator" in page and "kg CO2" in page and "EUR" in page
    assert "kg CO2" not in render(runs, title="runs")


def judged(names: tuple[str, str] = ("log#3", "log#6"), **kept: Any) -> JudgedDays:
    """Two days under a reference (36 and 18 MJ) and under a policy that saves a quarter in the first of its two runs,
    half in the other."""
    rows = []
    for policy, seed, share in (("a", 0, 1.0), ("b", 0, 0.75), ("b", 1, 0.5)):
        for name, energy_j in zip(names, (36e6, 18e6), strict=True):
            figures = {metric: summary(share * energy_j)[metric] for metric in OF_DAYS}
            rows.append({"policy": policy, "seed": seed, "day": name, **figures, "jobs": 10, "unstarted": 1 + seed})
    return JudgedDays(pl.DataFrame(rows), **kept)


def test_a_year_of_judged_days_by_hand() -> None:
    """27 MJ a judged day, two of the four days from #3 to #6: 13.5 MJ, or 3.75 kWh, a day of the year; three eighths of
    it are saved."""
    days = judged()
    assert (days.judged, days.calendar) == (2, 4)
    both = days.summaries()
    assert both["a"]["energy_j"] == pytest.approx(27e6) and both["b"]["energy_j"] == pytest.approx(27e6 * 5 / 8)
    assert both["a"]["unstarted_share"] == pytest.approx(0.1) and both["b"]["unstarted_share"] == pytest.approx(0.15)
    told = year(both["b"], both["a"], price=0.2, carbon=50.0)
    assert told["saved_kwh"] == pytest.approx(3.75 * 365.25 * 3 / 8) and told["saved_money"] == pytest.approx(
        0.2 * told["saved_kwh"]
    )
    found = tables_of_days(days, price=0.2, carbon=50.0, currency="EUR")
    assert found is not None
    mean, yearly = found
    assert (
        "Did not start" in {header[0] for header in mean.headers} and "2 runs where actions are drawn" in mean.caption
    )
    assert "2 days judged of the 4" in yearly.caption and "the other 2 nothing is counted" in yearly.caption
    assert [header[1] for header in yearly.headers] == ["", "kWh", "kWh", "EUR", "kg CO2"]


def test_a_run_that_takes_longer_does_not_pay_for_nodes_that_are_off() -> None:
    """Policy b needs 100 s more on both days, at 20 W with all nodes off: so much is counted for a too."""
    rows = judged().rows.with_columns(
        episode=pl.col("day").rank("dense"),
        window_s=pl.when(pl.col("policy") == "b").then(700.0).otherwise(600.0),
        asleep_w=20.0,
    )
    level = to_one_end(rows)
    grown = pl.when(pl.col("policy") == "a").then(2000.0).otherwise(0.0)
    for name in ("energy_j", "off_j"):
        assert level[name].to_list() == rows.select(pl.col(name) + grown).to_series().to_list()
    assert level["window_s"].unique().to_list() == [700.0] and level.drop("energy_j", "off_j", "window_s").equals(
        rows.drop("energy_j", "off_j", "window_s")
    )
    assert to_one_end(level).equals(level)


def test_days_without_numbers_stand_for_themselves_and_cut_ones_say_so() -> None:
    days = judged(("monday", "friday"), cut=True)
    found = tables_of_days(days)
    assert days.calendar == 2 and found is not None
    assert "on the other" not in found[1].caption and "less work needs less" in found[1].caption


def test_days_are_a_part_of_the_page_where_they_tell_energy() -> None:
    page = render({}, title="days", days=[judged()], price=0.25, carbon=60.0, currency="EUR")
    assert "a year of such days" in page and "kg CO2" in page
    other = judged(reference="b")
    saved = [row[0].note for row in tables_of_days(other)[1].rows]  # type: ignore[index]
    assert saved == ["", "reference"]
    assert tables_of_days(JudgedDays(judged().rows.drop("idle_j"))) is None
    assert tables_of_days(JudgedDays(judged().rows.with_columns(pl.col(OF_DAYS) * 0.0))) is None
    for priced in ({"price": 0.25}, {"carbon": 60.0}):
        with pytest.raises(EscalaError, match="no energy by state"):
            render({}, title="days", days=[JudgedDays(judged().rows.drop("idle_j"))], **priced)
