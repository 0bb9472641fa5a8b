"""The weights of a linear score, searched by the cross-entropy method (Rubinstein 1999, "The Cross-Entropy Method for
Combinatorial and Continuous Optimization"): points are drawn around a mean, the best of them give the next mean and
spread.

A point is the weights of `FEATURES`, whose sizes add up to 1, and the logarithm of the guard in hours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.policies.linear import Linear
from escala.policies.queues import queue_by, queue_of
from escala.policies.schedulers import Scheduler
from escala.policies.score_files import PREFIX
from escala.tuning.candidates import GUARDS_H
from escala.tuning.near import named

FEATURES = (
    "log_estimate",
    "log_cores",
    "log_wait",
    "log_wait_over_estimate",
    "log_estimate_x_log_cores",
    "user_share",
    "log_user_waiting",
    "log_request",
)
STARTS = {
    "xfactor": {"log_wait_over_estimate": -1.0},
    "sjf": {"log_estimate": 1.0},
    "saf": {"log_estimate": 0.5, "log_cores": 0.5},
    "sqrt-area": {"log_estimate": 0.67, "log_cores": 0.33},
    "wfp3": {"log_wait_over_estimate": -0.75, "log_cores": -0.25},
}
"""The scores of the rules as linear scores (wfp3 nearly): from the best of them a search begins."""
GENERATIONS, POINTS, ELITE = 8, 20, 5
SPREAD, GUARD_SPREAD = 0.25, 0.3
LEARNT = 0.7
"""Of the new mean and spread; the rest is the old."""
LEAST_SPREAD = 0.01
START_GUARDS_H = (24.0, 100.0)
SHORTEST_H, LONGEST_H = 3.0, 400.0
SCORE_FILE = "score.toml"
"""The file of a policy's folder in which a searched score stands."""
SEARCHED = f"score:{SCORE_FILE}"

Point = NDArray[np.float64]
Cost = Callable[[Sequence[Any], int], list[float]]
"""What is made small, of each scheduler in one generation: the generations take turns with the copies of a log."""


def start(score: str, guard_h: float) -> Point:
    """The point of a rule's score with a guard."""
    return np.array([*(STARTS[score].get(name, 0.0) for name in FEATURES), np.log10(guard_h)])


def linear_at(point: Point) -> Linear:
    """The score of a point, its weights to three digits."""
    weights = point[:-1] / max(float(np.abs(point[:-1]).sum()), 1e-9)
    pairs = tuple(
        (name, round(float(w), 3)) for name, w in zip(FEATURES, weights, strict=True) if round(float(w), 3) != 0.0
    )
    return Linear(pairs or (("log_estimate", 0.0),))


def point_of(score: Linear) -> Point:
    """The point of a score, with the guard of a day. EscalaError for a score with other features."""
    given = dict(score.weights)
    if other := [name for name in given if name not in FEATURES]:
        raise EscalaError(f"score {score}: {other[0]} is no feature that is searched: known are {', '.join(FEATURES)}")
    return np.array([*(given.get(name, 0.0) for name in FEATURES), np.log10(24.0)])


def given(scores: Sequence[str]) -> dict[str, Point]:
    """Scores as they stand behind `queue=` -> their points; a file by the name under which it goes into the policy's
    folder. EscalaError for one that is not linear, or with other features."""
    found = dict[str, Point]()
    for score in scores:
        linear = queue_of(f"easy:queue={score}").orders[0]
        if not isinstance(linear, Linear):
            raise EscalaError(f'score {score!r}: is no linear score: give escala, or score:FILE with form = "linear"')
        _, is_file, path = score.partition(PREFIX)
        found[f"{PREFIX}given-{Path(path).name}" if is_file else score] = point_of(linear)
    return found


def scheduler_at(point: Point, estimate: Any = None, told: str = "", score: str = SEARCHED) -> Scheduler:
    """The scheduler of a point. estimate: by which it is ordered, None: requests; told, score: what its name says of
    both."""
    hours = round(min(max(10.0 ** float(point[-1]), SHORTEST_H), LONGEST_H))
    found = queue_by(linear_at(point), guard_s=3600.0 * hours)
    name = named(f"easy:queue={score}", f"{hours}h", order_estimate=told)
    return replace(found, order_estimate=estimate, name=name)


def searched(cost: Cost, at: Callable[[Point], Any], seed: int) -> Point:
    """The mean at which a search ends: single points that it met are better where it looked, and worse elsewhere. cost:
    what is made small; at: what is tried at a point, such as its scheduler."""
    random = np.random.default_rng([seed, 0x57A7])
    starts = [start(score, guard_h) for score in STARTS for guard_h in START_GUARDS_H]
    costs = cost([at(point) for point in starts], 0)
    mean = starts[int(np.argmin(costs))]
    spread = np.append(np.full(len(FEATURES), SPREAD), GUARD_SPREAD)
    for generation in range(GENERATIONS):
        drawn = [
            _scaled(mean),
            *(_scaled(mean + spread * random.standard_normal(len(mean))) for _ in range(POINTS - 1)),
        ]
        costs = cost([at(point) for point in drawn], generation)
        order = np.argsort(costs, kind="stable")[:ELITE]
        elite = np.array([drawn[i] for i in order])
        mean = (1.0 - LEARNT) * mean + LEARNT * elite.mean(axis=0)
        spread = (1.0 - LEARNT) * spread + LEARNT * np.maximum(elite.std(axis=0), LEAST_SPREAD)
    return mean


def _scaled(point: Point) -> Point:
    """The same with weights whose sizes add up to 1: only their proportions matter."""
    return np.append(point[:-1] / max(float(np.abs(point[:-1]).sum()), 1e-9), point[-1])


def guarded(point: Point) -> list[Point]:
    """A point with its own guard, and with those of the rules."""
    return [point, *(np.append(point[:-1], np.log10(float(hours))) for hours in GUARDS_H)]
