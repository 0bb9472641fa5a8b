"""The operator's part of the page: a year's energy, money and CO2, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from escala.errors import EscalaError
from escala.report import render
from escala.report.operator import STATES, energy_table, year, year_table

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
