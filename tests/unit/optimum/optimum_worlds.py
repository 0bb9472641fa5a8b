"""Random instances, and slow, obvious answers about them that use nothing of the package but the instance's plain
fields."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import numba
import numpy as np

from escala.optimum import OBJECTIVES, Instance, prover


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
    found = [
        (value(instance, s), s) for s in (tick_by_tick(instance, order) for order in permutations(range(instance.jobs)))
    ]
    return min(found)


def best_of_all(instance: Instance) -> list[list[int]]:
    """Every optimal schedule that an order makes."""
    found = [
        (value(instance, s), s) for s in (tick_by_tick(instance, order) for order in permutations(range(instance.jobs)))
    ]
    least = min(found)[0]
    return [starts for cost, starts in found if cost == least]


@cache
def orders_of(jobs: int) -> np.ndarray:
    """All orders, (jobs!, jobs), so that neighbours begin alike."""
    return np.array(list(permutations(range(jobs))), np.int64)


@numba.njit
def _least(
    orders: np.ndarray, release: np.ndarray, length: np.ndarray, demand: np.ndarray, free: np.ndarray,
    ready: np.ndarray, weight: np.ndarray, span: bool, starts: np.ndarray,
) -> int:  # fmt: skip
    """Least sum of weight x max(0, start - ready), or least end, over all orders, each job at the first tick from its
    release at which it fits all its ticks. free: (jobs + 1, ticks, kinds), the first row the capacities. starts: of the
    best order."""
    n, kinds = release.size, demand.shape[1]
    best = np.int64(-1)
    at, cost = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    for k in range(orders.shape[0]):
        place = 0
        while k > 0 and place < n and orders[k, place] == orders[k - 1, place]:
            place += 1
        for p in range(place, n):
            job = orders[k, p]
            start = tick = release[job]
            while tick < start + length[job]:
                for kind in range(kinds):
                    if free[p, tick, kind] < demand[job, kind]:
                        start = tick + 1
                tick += 1
            at[job] = start
            free[p + 1] = free[p]
            for tick in range(start, start + length[job]):
                free[p + 1, tick] -= demand[job]
            cost[p + 1] = (
                max(cost[p], start + length[job]) if span else cost[p] + weight[job] * max(0, start - ready[job])
            )
        if best < 0 or cost[n] < best:
            best = cost[n]
            starts[:] = at
    return best


def best_by_force(instance: Instance) -> tuple[Fraction, np.ndarray]:
    """Optimum over all orders, as `best_of_orders` and some thousand times as fast. All objectives are regular (no
    start moved earlier makes one worse), so some optimal schedule is active, and every active schedule comes of the
    order of its starts."""
    n, grace = instance.jobs, np.maximum(0, instance.pi - instance.length)
    ready = instance.release + (grace if instance.objective == "bounded-slowdown" else 0)
    each = {"slowdown": instance.length, "bounded-slowdown": np.maximum(instance.length, instance.pi)}.get(
        instance.objective
    )
    divisor = np.ones(n, np.int64) if each is None else each
    common = math.lcm(*divisor.tolist())
    ticks = int(instance.release.max() + instance.length.sum()) + 1
    free = np.broadcast_to(instance.capacity, (n + 1, ticks, instance.capacity.size)).copy()
    starts, span = np.zeros(n, np.int64), instance.objective == "makespan"
    least = _least(
        orders_of(n), instance.release, instance.length, instance.demand, free, ready, common // divisor, span, starts
    )
    if span:
        return Fraction(int(least) - int(instance.release.min())), starts
    return int(instance.objective.endswith("slowdown")) + Fraction(int(least), common * n), starts


def begin_worker() -> None:
    """Silence what HiGHS writes; for a process that solves one model after the other."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def solved(solver: str, data: dict[str, Any], limit_s: float) -> list[dict[str, Any]]:
    """The messages of a solver about one model."""
    told: list[dict[str, Any]] = []
    prover.say = lambda **message: told.append(message)
    {"milp": prover.milp, "cpsat": prover.cpsat}[solver](
        {name: np.asarray(values) for name, values in data.items()}, limit_s
    )
    return told


def best_of_starts(instance: Instance, latest: int) -> Fraction:
    """Optimum over all start times up to `latest`: no theory at all."""
    spans = [range(int(r), latest + 1) for r in instance.release]
    return min(value(instance, starts) for starts in product(*spans) if feasible(instance, starts))
