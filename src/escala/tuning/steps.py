"""Beyond the rules: predictions, orders of those who pass, given scores, searched weights; and which of them is kept.

A candidate that was chosen on one part of the past is judged on another, beside the rule that is best on that same
part: what is chosen from many is worse elsewhere, and so is a rule. Of predictions, and of orders of those who pass,
the one with the least value on the first part (`split`) is judged on the rest. Searched weights, and the guards of
given scores, are chosen on each half and judged on the other (`search`).

Two kinds were ahead on the pasts of many logs (docs/studies/queue2026.md), in mean bounded slowdown: orders by a model
of the log's own past, and given scores. Of one log's weeks few can prove as much, so these are chosen as rules are, by
their value on the whole past under the promise. Everything else is kept only where it is ahead of the best rule by the
whole interval over paired weeks that its choice had not seen, in the figure of all those weeks together, and on the
whole past.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.policies.schedulers import Scheduler
from escala.policies.tuned import parts_of
from escala.tuning import judge
from escala.tuning.choice import REFERENCE, Ranked, Tried, value
from escala.tuning.measures import Figures, Floats, Jobs, figures
from escala.tuning.near import TOLD
from escala.tuning.promise import Promise, log_ratio
from escala.tuning.replays import Replays
from escala.tuning.split import Split
from escala.workload import Workload

PREDICTION, PASSING, GIVEN, WEIGHTS = PARTS = "prediction", "backfill", "given score", "weights"
EVEN = 0.02
"""Values (logarithms of ratios) so near each other say nothing: then the order goes by a model, if it is better than
easy's."""


@dataclass(frozen=True)
class Step:
    """One candidate beyond the rules.

    fit, whole: its value on the first part of the past and on all of it (`choice.value`); excess: 0 where the promise
    is kept on the past.
    ratio: the geometric mean, over the weeks not seen in the choice of a part or half, of its figure to that of the
    rule chosen likewise, with its interval; None where these are too few weeks;
    total: the ratio of the figures of all these weeks together. Of searched weights and given scores fit is of weeks
    not seen too. figures: on the past of each log. Of several logs values are means, and ratios geometric means over
    them.
    """

    part: str
    scheduler: str | Scheduler
    fit: float
    whole: float
    excess: float
    ratio: judge.Ratio
    total: float
    figures: tuple[Figures, ...]

    @property
    def name(self) -> str:
        """The scheduler's name."""
        return self.scheduler if isinstance(self.scheduler, str) else self.scheduler.name

    @property
    def by_model(self) -> bool:
        """Does its order go by the model of this past, and its plan by requests?"""
        said = parts_of(self.name)
        return said.get("order_estimate") == TOLD and "estimate" not in said

    @property
    def held(self) -> bool:
        """Is it of a kind that was ahead on other logs?"""
        plain = set(parts_of(self.name)).isdisjoint({"estimate", "order_estimate"})
        return self.part in (PREDICTION, GIVEN) and (self.by_model or plain)

    @property
    def worth(self) -> float:
        """Its value on the whole past, with what an order by a model has before others."""
        return self.whole - EVEN * self.by_model

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
            "ahead": self.ahead,
            "held": self.held,
            "value": self.whole,
            "validation": list(self.ratio),
            "total": self.total,
        }


@dataclass(frozen=True)
class Past:
    """The past of one log, and how candidates are valued on it. log: its jobs; baselines: what the promise can name,
    and found: their figures; waits: under the rules and baselines, s, [jobs]; rules: judged here."""

    log: Workload
    replays: Replays
    figure: str
    promise: Promise
    split: Split
    jobs: Jobs
    baselines: Sequence[Any]
    waits: Mapping[str, Floats]
    found: Mapping[str, Figures]
    rules: Sequence[Tried]

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """The two halves, and all of it, each [s, s)."""
        return *self.split.halves, (self.split.first_s, self.split.at_s)

    @property
    def parts(self) -> bool:
        """Have the halves, and the part that is judged, jobs?"""
        spans = (*self.spans, (self.split.first_s, self.split.fit_until_s), (self.split.fit_until_s, self.split.at_s))
        return all(self.inside(span).any() for span in spans)

    def inside(self, span: tuple[float, float]) -> NDArray[np.bool_]:
        """Which jobs are submitted in a span [s, s)."""
        return np.asarray((self.jobs.submit_s >= span[0]) & (self.jobs.submit_s < span[1]))

    def value(self, waits: Floats, inside: NDArray[np.bool_]) -> float:
        """The value of a schedule on some of the jobs; see `choice.value`."""
        jobs = self.jobs.part(inside)
        return value(
            jobs, waits[inside], self.waits[REFERENCE][inside], self.figure, self.split.past_weeks(jobs.submit_s)
        )

    def excess(self, waits: Floats) -> float:
        """Of a schedule over the promise."""
        return self.promise.excess(figures(self.jobs, waits), self.found)


