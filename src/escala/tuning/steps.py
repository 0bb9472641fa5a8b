"""Beyond the rules: predictions, orders of those who pass, and searched weights, each kept only if it is ahead of the best rule on weeks of
the past that its search has not seen.

The past has two parts (`split`). Of predictions, and of orders of those who pass, the one with the least value on the first part that keeps
the promise on the whole past is *kept* if its figure in the second part is below the best rule's by the whole interval over paired weeks.
Searched weights are judged on all weeks of the past, each week by weights that were searched on the other half of it (`search`). The best
rule itself was chosen on the whole past: the comparison is in its favour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escala.policies.schedulers import Scheduler
from escala.tuning import judge
from escala.tuning.choice import REFERENCE, value
from escala.tuning.measures import Figures, Floats, Jobs, figures
from escala.tuning.promise import Promise
from escala.tuning.split import Split

PREDICTION, PASSING, WEIGHTS = PARTS = "prediction", "backfill", "weights"


@dataclass(frozen=True)
class Step:
    """One candidate beyond the rules.

    fit, whole: its value on the first part of the past and on all of it (`choice.value`); excess: 0 where the promise is kept on the past;
    ratio: its figure to the best rule's on the second part, with its interval. Of searched weights fit and ratio are of weeks that their
    search had not seen (`Past.crossed`).
    """

    part: str
    scheduler: str | Scheduler
    fit: float
    whole: float
    excess: float
    ratio: judge.Ratio
    figures: Figures

    @property
    def name(self) -> str:
        """The scheduler's name."""
        return self.scheduler if isinstance(self.scheduler, str) else self.scheduler.name

    @property
    def ahead(self) -> bool:
        """Is it ahead of the best rule by the whole interval, and keeps the promise?"""
        high = self.ratio[2]
        return self.excess == 0.0 and high is not None and high < 1.0

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"part": self.part, "name": self.name, "kept": self.ahead, "value": self.whole, "validation": list(self.ratio)}


@dataclass(frozen=True)
class Past:
    """The past, and how candidates are judged on it. waits: under the rules and baselines, s, [jobs]; found: figures of what the promise
    can name; rule: the best rule's name."""

    figure: str
    promise: Promise
    split: Split
    seed: int
    jobs: Jobs
    waits: Mapping[str, Floats]
    found: Mapping[str, Figures]
    rule: str

    def step(self, part: str, scheduler: str | Scheduler, waits: Floats) -> Step:
        """A candidate from its waits in a replay of the past, s, [jobs]."""
        submit, easy, rule = self.jobs.submit_s, self.waits[REFERENCE], self.waits[self.rule]
        fit = submit < self.split.fit_until_s
        week, own = self.split.past_weeks(submit), figures(self.jobs, waits)
        of_rest = self.split.validation_weeks(submit[~fit])
        ratio = judge.ratio(self.jobs.part(~fit), waits[~fit], rule[~fit], self.figure, of_rest, self.seed)
        fitted = value(self.jobs.part(fit), waits[fit], easy[fit], self.figure, week[fit])
        whole = value(self.jobs, waits, easy, self.figure, week)
        return Step(part, scheduler, fitted, whole, self.promise.excess(own, self.found), ratio, own)

    def crossed(self, part: str, scheduler: str | Scheduler, waits: Floats, unseen: Floats) -> Step:
        """A candidate that was searched on all of the past, from its waits there, and from those of candidates that the same search found
        on one half of the past, in the other half (`unseen`): by these it is judged."""
        submit, easy, rule = self.jobs.submit_s, self.waits[REFERENCE], self.waits[self.rule]
        week, own = self.split.past_weeks(submit), figures(self.jobs, waits)
        ratio = judge.ratio_by_week(self.jobs, unseen, rule, self.figure, week, self.seed)
        fitted, whole = (value(self.jobs, each, easy, self.figure, week) for each in (unseen, waits))
        return Step(part, scheduler, fitted, whole, self.promise.excess(own, self.found), ratio, own)


def best_of(steps: Sequence[Step]) -> Step | None:
    """The one with the least value on the first part, of those that keep the promise."""
    return min((step for step in steps if step.excess == 0.0), key=lambda step: step.fit, default=None)


def kept_of(steps: Sequence[Step], rule: float) -> list[Step]:
    """What is kept: the best of each part, where it is ahead of the best rule (`rule`: its value on the whole past); the last is best."""
    best = [best_of([step for step in steps if step.part == part]) for part in PARTS]
    return sorted((step for step in best if step is not None and step.ahead and step.whole < rule), key=lambda step: -step.whole)
