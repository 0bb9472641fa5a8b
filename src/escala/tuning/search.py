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
from escala.tuning.measures import Floats, figures
from escala.tuning.replays import Replays, watching
from escala.tuning.steps import GIVEN, WEIGHTS, Past, Step, best_of
from escala.tuning.weights import SEARCHED, Point, guarded, scheduler_at, searched
from escala.workload import Workload

SEEDS = 3
"""So many searches, of which the mean is taken: they differ by chance, and their values do not tell which is best."""
FINALISTS = 3
"""Of points that are best by what a model says beforehand so many are tried with what it says in the replay itself."""
PREDICTED = f"{COLUMN}of_model"
"""A column with what a model says in one replay under easy: a search asks no trees."""


@dataclass(frozen=True)
class Arm:
    """An estimate by which scores are ordered. told: its name behind a scheduler's, "": requests; sought: in searches."""

    told: str
    estimate: Any
    sought: Any

    def scheduler(self, point: Point, score: str = SEARCHED) -> Scheduler:
        """Of a point, as it runs. score: its name."""
        return scheduler_at(point, self.estimate, self.told, score)

    def trial(self, point: Point) -> Scheduler:
        """Of a point, as searches try it."""
        return scheduler_at(point, self.sought, self.told)


def arms_of(predictors: Sequence[str], models: Mapping[str, Any]) -> list[Arm]:
    """Requests, and each predictor. models: those that are no folders, by name."""
    sought = {one: PREDICTED if is_model(one) else one for one in predictors}
    return [Arm("", None, None), *(Arm(one, models.get(one, one), sought[one]) for one in predictors)]


def search(
    replays: Replays,
    log: Workload,
    past: Past,
    baselines: Sequence[Any],
    arms: Sequence[Arm],
    searches: int = SEEDS,
    scores: Mapping[str, Point] | None = None,
) -> list[Step]:
    """Scores under each estimate: given ones, and searched ones. log: the past. baselines: what the promise can name. searches: of which
    the mean is taken, 0: none. scores: name behind `queue=` -> its point, of which the guard alone is chosen."""
    told = watching(replays.begin, f"searching weights on the past, {3 * searches * len(arms)} searches") if searches else None
    spans = (*past.split.halves, (past.split.first_s, past.split.at_s))
    steps, done = list[Step](), 0
    for arm in arms:
        seen = _with_predictions(replays, log, arm)
        for name, point in (scores or {}).items():
            near = _best(replays, seen, past, spans, (arm, name), [[point]] * len(spans))
            steps.append(_judged(replays, log, past, GIVEN, near))
        ends = list[list[Point]]()
        for span in spans if searches else ():
            place = ground(replays, seen, span, baselines, (past.figure, past.promise))
            ends += [_means(place, arm, searches)] if place is not None else []
            done += 1
            if told is not None:
                told("", done / (len(arms) * len(spans)))
        if len(ends) == len(spans):
            steps.append(_judged(replays, log, past, WEIGHTS, _best(replays, seen, past, spans, (arm, SEARCHED), ends)))
    return steps


def _judged(replays: Replays, log: Workload, past: Past, part: str, found: Sequence[Sequence[Scheduler]]) -> Step:
    """The step of the best found on all of the past that keeps the promise with its own estimates, judged by the best of each half."""
    first, second, whole = found
    waits = replays.each([first[0], second[0], *whole], lambda one: replays.waits(log, past.jobs, one))
    unseen = np.where(past.inside(past.split.halves[1]), waits[0], waits[1])
    steps = [past.crossed(part, one, own, unseen) for one, own in zip(whole, waits[2:], strict=True)]
    return best_of(steps) or steps[0]


def _best(
    replays: Replays,
    log: Workload,
    past: Past,
    spans: Sequence[tuple[float, float]],
    what: tuple[Arm, str],
    points: Sequence[Sequence[Point]],
) -> list[list[Scheduler]]:
    """Of the points of each span with several guards: those of the least value on its jobs, of those that keep the promise on the past."""
    (arm, score), found = what, list[list[Scheduler]]()
    known = dict[str, Floats]()
    for span, ends in zip(spans, points, strict=True):
        near = [point for end in ends for point in guarded(end)]
        trials = {repr(one): one for one in map(arm.trial, near) if repr(one) not in known}
        known |= dict(zip(trials, replays.each([*trials.values()], lambda one: replays.waits(log, past.jobs, one)), strict=True))
        waits = [known[repr(arm.trial(point))] for point in near]
        excess = [past.promise.excess(figures(past.jobs, each), past.found) for each in waits]
        values = [past.value(each, past.inside(span)) for each in waits]
        order = sorted(range(len(near)), key=lambda k: (excess[k], values[k]))
        found.append([arm.scheduler(near[k], score) for k in order[:FINALISTS]])
    return found


def _means(place: Ground, arm: Arm, searches: int) -> list[Point]:
    """Where several searches end: the mean of all, and each."""

    def cost(schedulers: Sequence[Scheduler], generation: int) -> list[float]:
        return place.replays.each(schedulers, lambda one: place.cost(one, generation))

    kept, about = place.replays.keep, f"{place.copies[0].log.digest()[:16]} {arm.told or 'requests'}"
    points = [_point(kept, f"search {about} {seed}", lambda seed=seed: searched(cost, arm.trial, seed)) for seed in range(searches)]
    return [np.mean(points, axis=0), *(points if searches > 1 else [])]


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
