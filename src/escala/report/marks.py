"""How clairvoyant policies (`escala.foresight`) are told to people: a sign behind the name, and one line that explains
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from escala.foresight import ARRIVALS, RUNTIMES, known_by_name
from escala.metrics.compare import KNOWS

if TYPE_CHECKING:
    import polars as pl

    from escala.report.tables import Table

SIGNS = {RUNTIMES: "†", ARRIVALS: "‡"}
"""What is known -> the sign."""

Knows = Mapping[str, str]
"""Policy -> what it knows of the future, "" for an honest one."""


def shown(name: str, knows: Knows) -> str:
    """The name as it stands in a table for people."""
    signs = "".join(sign for what, sign in SIGNS.items() if what in knows.get(name, ""))
    return f"{name} {signs}" if signs else name


def named(name: str) -> str:
    """The same where nothing but the name is known."""
    return shown(name, {name: known_by_name(name)})


def plain(name: str) -> str:
    """The name without its signs."""
    return name.rstrip("".join(SIGNS.values())).rstrip()


def legend(knows: Knows) -> str:
    """What the signs say, "" where all are honest."""
    told = [
        f"{sign} clairvoyant: knows {what}"
        for what, sign in SIGNS.items()
        if any(what in known for known in knows.values())
    ]
    return f"{'; '.join(told)}; no scheduler of a real machine does." if told else ""


def lines(knows: Knows) -> list[str]:
    """The legend as lines under a table on the terminal: one or none."""
    return [text] if (text := legend(knows)) else []


def known(frame: pl.DataFrame) -> dict[str, str]:
    """What each policy of a frame (column policy) knows: by its column `knows`, in frames of earlier versions by the
    names."""
    if KNOWS not in frame.columns:
        return {name: known_by_name(name) for name in frame["policy"].unique(maintain_order=True)}
    return {name: what or "" for name, what in frame.select("policy", KNOWS).unique(maintain_order=True).iter_rows()}


def in_frame(frame: pl.DataFrame, knows: Knows) -> pl.DataFrame:
    """The frame with its policies as they are shown."""
    import polars as pl

    return frame.with_columns(pl.col("policy").replace({name: shown(name, knows) for name in knows}))


def in_table(table: Table, knows: Knows) -> Table:
    """The table with the names of its first column as they are shown, and the legend in its caption."""
    rows = [[replace(first, text=shown(first.text, knows)), *rest] for first, *rest in table.rows]
    names = {row[0].text for row in rows}
    told = legend({name: what for name, what in knows.items() if shown(name, knows) in names})
    return (
        table
        if not told or told in table.caption
        else replace(table, rows=rows, caption=f"{table.caption} {told}".strip())
    )


def in_rows(rows: list[dict[str, Any]], knows: Knows) -> list[dict[str, Any]]:
    """Rows for the terminal: the column policy as it is shown."""
    return [{**row, "policy": shown(row["policy"], knows)} for row in rows]
