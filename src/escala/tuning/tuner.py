"""`tune`: replay the past under many rules, take the best that keeps the promise, go on from there, judge it once on the later weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from escala.errors import EscalaError, quoted, refuse_text
from escala.estimates import RUNTIME, WALLTIME, check_estimate
from escala.foresight import known_to
from escala.metrics.recorded import waits_beside
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.compose import scheduler
from escala.policies.pairs import Begin
from escala.policies.queues import ESCALA
from escala.policies.rollout_names import rollout_of
from escala.policies.run import read
from escala.policies.schedulers import Scheduler
from escala.policy import name_of
from escala.tuning import judge
from escala.tuning.candidates import BASELINES, candidates
from escala.tuning.choice import REFERENCE, Tried, best, tried
from escala.tuning.measures import OBJECTIVES, Floats, Jobs, figures
from escala.tuning.models import FITTED, fitted, with_models
from escala.tuning.near import PREDICTORS, passed, predicted, usable
from escala.tuning.parts import Part, parts_in
from escala.tuning.promise import Promise, promise_of
from escala.tuning.replays import PAST, WHOLE, Replays
from escala.tuning.search import SEEDS, arms_of, search
from escala.tuning.split import LEAST_VALIDATION_WEEKS, Split, split_of
from escala.tuning.steps import PASSING, PREDICTION, Past, Step, kept_of
from escala.tuning.tuned import POLICY, RULE, Tuned
from escala.tuning.weights import Point, given
from escala.workload import Workload
from escala.writing import Pieces

MOST_SEARCHES = 100
DEFAULT_PROMISE = "p99-wait<=1.05*easy, longest-wait<=1.25*easy"


def tune(
    workload: Any,
    platform: Any,
    *,
    objective: str = "slowdown",
    promise: str = DEFAULT_PROMISE,
    after: str | float = "60%",
    present: Any = None,
    predictors: Sequence[str] = PREDICTORS,
    scores: Sequence[str] = (ESCALA,),
    searches: int = SEEDS,
    seed: int = 0,
    jobs: int | None = None,
    keep: Pieces | None = None,
    begin: Begin | None = None,
    **options: Any,
) -> Tuned:
    """Choose an order of the queue on a log's past, under a promise, and judge it on its later weeks.

    workload, platform: see `simulate`. objective: slowdown (mean bounded slowdown), wait, area-wait (mean wait, jobs weighted by cores x
    runtime) or p95-wait. promise: what may not get worse, see `escala.tuning.promise`; it is checked on the past. after: the share of the
    log's time that is its past. present: the scheduler that runs today, to be compared with too. predictors: estimates that are tried in
    place of requests, as `estimate` takes them, "model" is one fitted to this past; () tries none. scores: linear ones that are tried as
    they are, "escala" or "score:FILE". searches: of weights, under each estimate; 0: none. seed: of the intervals and models. jobs: replays
    side by side, by default one a core.
    keep: where finished replays go, and are taken from. begin: told what is done now, gives what to tell the share done. options: as of
    `simulate`. EscalaError: an unknown objective, a promise that cannot be read or that no rule keeps, a log of less than three weeks.
    """
    _check_objective(objective)
    how, baselines = _options(options, seed, predictors, searches), _baselines(present)
    promised, (log, machine) = promise_of(promise, [name_of(one) for one in baselines]), _read(workload, platform)
    split = split_of(log, after)
    told = Replays(machine, how, {**options, "seed": seed}, keep, begin, jobs)
    wanted = {"predictors": list(predictors), "scores": list(scores), "searches": searches}
    asked = {"promise": str(promised), "after": str(after), "seed": seed, **wanted, **options}
    past, rules = _past(told, log, split, baselines, (OBJECTIVES[objective], promised))
    steps, without = _beyond(told, log, past, rules, (predictors, given(scores), searches), baselines)
    found = _Found(objective, rules, best(rules, promised, past.found), steps, without)
    return _tuned(told, log, past, found, baselines, asked)


class _Found(NamedTuple):
    """What was found on the past."""

    objective: str
    rules: list[Tried]
    rule: Tried
    steps: list[Step]
    without: str


def _tuned(replays: Replays, log: Workload, past: Past, found: _Found, baselines: Sequence[Any], asked: Mapping[str, Any]) -> Tuned:
    """What was found, judged on the later weeks."""
    rule, seed = found.rule.name, past.seed
    kept = kept_of(found.steps, found.rule.value)
    chosen = kept[-1].scheduler if kept else rule
    parts = parts_in(rule, kept, chosen)
    later, waits = _later(replays, log, past.split, [chosen, rule, *baselines, *(one for _, one in parts)])
    week, policy, easy = past.split.later_weeks(later.submit_s), waits[name_of(chosen)], waits[REFERENCE]
    compared = {name_of(one): waits[name_of(one)] for one in baselines}
    shown = compared | {name: waits[name] for name in (rule, name_of(chosen))}
    return Tuned(
        name_of(chosen),
        chosen,
        rule,
        found.objective,
        past.promise,
        found.rules,
        found.steps,
        found.without,
        dict(past.found),
        {POLICY: figures(later, policy)} | {name: figures(later, w) for name, w in shown.items()},
        {name: judge.ratios(later, policy, w, week, seed) for name, w in (compared | {RULE: waits[rule]}).items()},
        _parts(parts, later, waits, week, seed),
        judge.who_pays(later, policy, easy),
        judge.users(later, policy, easy),
        _about(log, replays.machine, past.split, week, asked),
        waits_beside(log.jobs["wait_s"][later.row], pl.Series(easy)),
    )


def _check_objective(objective: str) -> None:
    """EscalaError for what is no objective."""
    if objective not in OBJECTIVES:
        raise EscalaError(f"unknown objective {quoted(objective)} (--objective): use one of {', '.join(OBJECTIVES)}")


def _read(workload: Any, platform: Any) -> tuple[Workload, Platform]:
    """The log, as it runs on the platform, and the platform."""
    log, machine = read(workload, platform)
    return log if machine.speed is None else log.at_speed(machine.speed), machine


def _past(replays: Replays, log: Workload, split: Split, baselines: Sequence[Any], wanted: tuple[str, Promise]) -> tuple[Past, list[Tried]]:
    """The past, and every rule judged on it. EscalaError: no rule keeps the promise."""
    names, before, seed = candidates(), split.past(log), replays.how.seed
    every = [*names, *(one for one in baselines if name_of(one) not in names)]
    jobs, waits = replays.play(PAST, before, every, f"replaying the past, {len(before):,} jobs, under {len(every)} rules")
    found = {name_of(one): figures(jobs, waits[name_of(one)]) for one in baselines}
    rules = tried(jobs, waits, names, *wanted, split.past_weeks(jobs.submit_s))
    rule, keeping = best(rules, wanted[1], found), [one.name for one in rules if one.excess == 0.0]
    return Past(*wanted, split, seed, jobs, waits, found, rule.name, keeping), rules


def _beyond(
    replays: Replays,
    log: Workload,
    past: Past,
    rules: Sequence[Tried],
    asked: tuple[Sequence[str], Mapping[str, Point], int],
    baselines: Sequence[Any],
) -> tuple[list[Step], str]:
    """(what was tried beyond the rules, what is to be said of what was not)."""
    if not past.split.validates:
        return [], f"Nothing beyond the rules was tried: that needs {LEAST_VALIDATION_WEEKS} weeks of the past's last part to judge it by."
    before, (predictors, points, searches) = past.split.past(log), asked
    usable_, without = usable(before, predictors)
    named_, models, lost = fitted(replays, before, past.split, usable_, past.seed)
    names = {PREDICTION: predicted(rules, named_) if named_ else [], PASSING: passed(past.rule)}
    every = {name: with_models(name, models) for each in names.values() for name in each}
    steps = list[Step]()
    if every:
        _, waits = replays.play(PAST, before, [*every.values()], f"replaying the past under {len(every)} schedulers near the best rule")
        steps = [past.step(part, every[name], waits[name]) for part, each in names.items() for name in each]
    steps += search(replays, before, past, baselines, arms_of(named_, models), searches, points)
    return steps, " ".join(text for text in (without, lost) if text)


def _later(replays: Replays, log: Workload, split: Split, schedulers: Sequence[Any]) -> tuple[Jobs, dict[str, Floats]]:
    """(the later jobs, their waits under each scheduler), each from one replay of the whole log."""
    every = list({name_of(one): one for one in schedulers}.values())
    jobs, waits = replays.play(WHOLE, log, every, f"replaying all {len(log):,} jobs under {len(every)} schedulers")
    later = jobs.submit_s >= split.at_s
    return jobs.part(later), {name: w[later] for name, w in waits.items()}


def _parts(parts: Sequence[tuple[str, str | Scheduler]], jobs: Jobs, waits: Mapping[str, Floats], week: Any, seed: int) -> list[Part]:
    """What each part gives on the later weeks."""
    found, before = list[Part](), REFERENCE
    for part, one in parts:
        own = waits[name_of(one)]
        against = [judge.ratios(jobs, own, waits[name], week, seed) for name in (REFERENCE, before)]
        found.append(Part(part, name_of(one), figures(jobs, own), against[0], against[1]))
        before = name_of(one)
    return found


def _baselines(present: Any) -> list[Any]:
    """What the policy is compared with; EscalaError for a name that is no scheduler."""
    if present is None or present in BASELINES:
        return list(BASELINES)
    if isinstance(present, str) and rollout_of(present, 0) is None:
        scheduler(present)
    if what := known_to(present, "never"):
        raise EscalaError(f"present={quoted(name_of(present))} (--present): knows {what}, so it cannot be what runs today; name another")
    return [*BASELINES, present]


def _options(options: Mapping[str, Any], seed: int, predictors: Sequence[str], searches: int) -> Options:
    """The options of the replays; EscalaError for those that make no sense here."""
    refuse_text(predictors=predictors)
    how = with_options(Options(), **options, seed=seed)
    if not isinstance(searches, int) or not 0 <= searches <= MOST_SEARCHES:
        raise EscalaError(f"searches={quoted(searches)} (--searches): give a whole number from 0 to {MOST_SEARCHES}")
    if how.until_s is not None or how.start_off:
        raise EscalaError("tune replays whole logs on nodes that are on: leave --stop-at and --start-off out")
    if how.estimate != "walltime" or how.ordered_by != "walltime":
        raise EscalaError("tune plans and orders by what jobs ask for, as its policy will: leave --estimate and --order-estimate out")
    for one in predictors:
        if one == FITTED:
            continue
        check_estimate(one, "predictors")
        if not isinstance(one, str) or one in (WALLTIME, RUNTIME):
            raise EscalaError(f"predictors: {quoted(one)} (--predictors): name estimates that can be known, such as last2")
    return how


def _about(log: Workload, machine: Platform, split: Split, week: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "escala": version("escala"),
        "workload": {"name": log.name, "jobs": len(log), "sha256": log.digest()},
        "platform": machine.name,
        "cores": machine.total_cores,
        "split": {
            "at_s": split.at_s,
            "first_s": split.first_s,
            "last_s": split.last_s,
            "later_jobs": len(week),
            "later_weeks": len(np.unique(week)),
        },
        "asked": dict(asked),
    }
