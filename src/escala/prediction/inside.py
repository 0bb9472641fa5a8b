"""How a simulation asks a model: at each submission, what is known then is described, and the trees say how long the
job will run.

Both classes work on the simulation's own tables (`Tables`), in compiled code, and read there what `memory` says. An
object of a user gets a view instead (`escala.predictors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.prediction.features import codes_of
from escala.prediction.folder import folder_of, is_model
from escala.prediction.keys import check_columns, keys_of
from escala.prediction.memory import SECOND, Jobs, fresh, look, nobody_came
from escala.prediction.model import Model, is_dated, read_model

LAST2 = "user_last2"
"""What is said before a model's first stage: the mean of the user's last two runs."""
Say = Callable[[int, int], NDArray[np.int64]]
"""What is expected of the jobs of rows first to last, submitted now: us."""


class Tables(NamedTuple):
    """What is looked at of a simulation. jobs: the workload's columns, in the order of the rows; job, run, forecast,
    past, user, come: as `memory.Jobs`; ended: how many of `past` there are, int64 [1]; log: the workload's name;
    origin_s: Unix seconds of the clock's 0."""

    jobs: pl.DataFrame
    job: Any
    run: Any
    forecast: Any
    past: Any
    user: Any
    ended: NDArray[np.int64]
    log: str
    origin_s: float
    come: NDArray[Any]


def tables_of(simulation: Any, i: int) -> Tables:
    """Those of simulation i."""
    log, w = simulation.workloads[i], simulation.world
    own = w.job[i], w.run[i], w.forecast[i], w.past[i], w.user[i], w.s["n_ended"][i]
    return Tables(log.jobs[simulation.admitted[i].rows], *own, log.name, log.origin_s, nobody_came(w.user.shape[1]))


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
        tables = tables_of(simulation, i)
        describe, limit = _describing(tables, self.columns, self.features), tables.forecast["limit"]
        rows = self.rows = np.full((int(simulation.world.o["n_jobs"][i, 0]), len(self.features)), math.nan)

        def say(first: int, last: int) -> NDArray[np.int64]:
            rows[first:last] = describe(first, last)
            return limit[first:last]

        return say


def begin(model: Model, tables: Tables) -> Say:
    """How a simulation asks a model. EscalaError: its log lacks a column that the model goes by."""
    check_columns(tables.jobs, model.columns, model.name, tables.log)
    features = model.features + ((LAST2,) if "user" in model.columns and LAST2 not in model.features else ())
    at = features.index(LAST2) if LAST2 in features else None
    describe = _describing(tables, model.columns, features)
    limit, submit = tables.forecast["limit"], tables.job["submit"]

    def say(first: int, last: int) -> NDArray[np.int64]:
        rows = describe(first, last)
        stage = model.stage_at(float(submit[first]) / SECOND, tables.origin_s)
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
        return begin(read_model(estimate, folder_of(estimate)), tables_of(simulation, i))
    if type(estimate) is Model:
        return begin(estimate, tables_of(simulation, i))
    if type(estimate) is Recorder:  # not one of a user's own that says to be one: it would see the tables
        return estimate.begin(simulation, i)
    return None


def works_inside(estimate: Any) -> bool:
    """Does it work on the simulation's tables, so that these must say what users have?"""
    return is_model(estimate) or type(estimate) in (Model, Recorder)


def _describing(
    tables: Tables, columns: tuple[str, ...], features: tuple[str, ...]
) -> Callable[[int, int], NDArray[np.float64]]:
    """What gives the features [jobs, features] of rows first to last, submitted now; each row once, in their order."""
    keys = keys_of(tables.jobs, columns)
    asked = tables.jobs["limited"].to_numpy() if "limited" in tables.jobs.columns else np.ones(len(tables.jobs), bool)
    groups = fresh(keys.size)
    origin = float(tables.origin_s) if is_dated(tables.origin_s) else math.nan
    own = tables.job, tables.run, tables.forecast, tables.past, tables.user
    jobs = Jobs(*own, keys.of, np.ascontiguousarray(asked, bool), groups, tables.come, origin)
    wanted, ended, seen = codes_of(features), tables.ended, 0

    def describe(first: int, last: int) -> NDArray[np.float64]:
        nonlocal seen
        out, now_ended = np.empty((last - first, len(features))), int(ended[0])
        look(jobs, (seen, now_ended), (first, last), wanted, out)
        seen = now_ended
        return out

    return describe
