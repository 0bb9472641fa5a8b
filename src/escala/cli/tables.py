"""Tables for the terminal: units in the header, numbers aligned, one scale in a column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

_SCALES: dict[str, tuple[tuple[str, float], ...]] = {
    "s": (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0)),
    "j": (("J", 1.0), ("kJ", 1e3), ("MJ", 1e6), ("GJ", 1e9)),
    "w": (("W", 1.0), ("kW", 1e3), ("MW", 1e6)),
}
"""Unit suffix of a column name -> units shown, each with its size in the suffix's unit."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scale(suffix: str, largest: float) -> tuple[str, float]:
    """The unit in which `largest` (in the suffix's unit) has at least two digits before the point, and that unit's size."""
    chosen = _SCALES[suffix][0]
    for unit in _SCALES[suffix]:
        if largest >= 10 * unit[1]:
            chosen = unit
    return chosen


def heading(name: str, values: Sequence[float]) -> tuple[str, float]:
    """Heading of a column with its unit, and the size of that unit: `mean_wait_s` -> ("mean wait (min)", 60.0)."""
    words = name.split("_")
    suffix = words[-1].lower()
    if len(words) > 1 and suffix in _SCALES:
        unit, size = scale(suffix, max((abs(v) for v in values), default=0.0))
        return f"{' '.join(words[:-1])} ({unit})", size
    return " ".join(words), 1.0


def decimals(values: Sequence[float]) -> int:
    """Digits after the point that give the largest value four significant digits; none for whole numbers."""
    finite = [abs(v) for v in values if math.isfinite(v)]
    if all(v == round(v) for v in finite):
        return 0
    before = math.floor(math.log10(max(finite))) + 1
    return min(3, max(0, 4 - max(before, 1)))


def number(value: Any, digits: int) -> str:
    """A number with thousands apart; a dash for what is missing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return f"{value:,.{digits}f}"


def rows_table(rows: Sequence[Mapping[str, Any]], title: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """A table of records: text left, numbers right, one unit and one precision per column."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    names = [name for name in (columns or (list(rows[0]) if rows else []))]
    shown: list[list[str]] = []
    for name in names:
        values = [row.get(name) for row in rows]
        numbers = [float(v) for v in values if _is_number(v) and math.isfinite(v)]
        if numbers or not any(isinstance(v, str | bool) for v in values):
            text, size = heading(name, numbers)
            digits = decimals([v / size for v in numbers]) if numbers else 0
            shown.append([number(v / size if _is_number(v) else None, digits) for v in values])
            table.add_column(text, justify="right")
        else:
            shown.append(["-" if v is None else str(v) for v in values])
            table.add_column(" ".join(name.split("_")), justify="left")
    for cells in zip(*shown):
        table.add_row(*cells)
    return table


def record_table(record: Mapping[str, Any], title: str | None = None) -> Table:
    """A table with one line per entry: name, value, unit. Nested entries are named with their parents."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_column(justify="left")
    for name, value in flat(record):
        if not _is_number(value):
            table.add_row(" ".join(name.split("_")), "-" if value is None else str(value), "")
            continue
        finite = [float(value)] if math.isfinite(value) else []
        text, size = heading(name, finite)
        label, _, unit = text.partition(" (")
        scaled = value / size if size != 1.0 else value
        table.add_row(label, number(scaled, decimals([scaled]) if finite else 0), unit.rstrip(")"))
    return table


def flat(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Entries of nested mappings in order, keys joined by a blank."""
    entries: list[tuple[str, Any]] = []
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            entries.extend(flat(value, f"{name} "))
        else:
            entries.append((name, value))
    return entries
