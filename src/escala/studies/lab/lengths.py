"""How the agents of R3's clusters hold up where an episode is shorter or longer than the day of their training: the
held-out part of a log as episodes of a quarter of a day up to the whole of it, nodes off at each start, every episode
run to completion.

Agents see the time of day, which goes on from midnight to midnight; nothing shows them how long an episode is. Rules
play the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.errors import EscalaError
from escala.platform import Platform
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.cells import Cell
from escala.studies.lab.days import DAY_S
from escala.studies.lab.resampled import Resampled, interval, table_of
from escala.workload import Workload

LENGTHS = (0.25, 1.0, 2.0, 7.0, 28.0)
"""Days of an episode; then the whole."""
WHOLE = "whole"
LEAST = 5
"""Episodes from which on a change has an interval."""
Cells = Mapping[str, Any]
Given = dict[str, Any]


def held_out(source: Given, days: float | None) -> tuple[list[Workload], Platform, float]:
    """The held-out part of a log as episodes of so many days (None: one), with at least two jobs each; the platform;
    days of the longest. EscalaError for an input that is no log in one piece."""
    one = inputs.days(**source)
    log = inputs.whole_log(source["name"], source["traces"], source["generated_days"])
    if log is None:
        raise EscalaError(f"input {source['name']!r} has no calendar: its days are not one log")
    begin = -(log.origin_s % DAY_S) + int(one.test[0].name.rpartition("#")[2]) * DAY_S
    part = log.filter(pl.col("submit_s") >= begin)
    last_s = float(part.jobs["submit_s"].to_numpy().max())
    length = days if days is not None else float(np.ceil((last_s - begin) / DAY_S) + 1.0)
    return [one for one in part.split_days(day_s=length * DAY_S, origin_s=begin) if len(one) > 1], one.platform, length


def lengths_of(scale: Sequence[float]) -> list[tuple[str, float | None]]:
    """Name and days of every length of episode."""
    return [*((f"{days:g}", days) for days in scale), *([(WHOLE, None)] if scale else [])]


def cells_of(
    played: Callable[..., Any], sources: Mapping[str, Given], agents: Mapping[str, Path], scale: Sequence[float]
) -> list[Cell]:
    """What `played` is asked of every length: its source, the days, and the agent's folder. sources: input -> how its
    days are found;
    agents: input -> folder of its agent; those that are not there are left out."""
    return [
        Cell(
            f"length/{name}/{length}", played, {"source": dict(sources[name]), "days": days, "folder": str(folder)}, 30
        )
        for name, folder in agents.items()
        if name in sources and (folder / "manifest.json").is_file()
        for length, days in lengths_of(scale)
    ]


def frame(cells: Cells, columns: Mapping[str, tuple[str, str, str]], per: str = "jobs") -> pl.DataFrame:
    """One row an input, length of episodes and policy: changes by `columns`, name -> (column, statistic, reference), of
    sums ("change") or means ("mean", against nothing), with intervals over episodes where there are enough."""
    rows = []
    for key, found in cells.items():
        if not key.startswith("length/"):
            continue
        _, name, length = key.split("/")
        r = Resampled({policy: table_of([values]) for policy, values in found.items()}, resamples=1000)
        for policy in found:
            row: dict[str, Any] = {"input": name, "days": length, "episodes": r.n, "policy": policy}
            for what, (column, statistic, reference) in columns.items():
                values = r.change(policy, reference, column) if statistic == "change" else r.mean(policy, column, per)
                value, low, high = interval(values)
                known = r.n >= LEAST
                row |= {what: value, f"{what}_low": low if known else None, f"{what}_high": high if known else None}
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
