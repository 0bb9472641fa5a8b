"""Of `deepshutdown2020` the sweep over lengths of episodes, see `lab.lengths`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.agents import load_agent
from escala.studies.deepshutdown2020.cells import as_published, columns_of, judged
from escala.studies.lab import lengths
from escala.studies.lab.cells import Cell
from escala.studies.lab.days import simulated

NAMES = ("orion", "graphite", "taurus", "econome", "kth", "sdsc")
"""Inputs that are one log; the agent of the usual price of waiting is played."""
AGENT = "agent"
RULES = ("timeout:0", "timeout:300", "hold:0.25")
COLUMNS = {"waste_vs_t0": ("waste_j", "change", "timeout:0"), "stretch": ("stretch", "mean", "")}


def played(source: dict[str, Any], days: float | None, folder: str) -> dict[str, Any]:
    """A kept agent, sampled as in the study, and shutdown rules under SAF on episodes of so many days: policy ->
    columns."""
    episodes, platform, length = lengths.held_out(source, days)
    out = {rule: columns_of(simulated(episodes, platform, "saf", as_published(rule), "drain")[0]) for rule in RULES}
    found = judged(load_agent(folder), episodes, platform, 0, ("drain",), drain_days=length + 7.0)
    return out | {AGENT: found["drain"]["sampled"]}


def cells_of(sources: dict[str, dict[str, Any]], agents: Path, scale: Sequence[float]) -> list[Cell]:
    """Everything to do. sources: input -> how its days are found."""
    return lengths.cells_of(played, sources, {name: agents / f"{name}-1-0" for name in NAMES}, scale)


def frame(cells: lengths.Cells) -> pl.DataFrame:
    """One row an input, length and policy."""
    return lengths.frame(cells, COLUMNS)