class Seen(NamedTuple):
    """By what a candidate is judged on one log: its jobs, the candidate's waits, the rule's, and the week of each
    job."""

    jobs: Jobs
    waits: Floats
    rule: Floats
    week: NDArray[np.int64]


@dataclass(frozen=True)
class Pasts:
    """The pasts of the logs that get one policy; each counts alike. rules: on all of them; rule: the best. Waits and
    masks below: of each log, in their order."""

    each: Sequence[Past]
    rules: Sequence[Ranked]
    rule: Ranked
    seed: int

    def value(self, waits: Sequence[Floats], inside: Sequence[NDArray[np.bool_]]) -> float:
        """The mean value of schedules on some of the jobs."""
        return sum(past.value(own, mask) for past, own, mask in zip(self.each, waits, inside, strict=True)) / len(
            self.each
        )

    def excess(self, waits: Sequence[Floats]) -> float:
        """Of schedules over the promise, added up."""
        return sum(past.excess(own) for past, own in zip(self.each, waits, strict=True))

    def inside(self, span: int) -> list[NDArray[np.bool_]]:
        """Which jobs are in a span of `Past.spans`."""
        return [past.inside(past.spans[span]) for past in self.each]

    def step(self, part: str, scheduler: str | Scheduler, waits: Sequence[Floats]) -> Step:
        """A candidate from its waits in replays of the pasts, judged on the last part of each."""
        fit = [past.jobs.submit_s < past.split.fit_until_s for past in self.each]
        rule, seen = self.rule_of(fit), list[Seen]()
        for past, own, first in zip(self.each, waits, fit, strict=True):
            rest = past.jobs.part(~first)
            seen.append(Seen(rest, own[~first], past.waits[rule][~first], past.split.validation_weeks(rest.submit_s)))
        return self._judged((part, scheduler), waits, self.value(waits, fit), seen)

    def crossed(self, part: str, scheduler: str | Scheduler, waits: Sequence[Floats], unseen: Sequence[Floats]) -> Step:
        """A candidate that was chosen on all of the past, from its waits there, and from those of candidates that were
        chosen likewise on one half of the past, in the other half (`unseen`): by these it is judged."""
        first, second = (self.rule_of(self.inside(half)) for half in (0, 1))
        seen = list[Seen]()
        for past, own in zip(self.each, unseen, strict=True):
            rule = np.where(past.inside(past.spans[1]), past.waits[first], past.waits[second])
            seen.append(Seen(past.jobs, own, rule, past.split.past_weeks(past.jobs.submit_s)))
        return self._judged((part, scheduler), waits, self.value(unseen, self.inside(2)), seen)

    def _judged(
        self, what: tuple[str, str | Scheduler], waits: Sequence[Floats], fit: float, seen: Sequence[Seen]
    ) -> Step:
        """A step."""
        figure = self.each[0].figure
        ratio: judge.Ratio = (None, None, None)
        if all(past.split.validates for past in self.each):
            ratio = judge.mean_over_logs(
                [judge.weeks_of(one.jobs, one.waits, one.rule, figure, one.week) for one in seen], self.seed
            )
        pairs = [(figures(one.jobs, one.waits)[figure], figures(one.jobs, one.rule)[figure]) for one in seen]
        total = math.exp(sum(log_ratio(ours, theirs, figure) for ours, theirs in pairs) / len(pairs))
        own = tuple(figures(past.jobs, each) for past, each in zip(self.each, waits, strict=True))
        return Step(*what, fit, self.value(waits, self.inside(2)), self.excess(waits), ratio, total, own)

    def rule_of(self, inside: Sequence[NDArray[np.bool_]]) -> str:
        """The rule that is best on some of the jobs, of those that keep the promise on the whole past of every log."""
        keeping = [rule.name for rule in self.rules if rule.excess == 0.0]
        return min(keeping, key=lambda name: self.value([past.waits[name] for past in self.each], inside))


def best_of(steps: Sequence[Step]) -> Step | None:
    """The one with the least value on the first part, then on all of it, of those that keep the promise."""
    return min((step for step in steps if step.excess == 0.0), key=lambda step: (step.fit, step.whole), default=None)


def kept_of(steps: Sequence[Step], rule: float) -> Step | None:
    """What is kept in the place of the best rule (`rule`: its value on the whole past), None: nothing. Of a kind that
    held elsewhere what is better; of the others the best of each part where it is ahead."""
    among = [step for step in steps if step.held and step.excess == 0.0]
    for part in PARTS:
        best = best_of([step for step in steps if step.part == part and not step.held])
        among += [best] if best is not None and best.ahead and best.whole < rule else []
    better = [step for step in among if step.worth < rule and step.whole < 0.0]
    return min(better, key=lambda step: step.worth, default=None)
