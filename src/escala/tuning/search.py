"""Searched weights: several searches on each half of the past, judged on the other half, and on all of it for the
policy itself.

All numbers of the search (generations, points, spreads, seeds, copies, the mean over seeds) were chosen on the pasts of
logs alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from escala.engines.threads import Threads
from escala.estimates import COLUMN
from escala.policies.kept_pieces import kept_values
from escala.policies.pairs import Named, play
from escala.policies.run import simulate
from escala.policies.schedulers import Scheduler
from escala.prediction.folder import is_model
from escala.tuning.ground import MOST_JOBS, Ground, ground
from escala.tuning.measures import Floats
from escala.tuning.replays import kept_waits, watching
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
    """An estimate by which scores are ordered. told: its name behind a scheduler's, "": requests; sought: in
    searches."""

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


@dataclass(frozen=True)
class Wanted:
    """Scores that are tried with several guards. score: as schedulers name them; ends: the points of each span."""

    part: str
    arm: Arm
    score: str
    ends: Sequence[Sequence[Point]]

    def named(self, point: Point) -> str:
        """Of a point, another name for every other scheduler."""
        return _named(self.arm.scheduler(point, self.score), self.arm, point)


class Searching:
    """The pasts as searches see them, each made when it is first asked for, in whatever process."""

    def __init__(self, pasts: Pasts) -> None:
        self._pasts = pasts
        self._logs: dict[str, list[Workload]] = {}
        self._last: tuple[tuple[str, int], list[Ground]] | None = None

    def __reduce__(self) -> Any:
        return Searching, (self._pasts,)

    def logs(self, arm: Arm) -> list[Workload]:
        """The past of each log, with what this arm's searches are ordered by."""
        if arm.told not in self._logs:
            self._logs[arm.told] = [_with_predictions(past, arm) for past in self._pasts.each]
        return self._logs[arm.told]

    def grounds(self, arm: Arm, span: int) -> list[Ground]:
        """What scores are tried on, of each log."""
        last, wanted = self._last, (arm.told, span)
        if last is None or last[0] != wanted:
            most, found = MOST_JOBS // len(self._pasts.each), list[Ground]()
            for past, log in zip(self._pasts.each, self.logs(arm), strict=True):
                place = ground(past.replays, log, past.spans[span], past.baselines, (past.figure, past.promise), most)
                assert place is not None
                found.append(place)
            self._last = last = (wanted, found)
        return last[1]


def search(
    pasts: Pasts, arms: Sequence[Arm], searches: int = SEEDS, scores: Mapping[str, Point] | None = None
) -> list[Step]:
    """Scores under each estimate: given ones, and searched ones. searches: of which the mean is taken, 0: none. scores:
    name behind `queue=` -> its point, of which the guard alone is chosen."""
    searching, n_spans = Searching(pasts), len(pasts.each[0].spans)
    ends, wanted = _searched(pasts, searching, arms, searches), list[Wanted]()
    for arm in arms:
        wanted += [Wanted(GIVEN, arm, name, [[point]] * n_spans) for name, point in (scores or {}).items()]
        wanted += [Wanted(WEIGHTS, arm, SEARCHED, ends[arm.told])] if arm.told in ends else []
    tried = _tried(pasts, searching, wanted)
    found = [_best(one, tried) for one in wanted]
    waits = _waits(
        pasts,
        {
            one.named(point): one.arm.scheduler(point, one.score)
            for one, each in zip(wanted, found, strict=True)
            for point in each
        },
    )
    return [_judged(pasts, one, each, waits) for one, each in zip(wanted, found, strict=True)]


def _searched(pasts: Pasts, searching: Searching, arms: Sequence[Arm], searches: int) -> dict[str, list[list[Point]]]:
    """Where several searches end on each span, under each estimate by its name: the mean of all, and each. None where a
    log has no jobs in a span. Here one search follows the other, each with its replays side by side; elsewhere they are
    side by side."""
    first, n_spans = pasts.each[0], len(pasts.each[0].spans)
    if not all(
        past.log.jobs["submit_s"].is_between(*span, closed="left").any() for past in pasts.each for span in past.spans
    ):
        return {}
    about = f"{first.figure} {first.promise}"
    names = {
        (arm.told, span): [f"search {arm.told or 'requests'} {about} {span} {seed}" for seed in range(searches)]
        for arm in arms
        for span in range(n_spans)
    }
    asked = {
        name: (arm, span, seed)
        for arm in arms
        for span in range(n_spans)
        for seed, name in enumerate(names[arm.told, span])
    }

    def run(pair: Named) -> Point:
        arm, span, seed = asked[pair.name]
        return searched(partial(_costs, searching.grounds(arm, span)), arm.trial, seed)

    replays = first.replays
    told = watching(replays.begin, f"searching weights on the past, {len(asked)} searches") if asked else None
    each = Threads(1) if replays.engine is None or isinstance(replays.engine, Threads) else replays.engine
    found = play([Named(name, name, "never") for name in asked], run, kept_waits(replays.keep, ""), told, each)
    ends = {place: [found[name] for name in some] for place, some in names.items() if some}
    means = {place: [np.mean(points, axis=0), *(points if searches > 1 else [])] for place, points in ends.items()}
    return {arm.told: [means[arm.told, span] for span in range(n_spans)] for arm in arms} if means else {}


