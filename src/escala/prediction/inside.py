"""How a simulation asks a model: at each submission, what is known then is described, and the trees say how long the
job will run.

Both classes work on the simulation's own tables, in compiled code, and read there what `memory` says. An object of a
user gets a view instead (`escala.predictors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.prediction.features import codes_of
from escala.prediction.folder import folder_of, is_model
from escala.prediction.keys import check_columns, keys_of
from escala.prediction.memory import SECOND, Jobs, fresh, look
from escala.prediction.model import Model, is_dated, read_model

LAST2 = "user_last2"
"""What is said before a model's first stage: the mean of the user's last two runs."""
Say = Callable[[int, int], NDArray[np.int64]]
"""What is expected of the jobs of rows first to last, submitted now: us."""


class Recorder:
    """Says of each job what it requests, and keeps its features. rows [jobs, features]: in the order of the
    simulation's rows."""

    def __init__(self, features: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self.features, self.columns = features, columns
        self.rows: NDArray[np.float64] = np.empty((0, len(features)))

    def estimate(self, view: Any, job: Any) -> float:
        """Nobody asks this: simulations ask in their own way."""
        raise EscalaError("a recorder works inside a simulation alone")

    def begin(self, simulation: Any, i: int) -> Say:
        """How simulation i asks it."""
        describe, limit = _describing(simulation, i, self.columns, self.features), simulation.world.forecast[i]["limit"]
        rows = self.rows = np.full((int(simulation.world.o["n_jobs"][i, 0]), len(self.features)), math.nan)

        def say(first: int, last: int) -> NDArray[np.int64]:
            rows[first:last] = describe(first, last)
            return limit[first:last]

        return say


def begin(model: Model, simulation: Any, i: int) -> Say:
    """How simulation i asks a model. EscalaError: its log lacks a column that the model goes by."""
    log = simulation.workloads[i]
    check_columns(log.jobs, model.columns, model.name, log.name)
    features = model.features + ((LAST2,) if "user" in model.columns and LAST2 not in model.features else ())
    at = features.index(LAST2) if LAST2 in features else None
    describe = _describing(simulation, i, model.columns, features)
    limit, submit = simulation.world.forecast[i]["limit"], simulation.world.job[i]["submit"]

    def say(first: int, last: int) -> NDArray[np.int64]:
        rows = describe(first, last)
        stage = model.stage_at(float(submit[first]) / SECOND, log.origin_s)
        if stage is not None:
            seconds = model.seconds(stage, rows)
        elif at is not None:
            seconds = np.exp(np.where(np.isnan(rows[:, at]), math.inf, rows[:, at]))
        else:
            return limit[first:last]
        most = limit[first:last]
        found = np.floor(np.minimum(seconds, most / SECOND) * SECOND + 0.5).astype(np.int64)
        return np.clip(found, 1, most)

    return say


def say_of(estimate: Any, simulation: Any, i: int) -> Say | None:
    """How simulation i asks an estimate that works inside; None for any other. EscalaError for a folder without a
    model."""
    if is_model(estimate):
        return begin(read_model(estimate, folder_of(estimate)), simulation, i)
    if type(estimate) is Model:
        return begin(estimate, simulation, i)
    if type(estimate) is Recorder:  # not one of a user's own that says to be one: it would see the tables
        return estimate.begin(simulation, i)
    return None


def works_inside(estimate: Any) -> bool:
    """Does it work on the simulation's tables, so that these must say what users have?"""
    return is_model(estimate) or type(estimate) in (Model, Recorder)


def _describing(
    simulation: Any, i: int, columns: tuple[str, ...], features: tuple[str, ...]
) -> Callable[[int, int], NDArray[np.float64]]:
    """What gives the features [jobs, features] of rows first to last, submitted now; each row once, in their order."""
    log, admitted, w = simulation.workloads[i], simulation.admitted[i], simulation.world
    table = log.jobs[admitted.rows]
    keys = keys_of(table, columns)
    asked = table["limited"].to_numpy() if "limited" in table.columns else np.ones(len(table), bool)
    memory = fresh(keys.size, w.user.shape[1])
    origin = float(log.origin_s) if is_dated(log.origin_s) else math.nan
    tables = w.job[i], w.run[i], w.forecast[i], w.past[i], w.user[i]
    jobs, wanted, seen = (
        Jobs(*tables, keys.of, np.ascontiguousarray(asked, bool), *memory, origin),
        codes_of(features),
        0,
    )
    ended = w.s["n_ended"][i]

    def describe(first: int, last: int) -> NDArray[np.float64]:
        nonlocal seen
        out, now_ended = np.empty((last - first, len(features))), int(ended[0])
        look(jobs, (seen, now_ended), (first, last), wanted, out)
        seen = now_ended
        return out

    return describe
