"""Random instances, and slow, obvious answers about them that use nothing of the package but the instance's plain fields."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np

from escala.optimum import OBJECTIVES, Instance


def random_instance(
    rng: np.random.Generator, jobs: int, objective: str | None = None, longest: int = 12, kinds: int | None = None
) -> Instance:
    kinds = int(rng.integers(1, 3)) if kinds is None else kinds
    capacity = rng.integers(2, 12, kinds)
    demand = np.stack([rng.integers(0, c + 1, jobs) for c in capacity], axis=1)
    release = np.sort(rng.integers(0, max(2, jobs), jobs))
    return Instance(
        release,
        rng.integers(1, longest + 1, jobs),
        demand,
        capacity,
        objective or str(rng.choice(OBJECTIVES)),
        pi=int(rng.integers(1, 10)),
    )


def value(instance: Instance, starts: list[int] | np.ndarray) -> Fraction:
    """The objective from its definition in the literature, in exact arithmetic."""
    rows = [(int(s), int(r), int(p)) for s, r, p in zip(starts, instance.release, instance.length)]
    if instance.objective == "makespan":
        return Fraction(max(s + p for s, _, p in rows) - min(r for _, r, _ in rows))
    if instance.objective == "wait":
        terms = [Fraction(s - r) for s, r, _ in rows]
    elif instance.objective == "slowdown":
        terms = [Fraction(s - r + p, p) for s, r, p in rows]
    else:
        terms = [max(Fraction(s - r + p, max(p, instance.pi)), Fraction(1)) for s, r, p in rows]
    return sum(terms, Fraction(0)) / len(terms)


def feasible(instance: Instance, starts: list[int] | np.ndarray) -> bool:
    """Tick by tick."""
    end = max(int(s) + int(p) for s, p in zip(starts, instance.length))
    for tick in range(end):
        for kind, units in enumerate(instance.capacity):
            used = sum(int(q[kind]) for s, p, q in zip(starts, instance.length, instance.demand) if s <= tick < s + p)
            if used > units:
                return False
    return all(s >= r for s, r in zip(starts, instance.release))


def tick_by_tick(instance: Instance, order: tuple[int, ...]) -> list[int]:
    """Serial schedule generation over an array of ticks."""
    end = int(instance.release.max() + instance.length.sum())
    free = [[int(c) for c in instance.capacity] for _ in range(end + 1)]
    starts = [0] * instance.jobs
    length, demand = instance.length.tolist(), instance.demand.tolist()
    for job in order:
        start = int(instance.release[job])
        tick = start
        while tick < start + length[job]:
            if any(f < q for f, q in zip(free[tick], demand[job])):
                start = tick + 1
            tick += 1
        starts[job] = start
        for tick in range(start, start + length[job]):
            free[tick] = [f - q for f, q in zip(free[tick], demand[job])]
    return starts


def best_of_orders(instance: Instance) -> tuple[Fraction, list[int]]:
    """Optimum over all orders (active schedules hold an optimum of every regular objective)."""
    found = [(value(instance, s), s) for s in (tick_by_tick(instance, order) for order in permutations(range(instance.jobs)))]
    return min(found)


def best_of_starts(instance: Instance, latest: int) -> Fraction:
    """Optimum over all start times up to `latest`: no theory at all."""
    spans = [range(int(r), latest + 1) for r in instance.release]
    return min(value(instance, starts) for starts in product(*spans) if feasible(instance, starts))
