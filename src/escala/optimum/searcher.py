"""The best schedule so far, and the ways to better it: priority rules, annealing of all jobs, annealing of some jobs
around the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from escala.errors import EscalaError
from escala.optimum.anneal import Words, anneal, room_for
from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.profile import Profile, fresh, leave, pack, serial

COLD = 0.1  # last temperature, in delays of a typical job by its own length (slowdown: by 1)
PART_HOT, PART_COLD = 0.03, 0.01  # of a part of the jobs: near to what it was


class Searcher:
    """The arrays that the compiled loops want, and the best schedule so far."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.words, self.capacity, self.guards = pack(instance.demand, instance.capacity)
        self.random = np.random.default_rng([seed, 0x5EA])
        self.span_weight = 0.0 if instance.summed else 1.0
        scale = float(np.median(instance.length))
        self.weight: Floats = (
            1.0 / instance.divisor if instance.summed else np.full(instance.jobs, 0.05 / instance.jobs)
        )
        self.unit = float(np.median(instance.length / instance.divisor)) if instance.summed else scale / 2
        self.starts: Ints = self.generate(np.argsort(instance.release, kind="stable"))
        self.value = instance.value(self.starts)
        self.steps = 0

    def by(self, hint: Ints | Floats) -> Ints:
        """The jobs in the order of one number for each, (n,)."""
        if np.shape(hint) != (self.instance.jobs,):
            raise EscalaError(f"hint of shape {np.shape(hint)}: give one number for each of {self.instance.jobs} jobs")
        return np.argsort(hint, kind="stable")

    def generate(self, order: Ints) -> Ints:
        """Serial schedule generation in `order`."""
        instance = self.instance
        starts = np.zeros(instance.jobs, np.int64)
        serial(
            order,
            instance.release,
            instance.length,
            self.words,
            self.guards,
            fresh(self.capacity, instance.jobs),
            starts,
        )
        return starts

    def offer(self, starts: Ints) -> bool:
        """Keep a schedule if it is better than the best."""
        value = self.instance.value(starts)
        if value >= self.value:
            return False
        self.starts, self.value = starts, value
        return True

    def stream(self) -> Words:
        """State of a fresh random stream for one call of `anneal`."""
        return self.random.integers(1, 1 << 63, 1).astype(np.uint64)

    def whole(self, steps: int, pieces: int, hottest: float, anew: bool) -> Iterator[None]:
        """Anneal all jobs from the best schedule's order or (anew) from that of a rule, cooling down from `hottest`
        over `pieces` calls; yields after each."""
        order = (
            min((self.rule(draw) for draw in range(4)), key=self._cost)
            if anew
            else np.argsort(self.starts, kind="stable")
        )
        for piece in range(pieces):
            hot, cold = (hottest * (COLD / hottest) ** ((piece + k) / pieces) for k in (0, 1))
            starts = np.zeros(self.instance.jobs, np.int64)
            profile = fresh(self.capacity, 1)
            self._anneal(order, self.instance.release, profile, 1, 0, (hot, cold), max(1, steps // pieces), starts)
            yield

    def part(self, chosen: Ints, steps: int) -> bool:
        """Take the jobs `chosen` out of the best schedule and anneal their order in what the others leave."""
        instance, starts = self.instance, self.starts.copy()
        ends = starts + instance.length
        low, high = int(starts[chosen].min()), int(ends[chosen].max()) + int(instance.length[chosen].max())
        stay = np.ones(instance.jobs, bool)
        stay[chosen] = False
        rows = np.flatnonzero(stay & (starts < high) & (ends > low))
        profile = fresh(self.capacity, rows.size + 1)
        size = leave(rows, np.maximum(starts, low), np.minimum(ends, high), self.words, self.guards, profile, low, high)
        order = chosen[np.argsort(starts[chosen], kind="stable")]
        release = np.maximum(instance.release, low)
        others = int(ends[stay].max()) if stay.any() else 0
        return self._anneal(order, release, profile, size, others, (PART_HOT, PART_COLD), steps, starts)

    def _anneal(
        self,
        order: Ints,
        release: Ints,
        profile: Profile,
        size: int,
        others: int,
        heat: tuple[float, float],
        steps: int,
        starts: Ints,
    ) -> bool:
        instance, (hot, cold) = self.instance, (self.unit * h for h in heat)
        anneal(
            order, release, instance.length, self.words, self.guards, instance.ready, self.weight, self.span_weight,
            others, profile, size, hot, cold, steps, self.stream(), starts, room_for(order.size, size),
        )  # fmt: skip
        self.steps += steps
        return self.offer(starts)

    def rules(self, draws: int) -> None:
        """Offer what orders of so many rules give; from shortest first to first come first served."""
        for draw in range(draws):
            self.offer(self.generate(self.rule(draw)))

    def rule(self, draw: int) -> Ints:
        """An order by release (but every third) + a * length^b * work per unit^c for random a, b, c."""
        instance = self.instance
        share = (instance.demand / instance.capacity).max(axis=1) + 1e-9
        scale = 10.0 ** self.random.uniform(-1.5, 3.0)
        key = instance.length ** self.random.uniform(0.5, 2.0) * share ** self.random.uniform(0.0, 1.2)
        key *= scale * float(np.median(instance.length) / np.median(key))
        return np.argsort(key + (instance.release if draw % 3 else 0), kind="stable")

    def _cost(self, order: Ints) -> float:
        return self.instance.value(self.generate(order))
