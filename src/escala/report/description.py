"""What a log is like, as tables for a page: the terminal's figures with units and three digits, not the raw list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from escala.report.quantities import count, number, quantity, scale
from escala.report.tables import Cell, Table
from escala.workload import Description

_DIGITS = 3
_LEAST = 0.001


def description_text(description: Description) -> str:
    """Name, source, and first and last submission, where the log has them."""
    words = [f"{label}: {value}" for label, value, _ in description.rows() if isinstance(value, str)]
    text = "; ".join(words)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def description_tables(description: Description) -> list[Table]:
    """The figures in two columns of pairs, the days by group, the years where there are several, and the
    distributions."""
    rows = takewhile(lambda row: not row[0].startswith("days in group"), description.rows())
    facts = [
        (label, _fact(value, "" if label.startswith(unit) else unit))
        for label, value, unit in rows
        if not isinstance(value, str)
    ]
    tables = [_pairs(facts), _groups(description["day_groups"])]
    years: Mapping[str, Mapping[str, Any]] = description["years"]
    if len(years) > 1:
        tables.append(_years(years))
    tables.append(_spread(description["quantiles"]))
    return [table for table in tables if table.rows]


def _value(name: str, value: float) -> str:
    if 0.0 < abs(value) < _LEAST:
        return f"< {_LEAST}"
    divisor, unit = scale(quantity(name).kind, value)
    text = count(value / divisor) if (value / divisor).is_integer() else number(value / divisor, _DIGITS)
    return f"{text}\u202f{unit}" if unit else text


def _fact(value: float, unit: str) -> str:
    if unit == "share":
        return f"{number(100.0 * value, _DIGITS)}\u202f%"
    text = count(value) if float(value).is_integer() else number(value, _DIGITS)
    return f"{text}\u202f{unit}" if unit else text


def _pairs(facts: list[tuple[str, str]]) -> Table:
    half = math.ceil(len(facts) / 2)
    cells = [[Cell(label[:1].upper() + label[1:], plain=True), Cell(text)] for label, text in facts]
    cells += [[Cell("", plain=True), Cell("")]] * (2 * half - len(cells))
    return Table([("Figure", "", ""), ("Value", "", "")] * 2, [[*cells[i], *cells[half + i]] for i in range(half)])


def _groups(days: Mapping[str, int]) -> Table:
    headers = [("Share of sequential submissions", "", ""), *((group, "", "") for group in days)]
    return Table(
        headers, [[Cell("Days", plain=True), *(Cell(count(n)) for n in days.values())]] if any(days.values()) else []
    )


def _years(years: Mapping[str, Mapping[str, Any]]) -> Table:
    names = list(next(iter(years.values())))
    rows = [
        [
            Cell(year, plain=True),
            *(Cell("–" if v is None else _fact(v, "" if name == "jobs" else "share")) for name, v in shares.items()),
        ]
        for year, shares in years.items()
    ]
    return Table([("Year", "", ""), *((name.capitalize().replace("_", " "), "", "") for name in names)], rows)


def _spread(quantiles: Mapping[str, Mapping[str, float | None]]) -> Table:
    rows = [
        [Cell(quantity(name).name, plain=True), *(Cell("–" if v is None else _value(name, v)) for v in values.values())]
        for name, values in quantiles.items()
        if values["max"] is not None
    ]
    statistics = list(next(iter(quantiles.values())))
    return Table(
        [("Distribution", "", ""), *((s, "", "") for s in statistics)],
        rows,
        "p5 .. p95: not exceeded by that share of the jobs, in per cent.",
    )
