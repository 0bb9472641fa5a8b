"""The best schedule so far, and the ways to better it: priority rules, annealing of all jobs, annealing of some jobs
around the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from escala.errors import EscalaError
from escala.optimum.anneal import Words, anneal
from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.profile import leave, serial
from escala.optimum.record import Record
from escala.optimum.room import Cost, pack, room_for

COLD = 0.1  # last temperature, in delays of a typical job by its own length (slowdown: by 1)
PART_HOT, PART_COLD = 0.03, 0.01  # of a part of the jobs: near to what it was


class Searcher:
    """The arrays that the compiled loops want, and the best schedule so far."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.packed = pack(instance.demand, instance.capacity)
        self.random = np.random.default_rng([seed, 0x5EA])
        scale = float(np.median(instance.length))
        self.cost = (
            Cost(1.0 / instance.divisor, 0.0)
            if instance.summed
            else Cost(np.full(instance.jobs, 0.05 / instance.jobs), 1.0)
        )
        self._all = self.room(instance.jobs, states=2)
        self._whole: Record | None = None
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
        self._all.order[:] = order
        serial(self._all.table)
        return self._all.starts.copy()

    def room(self, jobs: int, *, states: int = 0, segments: int = 1, machines: int = 1) -> Record:
        """Memory as `room.room_for` makes it, of this instance."""
        return room_for(
            self.instance, self.packed, self.cost, jobs, states=states, segments=segments, machines=machines
        )

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
        room = self._whole = self._whole or self.room(order.size)
        room.order[:] = order
        for piece in range(pieces):
            hot, cold = (hottest * (COLD / hottest) ** ((piece + k) / pieces) for k in (0, 1))
            self._anneal(room, hot, cold, max(1, steps // pieces))
            yield

    def part(self, chosen: Ints, steps: int) -> bool:
        """Take the jobs `chosen` out of the best schedule and anneal their order in what the others leave."""
        instance, starts, profile = self.instance, self.starts, self._all
        ends = starts + instance.length
        low, high = int(starts[chosen].min()), int(ends[chosen].max()) + int(instance.length[chosen].max())
        stay = np.ones(instance.jobs, bool)
        stay[chosen] = False
        rows = np.flatnonzero(stay & (starts < high) & (ends > low))
        size = leave(profile.table, rows, np.maximum(starts, low), np.minimum(ends, high), low, high)
        room = self.room(chosen.size, segments=size)
        room.times[0, :size], room.free[0, :size], room.sizes[0] = profile.times[0, :size], profile.free[0, :size], size
        room.span[0] = int(ends[stay].max()) if stay.any() else 0
        room.order[:], room.starts[:] = chosen[np.argsort(starts[chosen], kind="stable")], starts
        np.maximum(instance.release, low, out=room.release)
        return self._anneal(room, PART_HOT, PART_COLD, steps)

    def _anneal(self, room: Record, hot: float, cold: float, steps: int) -> bool:
        """Anneal the order of a room; the temperatures in delays of a typical job."""
        room.stream[:] = self.stream()
        anneal(room.table, self.unit * hot, self.unit * cold, steps)
        self.steps += steps
        return self.offer(room.starts.copy())

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
