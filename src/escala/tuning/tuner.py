"""`tune`: replay the past under many rules, take the best that keeps the promise, judge it once on the later weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.errors import EscalaError, quoted
from escala.foresight import known_to
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.compose import scheduler
from escala.policies.rollout_names import rollout_of
from escala.policies.run import read
from escala.policy import name_of
from escala.tuning import judge
from escala.tuning.candidates import BASELINES, candidates
from escala.tuning.choice import REFERENCE, Tried, best, tried
from escala.tuning.measures import OBJECTIVES, Figures, Floats, figures, jobs_of
from escala.tuning.promise import Promise, promise_of
from escala.tuning.replays import PAST, WHOLE, Begin, replay, watching
from escala.tuning.split import Split, split_of
from escala.workload import Workload
from escala.writing import Pieces

DEFAULT_PROMISE = "p99-wait<=1.05*easy, longest-wait<=1.25*easy"
POLICY, RULE = "policy", "rule"


@dataclass(frozen=True)
class Tuned:
    """What `tune` chose, and what it gives on the later weeks.

    chosen: the rule's name, as every parameter takes it that takes a scheduler. tried: the rules on the past. past: figures there of what
    the promise can name. later: "policy", the baselines and the rule -> figures of the jobs submitted after the split, in one continuous
    replay. ratio: of the policy's figures to each of them, (value, low, high), intervals from 1 000 resamples of whole weeks, paired.
    groups, users: who pays, against easy; see `judge`. about: what was asked, and of which log.
    """

    chosen: str
    objective: str
    promise: Promise
    tried: list[Tried]
    past: dict[str, Figures]
    later: dict[str, Figures]
    ratio: dict[str, dict[str, judge.Ratio]]
    groups: dict[str, pl.DataFrame]
    users: dict[str, float] | None
    about: dict[str, Any]

    @property
    def gain(self) -> judge.Ratio:
        """The objective's ratio to easy, with its interval."""
        figure = OBJECTIVES[self.objective]
        return self.ratio[REFERENCE][next(name for name, of in judge.RATIOS.items() if of == figure)]

    @property
    def ahead(self) -> bool:
        """Is the policy ahead of easy by the whole interval?"""
        high = self.gain[2]
        return high is not None and high < 1.0

    @property
    def behind(self) -> bool:
        """Is it behind easy by the whole interval?"""
        low = self.gain[1]
        return low is not None and low > 1.0

    @property
    def clauses(self) -> list[dict[str, Any]]:
        """The promise on the later weeks: of each condition what the figure is, what it may be, and whether it is kept."""
        own = self.later[POLICY]
        return [
            {"clause": str(c), "figure": c.figure, "value": own[c.figure], "bound": c.bound(self.later), "kept": c.kept(own, self.later)}
            for c in self.promise.clauses
        ]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "chosen": self.chosen,
            "objective": self.objective,
            "promise": self.clauses,
            "ahead": self.ahead,
            "later": self.later,
            "ratio": {against: {name: list(found) for name, found in each.items()} for against, each in self.ratio.items()},
            "who_pays": {**{name: table.to_dicts() for name, table in self.groups.items()}, "users": self.users},
            "undecided": [list(pair) for pair in judge.undecided(self.ratio)],
            "about": self.about,
        }

    def save(self, folder: str | Path) -> Path:
        """Write the policy into a folder, at once: `simulate(..., scheduler="policy:FOLDER")` runs it. A folder of `tune` is replaced."""
        from escala.tuning.folder import VERB, write
        from escala.writing import saved_folder

        with saved_folder(Path(folder), VERB) as work:
            write(self, work)
        return Path(folder)


