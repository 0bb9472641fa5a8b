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
    "The sum of rewards on days of the training, the same at every point; the agent draws its actions. Rules are level lines. What is "
    "gained on days not seen is judged by escala evaluate."
)


def training_of(folder: Path) -> list[Training]:
    """The learning curve in an agent's folder; none where the training was too short to keep one.

    Raises:
        ValueError, KeyError, OSError: the file is broken.
    """
    path = folder / CURVE
    if not path.exists():
        return []
    try:
        rows = pl.read_csv(path, schema={"policy": pl.String, "step": pl.Int64, "value": pl.Float64})
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{CURVE}: {error}") from error
    points = rows.filter(pl.col("policy") == AGENT).select("step", "value")
    levels = {str(name): float(value) for name, value in rows.filter(pl.col("policy") != AGENT).select("policy", "value").iter_rows()}
    return [Training(points, levels, label=f"Return a day ({_unit(folder)})", caption=CAPTION)] if points.height else []


def _unit(folder: Path) -> str:
    """What rewards are counted in."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if manifest["env_id"] != OFF_RESERVATION:
        return "rewards"
    author = manifest["env_options"].get("normalise", "author") == "author"
    return "idle minutes of the platform" if author else "joules"


def training_table(manifest: Mapping[str, Any]) -> Table:
    """What was trained, on what, for how long."""
    learnt: Mapping[str, Any] = manifest["workload"]
    days = f"{count(learnt['days'])} days, {learnt['first']} to {learnt['last']}, {count(learnt['jobs'])} jobs" if "days" in learnt else ""
    ended = manifest["mean_return"]
    facts = [
        ("Environment", str(manifest["env_id"])),
        ("Learnt from", days or ", ".join(f"{name} {value}" for name, value in learnt.items())),
        ("Algorithm", f"{manifest['algorithm']}, preset {manifest['preset']}, seed {manifest['seed']}"),
        ("Decisions", count(manifest["steps_done"])),
        ("Training time", amount("window_s", manifest["elapsed_s"])),
        ("Mean return of the last episodes", "–" if ended is None else number(ended)),
    ]
    return Table([("Fact", "", ""), ("Value", "", "")], [[Cell(name, plain=True), Cell(text, plain=True)] for name, text in facts if text])
