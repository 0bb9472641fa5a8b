"""Instances with more ticks than the proofs can count (2^40), in ticks `unit` times as long.

`below`: releases and lengths are rounded down, what costs is rounded up. With s' = floor(s / unit) every schedule s of
the fine instance becomes one of the coarse instance that costs no more, so that a bound of the coarse one is proved for
the fine one:

- Capacity: if the coarse job covers tick k, that is floor(s / unit) <= k < floor(s / unit) + floor(length / unit), the
  fine one runs in the last fine tick of k, for s < (k + 1) unit <= s + length. So all jobs that meet in a coarse tick
  meet in a fine one.
- Cost: max(0, s' - ceil(ready / unit)) / ceil(divisor / unit) <= max(0, s - ready) / divisor.

A job shorter than a coarse tick takes no capacity. `above`: releases and lengths rounded up, so every schedule, times
`unit`, is one of the fine instance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from escala.optimum.bounds import RELAXATIONS, Bound, Progress, Step, down, status_of, within
from escala.optimum.instance import MAX_TICK, Instance, Ints, check_schedule
from escala.optimum.searcher import Searcher

PROOFS = ("wspt", "lagrange")
EXACT_TICKS = 1 << 20  # solvers want few ticks: of more, weights do not fit CP-SAT's integers, and models their memory


def unit_for(instance: Instance, most: int | None = None) -> int:
    """Ticks in a coarse tick: the least power of ten that leaves fewer than `most` (what the proofs can count); 1 where
    there is nothing to round."""
    unit, most = 1, MAX_TICK if most is None else most
    while (instance.horizon - int(instance.release.min())) // unit + 2 * instance.jobs + 2 >= most and unit < MAX_TICK:
        unit *= 10
    return unit


def below(instance: Instance, unit: int) -> Instance:
    """The coarse instance of which no schedule costs more than the fine one that it stands for; its first release is
    0."""
    origin = int(instance.release.min())
    length = instance.length // unit
    none = length == 0
    release = (instance.release - origin) // unit
    if not instance.summed:
        # a job of no length ends where it starts, and here it has one tick
        release = np.where(none, np.maximum(0, release - 1), release)
    demand = np.where(none[:, None], 0, instance.demand)
    coarse = Instance(
        release, np.maximum(1, length), demand, instance.capacity, instance.objective, max(1, instance.pi // unit)
    )
    object.__setattr__(coarse, "ready", -((origin - instance.ready) // unit))
    if instance.objective.endswith("slowdown"):
        object.__setattr__(coarse, "divisor", -(-instance.divisor // unit))
    return coarse


def proved(instance: Instance, unit: int, lower: float) -> Fraction:
    """The bound of the fine instance, in its unit, that a bound of `below` is."""
    if instance.objective.endswith("slowdown"):
        return Fraction(lower)
    return Fraction(lower) * unit  # waits; and the makespan, as both first releases are the origin


def above(instance: Instance, unit: int) -> Instance:
    """The coarse instance whose schedules are all real ones; its first release is 0."""
    release = -((int(instance.release.min()) - instance.release) // unit)
    return replace(instance, release=release, length=-(-instance.length // unit), pi=max(1, instance.pi // unit))


class Rounded:
    """The bound of an instance of too many ticks: proved of the coarse instance below it; schedules by the one above,
    in fine ticks.

    bound: `escala.optimum.bound`, which does the work on coarse instances. First proofs, then the search, then the
    proofs again with the better schedule to aim at; each but the last takes at most half of the time that is left.
    """

    def __init__(
        self,
        instance: Instance,
        unit: int,
        bound: Callable[..., Bound],
        limit_s: float,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.instance, self.bound = instance, bound
        self.least = self.unit = unit  # of the proofs; of the best of them
        self.limit_s, self.seed, self.progress = limit_s, seed, progress
        self.begin = time.monotonic()
        self.starts: Ints | None = None
        self.lower: float | None = None
        self.prover = ""
        self.done: list[Step] = []
        self.cut = self.interrupted = False

    def run(self, steps: Sequence[str], exact: bool, known: Ints | None) -> Bound:
        """As `escala.optimum.bound`, whose arguments these are."""
        if known is not None:
            check_schedule(self.instance, known)
            self.starts = np.asarray(known, np.int64)
        try:
            self._steps([name for name in steps if name in PROOFS], "search" in steps, exact)
        except KeyboardInterrupt:
            self.interrupted = True
        found = None if self.starts is None else self.instance.value(self.starts)
        lower = within(self.lower, found, self.prover)
        return Bound(
            status_of(lower, found), self.instance.objective, self.instance.jobs, lower, found, self.starts,
            self.prover, RELAXATIONS,
            tuple(self.done), time.monotonic() - self.begin, self.seed, self.limit_s, self.cut, self.interrupted,
            self.unit,
        )  # fmt: skip

    def _steps(self, proofs: list[str], searches: bool, exact: bool) -> None:
        if proofs:
            self._prove(proofs, 0.5 if searches or exact else 1.0)
        if searches and not self.interrupted:
            self._search()
        again = [name for name in proofs if name != "wspt"]
        if searches and again and not self.interrupted and self._left() > 0:
            self._prove(again, 0.5 if exact else 1.0)
        if exact and not self.interrupted and self._left() > 0:
            self._prove(again, 1.0, max(self.least, unit_for(self.instance, EXACT_TICKS)))

    def _left(self) -> float:
        return self.begin + self.limit_s - time.monotonic()

    def _tell(self, step: Step, unit: int) -> Step:
        """A step in the fine unit, with the best that is known by then."""
        lower = None if step.lower is None else down(proved(self.instance, unit, step.lower))
        lower = self.lower if lower is None or (self.lower is not None and self.lower > lower) else lower
        return replace(step, lower=lower, found=None if self.starts is None else self.instance.value(self.starts))

    def _prove(self, names: list[str], share: float, exact_unit: int | None = None) -> None:
        """Proofs with so large a share of the time that is left. exact_unit: also by solvers, in ticks so long."""
        unit = self.least if exact_unit is None else exact_unit
        aim = None if self.starts is None else (self.starts - int(self.instance.release.min())) // unit
        limit_s, tell, low = max(1e-3, share * self._left()), self.progress, below(self.instance, unit)
        report = None if tell is None else lambda step: tell(self._tell(step, unit))
        exact = exact_unit is not None
        part = self.bound(low, exact=exact, limit_s=limit_s, seed=self.seed, progress=report, steps=names, known=aim)
        lower = None if part.lower is None else down(proved(self.instance, unit, part.lower))
        if lower is not None and (self.lower is None or lower > self.lower):
            self.lower, self.unit, self.prover = lower, unit, f"{part.prover}, of times rounded to {unit} ticks"
        self._note(part, unit)

    def _search(self) -> None:
        part = self.bound(
            above(self.instance, self.least), limit_s=max(1e-3, self._left() / 2), seed=self.seed, steps=("search",)
        )
        if part.starts is not None:
            found = Searcher(self.instance, self.seed).generate(np.argsort(part.starts, kind="stable"))
            check_schedule(self.instance, found)
            if self.starts is None or self.instance.value(found) < self.instance.value(self.starts):
                self.starts = found
        before = len(self.done)
        self._note(replace(part, steps=tuple(replace(step, lower=None) for step in part.steps)), self.least)
        if self.progress is not None:
            for step in self.done[before:]:
                self.progress(step)

    def _note(self, part: Bound, unit: int) -> None:
        self.done += [self._tell(step, unit) for step in part.steps]
        self.cut |= part.cut
        self.interrupted |= part.interrupted
