"""Orders of the queue for random worlds of Slurm's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from escala.policies.linear import FEATURES, Linear
from escala.policies.score_files import written
from escala.policies.under_slurm import rules_and_order
from tests.oracle.site import Order

WEIGHTED = [name for name in FEATURES if name != "column"]


def order_drawn(draw: Any) -> Order:
    score = str(draw.choice(["sjf", "xfactor", "wfp3", "unicep", "linear", "linear", "linear"]))
    guard_s = int(draw.choice([0, 7, 60, 300])) if draw.random() < 0.6 else None
    weights = {name: round(float(draw.normal()), 3) for name in WEIGHTED if draw.random() < 0.5} or {"log_wait": -1.0}
    return Order(
        score,
        int(draw.choice([1, 7, 30, 300])),
        guard_s,
        bool(draw.random() < 0.4),
        weights if score == "linear" else {},
    )


def ordered(folder: Path, told: Order) -> Any:
    """The order by its name, as users give it."""
    score = told.score
    if told.weights:
        (folder / "own:score.toml").write_text(written(Linear(tuple(told.weights.items()))))
        score = f"score:{folder / 'own:score.toml'}"
    more = f":guard={told.guard_s}" if told.guard_s is not None else ""
    more += ":order_estimate=last2" if told.last2 else ""
    return rules_and_order(f"slurm:queue={score}{more}:every={told.every_s}s")[1]
