"""What a study left in its folder, as figures with intervals: claims, cells of tables, and what follows from both."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.studies.lab.claims import read_rows
from escala.studies.verdicts.rule import Found

WIDE = 1.96
"""Standard errors on each side of a mean that make an interval of 95 %."""


class Kept:
    """The folder of a study. What is missing there gives an empty figure, so that a run of a smaller scale has a page
    too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = read_rows(folder) if (folder / "claims.json").is_file() else []
        self.claims: dict[str, dict[str, Any]] = {row["id"]: row for row in rows}
        self._tables: dict[str, pl.DataFrame | None] = {}
        manifest = folder / "manifest.json"
        told = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
        self.settings: dict[str, Any] = dict(told.get("settings", {}))

    def decisions(self, name: str) -> str:
        """A budget among the settings, in words."""
        return (
            f"{int(self.settings[name]):,} decisions".replace(",", " ")
            if name in self.settings
            else "decisions not said"
        )

    def claim(self, ident: str) -> Found:
        """Our figure of a claim, with its interval."""
        row = self.claims.get(ident)
        if row is None:
            return Found(of=ident)
        return Found(row["ours"], row["low"], row["high"], ident, row["seeds"], row["episodes"])

    def printed(self, ident: str) -> float | None:
        """The paper's figure of a claim."""
        row = self.claims.get(ident)
        return None if row is None else row["paper"]

    def table(self, name: str) -> pl.DataFrame | None:
        """A table; None where there is none."""
        if name not in self._tables:
            path = self.folder / "tables" / f"{name}.csv"
            self._tables[name] = pl.read_csv(path, infer_schema_length=None) if path.is_file() else None
        return self._tables[name]

    def row(self, name: str, **where: Any) -> dict[str, Any]:
        """The row of a table with these cells; empty where there is none."""
        table = self.table(name)
        if table is None or any(column not in table.columns for column in where):
            return {}
        found = table.filter([pl.col(column).cast(pl.String) == str(value) for column, value in where.items()])
        return found.row(0, named=True) if len(found) == 1 else {}

    def value(self, name: str, column: str, **where: Any) -> float | None:
        """A cell as a number; None where there is none, or it is empty."""
        cell = self.row(name, **where).get(column)
        return None if cell is None or isinstance(cell, str) else float(cell)

    def cell(self, name: str, column: str, ends: tuple[str, str] | None = None, **where: Any) -> Found:
        """A cell with its interval, which stands in columns of its own: `ends`, by default COLUMN_low and
        COLUMN_high."""
        low, high = ends or (f"{column}_low", f"{column}_high")
        return Found(
            self.value(name, column, **where),
            self.value(name, low, **where),
            self.value(name, high, **where),
            f"{name}.csv",
        )

    def mean_of_days(self, name: str, column: str, days: int, **where: Any) -> Found:
        """A mean over days whose deviation stands in COLUMN_sd: mean and deviation / sqrt(days) give the interval."""
        mean, deviation = self.value(name, column, **where), self.value(name, f"{column}_sd", **where)
        if mean is None or deviation is None or days < 1:
            return Found(mean, of=f"{name}.csv")
        half = WIDE * deviation / math.sqrt(days)
        return Found(mean, mean - half, mean + half, f"{name}.csv", episodes=days)


def change(ours: Found, theirs: float | None) -> Found:
    """Relative change of a figure against a fixed one; the interval goes with it."""
    if ours.ours is None or not theirs:
        return Found(of=ours.of)
    low, high = (None if end is None else end / theirs - 1.0 for end in (ours.low, ours.high))
    return Found(ours.ours / theirs - 1.0, low, high, ours.of, ours.seeds, ours.episodes)


def worst(found: Sequence[Found], largest: bool = True) -> Found:
    """The largest (else the least) of figures, with its own interval; empty where one is missing."""
    if not found or any(one.ours is None for one in found):
        return Found(of=found[0].of if found else "")
    return (max if largest else min)(found, key=lambda one: one.ours)  # type: ignore[arg-type, return-value]
