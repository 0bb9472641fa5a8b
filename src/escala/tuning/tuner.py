"""`tune`: replay the past under many rules, take the best that keeps the promise, go on from there, judge it once on
the later weeks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from escala.engines import Each, replays_on
from escala.engines.again import Share
from escala.engines.engine import Where
from escala.errors import EscalaError
from escala.metrics.recorded import waits_beside
from escala.parts import parts_of
from escala.platform import Platform
from escala.policies.pairs import Begin
from escala.policies.queues import ESCALA
from escala.policies.schedulers import Scheduler
from escala.policy import name_of
from escala.tuning import judge
from escala.tuning.asked import Asked, asked_of, read_of
from escala.tuning.candidates import candidates
from escala.tuning.choice import REFERENCE, best, ranked, tried
from escala.tuning.measures import Floats, Jobs, figures
from escala.tuning.models import fitted, with_models
from escala.tuning.near import FITTED, PREDICTORS, passed, predicted, usable
from escala.tuning.parts import Part, parts_in
from escala.tuning.replays import PAST, WHOLE, Replays
from escala.tuning.search import SEEDS, arms_of, search
from escala.tuning.several import Several
from escala.tuning.split import LEAST_VALIDATION_WEEKS, Split, split_of
from escala.tuning.steps import GIVEN, PASSING, PREDICTION, Past, Pasts, Step, kept_of
from escala.tuning.tuned import POLICY, RULE, Tuned
from escala.unseen import says_once, unseen_in
from escala.workload import Workload
from escala.writing import Pieces

DEFAULT_PROMISE = "p99-wait<=1.05*easy, longest-wait<=1.25*easy"


@says_once
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
    on: Where = None,
    keep: Pieces | None = None,
    begin: Begin | None = None,
    **options: Any,
) -> Tuned:
    """Choose an order of the queue on a log's past, under a promise, and judge it on its later weeks.

    workload, platform: see `simulate`. objective: slowdown (mean bounded slowdown), wait, area-wait (mean wait, jobs
    weighted by cores x runtime) or p95-wait. promise: what may not get worse, see `escala.tuning.promise`; it is
    checked on the past. after: the share of the log's time that is its past. present: the scheduler that runs today, to
    be compared with too. predictors: estimates that are tried in place of requests, as `estimate` takes them, "model"
    is one fitted to this past; () tries none. scores: linear ones that are tried as they are, "escala" or "score:FILE".
    searches: of weights, under each estimate; 0: none. seed: of the intervals and models. on: where replays are made,
    see `compare`; jobs: N is "local:N".
    keep: where finished replays go, and are taken from. begin: told what is done now, gives what to tell the share
    done. options: as of `simulate`. EscalaError: an unknown objective, a promise that cannot be read or that no rule
    keeps, a log of less than three weeks.
    """
    asked = asked_of(objective, promise, after, present, predictors, scores, searches, {**options, "seed": seed})
    with replays_on(on, jobs) as each:
        return tuned_on([read_of(workload, platform)], asked, keep, begin, each).logs[0]


def tune_several(
    logs: Sequence[tuple[Any, Any]],
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
    on: Where = None,
    keep: Pieces | None = None,
    begin: Begin | None = None,
    **options: Any,
) -> Several:
    """Choose one policy for several logs on the pasts of all of them, and judge it on the later weeks of each.

    logs: pairs (workload, platform) as of `simulate`. Each counts alike: values are means over the logs, weights are
    searched on as many last jobs of each, and the promise is to be kept on the past of every log. No model is fitted,
    for it is of one log. The rest as of `tune`. EscalaError: fewer than two logs, and as of `tune`.
    """
    if len(logs) < 2:
        raise EscalaError(f"tune_several needs at least two logs, not {len(logs)}: tune takes one")
    asked = asked_of(objective, promise, after, present, predictors, scores, searches, {**options, "seed": seed})
    with replays_on(on, jobs) as each:
        return tuned_on(_apart([read_of(*pair) for pair in logs]), asked, keep, begin, each)


def _apart(logs: Sequence[tuple[Workload, Platform]]) -> list[tuple[Workload, Platform]]:
    """The same with a number behind names that an earlier log has: each is told by its own."""
    found, names = list[tuple[Workload, Platform]](), set[str]()
    for log, machine in logs:
        name = next(one for n in itertools.count(1) if (one := log.name if n == 1 else f"{log.name} {n}") not in names)
        names.add(name)
        found.append((log.with_jobs(log.jobs, name=name), machine))
    return found


def tuned_on(
    logs: Sequence[tuple[Workload, Platform]],
    asked: Asked,
    keep: Pieces | None,
    begin: Begin | None,
    each: Each | Share,
) -> Several:
    """Choose one policy on the pasts of logs, and judge it on the later weeks of each."""
    splits, seed, several = [split_of(log, asked.after) for log, _ in logs], asked.how.seed, len(logs) > 1
    told = [
        Replays(machine, asked.how, asked.options, keep, begin, each, f"{number} " if several else "")
        for number, (_, machine) in enumerate(logs)
    ]
    past = [_past(replays, log, split, asked) for replays, (log, _), split in zip(told, logs, splits, strict=True)]
    rules = ranked([one.rules for one in past])
    rule = best(rules, asked.promise, [one.found for one in past], [log.name for log, _ in logs])
    pasts = Pasts(past, rules, rule, seed)
    steps, without = _beyond(pasts, asked)
    kept = kept_of(steps, rule.value)
    chosen = kept.scheduler if kept is not None else rule.name
    found = [
        _judged(one, log, (rule.name, steps, kept, without), asked) for one, (log, _) in zip(past, logs, strict=True)
    ]
    return Several(name_of(chosen), chosen, rule.name, rules, steps, without, found)


def _judged(past: Past, log: Workload, found: tuple[str, list[Step], Step | None, str], asked: Asked) -> Tuned:
    """What was found, judged on the later weeks of a log. found: the rule, what was tried beyond it, what of it was
    kept, and what is to be said of what was not tried. The rule that the policy is compared with is the best of this
    log alone."""
    (common, steps, kept, without), seed, replays, baselines = found, asked.how.seed, past.replays, asked.baselines
    chosen = kept.scheduler if kept is not None else common
    rule = best(ranked([past.rules]), past.promise, [past.found], [log.name]).name
    parts = parts_in(common, kept, chosen)
    later, waits = _later(replays, log, past.split, [chosen, rule, *baselines, *(one for _, one in parts)])
    week, policy, easy = past.split.later_weeks(later.submit_s), waits[name_of(chosen)], waits[REFERENCE]
    compared = {name_of(one): waits[name_of(one)] for one in baselines}
    shown = compared | {name: waits[name] for name in (rule, name_of(chosen))}
    return Tuned(
        name_of(chosen),
        chosen,
        rule,
        asked.objective,
        past.promise,
        list(past.rules),
        steps,
        without,
        dict(past.found),
        {POLICY: figures(later, policy)} | {name: figures(later, w) for name, w in shown.items()},
        {name: judge.ratios(later, policy, w, week, seed) for name, w in (compared | {RULE: waits[rule]}).items()},
        _parts(parts, later, waits, week, seed),
        judge.who_pays(later, policy, easy),
        judge.users(later, policy, easy),
        _about(log, replays.machine, past.split, week, asked.told),
        waits_beside(log.jobs["wait_s"][later.row], pl.Series(easy)),
    )


def _past(replays: Replays, log: Workload, split: Split, asked: Asked) -> Past:
    """The past of a log, and every rule judged on it."""
    names, before, baselines = candidates(), split.past(log), asked.baselines
    every = [*names, *(one for one in baselines if name_of(one) not in names)]
    what = (
        f"replaying the past{f' of {log.name}' if replays.of else ''}, {len(before):,} jobs, under {len(every)} rules"
    )
    jobs, waits = replays.play(PAST, before, every, what)
    found = {name_of(one): figures(jobs, waits[name_of(one)]) for one in baselines}
    rules = tried(jobs, waits, names, asked.figure, asked.promise, split.past_weeks(jobs.submit_s))
    return Past(before, replays, asked.figure, asked.promise, split, jobs, baselines, waits, found, rules)


def _beyond(pasts: Pasts, asked: Asked) -> tuple[list[Step], str]:
    """(what was tried beyond the rules, what is to be said of what was not)."""
    each, predictors = pasts.each, asked.predictors
    if empty := [past.log.name for past in each if not past.parts]:
        whose = f"the past of {empty[0]}" if len(each) > 1 else "the past"
        return [], f"Nothing beyond the rules was tried: a half of {whose}, or its last part, has no jobs."
    short = not all(past.split.validates for past in each)
    if short:
        predictors = [one for one in predictors if one == FITTED]
    usable_, without = usable([past.log for past in each], predictors)
    named_, models, lost = fitted(each, usable_, pasts.seed)
    names = {
        PREDICTION: predicted(pasts.rules, named_) if named_ else [],
        PASSING: [] if short else passed(pasts.rule.name),
    }
    steps = _replayed(pasts, {part: {name: with_models(name, models) for name in some} for part, some in names.items()})
    steps += search(pasts, arms_of(named_, models), 0 if short else asked.searches, asked.scores)
    return steps, " ".join(text for text in (_short(steps, len(each)) if short else "", without, lost) if text)


def _short(steps: Sequence[Step], logs: int) -> str:
    """What is said where the past has too few weeks. logs: their number."""
    whose = "the past's last part" if logs == 1 else "the last part of each log's past"
    tried = {step.part for step in steps}
    told = [text for part, text in ((GIVEN, "given scores"), (PREDICTION, "orders by a model")) if part in tried]
    what = f"Beyond the rules only {' and '.join(told)} were tried" if told else "Nothing beyond the rules was tried"
    return f"{what}: {'the rest' if told else 'that'} needs {LEAST_VALIDATION_WEEKS} weeks of {whose} to judge it by."


def _replayed(pasts: Pasts, parts: Mapping[str, Mapping[str, str | Scheduler]]) -> list[Step]:
    """Schedulers near the best rules, by part and name, judged on the pasts."""
    every = {name: one for some in parts.values() for name, one in some.items()}
    if not every:
        return []
    what = f"replaying the past under {len(every)} schedulers near the best rule"
    waits = [past.replays.play(PAST, past.log, [*every.values()], what)[1] for past in pasts.each]
    return [
        pasts.step(part, one, [own[name] for own in waits])
        for part, some in parts.items()
        for name, one in some.items()
    ]


def _later(replays: Replays, log: Workload, split: Split, schedulers: Sequence[Any]) -> tuple[Jobs, dict[str, Floats]]:
    """(the later jobs, their waits under each scheduler), each from one replay of the whole log."""
    every = list({name_of(one): one for one in schedulers}.values())
    jobs, waits = replays.play(WHOLE, log, every, f"replaying all {len(log):,} jobs under {len(every)} schedulers")
    later = jobs.submit_s >= split.at_s
    return jobs.part(later), {name: w[later] for name, w in waits.items()}


def _parts(
    parts: Sequence[tuple[str, str | Scheduler]], jobs: Jobs, waits: Mapping[str, Floats], week: Any, seed: int
) -> list[Part]:
    """What each part gives on the later weeks."""
    found, before = list[Part](), REFERENCE
    for part, one in parts:
        own = waits[name_of(one)]
        against = [judge.ratios(jobs, own, waits[name], week, seed) for name in (REFERENCE, before)]
        found.append(Part(part, name_of(one), figures(jobs, own), against[0], against[1]))
        before = name_of(one)
    return found


def _about(log: Workload, machine: Platform, split: Split, week: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "escala": version("escala"),
        "workload": {"name": log.name, "jobs": len(log), "sha256": log.digest()},
        "platform": machine.name,
        "cores": machine.total_cores,
        "unseen": unseen_in(log.jobs, machine, parts_of(log, machine), closes=True),
        "split": {
            "at_s": split.at_s,
            "first_s": split.first_s,
            "last_s": split.last_s,
            "later_jobs": len(week),
            "later_weeks": len(np.unique(week)),
        },
        "asked": dict(asked),
    }
