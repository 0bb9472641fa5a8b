"""What is asked of `tune`, checked before anything is replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escala.admit import met
from escala.errors import EscalaError, nearest, quoted, refuse_text
from escala.estimates import RUNTIME, WALLTIME, check_estimate
from escala.foresight import known_to
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.compose import scheduler
from escala.policies.rollout_names import rollout_of
from escala.policies.run import read
from escala.policy import name_of
from escala.tuning.candidates import BASELINES
from escala.tuning.measures import OBJECTIVES
from escala.tuning.near import FITTED
from escala.tuning.promise import Promise, promise_of
from escala.tuning.weights import Point, given
from escala.workload import Workload

MOST_SEARCHES = 100


@dataclass(frozen=True)
class Asked:
    """What is asked. scores: name behind `queue=` -> its point; how, options: of the replays; told: all of it as plain
    values."""

    objective: str
    promise: Promise
    after: str | float
    baselines: list[Any]
    predictors: Sequence[str]
    scores: Mapping[str, Point]
    searches: int
    how: Options
    options: Mapping[str, Any]
    told: Mapping[str, Any]

    @property
    def figure(self) -> str:
        """What is made small."""
        return OBJECTIVES[self.objective]


def asked_of(
    objective: str,
    promise: str,
    after: str | float,
    present: Any,
    predictors: Sequence[str],
    scores: Sequence[str],
    searches: int,
    options: Mapping[str, Any],
) -> Asked:
    """What is asked, checked; see `tune`. options: of the replays, with the seed."""
    if objective not in OBJECTIVES:
        hint = nearest(str(objective), OBJECTIVES)
        raise EscalaError(
            f"unknown objective {quoted(objective)} (--objective): {hint}use one of {', '.join(OBJECTIVES)}"
        )
    how, baselines = _options(options, predictors, searches), _baselines(present)
    promised, wanted = (
        promise_of(promise, [name_of(one) for one in baselines]),
        {"predictors": list(predictors), "scores": list(scores)},
    )
    told = {"promise": str(promised), "after": str(after), "seed": how.seed, **wanted, "searches": searches, **options}
    return Asked(objective, promised, after, baselines, predictors, given(scores), searches, how, options, told)


def read_of(workload: Any, platform: Any) -> tuple[Workload, Platform]:
    """The log, as it runs on the platform, and the platform."""
    log, machine = read(workload, platform)
    return met(log, machine), machine


def _baselines(present: Any) -> list[Any]:
    """What the policy is compared with; EscalaError for a name that is no scheduler."""
    if present is None or present in BASELINES:
        return list(BASELINES)
    if isinstance(present, str) and rollout_of(present, 0) is None:
        scheduler(present)
    if what := known_to(present, "never"):
        raise EscalaError(
            f"present={quoted(name_of(present))} (--present): knows {what}, so it cannot be what runs today; name "
            "another"
        )
    return [*BASELINES, present]


def _options(options: Mapping[str, Any], predictors: Sequence[str], searches: int) -> Options:
    """The options of the replays; EscalaError for those that make no sense here."""
    refuse_text(predictors=predictors)
    how = with_options(Options(), **options)
    if not isinstance(searches, int) or not 0 <= searches <= MOST_SEARCHES:
        raise EscalaError(f"searches={quoted(searches)} (--searches): give a whole number from 0 to {MOST_SEARCHES}")
    if how.until_s is not None or how.start_off:
        raise EscalaError("tune replays whole logs on nodes that are on: leave --stop-at and --start-off out")
    if how.estimate != "walltime" or how.ordered_by != "walltime":
        raise EscalaError(
            "tune plans and orders by what jobs ask for, as its policy will: leave --estimate and --order-estimate out"
        )
    for one in predictors:
        if one == FITTED:
            continue
        check_estimate(one, "predictors")
        if not isinstance(one, str) or one in (WALLTIME, RUNTIME):
            raise EscalaError(
                f"predictors: {quoted(one)} (--predictors): name estimates that can be known, such as last2"
            )
    return how
