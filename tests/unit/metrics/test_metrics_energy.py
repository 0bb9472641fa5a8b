"""Energy metrics against sums done by hand."""

from __future__ import annotations

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.metrics import energy


def test_by_hand(power: pl.DataFrame) -> None:
    assert energy.joules(power) == {
        "computing": 6080.0,
        "idle": 190.0,
        "off": 45.0,
        "switching_off": 101.0,
        "switching_on": 0.0,
    }
    assert energy.node_seconds(power)["computing"] == 32.0
    assert energy.total_j(power) == 6416.0
    assert energy.waste_j(power) == 291.0
    assert energy.waste_w_min(power) == 4.85
    assert energy.transitions(power) == 1


def test_table_5_minimum_is_one_switch_on() -> None:
    """R3's table 5 has a smallest waste of 125: one minute at 125 W."""
    one = pl.DataFrame(
        {"node": [0], "state": ["switching_on"], "seconds": [60.0], "joules": [7500.0], "transitions": [1]}
    )
    assert energy.waste_w_min(one) == 125.0


def test_nothing_drawn() -> None:
    empty = pl.DataFrame(
        schema={
            "node": pl.Int64,
            "state": pl.String,
            "seconds": pl.Float64,
            "joules": pl.Float64,
            "transitions": pl.Int64,
        }
    )
    assert energy.total_j(empty) == 0.0
    assert energy.transitions(empty) == 0


def test_unknown_state_is_refused(power: pl.DataFrame) -> None:
    with pytest.raises(EscalaError, match="unknown node state 'sleeping'"):
        energy.joules(power.with_columns(state=pl.lit("sleeping")))


def test_a_year() -> None:
    """1 kW for a day: 24 kWh, hence 365.25 x 24 kWh a year."""
    year = energy.per_year(24 * 3.6e6, 86400.0, price_per_kwh=0.2, kg_co2_per_kwh=0.05)
    assert year["kwh_per_year"] == pytest.approx(8766.0)
    assert year["price_per_year"] == pytest.approx(1753.2)
    assert year["kg_co2_per_year"] == pytest.approx(438.3)
    with pytest.raises(EscalaError, match="span of 0 s"):
        energy.per_year(1.0, 0.0, price_per_kwh=0.2, kg_co2_per_kwh=0.05)
