"""The best rule of the past: the least value of those that keep the promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.tuning.candidates import BASELINES
from escala.tuning.measures import Figures, Floats, Jobs, figures, in_weeks
from escala.tuning.promise import Promise, log_ratio

REFERENCE = "easy"


@dataclass(frozen=True)
class Tried:
    """A rule on the past. value: the lower, the better, 0: as easy; excess: 0 where the promise is kept; figures: see `measures`."""

    name: str
    value: float
    excess: float
    figures: Figures


def value(jobs: Jobs, waits: Floats, reference: Floats, figure: str, week: NDArray[np.int64]) -> float:
    """log(figure / the reference's), half of all jobs together, half of the weeks weighted by sqrt(jobs): many weeks must gain, not one
    alone. waits, reference: s, [jobs]."""
    whole = log_ratio(figures(jobs, waits)[figure], figures(jobs, reference)[figure], figure)
    own, other = in_weeks(jobs, waits, figure, week), in_weeks(jobs, reference, figure, week)
    counts = np.bincount(week)
    each = [log_ratio(a, b, figure) for a, b in zip(own, other, strict=True)]
    return 0.5 * whole + 0.5 * float(np.average(each, weights=np.sqrt(counts[counts > 0])))


def tried(
    jobs: Jobs, waits: Mapping[str, Floats], names: Sequence[str], figure: str, promise: Promise, week: NDArray[np.int64]
) -> list[Tried]:
    """Every rule judged on the past, in the order of `names`. waits: of these rules, and of what the promise names."""
    found = {name: figures(jobs, waits[name]) for name in waits}
    return [
        Tried(name, value(jobs, waits[name], waits[REFERENCE], figure, week), promise.excess(found[name], found), found[name])
        for name in names
    ]


def best(rules: Sequence[Tried], promise: Promise, found: Mapping[str, Figures]) -> Tried:
    """The best rule that keeps the promise; EscalaError, with the nearest rule, where none does. found: of what the promise names."""
    keeping = [rule for rule in rules if rule.excess == 0.0]
    if keeping:
        return min(keeping, key=lambda rule: rule.value)
    nearest = min(rules, key=lambda rule: (rule.excess, rule.value))
    missed = [clause for clause in promise.clauses if not clause.kept(nearest.figures, found)]
    told = "; ".join(f"{clause} ({_reached(nearest.figures[clause.figure], clause.bound(found), clause.figure)})" for clause in missed)
    raise EscalaError(
        f"no rule of {len(rules)} keeps the promise on the log's past: the nearest is {nearest.name}, which misses {told}: "
        f"promise less (--promise), or name other schedulers than {' and '.join(BASELINES)}"
    )


def _reached(own: float, bound: float, figure: str) -> str:
    """What a figure is, and what it may be."""
    return f"{own / 3600:.2f} h of {bound / 3600:.2f} h" if figure.endswith("_s") else f"{own:.2f} of {bound:.2f}"
