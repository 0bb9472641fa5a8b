"""Beyond the rules: predictions, orders of those who pass, and searched weights, each kept only if it is ahead of the best rule on weeks of
the past that its search has not seen.

A candidate that was chosen on one part of the past is judged on another, beside the rule that is best on that same part: what is chosen
from many is worse elsewhere, and so is a rule. Of predictions, and of orders of those who pass, the one with the least value on the first
part (`split`) is judged on the rest. Searched weights, and the guards of given scores, are chosen on each half and judged on the other
(`search`). Kept is what keeps the promise on the whole past, is ahead by the whole interval over paired weeks and in the figure of all
weeks together, and has a better value on the whole past than the best rule there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.policies.schedulers import Scheduler
from escala.tuning import judge
from escala.tuning.choice import REFERENCE, value
from escala.tuning.measures import Figures, Floats, Jobs, figures
from escala.tuning.promise import Promise, log_ratio
from escala.tuning.split import Split

PREDICTION, PASSING, GIVEN, WEIGHTS = PARTS = "prediction", "backfill", "given score", "weights"


@dataclass(frozen=True)
class Step:
    """One candidate beyond the rules.

    fit, whole: its value on the first part of the past and on all of it (`choice.value`); excess: 0 where the promise is kept on the past.
    ratio: the geometric mean over the weeks not seen in the choice of its figure to that of the rule chosen likewise, with its interval;
    total: the ratio of the figures of all these weeks together. Of searched weights and given scores fit is of weeks not seen too.
    """

    part: str
    scheduler: str | Scheduler
    fit: float
    whole: float
    excess: float
    ratio: judge.Ratio
    total: float
    figures: Figures

    @property
    def name(self) -> str:
        """The scheduler's name."""
        return self.scheduler if isinstance(self.scheduler, str) else self.scheduler.name

    @property
    def ahead(self) -> bool:
        """Is it ahead of the best rule by the whole interval, and keeps the promise?"""
        high = self.ratio[2]
        return self.excess == 0.0 and high is not None and high < 1.0 and self.total < 1.0

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "part": self.part,
            "name": self.name,
            "kept": self.ahead,
            "value": self.whole,
            "validation": list(self.ratio),
            "total": self.total,
        }


@dataclass(frozen=True)
class Past:
    """The past, and how candidates are judged on it. waits: under the rules and baselines, s, [jobs]; found: figures of what the promise
    can name; rule: the best rule's name; keeping: the names of all rules that keep the promise."""

    figure: str
    promise: Promise
    split: Split
    seed: int
    jobs: Jobs
    waits: Mapping[str, Floats]
    found: Mapping[str, Figures]
    rule: str
    keeping: Sequence[str]

    def step(self, part: str, scheduler: str | Scheduler, waits: Floats) -> Step:
        """A candidate from its waits in a replay of the past, s, [jobs]."""
        fit = self.jobs.submit_s < self.split.fit_until_s
        rest, rule = self.jobs.part(~fit), self.waits[self.rule_of(fit)]
        week = self.split.validation_weeks(rest.submit_s)
        return self._judged((part, scheduler), waits, self.value(waits, fit), (rest, waits[~fit], rule[~fit], week))

    def crossed(self, part: str, scheduler: str | Scheduler, waits: Floats, unseen: Floats) -> Step:
        """A candidate that was chosen on all of the past, from its waits there, and from those of candidates that were chosen likewise on
        one half of the past, in the other half (`unseen`): by these it is judged."""
        every, week = np.ones(len(waits), bool), self.split.past_weeks(self.jobs.submit_s)
        first, second = (self.waits[self.rule_of(self.inside(half))] for half in self.split.halves)
        rule = np.where(self.inside(self.split.halves[1]), first, second)
        return self._judged((part, scheduler), waits, self.value(unseen, every), (self.jobs, unseen, rule, week))

    def _judged(
        self, what: tuple[str, str | Scheduler], waits: Floats, fit: float, seen: tuple[Jobs, Floats, Floats, NDArray[np.int64]]
    ) -> Step:
        """A step. seen: the jobs by which it is judged, its waits, the rule's, and their weeks."""
        jobs, unseen, rule, week = seen
        ratio = judge.ratio_by_week(jobs, unseen, rule, self.figure, week, self.seed)
        ours, theirs = figures(jobs, unseen)[self.figure], figures(jobs, rule)[self.figure]
        total = math.exp(log_ratio(ours, theirs, self.figure))
        own = figures(self.jobs, waits)
        whole = self.value(waits, np.ones(len(waits), bool))
        return Step(*what, fit, whole, self.promise.excess(own, self.found), ratio, total, own)

    def inside(self, span: tuple[float, float]) -> NDArray[np.bool_]:
        """Which jobs are submitted in a span [s, s)."""
        return np.asarray((self.jobs.submit_s >= span[0]) & (self.jobs.submit_s < span[1]))

    def value(self, waits: Floats, inside: NDArray[np.bool_]) -> float:
        """The value of a schedule on some of the jobs; see `choice.value`."""
        jobs = self.jobs.part(inside)
        return value(jobs, waits[inside], self.waits[REFERENCE][inside], self.figure, self.split.past_weeks(jobs.submit_s))

    def rule_of(self, inside: NDArray[np.bool_]) -> str:
        """The rule that is best on some of the jobs, of those that keep the promise on the whole past."""
        return min(self.keeping, key=lambda name: self.value(self.waits[name], inside))


def best_of(steps: Sequence[Step]) -> Step | None:
    """The one with the least value on the first part, of those that keep the promise."""
    return min((step for step in steps if step.excess == 0.0), key=lambda step: step.fit, default=None)


def kept_of(steps: Sequence[Step], rule: float) -> list[Step]:
    """What is kept: the best of each part, where it is ahead of the best rule (`rule`: its value on the whole past); the last is best."""
    best = [best_of([step for step in steps if step.part == part]) for part in PARTS]
    return sorted((step for step in best if step is not None and step.ahead and step.whole < rule), key=lambda step: -step.whole)
