"""Tables for the terminal: units, scales, alignment."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from escala.cli.tables import amount, column, decimals, facts_table, metrics_table, number, rows_table
from escala.cli.terminal import plain


def _printed(table: object) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=200).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("metric", "values", "heading", "cells"),
    [
        ("mean_wait_s", [9.0, 30.0], "Mean wait\n(s)", ["9", "30"]),
        ("mean_wait_s", [1200.0, None], "Mean wait\n(min)", ["20", "-"]),
        ("makespan_s", [40 * 86400.0], "Makespan\n(d)", ["40"]),
        ("energy_j", [5.25e7, 3.6e6], "Energy\n(kWh)", ["14.58", "1.00"]),
        ("mean_wait_s", [354_000.0, 5700.0, 6600.0], "Mean wait\n(min)", ["5,900", "95", "110"]),
        ("utilisation", [0.7, 0.125], "Utilisation\n(%)", ["70.0", "12.5"]),
        ("n_jobs", [7, 12345], "Submitted", ["7", "12,345"]),
        ("own_measure", [1.5, math.nan], "Own measure", ["1.50", "-"]),
    ],
)
def test_a_column_has_one_unit_and_one_precision(
    metric: str, values: list[float], heading: str, cells: list[str]
) -> None:
    assert column(metric, values) == (heading, cells)


@pytest.mark.parametrize(
    ("values", "digits"),
    [([1.0, 20.0], 0), ([0.5, 0.25], 2), ([12.5], 1), ([123.4], 0), ([12345.6, 1.5], 2), ([0.0], 0), ([0.0, 2.5], 2)],
)
def test_three_significant_digits_of_the_middle(values: list[float], digits: int) -> None:
    assert decimals(values, 3) == digits


def test_missing_numbers_are_dashes() -> None:
    assert number(None, 2) == "-" and number(math.nan, 2) == "-" and number(1234567, 0) == "1,234,567"


def test_numbers_align_at_the_right() -> None:
    heading, _, first, second = _printed(
        rows_table([{"scheduler": "easy", "wait_s": 5.25}, {"scheduler": "fcfs", "wait_s": 105.5}])
    )
    assert heading.split() == ["scheduler", "Wait", "(s)"]
    assert first.endswith(" 5.25") and second.endswith(" 105.50")
    assert len(first) == len(second)


def test_one_metric_a_line_each_in_its_unit() -> None:
    lines = _printed(metrics_table({"n_jobs": 3, "energy_j": 9e6, "mean_wait_s": math.nan}))
    assert [line.split() for line in lines] == [
        ["Submitted", "3"],
        ["Energy", "2.500", "kWh"],
        ["Mean", "wait", "-", "s"],
    ]


def test_facts_may_be_text() -> None:
    lines = _printed(facts_table([("source", "KTH", ""), ("jobs", 28476, ""), ("share", 0.701, "")]))
    assert [line.split() for line in lines] == [["source", "KTH"], ["jobs", "28,476"], ["share", "0.701"]]


def test_long_headings_go_on_below() -> None:
    assert column("mean_bounded_slowdown", [1.0])[0] == "Mean\nbounded\nslowdown"


def test_json_is_strict() -> None:
    payload = {
        "a": math.nan,
        "b": (1, 2),
        "c": np.float64(0.5),
        "d": pl.DataFrame({"x": [1, None]}),
        3: np.array([1.0, math.inf]),
    }
    text = json.dumps(plain(payload), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [1, 2], "c": 0.5, "d": [{"x": 1}, {"x": None}], "3": [1.0, None]}


@pytest.mark.parametrize(
    ("value", "near", "below"),
    [(1.60592, "1.61", "1.60"), (3.0, "3", "3"), (0.29, "0.290", "0.290"), (1.999, "2.00", "1.99")],
)
def test_what_is_proved_is_never_told_as_more(value: float, near: str, below: str) -> None:
    assert amount("mean_slowdown", value) == near
    assert amount("mean_slowdown", value, down=True) == below
