"""Of `deepscheduler2020` the sweep over lengths of episodes, see `lab.lengths`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.agents import load_agent
from escala.studies.deepscheduler2020.cells import AT_ONCE, BENEATH, columns_of, judged
from escala.studies.lab import lengths
from escala.studies.lab.cells import Cell
from escala.studies.lab.days import simulated

NAMES = ("orion", "kth")
"""Inputs that are one log, with an agent that is kept."""
LIMIT = "0.95"
AGENT, RULE = "agent", f"sjf-fit + {AT_ONCE}"
RULES = {
    "easy": ("easy", BENEATH),
    "first-fit": ("first-fit", BENEATH),
    "sjf-fit": ("sjf-fit", BENEATH),
    RULE: ("sjf-fit", AT_ONCE),
}
COLUMNS = {"waste_vs_easy": ("waste_j", "change", "easy"), "wait_vs_first_fit": ("wait_s", "change", "first-fit")}


def played(source: dict[str, Any], days: float | None, folder: str) -> dict[str, Any]:
    """A kept agent, sampled as in the study, and rules on episodes of so many days: policy -> columns."""
    episodes, platform, length = lengths.held_out(source, days)
    out = {name: columns_of(simulated(episodes, platform, *pair, "drain")[0]) for name, pair in RULES.items()}
    found = judged(load_agent(folder), episodes, platform, 0, ("drain",), drain_days=length + 7.0)
    return out | {AGENT: found["drain"]["sampled"]}


def cells_of(sources: dict[str, dict[str, Any]], agents: Path, scale: Sequence[float]) -> list[Cell]:
    """Everything to do. sources: input -> how its days are found."""
    return lengths.cells_of(played, sources, {name: agents / f"{name}-{LIMIT}-0" for name in NAMES}, scale)


def frame(cells: lengths.Cells) -> pl.DataFrame:
    """One row an input, length and policy."""
    return lengths.frame(cells, COLUMNS)