def _costs(places: Sequence[Ground], schedulers: Sequence[Scheduler], generation: int) -> list[float]:
    """What a search makes small, the mean over the logs."""
    each = [place.replays.each(schedulers, partial(place.cost, turn=generation)) for place in places]
    return [sum(costs) / len(places) for costs in zip(*each, strict=True)]


def _tried(pasts: Pasts, searching: Searching, wanted: Sequence[Wanted]) -> dict[str, list[list[float]]]:
    """Of every point with each guard, by `_named` of its trial: its excess over the promise, and its value in each
    span, on each log."""
    trials = {
        _named(trial, one.arm, point): (one.arm, trial)
        for one in wanted
        for ends in one.ends
        for point, trial in _trials(one.arm, ends)
    }
    found: dict[str, list[list[float]]] = {name: [] for name in trials}
    for k, past in enumerate(pasts.each):

        def run(pair: Named, k: int = k, past: Past = past) -> list[float]:
            waits = past.replays.waits(searching.logs(trials[pair.name][0])[k], past.jobs, pair.scheduler)
            return [float(past.excess(waits)), *(float(past.value(waits, past.inside(span))) for span in past.spans)]

        pairs, replays = [Named(name, trial, "never") for name, (_, trial) in trials.items()], past.replays
        told = watching(replays.begin, f"trying {len(pairs)} scores with their guards on the past") if pairs else None
        kept = kept_values(replays.keep, f"{replays.of}tried {past.figure} {past.promise} ")
        for name, values in play(pairs, run, kept, told, replays.engine).items():
            found[name].append(values)
    return found


def _trials(arm: Arm, ends: Sequence[Point]) -> list[tuple[Point, Scheduler]]:
    """Points with their own guard and with those of the rules, and the schedulers that searches try."""
    return [(point, arm.trial(point)) for end in ends for point in guarded(end)]


def _best(one: Wanted, tried: Mapping[str, Sequence[Sequence[float]]]) -> list[Point]:
    """Of the points of each half with several guards that of the least value on its jobs, of those that keep the
    promise on the past; then the best of all of the past, by which it is judged on."""
    found = list[Point]()
    for span, ends in enumerate(one.ends):
        near = _trials(one.arm, ends)
        values = [tried[_named(trial, one.arm, point)] for point, trial in near]
        keys = [(sum(log[0] for log in logs), sum(log[1 + span] for log in logs) / len(logs)) for logs in values]
        order = sorted(range(len(near)), key=keys.__getitem__)
        found += [near[k][0] for k in order[: FINALISTS if span == len(one.ends) - 1 else 1]]
    return found


def _waits(pasts: Pasts, schedulers: Mapping[str, Scheduler]) -> list[dict[str, Floats]]:
    """Waits on the past of each log, s, under schedulers with their own estimates."""
    pairs, found = [Named(name, one, "never") for name, one in schedulers.items()], list[dict[str, Floats]]()
    for past in pasts.each:
        run, replays = partial(_waited, past), past.replays
        found.append(play(pairs, run, kept_waits(replays.keep, f"{replays.of}judged "), each=replays.engine))
    return found


def _waited(past: Past, pair: Named) -> Floats:
    return past.replays.waits(past.log, past.jobs, pair.scheduler)


def _judged(pasts: Pasts, one: Wanted, found: Sequence[Point], known: Sequence[Mapping[str, Floats]]) -> Step:
    """The step of the best found on all of the past that keeps the promise with its own estimates, judged by the best
    of each half. found: see `_best`; known: waits of each log."""
    waits = [[own[one.named(point)] for point in found] for own in known]
    unseen = [np.where(mask, own[0], own[1]) for mask, own in zip(pasts.inside(1), waits, strict=True)]
    whole = [one.arm.scheduler(point, one.score) for point in found[2:]]
    steps = [pasts.crossed(one.part, each, [own[2 + k] for own in waits], unseen) for k, each in enumerate(whole)]
    return best_of(steps) or steps[0]


def _named(scheduler: Scheduler, arm: Arm, point: Point) -> str:
    """The scheduler's name, with what it leaves out of its weights."""
    return f"{scheduler.name} {hashlib.sha256(json.dumps([arm.told, point.tolist()]).encode()).hexdigest()[:16]}"


def _with_predictions(past: Past, arm: Arm) -> Workload:
    """The past with the column that this arm's searches are ordered by."""
    log, replays = past.log, past.replays
    if arm.sought != PREDICTED:
        return log
    found = simulate(log, replays.machine, "easy", record=False, **{**replays.options, "estimate": arm.estimate}).jobs[
        "estimate_s"
    ]
    return log.with_jobs(log.jobs.with_columns(found.fill_null(log.jobs["walltime_s"]).alias(PREDICTED)))
