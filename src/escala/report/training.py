"""How an agent was trained, from what lies in its folder: the facts of its manifest and its learning curve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from escala.report.curves import Training
from escala.report.quantities import amount, count, number
from escala.report.tables import Cell, Table

CURVE, AGENT = "curve.csv", "agent"
OFF_RESERVATION = "escala/OffReservation-v0"
CAPTION = (
    "The sum of rewards on days of the training, the same at every point; the agent draws its actions. Other policies "
    "are level lines. What is gained on days not seen is judged by escala evaluate."
)
OF_SEARCH = (
    "The mean over days of the sum of rewards under the mean of each generation's candidates, on the days that are "
    "searched on and, where there are some, on validation days, by which the generation is chosen. What is gained on "
    "days not seen is judged by escala evaluate."
)


def training_of(folder: Path) -> list[Training]:
    """The learning curve in an agent's folder; none where the training was too short to keep one.

    Raises:
        ValueError, KeyError, OSError: the file is broken.
    """
    path = folder / CURVE
    if not path.exists():
        return _searched(folder)
    try:
        rows = pl.read_csv(path, schema={"policy": pl.String, "step": pl.Int64, "value": pl.Float64})
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{CURVE}: {error}") from error
    points = rows.filter(pl.col("policy") == AGENT).select("step", "value")
    levels = {
        str(name): float(value)
        for name, value in rows.filter(pl.col("policy") != AGENT).select("policy", "value").iter_rows()
    }
    return [Training(points, levels, label=f"Return a day ({_unit(folder)})", caption=CAPTION)] if points.height else []


def _searched(folder: Path) -> list[Training]:
    """The curve of a search, which its manifest keeps: decisions, value on training days, on validation days."""
    curve = _manifest(folder).get("curve") or []
    lines = [
        (name, column)
        for name, column in (("training days", 1), ("validation days", 2))
        if any(p[column] is not None for p in curve)
    ]
    rows = [(point[0], point[column], name) for name, column in lines for point in curve if point[column] is not None]
    points = pl.DataFrame(rows, schema={"step": pl.Float64, "value": pl.Float64, "line": pl.String}, orient="row")
    return [Training(points, label=f"Value of a day ({_unit(folder)})", caption=OF_SEARCH)] if rows else []


def _manifest(folder: Path) -> dict[str, Any]:
    """What the agent's folder says of it; empty where there is none."""
    path = folder / "manifest.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _unit(folder: Path) -> str:
    """What rewards are counted in."""
    manifest = _manifest(folder)
    if manifest["env_id"] != OFF_RESERVATION:
        return "rewards"
    author = manifest["env_options"].get("normalise", "author") == "author"
    return "idle minutes of the platform" if author else "joules"


def training_table(manifest: Mapping[str, Any]) -> Table:
    """What was trained, on what, for how long."""
    learnt: Mapping[str, Any] = manifest["workload"]
    days = (
        f"{count(learnt['days'])} days, {learnt['first']} to {learnt['last']}, {count(learnt['jobs'])} jobs"
        if "days" in learnt
        else ""
    )
    ended, generations = manifest.get("mean_return"), manifest.get("generations")  # the latter of a search
    facts = [
        ("Environment", str(manifest["env_id"])),
        ("Learnt from", days or ", ".join(f"{name} {value}" for name, value in learnt.items())),
        ("Algorithm", f"{manifest['algorithm']}, preset {manifest['preset']}, seed {manifest['seed']}"),
        ("Decisions", count(manifest["steps_done"])),
        ("Training time", amount("window_s", manifest["elapsed_s"])),
        (
            "Search",
            ""
            if generations is None
            else f"{count(generations)} generations of {count(manifest['population'])} candidates",
        ),
        (
            "Mean return of the last episodes",
            "" if generations is not None else "–" if ended is None else number(ended),
        ),
    ]
    return Table(
        [("Fact", "", ""), ("Value", "", "")],
        [[Cell(name, plain=True), Cell(text, plain=True)] for name, text in facts if text],
    )
