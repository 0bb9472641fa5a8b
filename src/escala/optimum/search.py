"""Good schedules: orders from priority rules and hints, then annealing, of all jobs at once or (above `WHOLE` jobs) of some jobs around others that stay.

Iteration limits and a seed decide the outcome; a deadline only cuts it short (and is then reported). Every schedule that leaves this module has passed
`check_schedule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from escala.compile import compiled
from escala.optimum.anneal import Words, anneal
from escala.optimum.instance import Floats, Instance, Ints, check_schedule
from escala.optimum.profile import earliest, empty_profile, occupy, pack, serial

WHOLE = 64  # jobs annealed at once
RUNS, STEPS = 4, 100_000
PARTS, PART_STEPS, TURNS = (256, 128, 256, 64), 500, 800  # large instances: jobs taken out at a time, annealing steps for them, number of times
HOT, COLD = 3.0, 0.03  # temperatures, in delays of one job by its own divisor's length
FAR = 1 << 41  # behind every tick

Improved = Callable[[float], None]


class Found(NamedTuple):
    """A checked schedule (n,), its objective, the annealing steps done, and whether the deadline or Ctrl-C cut the search short."""

    starts: Ints
    value: float
    steps: int
    cut: bool
    interrupted: bool


class Searcher:
    """The arrays that the compiled loops want, and the best schedule so far."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.words, self.capacity, self.guards = pack(instance.demand, instance.capacity)
        self.random = np.random.default_rng([seed, 0x5EA])
        self.span_weight = 0.0 if instance.summed else 1.0
        scale = float(np.median(instance.length))
        self.weight: Floats = 1.0 / instance.divisor if instance.summed else np.full(instance.jobs, 0.05 / instance.jobs)
        self.unit = float(np.median(instance.length / instance.divisor)) if instance.summed else scale / 2
        self.starts: Ints = self.generate(np.argsort(instance.release, kind="stable"))
        self.value = instance.value(self.starts)
        self.steps = 0

    def generate(self, order: Ints) -> Ints:
        """Serial schedule generation in `order`."""
        times, free = empty_profile(self.capacity, self.instance.jobs)
        starts = np.zeros(self.instance.jobs, np.int64)
        serial(order, self.instance.release, self.instance.length, self.words, self.guards, times, free, 1, starts)
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

    def whole(self, order: Ints, steps: int) -> None:
        """Anneal all jobs, starting from `order`."""
        times, free = empty_profile(self.capacity, self.instance.jobs)
        self._anneal(order.copy(), self.instance.release, times, free, 1, 0, HOT, steps, np.zeros(self.instance.jobs, np.int64))

    def part(self, chosen: Ints, steps: int) -> bool:
        """Take the jobs `chosen` out of the best schedule and anneal their order in what the others leave."""
        instance, starts = self.instance, self.starts.copy()
        ends = starts + instance.length
        low, high = int(starts[chosen].min()), int(ends[chosen].max()) + int(instance.length[chosen].max())
        stay = np.ones(instance.jobs, bool)
        stay[chosen] = False
        rows = np.flatnonzero(stay & (starts < high) & (ends > low))
        times, free = empty_profile(self.capacity, rows.size + 1)
        size = leave(rows, np.maximum(starts, low), np.minimum(ends, high), self.words, self.guards, times, free, low, high)
        order = chosen[np.argsort(starts[chosen], kind="stable")]
        release = np.maximum(instance.release, low)
        others = int(ends[stay].max()) if stay.any() else 0
        return self._anneal(order, release, times, free, size, others, 0.1 * HOT, steps, starts)

    def _anneal(
        self, order: Ints, release: Ints, times: Ints, free: Ints, size: int, others: int, hot: float, steps: int, starts: Ints
    ) -> bool:
        instance = self.instance
        anneal(
            order, release, instance.length, self.words, self.guards, instance.ready, self.weight, self.span_weight, others,
            times, free, size, hot * self.unit, COLD * self.unit, steps, self.stream(), starts,
        )  # fmt: skip
        self.steps += steps
        return self.offer(starts)

    def rules(self, draws: int) -> None:
        """Orders by release + a * length^b * work per unit^c for many a, b, c; from shortest first to first come first served."""
        instance = self.instance
        share = (instance.demand / instance.capacity).max(axis=1) + 1e-9
        for draw in range(draws):
            scale = 10.0 ** self.random.uniform(-1.5, 3.0)
            key = instance.length ** self.random.uniform(0.5, 2.0) * share ** self.random.uniform(0.0, 1.2)
            key *= scale * float(np.median(instance.length) / np.median(key))
            self.offer(self.generate(np.argsort(key + (instance.release if draw % 3 else 0), kind="stable")))


