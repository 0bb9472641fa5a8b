"""Tables for the terminal: units, scales, alignment."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from escala.cli.tables import decimals, heading, number, record_table, rows_table
from escala.cli.terminal import plain


def _printed(table: object) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=200).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("name", "values", "shown", "size"),
    [
        ("mean_wait_s", [9.0, 30.0], "mean wait (s)", 1.0),
        ("mean_wait_s", [700.0], "mean wait (min)", 60.0),
        ("makespan_s", [40 * 3600.0], "makespan (h)", 3600.0),
        ("makespan_s", [40 * 86400.0], "makespan (d)", 86400.0),
        ("energy_j", [5e7], "energy (MJ)", 1e6),
        ("mean_power_w", [380.0], "mean power (W)", 1.0),
        ("utilisation", [0.7], "utilisation", 1.0),
        ("n_jobs", [7.0], "n jobs", 1.0),
    ],
)
def test_headings_carry_the_unit(name: str, values: list[float], shown: str, size: float) -> None:
    assert heading(name, values) == (shown, size)


@pytest.mark.parametrize(("values", "digits"), [([1.0, 20.0], 0), ([0.5, 0.25], 3), ([12.5], 2), ([123.4], 1), ([12345.6], 0), ([0.0], 0)])
def test_four_significant_digits_of_the_largest(values: list[float], digits: int) -> None:
    assert decimals(values) == digits


def test_missing_numbers_are_dashes() -> None:
    assert number(None, 2) == "-" and number(math.nan, 2) == "-" and number(1234567, 0) == "1,234,567"


def test_numbers_align_at_the_right() -> None:
    lines = _printed(rows_table([{"scheduler": "easy", "mean_wait_s": 5.25}, {"scheduler": "fcfs", "mean_wait_s": 105.5}]))
    assert lines[0].split() == ["scheduler", "mean", "wait", "(s)"]
    assert lines[2].endswith("5.2") and lines[3].endswith("105.5")
    assert len(lines[2]) == len(lines[3])


def test_a_record_has_one_line_per_entry() -> None:
    lines = _printed(record_table({"jobs": 3, "power": {"energy_j": 2.5e6}, "name": "log"}))
    assert [line.split() for line in lines] == [["jobs", "3"], ["power", "energy", "2,500", "kJ"], ["name", "log"]]


def test_json_is_strict() -> None:
    payload = {"a": math.nan, "b": (1, 2), "c": np.float64(0.5), "d": pl.DataFrame({"x": [1, None]}), 3: np.array([1.0, math.inf])}
    text = json.dumps(plain(payload), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [1, 2], "c": 0.5, "d": [{"x": 1}, {"x": None}], "3": [1.0, None]}
