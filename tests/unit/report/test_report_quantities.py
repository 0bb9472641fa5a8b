"""Numbers and units as people read them."""

from __future__ import annotations

import math

import polars as pl
import pytest

from escala.metrics import summarise
from escala.metrics.bill import CO2, COST
from escala.metrics.compare import METRICS
from escala.report import recorded
from escala.report.quantities import QUANTITIES, among, amount, count, number, percent, quantity, scale
from escala.report.tables import metric_column
from escala.tuning.measures import FIGURES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (12.3456, "12.35"),
        (1234.5, "1\u202f234"),
        (-0.5, "−0.5000"),
        (1234567.0, "1\u202f234\u202f567"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("kind", "value", "largest", "text"),
    [
        ("s", 0.2857, 10800.0, "0.2857\u202fs"),  # 0.00007937 h
        ("s", 35.9, 10800.0, "35.90\u202fs"),
        ("s", 36.0, 10800.0, "0.01000\u202fh"),
        ("s", 0.0, 10800.0, "0\u202fh"),
        ("s", -5.0, 10800.0, "−5.000\u202fs"),
        ("s", 0.2857, 1.5, "0.2857\u202fs"),
        ("J", 720.0, 3.6e9, "720.0\u202fJ"),
        ("%", 0.00001, 1.0, "0.001000\u202f%"),
        ("s", math.nan, 10800.0, "–\u202fh"),
    ],
)
def test_little_beside_much_is_in_a_unit_of_its_own(kind: str, value: float, largest: float, text: str) -> None:
    divisor, unit = scale(kind, largest)
    assert among(kind, value, divisor, unit) == text
    assert among(kind, value, divisor) == text.removesuffix(f"\u202f{unit}") or unit == "s"


def test_a_wait_of_seconds_among_hours_is_read_at_once() -> None:
    waits = {"mean_recorded_s": 10800.0, "mean_replayed_s": 0.2857, "jobs": 9, "of": 9}
    assert "3.000\u202fh in the log itself, 0.2857\u202fs here" in recorded.means(waits | {"n": 9, "counted": 9})
    assert metric_column("mean_wait_s", [10800.0, 0.2857, 7200.0])[2] == ["3.000", "0.2857\u202fs", "2.000"]


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1234567, "1\u202f234\u202f567"), (math.nan, "–")])
def test_count(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (-0.123, "−12.3\u202f%"),
        (0.0, "±0\u202f%"),
        (-0.0001, "±0\u202f%"),
        (2.5, "+250\u202f%"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_percent(fraction: float | None, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("kind", "largest", "expected"),
    [("s", 90.0, (1.0, "s")), ("s", 120.0, (60.0, "min")), ("s", 7200.0, (3600.0, "h")),
     ("s", 172800.0, (86400.0, "d")), ("J", 5e9, (3.6e9, "MWh")), ("J", 0.0, (1.0, "J")),
     ("W", 2500.0, (1e3, "kW")), ("%", 0.4, (0.01, "%")), ("1", 1e9, (1.0, "")), ("s", math.nan, (1.0, "s"))],
)  # fmt: skip
def test_scale(kind: str, largest: float, expected: tuple[float, str]) -> None:
    assert scale(kind, largest) == expected


def test_amount_carries_its_unit() -> None:
    assert amount("waste_j", 9e6) == "2.500\u202fkWh"
    assert amount("transitions", 12345) == "12\u202f345"
    assert amount("utilisation", 0.5) == "50.00\u202f%"


def test_every_named_metric_is_in_a_summary() -> None:
    """No label for what neither a run, a bill nor a tuned policy has; every metric of a comparison has a name, a
    direction and a meaning."""
    times = dict.fromkeys(("submit_s", "start_s", "finish_s", "runtime_s", "walltime_s"), pl.Float64)
    empty = pl.DataFrame(schema={"state": pl.String, **times, "cores": pl.Int64})
    joules = dict.fromkeys(("joules", "gpu_joules"), pl.Float64)
    power = pl.DataFrame(schema={"state": pl.String, "seconds": pl.Float64, **joules, "transitions": pl.Int64})
    summary = summarise(empty, power, nodes=1, cores=1, start_s=0.0, end_s=0.0)
    assert set(QUANTITIES) <= set(summary) | set(FIGURES) | {COST, CO2}
    assert all(QUANTITIES[m].better and QUANTITIES[m].meaning for m in METRICS)


def test_unknown_names_get_units_from_their_suffix() -> None:
    assert (quantity("boot_time_s").name, quantity("boot_time_s").kind) == ("Boot time", "s")
    assert quantity("queue").kind == "1"
