"""What jobs of a snapshot ask of nodes, and what they hold of a node beside cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.live.columns import Columns
from escala.workload.shapes import LATER, SHAPES

ASKED: dict[str, pl.DataType] = {name: kind for name, kind in SHAPES.items() if name not in LATER} | dict.fromkeys(
    ("account", "qos"), pl.String()
)
"""Columns of `jobs`. A job that depends on another, may not begin yet, or is one too many of its array is none that
waits for nodes: it is left out until it does."""
MEMORY, GPU = "memory_mb", "gpu"
HELD = (MEMORY, GPU)
"""Columns of `placed`, on each node; GPUs of a kind are `gpu:KIND`, `gpu` those without one."""
OF_KIND = "gpu:"
SAID = {pl.Int64(): (int, "a whole number"), pl.Boolean(): (bool, "true or false"), pl.String(): (str, "a text")}
MOST = 2**53


def read_shapes(given: Columns) -> dict[str, list[Any]]:
    """Those columns that are there, as lists with None for null."""
    found: dict[str, list[Any]] = {}
    if given.columns.keys().isdisjoint(ASKED):
        return found
    for name in (name for name in ASKED if name in given.columns):
        kind, said = SAID[ASKED[name]]
        column = given.columns[name]
        values: list[Any] = column.tolist() if isinstance(column, np.ndarray) else list(column)
        for k, value in enumerate(values):
            if value is not None and (type(value) is not kind or (type(value) is int and abs(value) > MOST)):
                raise EscalaError(f"snapshot: jobs.{name}[{k}] is {quoted(value)}: give {said}, or null")
        found[name] = values
    return found


def read_held(given: Columns) -> dict[str, NDArray[np.int64]]:
    """What is held on each node, as `placed` has it."""
    names = [name for name in given.columns if name in HELD or name.startswith(OF_KIND)]
    if not names:
        return {}
    found = {name: given.whole(name) for name in names}
    for name, values in found.items():
        given.refuse(values < 0, name, "give 0 or more")
    return found
