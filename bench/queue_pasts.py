"""`python -m bench.bench_queue pasts [LOG ...]`: other ways to choose a policy, tried on pasts alone.

The past of each log (the first 60 % of its time) is cut in two. A way chooses on one part, under the promise, and is
judged on the other: the first 60 % and the rest, the first half and the second, the second and the first. Nothing of
the later weeks is looked at. Candidates are five scores and the score of the other logs, ten guards, and three
estimates in the order; the model is fitted to the first 60 % of the past, and what it says under easy is the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import escala
from escala.fitting.predict import model_of
from escala.options import Options, with_options
from escala.policies.linear import Linear
from escala.policies.queues import queue, queue_by
from escala.tuning import DEFAULT_PROMISE, choice
from escala.tuning.candidates import BASELINES, GUARDS_H, PLAIN, SCORES
from escala.tuning.measures import Floats, figures, jobs_of
from escala.tuning.promise import promise_of
from escala.tuning.split import split_of
from escala.tuning.steps import EVEN

SLOWDOWN, OTHERS, MODEL = "bounded_slowdown", "others", "model"
COLUMN = "estimate_of_model"
CUTS = ("60 %, then the rest", "first half, second half", "second half, first half")


class Candidate(NamedTuple):
    """A score, the estimate that it goes by ("": requests), and a guard in hours (0: none)."""

    score: str
    estimate: str
    guard_h: int

    @property
    def kind(self) -> str:
        """What it shares with candidates of other guards."""
        return f"{self.score} {self.estimate}"


class Found(NamedTuple):
    """A candidate on a part of the past. value, excess: as `escala.tuning.choice` has them; ratio: log of the slowdown
    over easy's."""

    value: float
    excess: float
    ratio: float


Part = Mapping[Candidate, Found]
Cut = tuple[Part, Part]
"""Where a way chooses, and where it is judged."""


def cuts_of(log: escala.Workload, platform: str, score: Linear, options: Mapping[str, Any]) -> list[Cut]:
    """Every candidate on both parts of each of the `CUTS` of a log's past."""
    machine, split = escala.read_platform(platform), split_of(log, "60%")
    past = split.past(log)
    jobs, promise = jobs_of(past, machine, with_options(Options(), **options)), promise_of(DEFAULT_PROMISE, BASELINES)
    waits = _waits(past, split, machine, jobs.row, score, options)

    def part(inside: Any) -> Part:
        some = jobs.part(inside)
        week, easy = split.past_weeks(some.submit_s), waits[Candidate("easy", "", 0)][inside]
        begun = {"easy": figures(some, easy)}
        found = dict[Candidate, Found]()
        for one, every in waits.items():
            own = figures(some, every[inside])
            valued = choice.value(some, every[inside], easy, SLOWDOWN, week)
            found[one] = Found(
                valued, promise.excess(own, begun), float(np.log(own[SLOWDOWN] / begun["easy"][SLOWDOWN]))
            )
        return found

    early, half = jobs.submit_s < split.fit_until_s, jobs.submit_s < split.halves[0][1]
    return [(part(early), part(~early)), (part(half), part(~half)), (part(~half), part(half))]


def _waits(
    past: escala.Workload, split: Any, machine: escala.Platform, row: Any, score: Linear, options: Any
) -> dict[Candidate, Floats]:
    """Of every candidate on the whole past, s."""
    told = {"": None}
    if past.jobs["user"].drop_nulls().n_unique() > 1:
        told["last2"] = "last2"
    try:
        model = model_of(split.fit(past), machine, split.fit_until_s, **options)
        said = escala.simulate(past, machine, "easy", record=False, estimate=model, **options).jobs["estimate_s"]
        past = past.with_jobs(past.jobs.with_columns(said.fill_null(past.jobs["walltime_s"]).alias(COLUMN)))
        told[MODEL] = COLUMN
    except escala.EscalaError:
        pass  # a log without requests
    plain = {Candidate(one, "", 0): one for one in PLAIN}
    ordered: dict[Candidate, Any] = {}
    for hours in GUARDS_H:
        named = {one: queue(one, 3600.0 * hours) for one in SCORES}
        for estimate, option in told.items():
            behind = f":order_estimate={option}" if option else ""
            ordered |= {Candidate(one, estimate, hours): name + behind for one, name in named.items()}
            ordered[Candidate(OTHERS, estimate, hours)] = replace(
                queue_by(score, guard_s=3600.0 * hours), order_estimate=option
            )
    every = plain | ordered
    return {
        one: escala.simulate(past, machine, what, record=False, **options).jobs["wait_s"].to_numpy()[row]
        for one, what in every.items()
    }


