"""What the studies of slotted worlds share: figures of cells as arrays, claims against a rule, optima and head-room,
rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from escala.envs.slots.lists import JobLists
from escala.metrics import headroom
from escala.metrics.bootstrap import paired
from escala.optimum import Instance, bound, unless_interrupted
from escala.studies.lab.claims import Claim, at_most

METRICS = {
    "slowdown": "mean_slowdown",
    "makespan": "makespan_s",
    "turnaround": "mean_turnaround_s",
    "wait": "mean_wait_s",
}
"""Figures of a run -> columns of the tables."""
UNIT = "units"
"""Of time in slotted worlds."""
SEEDS = 5
"""Training seeds below which an interval over them is too narrow."""
HOLD_END = "hold-back, end known"
"""Hold-back that knows when arrivals end, as the agents do."""
QUEUE = 32
"""Slots per 100 steps of arrivals that show nearly the whole queue: with the ten of R1, long jobs that are held back
hide the short ones behind them."""
QUIETS, SHARES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25), tuple(range(9))
"""Settings of hold-back that are tried where an agent is held against it."""
Cells = Mapping[str, Any]


def queue_slots(steps: int) -> int:
    """Slots that show nearly the whole queue of so many steps."""
    return QUEUE * max(1, -(-steps // 100))


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
    """Relative change with its interval over seeds and episodes; None where a run was not finished (it may not be
    compared)."""
    if np.isnan(ours).any():
        return None, None, None
    found = paired(ours, np.broadcast_to(theirs, ours.shape[1:]), resamples=4000)
    return float(found.value), float(found.low), float(found.high)


def claim(
    ident: str, text: str, paper: float | None, ours: np.ndarray, theirs: np.ndarray, most: float | None, note: str
) -> Claim:
    """Relative change of ours [seeds, episodes] against theirs [episodes]. It holds where it is `at_most(most)` (None:
    a finding, held to nothing); unfinished runs: it cannot be told."""
    value, low, high = change(ours, theirs)
    stuck = f"{unfinished(ours)} unfinished runs; " if value is None else ""
    verdict = None if value is None or most is None else at_most(most)(value, low, high)
    if len(ours) < SEEDS:
        note += f"; {len(ours)} training seed{'s' if len(ours) > 1 else ''}: the true interval is wider"
    return Claim(
        ident, text, paper, value, low, high, "relative change", ours.shape[0], ours.shape[1], verdict, stuck + note
    )


def best_found(lists: JobLists, limit_s: float) -> tuple[dict[str, list[Any]], list[Any]]:
    """(best schedule found, lower bound, proved?, cut short by the limit? of every list's mean slowdown, the starts
    found).

    Clairvoyant, all resource kinds; a list without jobs has no best."""
    out: dict[str, list[Any]] = {"found": [], "lower": [], "proved": [], "cut": []}
    starts = []
    for e in range(len(lists)):
        rows = slice(int(lists.first[e]), int(lists.first[e + 1]))
        job = lists.job[rows]
        units = job["submit"] // 1_000_000, job["walltime"] // 1_000_000
        demand = np.column_stack([job["cores"], lists.demand[rows]]).astype(np.int64)
        result = unless_interrupted(
            bound(Instance(units[0], units[1], demand, lists.capacity.astype(np.int64)), limit_s=limit_s)
        )
        starts.append(np.asarray(result.starts, np.float64))
        out["found"].append(result.found)
        out["lower"].append(result.lower)
        out["proved"].append(result.status == "optimal")
        out["cut"].append(result.cut)
    return out, starts


def headroom_claim(ident: str, about: str, ours: np.ndarray, sjf: np.ndarray, optimum: Mapping[str, Any]) -> Claim:
    """Share of the way from greedy SJF to the best clairvoyant schedule found, on the lists whose optimum was searched
    for: the first ones. Where SJF played a single list, it stands for all episodes, which were played on it."""
    found = np.array(optimum["found"], np.float64)
    n = ours.shape[1] if len(sjf) == 1 else len(found)
    best, reference = np.broadcast_to(found, (n,)), np.broadcast_to(sjf, (n,)) if len(sjf) == 1 else sjf[:n]
    some = np.isfinite(best)  # lists without jobs have no optimum
    ours, reference, best = ours[:, :n][:, some], reference[some], best[some]
    lower = np.broadcast_to(np.array(optimum["lower"], np.float64), (n,))[some].mean()
    note = f"best found {best.mean():.3f} (bound {lower:.3f}) on {len(found)} list(s), {sum(optimum['proved'])} proved"
    if np.isfinite(ours).all() and reference.mean() > max(lower, ours.mean()):
        note += (
            f"; of the way to the bound {(reference.mean() - ours.mean()) / (reference.mean() - lower):.0%}, the "
            "least that it can be"
        )
    if any(optimum.get("cut", ())):
        note += f"; {sum(optimum['cut'])} cut short by their limit of time, so they depend on the machine"
    text = f"share of the head-room between greedy SJF and the best clairvoyant schedule found, {about}"
    share = None
    if np.isfinite(ours).all() and reference.sum() > best.sum():
        share = headroom(ours, reference, best, resamples=4000)
    low, high, value = (None, None, None) if share is None else (share.low, share.high, share.value)
    return Claim(ident, text, None, value, low, high, "share", ours.shape[0], int(some.sum()), None, note)


def row_of(load: int, policy: str, values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Means over seeds and episodes, with intervals of the mean over both; None where runs are unfinished: what is left
    may not be compared."""
    row: dict[str, Any] = {"load": load, "policy": policy, "unfinished": unfinished(values["slowdown"])}
    for mine, name in METRICS.items():
        x = values[mine]
        whole = not np.isnan(x).any()
        row[name] = float(x.mean()) if whole else None
        spread = (
            paired(x, np.zeros_like(x[0]), statistic="difference", resamples=2000) if whole and x.shape[1] > 1 else None
        )
        row[f"{name}_low"], row[f"{name}_high"] = (
            (float(spread.low), float(spread.high)) if spread else (row[name], row[name])
        )
    return row


def arrays_of(figures: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Figures of one rule as arrays [1, episodes]."""
    return {name: np.array([[np.nan if v is None else v for v in figures[name]]], np.float64) for name in METRICS}
