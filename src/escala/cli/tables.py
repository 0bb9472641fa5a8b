"""Tables for the terminal: units in the header, numbers aligned, one scale in a column."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table

from escala.report.quantities import quantity, scale

IN_COLUMN, ALONE = 3, 4
"""Significant digits of the middle number of a column, and of a number that stands alone."""


HEADING_WIDTH = 11
"""Characters after which a heading goes on below, so that tables of many metrics stay narrow."""


def _finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def decimals(values: Sequence[float], significant: int) -> int:
    """Digits after the point that give the middle value so many significant digits; none for whole numbers."""
    if all(value == round(value) for value in values):
        return 0
    middle = statistics.median_low(abs(value) for value in values if value)
    return min(significant - 1, max(0, significant - max(math.floor(math.log10(middle)) + 1, 1)))


def number(value: Any, digits: int) -> str:
    """A number with thousands apart; a dash for what is missing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return f"{value:,.{digits}f}"


def column(metric: str, values: Sequence[Any], down: Collection[int] = ()) -> tuple[str, list[str]]:
    """The heading (name and unit) and the cells of a metric, all in one unit and with one precision. down: cells that
    are never told as more than they are, as bounds."""
    what = quantity(metric)
    finite = [float(value) for value in values if _finite(value)]
    # one outlier must not set the scale
    size, unit = scale(what.kind, statistics.median_low([abs(value) for value in finite] or [0.0]))
    digits = decimals([value / size for value in finite], IN_COLUMN)
    scaled = [value / size if _is_number(value) and size != 1.0 else value for value in values]
    floored = [
        math.floor(value * 10**digits) / 10**digits if k in down and _finite(value) else value
        for k, value in enumerate(scaled)
    ]
    cells = [number(value, digits) for value in floored]
    heading = f"{what.name} ({unit})" if unit else what.name
    return "\n".join(textwrap.wrap(heading, HEADING_WIDTH)), cells


def amount(metric: str, value: Any, down: bool = False) -> str:
    """One value of a metric with the unit that suits it, such as 2.46 h. down: never more than the value, as bounds are
    told."""
    if not _is_number(value) or not math.isfinite(value):
        return "-"
    size, unit = scale(quantity(metric).kind, abs(value))
    scaled = value / size
    places = 0 if scaled == round(scaled) else max(0, 2 - math.floor(math.log10(abs(scaled))))
    places = min(places, 4)
    told = math.floor(scaled * 10**places) / 10**places if down else scaled
    return f"{told:,.{places}f} {unit}".rstrip()


def rows_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    text: Literal["left", "right"] = "left",
    down: Collection[int] = (),
) -> Table:
    """A table of records: numbers right; text left, or (but for the first column) as `text` says. down: rows whose
    numbers are rounded down."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown: list[list[str]] = []
    for name in list(columns or (rows[0] if rows else [])):
        values = [row.get(name) for row in rows]
        if any(isinstance(value, str | bool) for value in values):
            table.add_column(name.replace("_", " "), justify=text if shown else "left")
            shown.append(["-" if value is None else str(value) for value in values])
        else:
            heading, cells = column(name, values, down)
            table.add_column(heading, justify="right")
            shown.append(cells)
    for row_cells in zip(*shown):
        table.add_row(*row_cells)
    return table


def facts_table(facts: Iterable[tuple[str, Any, str]], values: Literal["left", "right"] = "right") -> Table:
    """A table of (name, value, unit), one fact a line."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify=values)
    table.add_column()
    for name, value, unit in facts:
        finite = [float(value)] if _is_number(value) and math.isfinite(value) else []
        text = number(value, decimals(finite, ALONE)) if _is_number(value) else "-" if value is None else str(value)
        table.add_row(name, text, unit)
    return table


def metrics_table(metrics: Mapping[str, Any]) -> Table:
    """One metric a line, each in the unit that suits it."""
    facts = []
    for name, value in metrics.items():
        what = quantity(name)
        size, unit = scale(what.kind, abs(value) if _is_number(value) and math.isfinite(value) else 0.0)
        facts.append((what.name, value / size if size != 1.0 and _is_number(value) else value, unit))
    return facts_table(facts)