def tune(
    workload: Any,
    platform: Any,
    *,
    objective: str = "slowdown",
    promise: str = DEFAULT_PROMISE,
    after: str | float = "60%",
    present: Any = None,
    seed: int = 0,
    jobs: int | None = None,
    keep: Pieces | None = None,
    begin: Begin | None = None,
    **options: Any,
) -> Tuned:
    """Choose an order of the queue on a log's past, under a promise, and judge it on its later weeks.

    workload, platform: see `simulate`. objective: slowdown (mean bounded slowdown), wait, area-wait (mean wait, jobs weighted by cores x
    runtime) or p95-wait. promise: what may not get worse, see `escala.tuning.promise`; it is checked on the past. after: the share of the
    log's time that is its past. present: the scheduler that runs today, to be compared with too. seed: of the intervals. jobs: replays
    side by side, by default one a core. keep: where finished replays go, and are taken from. begin: told what is done now, gives what to
    tell the share done. options: as of `simulate`. EscalaError: an unknown objective, a promise that cannot be read or that no rule keeps,
    a log of less than three weeks.
    """
    if objective not in OBJECTIVES:
        raise EscalaError(f"unknown objective {quoted(objective)} (--objective): use one of {', '.join(OBJECTIVES)}")
    how = _options(options, seed)
    baselines = _baselines(present)
    promised = promise_of(promise, [name_of(one) for one in baselines])
    log, machine = read(workload, platform)
    if machine.speed is not None:
        log = log.at_speed(machine.speed)
    split = split_of(log, after)
    past = split.past(log)
    told = _Replays(machine, how, {**options, "seed": seed}, keep, begin, jobs)
    rules, found = _on_the_past(told, past, split, baselines, (OBJECTIVES[objective], promised))
    chosen = best(rules, promised, found)
    jobs_later, waits = _later(told, log, split, [chosen.name, *baselines])
    week = split.later_weeks(jobs_later.submit_s)
    policy = waits[chosen.name]
    others = {**{name_of(one): waits[name_of(one)] for one in baselines}, chosen.name: policy}
    later = {POLICY: figures(jobs_later, policy)} | {name: figures(jobs_later, w) for name, w in others.items()}
    against = {**{name: w for name, w in others.items() if name in map(name_of, baselines)}, RULE: policy}
    asked = {"promise": str(promised), "after": str(after), "seed": seed, **options}
    return Tuned(
        chosen.name,
        objective,
        promised,
        rules,
        found,
        later,
        {name: judge.ratios(jobs_later, policy, w, week, seed) for name, w in against.items()},
        judge.who_pays(jobs_later, policy, waits[REFERENCE]),
        judge.users(jobs_later, policy, waits[REFERENCE]),
        _about(log, machine, split, len(policy), len(np.unique(week)), asked),
    )


@dataclass(frozen=True)
class _Replays:
    """How replays are made."""

    machine: Platform
    how: Options
    options: Mapping[str, Any]
    keep: Pieces | None
    begin: Begin | None
    threads: int | None

    def play(self, part: str, log: Workload, schedulers: Sequence[Any], what: str) -> tuple[Any, dict[str, Floats]]:
        """(jobs, waits under each scheduler)."""
        jobs = jobs_of(log, self.machine, self.how)
        watched, kept = watching(self.begin, what), self.keep
        waits = replay(log, self.machine, schedulers, jobs, self.options, part=part, keep=kept, progress=watched, threads=self.threads)
        return jobs, waits


def _on_the_past(
    replays: _Replays, past: Workload, split: Split, baselines: Sequence[Any], wanted: tuple[str, Promise]
) -> tuple[list[Tried], dict[str, Figures]]:
    """Every rule judged on the past, and the figures of the baselines."""
    figure, promised = wanted
    names = candidates()
    every = [*names, *(one for one in baselines if name_of(one) not in names)]
    jobs, waits = replays.play(PAST, past, every, f"replaying the past, {len(past):,} jobs, under {len(every)} rules")
    found = {name_of(one): figures(jobs, waits[name_of(one)]) for one in baselines}
    return tried(jobs, waits, names, figure, promised, split.past_weeks(jobs.submit_s)), found


def _later(replays: _Replays, log: Workload, split: Split, schedulers: Sequence[Any]) -> tuple[Any, dict[str, Floats]]:
    """(the later jobs, their waits under each scheduler), each from one replay of the whole log."""
    every = list({name_of(one): one for one in schedulers}.values())
    jobs, waits = replays.play(WHOLE, log, every, f"replaying all {len(log):,} jobs under {len(every)} rules")
    later = jobs.submit_s >= split.at_s
    return jobs.part(later), {name: w[later] for name, w in waits.items()}


def _baselines(present: Any) -> list[Any]:
    """What the policy is compared with; EscalaError for a name that is no scheduler."""
    if present is None or present in BASELINES:
        return list(BASELINES)
    if isinstance(present, str) and rollout_of(present, 0) is None:
        scheduler(present)
    if what := known_to(present, "never"):
        raise EscalaError(f"present={quoted(name_of(present))} (--present): knows {what}, so it cannot be what runs today; name another")
    return [*BASELINES, present]


def _options(options: Mapping[str, Any], seed: int) -> Options:
    """The options of the replays; EscalaError for those that make no sense here."""
    how = with_options(Options(), **options, seed=seed)
    if how.until_s is not None or how.start_off:
        raise EscalaError("tune replays whole logs on nodes that are on: leave --stop-at and --start-off out")
    if how.estimate != "walltime" or how.ordered_by != "walltime":
        raise EscalaError("tune plans and orders by what jobs ask for, as its policy will: leave --estimate and --order-estimate out")
    return how


def _about(log: Workload, machine: Platform, split: Split, judged: int, weeks: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "escala": version("escala"),
        "workload": {"name": log.name, "jobs": len(log), "sha256": log.digest()},
        "platform": machine.name,
        "cores": machine.total_cores,
        "split": {"at_s": split.at_s, "first_s": split.first_s, "last_s": split.last_s, "later_jobs": judged, "later_weeks": weeks},
        "asked": dict(asked),
    }
