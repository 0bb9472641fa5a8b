"""What the studies of slotted worlds share: figures of cells as arrays, claims against a rule, rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from escala.metrics.bootstrap import paired
from escala.studies.claims import Claim

METRICS = {"slowdown": "mean_slowdown", "makespan": "makespan_s", "turnaround": "mean_turnaround_s", "wait": "mean_wait_s"}
"""Figures of a run -> columns of the tables."""
Cells = Mapping[str, Any]


def matrix(cells: Cells, names: Sequence[str], *path: str) -> np.ndarray:
    """[seeds, episodes]; NaN where a run was not finished."""
    rows = []
    for name in names:
        value = cells[name]
        for key in path:
            value = value[key]
        rows.append([np.nan if v is None else float(v) for v in value])
    return np.array(rows, np.float64)


def unfinished(values: np.ndarray) -> int:
    """How many runs were not finished."""
    return int(np.isnan(values).sum())


def change(ours: np.ndarray, theirs: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Relative change with its interval over seeds and episodes; None where a run was not finished (it may not be compared)."""
    if np.isnan(ours).any():
        return None, None, None
    found = paired(ours, np.broadcast_to(theirs, ours.shape[1:]), resamples=4000)
    return float(found.value), float(found.low), float(found.high)


def claim(ident: str, text: str, paper: float | None, ours: np.ndarray, theirs: np.ndarray, holds: Any, note: str) -> Claim:
    """Relative change of ours [seeds, episodes] against theirs [episodes]. holds: of value, low, high; None where runs are unfinished."""
    value, low, high = change(ours, theirs)
    stuck = f"{unfinished(ours)} unfinished runs; " if value is None else ""
    verdict = None if value is None else bool(holds(value, low, high))
    return Claim(ident, text, paper, value, low, high, "relative change", ours.shape[0], ours.shape[1], verdict, stuck + note)


def row_of(load: int, policy: str, values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Means over seeds and episodes, with intervals of the mean over both."""
    row: dict[str, Any] = {"load": load, "policy": policy, "unfinished": unfinished(values["slowdown"])}
    for mine, name in METRICS.items():
        x = values[mine]
        fine = x[:, ~np.isnan(x).any(axis=0)]
        row[name] = float(fine.mean()) if fine.size else None
        spread = paired(fine, np.zeros_like(fine[0]), statistic="difference", resamples=2000) if fine.shape[1] > 1 else None
        row[f"{name}_low"], row[f"{name}_high"] = (float(spread.low), float(spread.high)) if spread else (row[name], row[name])
    return row


def arrays_of(figures: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Figures of one rule as arrays [1, episodes]."""
    return {name: np.array([[np.nan if v is None else v for v in figures[name]]], np.float64) for name in METRICS}
