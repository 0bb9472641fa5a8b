"""Searched weights: several searches on each half of the past, judged on the other half, and on all of it for the policy itself.

All numbers of the search (generations, points, spreads, seeds, copies, the mean over seeds) were chosen on the pasts of logs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from escala.estimates import COLUMN
from escala.policies.run import simulate
from escala.policies.schedulers import Scheduler
from escala.prediction.folder import is_model
from escala.tuning.ground import Ground, ground
from escala.tuning.replays import Replays, watching
from escala.tuning.steps import WEIGHTS, Past, Step
from escala.tuning.weights import Point, guarded, scheduler_at, searched
from escala.workload import Workload

SEEDS = 3
"""So many searches, of which the mean is taken: they differ by chance, and their values do not tell which is best."""
PREDICTED = f"{COLUMN}of_model"
"""A column with what a model says in one replay under easy: a search asks no trees."""


@dataclass(frozen=True)
class Arm:
    """An estimate by which searched scores are ordered. told: its name behind a scheduler's, "": requests; sought: in searches."""

    told: str
    estimate: Any
    sought: Any

    def scheduler(self, point: Point) -> Scheduler:
        """Of a point, as it runs."""
        return scheduler_at(point, self.estimate, self.told)

    def trial(self, point: Point) -> Scheduler:
        """Of a point, as searches try it."""
        return scheduler_at(point, self.sought, self.told)


def arms_of(predictors: Sequence[str], models: Mapping[str, Any]) -> list[Arm]:
    """Requests, and each predictor. models: those that are no folders, by name."""
    sought = {one: PREDICTED if is_model(one) else one for one in predictors}
    return [Arm("", None, None), *(Arm(one, models.get(one, one), sought[one]) for one in predictors)]


def search(replays: Replays, log: Workload, past: Past, baselines: Sequence[Any], arms: Sequence[Arm], searches: int = SEEDS) -> list[Step]:
    """Weights searched under each estimate. log: the past. baselines: what the promise can name. searches: of which the mean is taken."""
    if not searches:
        return []
    told = watching(replays.begin, f"searching weights on the past, {3 * searches * len(arms)} searches")
    halves, whole = past.split.halves, (past.split.first_s, past.split.at_s)
    spans, steps, done = (*halves, whole), list[Step](), 0
    for arm in arms:
        seen = _with_predictions(replays, log, arm)
        found = list[Scheduler]()
        for span in spans:
            place = ground(replays, seen, span, baselines, (past.figure, past.promise))
            if place is None:
                break
            found.append(_found(place, arm, searches))
            done += 1
            if told is not None:
                told("", done / (len(arms) * len(spans)))
        if len(found) == len(spans):
            steps.append(_judged(replays, log, past, found))
    return steps


def _judged(replays: Replays, log: Workload, past: Past, found: Sequence[Scheduler]) -> Step:
    """The step of the weights found on the first half, on the second, and on all of the past."""
    waits = replays.each(found, lambda one: replays.waits(log, past.jobs, one))
    second = past.jobs.submit_s >= past.split.halves[1][0]
    return past.crossed(WEIGHTS, found[-1], waits[-1], np.where(second, waits[0], waits[1]))


def _found(place: Ground, arm: Arm, searches: int) -> Scheduler:
    """The mean of several searches, with the guard that is best beside it under the promise."""

    def cost(schedulers: Sequence[Scheduler], generation: int) -> list[float]:
        return [sum(each) for each in place.replays.each(schedulers, lambda one: place.cost(one, generation))]

    kept, about = place.replays.keep, f"{place.part.log.digest()[:16]} {arm.told or 'requests'}"
    points = [_point(kept, f"search {about} {seed}", lambda seed=seed: searched(cost, arm.trial, seed)) for seed in range(searches)]
    near = [arm.scheduler(point) for point in guarded(np.mean(points, axis=0))]
    values = place.replays.each(near, place.cost)
    return near[min(range(len(near)), key=lambda k: (values[k][1], values[k][0]))]


def _point(kept: Any, name: str, run: Any) -> Point:
    """A search, or what it gave in an interrupted run."""
    if kept is None:
        return np.asarray(run())
    return np.asarray(kept.file(name, run, lambda path, point: pl.DataFrame({"x": point}).write_parquet(path), _read))


def _read(path: Any) -> Point:
    return pl.read_parquet(path)["x"].to_numpy()


def _with_predictions(replays: Replays, log: Workload, arm: Arm) -> Workload:
    """The log with the column that this arm's searches are ordered by."""
    if arm.sought != PREDICTED:
        return log
    found = simulate(log, replays.machine, "easy", record=False, **{**replays.options, "estimate": arm.estimate}).jobs["estimate_s"]
    return log.with_jobs(log.jobs.with_columns(found.fill_null(log.jobs["walltime_s"]).alias(PREDICTED)))