@compiled
def leave(rows: Ints, starts: Ints, ends: Ints, words: Ints, guards: int, times: Ints, free: Ints, low: int, high: int) -> int:
    """Profile left by jobs `rows` in [low, high); behind it nothing is free until FAR. Returns its size; times and free (size 1, empty) are changed."""
    spare_times, spare_free = np.empty_like(times), np.empty_like(free)
    size = 1
    for row in rows:
        _, seg = earliest(times, free, size, guards, starts[row], 1, 0)
        size = occupy(times, free, size, starts[row], seg, ends[row], words[row], spare_times, spare_free)
        times[:size] = spare_times[:size]
        free[:size] = spare_free[:size]
    first, whole = 0, free[size - 1]
    while first + 1 < size and times[first + 1] <= low:
        first += 1
    out = 0
    for seg in range(first, size):
        if times[seg] >= high:
            break
        times[out], free[out] = times[seg], free[seg]
        out += 1
    times[out], free[out] = high, guards
    times[out + 1], free[out + 1] = FAR, whole
    return out + 2


def search(
    instance: Instance, *, seed: int = 0, effort: float = 1.0, hints: Iterable[Ints | Floats] = (), lower: float = -np.inf,
    expired: Callable[[], bool] = lambda: False, improved: Improved | None = None,
) -> Found:  # fmt: skip
    """Best schedule found. hints: (n,) start times or priorities to order by. effort scales the iteration limits. Stops early at `lower` (a proven bound).

    expired is asked between compiled calls (each well below a second at usual sizes). improved is called with each better value.
    """
    searcher = Searcher(instance, seed)
    cut = interrupted = False
    try:
        for _ in _turns(searcher, hints, effort):
            if improved is not None:
                improved(searcher.value)
            if searcher.value <= lower + 1e-9 * abs(lower):
                break
            if expired():
                cut = True
                break
    except KeyboardInterrupt:
        interrupted = True
    check_schedule(instance, searcher.starts)
    return Found(searcher.starts, instance.value(searcher.starts), searcher.steps, cut, interrupted)


def _turns(searcher: Searcher, hints: Iterable[Ints | Floats], effort: float) -> Iterator[None]:
    """The search in pieces; between them the caller may stop."""
    for hint in hints:
        searcher.offer(searcher.generate(np.argsort(hint, kind="stable")))
        yield
    small = searcher.instance.jobs <= WHOLE
    for _ in range(4 if small else 32):
        searcher.rules(8)
        yield
    yield from _small(searcher, effort) if small else _large(searcher, effort)


def _small(searcher: Searcher, effort: float) -> Iterator[None]:
    for _ in range(RUNS):
        searcher.whole(np.argsort(searcher.starts, kind="stable"), max(1, int(effort * STEPS)))
        yield


def _large(searcher: Searcher, effort: float) -> Iterator[None]:
    jobs = searcher.instance.jobs
    for turn in range(max(1, int(effort * TURNS))):
        part = min(jobs, int(PARTS[turn % len(PARTS)]))
        order = np.argsort(searcher.starts, kind="stable")
        width = min(jobs, part * (1 + turn % 2))
        first = int(searcher.random.integers(0, jobs - width + 1))
        chosen = searcher.random.choice(order[first : first + width], part, replace=False)
        if searcher.part(chosen, PART_STEPS):
            searcher.offer(searcher.generate(np.argsort(searcher.starts, kind="stable")))
        yield
