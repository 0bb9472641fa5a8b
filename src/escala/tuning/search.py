"""Searched weights: several searches on each half of the past, judged on the other half, and on all of it for the policy itself.

All numbers of the search (generations, points, spreads, seeds, copies, the mean over seeds) were chosen on the pasts of logs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from escala.estimates import COLUMN
from escala.policies.run import simulate
from escala.policies.schedulers import Scheduler
from escala.prediction.folder import is_model
from escala.tuning.ground import MOST_JOBS, Ground, ground
from escala.tuning.measures import Floats
from escala.tuning.replays import watching
from escala.tuning.steps import GIVEN, WEIGHTS, Past, Pasts, Step, best_of
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


def search(pasts: Pasts, arms: Sequence[Arm], searches: int = SEEDS, scores: Mapping[str, Point] | None = None) -> list[Step]:
    """Scores under each estimate: given ones, and searched ones. searches: of which the mean is taken, 0: none. scores: name behind
    `queue=` -> its point, of which the guard alone is chosen."""
    begin, spans = pasts.each[0].replays.begin, range(len(pasts.each[0].spans))
    told = watching(begin, f"searching weights on the past, {len(spans) * searches * len(arms)} searches") if searches else None
    steps, done = list[Step](), 0
    for arm in arms:
        logs = [_with_predictions(past, arm) for past in pasts.each]
        for name, point in (scores or {}).items():
            near = _best(pasts, logs, (arm, name), [[point]] * len(spans))
            steps.append(_judged(pasts, GIVEN, near))
        ends = list[list[Point]]()
        for span in spans if searches else ():
            places = _grounds(pasts, logs, span)
            ends += [_means(places, arm, searches)] if places is not None else []
            done += 1
            if told is not None:
                told("", done / (len(arms) * len(spans)))
        if len(ends) == len(spans):
            steps.append(_judged(pasts, WEIGHTS, _best(pasts, logs, (arm, SEARCHED), ends)))
    return steps


def _judged(pasts: Pasts, part: str, found: Sequence[Sequence[Scheduler]]) -> Step:
    """The step of the best found on all of the past that keeps the promise with its own estimates, judged by the best of each half."""
    first, second, whole = found
    every = [first[0], second[0], *whole]
    waits = [past.replays.each(every, partial(past.replays.waits, past.log, past.jobs)) for past in pasts.each]
    unseen = [np.where(mask, own[0], own[1]) for mask, own in zip(pasts.inside(1), waits, strict=True)]
    steps = [pasts.crossed(part, one, [own[2 + k] for own in waits], unseen) for k, one in enumerate(whole)]
    return best_of(steps) or steps[0]


def _best(pasts: Pasts, logs: Sequence[Workload], what: tuple[Arm, str], points: Sequence[Sequence[Point]]) -> list[list[Scheduler]]:
    """Of the points of each span with several guards: those of the least value on its jobs, of those that keep the promise on the past.
    logs: the pasts as searches see them."""
    (arm, score), found = what, list[list[Scheduler]]()
    known = dict[str, list[Floats]]()
    for span, ends in enumerate(points):
        near = [point for end in ends for point in guarded(end)]
        trials = {repr(one): one for one in map(arm.trial, near) if repr(one) not in known}
        for past, log in zip(pasts.each, logs, strict=True):
            played = past.replays.each([*trials.values()], partial(past.replays.waits, log, past.jobs))
            for name, waits in zip(trials, played, strict=True):
                known.setdefault(name, []).append(waits)
        every = [known[repr(arm.trial(point))] for point in near]
        inside = pasts.inside(span)
        order = sorted(range(len(near)), key=lambda k: (pasts.excess(every[k]), pasts.value(every[k], inside)))
        found.append([arm.scheduler(near[k], score) for k in order[:FINALISTS]])
    return found


def _grounds(pasts: Pasts, logs: Sequence[Workload], span: int) -> list[Ground] | None:
    """What scores are tried on, of each log; None where one has no jobs there."""
    most = MOST_JOBS // len(logs)
    found = list[Ground]()
    for past, log in zip(pasts.each, logs, strict=True):
        place = ground(past.replays, log, past.spans[span], past.baselines, (past.figure, past.promise), most)
        if place is None:
            return None
        found.append(place)
    return found


def _means(places: Sequence[Ground], arm: Arm, searches: int) -> list[Point]:
    """Where several searches end: the mean of all, and each."""

    def cost(schedulers: Sequence[Scheduler], generation: int) -> list[float]:
        each = [place.replays.each(schedulers, partial(place.cost, turn=generation)) for place in places]
        return [sum(costs) / len(places) for costs in zip(*each, strict=True)]

    logs = " ".join(place.copies[0].log.digest()[:16] for place in places)
    first = places[0]
    kept, about = first.replays.keep, f"{logs} {arm.told or 'requests'} {first.figure} {first.promise}"
    points = [_point(kept, f"search {about} {seed}", lambda seed=seed: searched(cost, arm.trial, seed)) for seed in range(searches)]
    return [np.mean(points, axis=0), *(points if searches > 1 else [])]


def _point(kept: Any, name: str, run: Any) -> Point:
    """A search, or what it gave in an interrupted run."""
    if kept is None:
        return np.asarray(run())
    return np.asarray(kept.file(name, run, lambda path, point: pl.DataFrame({"x": point}).write_parquet(path), _read))


def _read(path: Any) -> Point:
    return pl.read_parquet(path)["x"].to_numpy()


def _with_predictions(past: Past, arm: Arm) -> Workload:
    """The past with the column that this arm's searches are ordered by."""
    log, replays = past.log, past.replays
    if arm.sought != PREDICTED:
        return log
    found = simulate(log, replays.machine, "easy", record=False, **{**replays.options, "estimate": arm.estimate}).jobs["estimate_s"]
    return log.with_jobs(log.jobs.with_columns(found.fill_null(log.jobs["walltime_s"]).alias(PREDICTED)))