def rules(one: Candidate) -> bool:
    """The candidates of `escala.tuning.candidates`."""
    return not one.estimate and one.score != OTHERS


def best(part: Part, among: Callable[[Candidate], bool], prior: Mapping[str, float] | None = None) -> Candidate:
    """The least value of those that keep the promise; the nearest where none does. prior: added to the value, by
    kind."""
    some = [one for one in part if among(one)]
    keeping = [one for one in some if part[one].excess <= 0.0] or [min(some, key=lambda one: part[one].excess)]
    return min(keeping, key=lambda one: part[one].value + (prior or {}).get(one.kind, 0.0))


def prior_of(name: str, logs: Mapping[str, list[Cut]], same: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """Kind -> the mean over the other logs of its best value on the first 60 % of their pasts."""
    found = dict[str, list[float]]()
    for other, cuts in logs.items():
        if other in (name, *same.get(name, ())):
            continue
        part = cuts[0][0]
        for kind in {one.kind for one in part}:
            kept = [part[one].value for one in part if one.kind == kind and part[one].excess <= 0.0]
            found.setdefault(kind, []).append(min(kept, default=0.0))
    return {kind: sum(values) / len(values) for kind, values in found.items()}


RULES, BY_MODEL = "the best rule", "rules, always ordered by the model"
TAKEN = "rules and the score of the other logs, by requests or the model (nearly `tune`)"
WAYS: dict[str, Callable[[Candidate], bool]] = {
    RULES: rules,
    "the best rule, without the three plain ones": lambda one: rules(one) and one.guard_h > 0,
    "rules, ordered by requests, `last2` or the model": lambda one: one.score != OTHERS,
    BY_MODEL: lambda one: one.score != OTHERS and one.estimate == MODEL,
    "the score of the other logs, any estimate": lambda one: one.score == OTHERS,
    "any of these": lambda one: True,
}
WITH_PRIOR, HINDSIGHT = "any of these, and what held on the other logs added", "the best of all, known afterwards"


def taken(part: Part) -> Candidate:
    """As `escala.tuning.steps.kept_of`: the best rule, or what is better by requests, or even with it by the model."""
    rule = best(part, rules)
    worth = {one: part[one].value - EVEN * (one.estimate == MODEL) for one in part if part[one].excess <= 0.0}
    better = [
        one
        for one, value in worth.items()
        if one.estimate != "last2" and value < part[rule].value and part[one].value < 0
    ]
    return min(better, key=lambda one: worth[one], default=rule)


def summary(logs: Mapping[str, list[Cut]], same: Mapping[str, tuple[str, ...]]) -> dict[str, list[tuple[float, int]]]:
    """Way -> at each cut, the geometric mean over the logs of the slowdown over easy's, and on how many the promise was
    kept."""

    def over(cut: int, chosen: Mapping[str, Candidate]) -> tuple[float, int]:
        found = [logs[name][cut][1][one] for name, one in chosen.items()]
        return round(float(np.exp(np.mean([one.ratio for one in found]))), 3), sum(one.excess <= 1e-9 for one in found)

    def afterwards(part: Part) -> Candidate:
        return min((one for one in part if part[one].excess <= 0.0), key=lambda one: part[one].ratio)

    prior = {name: prior_of(name, logs, same) for name in logs}
    table = {TAKEN: [over(cut, {name: taken(logs[name][cut][0]) for name in logs}) for cut in range(3)]}
    table |= {
        way: [over(cut, {name: best(logs[name][cut][0], among) for name in logs}) for cut in range(3)]
        for way, among in WAYS.items()
    }
    table[WITH_PRIOR] = [
        over(cut, {name: best(logs[name][cut][0], lambda one: True, prior[name]) for name in logs}) for cut in range(3)
    ]
    table[HINDSIGHT] = [over(cut, {name: afterwards(logs[name][cut][1]) for name in logs}) for cut in range(3)]
    return table
