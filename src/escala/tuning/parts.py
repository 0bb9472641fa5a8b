"""What each part of a policy gives on the later weeks: order, guard, prediction, weights; and what perfect runtimes
would."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from escala.foresight import RUNTIME
from escala.policies.schedulers import Scheduler
from escala.policies.tuned import parts_of
from escala.tuning.judge import Ratio
from escala.tuning.measures import Figures
from escala.tuning.near import named
from escala.tuning.steps import Step

ORDER, GUARD, PERFECT = "order", "guard", "perfect runtimes"


@dataclass(frozen=True)
class Part:
    """A policy with the parts so far. name: of the scheduler; figures: on the later weeks; easy, before: its ratios to
    easy and to the part before (`perfect runtimes`: to the policy). clairvoyant: does it know what no scheduler can?"""

    part: str
    name: str
    figures: Figures
    easy: dict[str, Ratio]
    before: dict[str, Ratio]

    @property
    def clairvoyant(self) -> bool:
        """Is it no policy that can be run?"""
        return self.part == PERFECT

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        ratios = {"easy": self.easy, "before": self.before}
        plain = {against: {name: list(found) for name, found in each.items()} for against, each in ratios.items()}
        return {
            "part": self.part,
            "name": self.name,
            "clairvoyant": self.clairvoyant,
            "later": self.figures,
            "ratio": plain,
        }


def parts_in(rule: str, kept: Step | None, chosen: str | Scheduler) -> list[tuple[str, str | Scheduler]]:
    """(part, scheduler), each with one part more: the rule's order, its guard, what was kept in its place, and the
    policy with perfect runtimes."""
    said = parts_of(rule)
    order = said["formula"]
    found: list[tuple[str, str | Scheduler]] = [(ORDER, order)]
    if "guard" in said:
        found.append((GUARD, rule))
    found += [(kept.part, kept.scheduler)] if kept is not None else []
    return [*found, (PERFECT, perfect(chosen))]


def perfect(scheduler: str | Scheduler) -> str | Scheduler:
    """The same with the run times in place of estimates: clairvoyant."""
    if isinstance(scheduler, Scheduler):
        return replace(scheduler, estimate=RUNTIME, order_estimate=None, name=_perfect(scheduler.name))
    return _perfect(scheduler)


def _perfect(name: str) -> str:
    said = parts_of(name)
    return named(said["formula"], said.get("guard", ""), estimate=RUNTIME)
