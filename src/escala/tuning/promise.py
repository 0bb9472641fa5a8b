"""A promise on waits, such as "p99-wait<=1.05*easy, longest-wait<=1.25*easy": what may not get worse.

    promise = clause {"," clause};  clause = FIGURE "<=" (FACTOR "*" SCHEDULER | TIME)

FIGURE is slowdown, mean-wait, median-wait, p95-wait, p99-wait, longest-wait or area-wait; TIME is 24h, 30m, 2d or 90
(seconds).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from escala.errors import EscalaError, quoted
from escala.tuning.measures import Figures

PROMISED = {
    "slowdown": "bounded_slowdown",
    "mean-wait": "mean_wait_s",
    "median-wait": "median_wait_s",
    "p95-wait": "p95_wait_s",
    "p99-wait": "p99_wait_s",
    "longest-wait": "longest_wait_s",
    "area-wait": "area_weighted_wait_s",
}
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MINUTE_S = 60.0
"""Waits that differ by less than a minute are not told apart: what is added to both before a logarithm is taken."""
EXAMPLE = "p99-wait<=1.05*easy"
SLACK = 1e-9


@dataclass(frozen=True)
class Clause:
    """One condition. limit: times the figure of the scheduler `of`; of None: the figure itself."""

    name: str
    limit: float
    of: str | None

    @property
    def figure(self) -> str:
        """The figure that is bounded."""
        return PROMISED[self.name]

    def __str__(self) -> str:
        if self.of is not None:
            return f"{self.name}<={self.limit:g}*{self.of}"
        return (
            f"{self.name}<={self.limit:g}" if self.name == "slowdown" else f"{self.name}<={self.limit / UNITS['h']:g}h"
        )

    def bound(self, found: Mapping[str, Figures]) -> float:
        """What the figure may be. found: of each scheduler that a promise can name."""
        return self.limit if self.of is None else self.limit * found[self.of][self.figure]

    def kept(self, own: Figures, found: Mapping[str, Figures]) -> bool:
        """Does a schedule with these figures keep it?"""
        bound = self.bound(found)
        return own[self.figure] <= bound + SLACK * max(abs(bound), 1.0)

    def excess(self, own: Figures, found: Mapping[str, Figures]) -> float:
        """log(figure / bound), 0 where it is kept."""
        return 0.0 if self.kept(own, found) else log_ratio(own[self.figure], self.bound(found), self.figure)


@dataclass(frozen=True)
class Promise:
    """All conditions together."""

    clauses: tuple[Clause, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.clauses))

    def excess(self, own: Figures, found: Mapping[str, Figures]) -> float:
        """The sum of the logarithms by which conditions are missed; 0: kept."""
        return sum(clause.excess(own, found) for clause in self.clauses)

    def judged(self, own: Figures, found: Mapping[str, Figures]) -> list[dict[str, Any]]:
        """Of each condition what the figure is, what it may be, and whether it is kept."""
        return [
            {
                "clause": str(c),
                "figure": c.figure,
                "value": own[c.figure],
                "bound": c.bound(found),
                "kept": c.kept(own, found),
            }
            for c in self.clauses
        ]


def log_ratio(own: float, other: float, figure: str) -> float:
    """log(own / other) of a figure; a minute is added to waits."""
    more = MINUTE_S if figure.endswith("_s") else 0.0
    return math.log((own + more) / (other + more))


def promise_of(text: str, schedulers: Sequence[str]) -> Promise:
    """The promise that a text says. schedulers: those that it can name; EscalaError for what is no promise."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise EscalaError(f"the promise is empty (--promise): write {EXAMPLE}, or longest-wait<=48h")
    clauses = tuple(_clause(part, schedulers) for part in parts)
    return Promise(clauses)


def _clause(text: str, schedulers: Sequence[str]) -> Clause:
    name, sign, bound = (part.strip() for part in text.partition("<="))
    if not sign or not bound:
        raise EscalaError(
            f"promise {quoted(text)} (--promise): a condition is FIGURE<=FACTOR*SCHEDULER, such as {EXAMPLE}"
        )
    if name not in PROMISED:
        near = difflib.get_close_matches(name, PROMISED, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise EscalaError(
            f"promise {quoted(text)} (--promise): {quoted(name)} is no figure: {hint}known are {', '.join(PROMISED)}"
        )
    factor, times, of = (part.strip() for part in bound.partition("*"))
    if not times:
        return Clause(name, _limit(name, bound, text), None)
    if of not in schedulers:
        raise EscalaError(
            f"promise {quoted(text)} (--promise): {quoted(of)} is not replayed for comparison: name "
            f"{' or '.join(schedulers)}, or the scheduler of --present"
        )
    return Clause(name, _number(factor, text, 0.0), of)


def _limit(name: str, bound: str, text: str) -> float:
    """A bound that names no scheduler: a time in s, or a slowdown."""
    if name == "slowdown":
        return _number(bound, text, 1.0)
    found = re.fullmatch(r"([^smhd]*)([smhd]?)", bound)
    if found is None or not found[1].strip():
        raise EscalaError(
            f"promise {quoted(text)} (--promise): {quoted(bound)} is no time: write 48h, 30m, 2d, or FACTOR*SCHEDULER"
        )
    return _number(found[1], text, 0.0) * UNITS[found[2] or "s"]


def _number(word: str, text: str, least: float) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not least <= value < 1e12:
        raise EscalaError(f"promise {quoted(text)} (--promise): {quoted(word)} is no number of at least {least:g}")
    return value
