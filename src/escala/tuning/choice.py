"""The best rule of the past: the least value of those that keep the promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.tuning.measures import Figures, Floats, Jobs, figures, in_weeks
from escala.tuning.promise import Promise, log_ratio

REFERENCE = "easy"


@dataclass(frozen=True)
class Tried:
    """A rule on the past. value: the lower, the better, 0: as easy; excess: 0 where the promise is kept; figures: see
    `measures`."""

    name: str
    value: float
    excess: float
    figures: Figures


@dataclass(frozen=True)
class Ranked:
    """A rule on the pasts of one log or several, each of which counts alike. on: of each log."""

    on: tuple[Tried, ...]

    @property
    def name(self) -> str:
        """The rule."""
        return self.on[0].name

    @property
    def value(self) -> float:
        """The mean over the logs."""
        return sum(one.value for one in self.on) / len(self.on)

    @property
    def excess(self) -> float:
        """0 where the promise is kept on every log."""
        return sum(one.excess for one in self.on)


def value(jobs: Jobs, waits: Floats, reference: Floats, figure: str, week: NDArray[np.int64]) -> float:
    """log(figure / the reference's), half of all jobs together, half of the weeks weighted by sqrt(jobs): many weeks
    must gain, not one alone. waits, reference: s, [jobs]."""
    whole = log_ratio(figures(jobs, waits)[figure], figures(jobs, reference)[figure], figure)
    own, other = in_weeks(jobs, waits, figure, week), in_weeks(jobs, reference, figure, week)
    counts = np.bincount(week)
    each = [log_ratio(a, b, figure) for a, b in zip(own, other, strict=True)]
    return 0.5 * whole + 0.5 * float(np.average(each, weights=np.sqrt(counts[counts > 0])))


def tried(
    jobs: Jobs,
    waits: Mapping[str, Floats],
    names: Sequence[str],
    figure: str,
    promise: Promise,
    week: NDArray[np.int64],
) -> list[Tried]:
    """Every rule judged on the past, in the order of `names`. waits: of these rules, and of what the promise names."""
    found = {name: figures(jobs, waits[name]) for name in waits}
    return [
        Tried(
            name,
            value(jobs, waits[name], waits[REFERENCE], figure, week),
            promise.excess(found[name], found),
            found[name],
        )
        for name in names
    ]


def ranked(rules: Sequence[Sequence[Tried]]) -> list[Ranked]:
    """The rules of each log, in one order, as those of all."""
    return [Ranked(on) for on in zip(*rules, strict=True)]


def best(
    rules: Sequence[Ranked], promise: Promise, found: Sequence[Mapping[str, Figures]], logs: Sequence[str]
) -> Ranked:
    """The best rule that keeps the promise on every log; EscalaError, with the nearest rule, where none does. found: on
    each log, of what the promise names; logs: their names."""
    keeping = [rule for rule in rules if rule.excess == 0.0]
    if keeping:
        return min(keeping, key=lambda rule: rule.value)
    nearest = min(rules, key=lambda rule: (rule.excess, rule.value))
    placed = {log: f" on {log}" if len(logs) > 1 else "" for log in logs}
    missed = [
        f"{clause} ({_reached(on.figures[clause.figure], clause.bound(of), clause.figure)}{placed[log]})"
        for on, of, log in zip(nearest.on, found, logs, strict=True)
        for clause in promise.clauses
        if not clause.kept(on.figures, of)
    ]
    where = "the log's past" if len(logs) == 1 else f"the pasts of all {len(logs)} logs"
    raise EscalaError(
        f"no rule of {len(rules)} keeps the promise on {where}: the nearest is {nearest.name}, which misses "
        f"{'; '.join(missed)}: promise no more than that (--promise)"
    )


def _reached(own: float, bound: float, figure: str) -> str:
    """What a figure is, and what it may be."""
    return f"{own / 3600:.2f} h of {bound / 3600:.2f} h" if figure.endswith("_s") else f"{own:.2f} of {bound:.2f}"
