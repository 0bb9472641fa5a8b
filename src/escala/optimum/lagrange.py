"""Lagrangian lower bound: the capacity of every tick gets a price instead of a limit.

With prices u[kind, tick] >= 0 every schedule costs at least

    L(u) = sum_j min_s [ c_j(s) + sum_kind demand_j,kind * sum of u[kind] over [s, s + length_j) ] - sum_kind capacity_kind * sum of u[kind]

since its jobs pay for no more than the capacities. L is a bound for every u >= 0: prices need no trust, only the evaluation does. The best L equals the linear
programme of the time-indexed model (Geoffrion 1974; Christofides, Alvarez-Valdes and Tamarit 1987; Moehring et al. 2003).

Prices are constant over cells of `width` ticks and zero behind the last cell; starts are *not* limited to the cells. A job's cost is then piecewise linear in its
start, so the minimum lies at a release, a ready tick, a cell's edge, or an edge minus the length: few candidates, exact at any resolution.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from escala.compile import compiled, inlined
from escala.optimum.instance import Floats, Instance, Ints

BLOCK = 64


class Grid(NamedTuple):
    """The cells that carry prices: cell k covers ticks [origin + k * width, origin + (k + 1) * width), k < cells."""

    origin: int
    width: int
    cells: int


def grid_for(instance: Instance, end: int, max_cells: int) -> Grid:
    """Cells from the first release to about `end`. Their width is a multiple of the greatest common divisor of all times, at most `max_cells` in number."""
    origin = int(instance.release.min())
    unit = int(np.gcd.reduce(np.concatenate([instance.release - origin, instance.length])))
    span = max(unit, end - origin)
    width = unit * max(1, -(-span // (unit * max_cells)))
    return Grid(origin, width, -(-span // width))


@inlined
def cheapest(weight, ready, release, length, demand, prefix, prices, width, cells, buffer):  # type: ignore[no-untyped-def]
    """Least cost of one job over all starts >= release, and the earliest such start. All times from the grid's origin; floats or integers alike.

    prefix: (kinds, cells + 1) sums of price * width in front of each cell's edge. Works in blocks and stops when the delay alone costs more than the best.
    """
    best, where = weight * 0, release
    for place in range(2):  # the two candidates that are no edges: the release and the ready tick
        start = release if place == 0 else ready
        value = weight * (0 if place == 0 else max(0, start - ready))
        for kind in range(demand.size):
            value += demand[kind] * (
                paid(prefix, prices, kind, start + length, width, cells) - paid(prefix, prices, kind, start, width, cells)
            )
        if place == 0 or value < best:
            best, where = value, start
    steps, rest = length // width, length % width
    for side in range(2 if rest > 0 else 1):
        # side 0: starts on an edge k; side 1: ends on an edge, that is starts `rest` before edge k with k + steps the edge of the end
        low = (release + width - 1) // width if side == 0 else (release + rest + width - 1) // width
        while low <= cells:
            high = min(cells + 1, low + BLOCK)
            back = 0 if side == 0 else rest
            if weight * max(0, low * width - back - ready) >= best:
                break
            for k in range(low, high):
                buffer[k - low] = weight * max(0, k * width - back - ready)
            for kind in range(demand.size):
                units = demand[kind]
                if side == 0:
                    plain = max(low, min(high, cells - steps))
                    for k in range(low, plain):
                        buffer[k - low] += units * (prefix[kind, k + steps] + rest * prices[kind, k + steps] - prefix[kind, k])
                    for k in range(plain, high):
                        buffer[k - low] += units * (prefix[kind, cells] - prefix[kind, k])
                else:
                    for k in range(low, high):
                        buffer[k - low] += units * (
                            prefix[kind, min(cells, k + steps)]
                            - (prefix[kind, k] - rest * prices[kind, k - 1] if k > 0 else prefix[kind, 0])
                        )
            for k in range(low, high):
                if buffer[k - low] < best:
                    best, where = buffer[k - low], k * width - back
            low = high
    return best, where


@inlined
def paid(prefix, prices, kind, at, width, cells):  # type: ignore[no-untyped-def]
    """Sum of one kind's prices over the ticks before `at` (>= 0)."""
    cell = at // width
    return prefix[kind, cells] if cell >= cells else prefix[kind, cell] + (at - cell * width) * prices[kind, cell]


@inlined
def take(use, kind, units, start, end, width, cells):  # type: ignore[no-untyped-def]
    """Add `units` x ticks to the cells that [start, end) covers."""
    first, last = start // width, min(cells, end // width)
    for cell in range(first, last):
        use[kind, cell] += units * width
    if first < cells:
        use[kind, first] -= units * (start - first * width)
    if last < cells:
        use[kind, last] += units * (end - last * width)


@compiled
def subgradient(
    release: Ints, length: Ints, demand: Ints, ready: Ints, weight: Floats, capacity: Ints, width: int, prices: Floats, best_prices: Floats,
    direction: Floats, mean_starts: Floats, numbers: Floats, iterations: int, target: float,
) -> int:  # fmt: skip
    """`iterations` Polyak steps towards `target` (cost of the best schedule). Everything is changed in place, so that calls can be chained.

    Deflected (direction = 0.6 new + 0.4 old), theta from 1, times 0.7 after 20 steps without a better bound. numbers: [best bound, theta, stalls].
    mean_starts: smoothed starts, whose order makes good schedules. Returns the iterations done; stops when theta is spent or the bound meets the target.
    """
    kinds, cells = prices.shape
    prefix, use, buffer = np.zeros((kinds, cells + 1)), np.zeros((kinds, cells)), np.zeros(BLOCK)
    for iteration in range(iterations):
        bound = 0.0
        for kind in range(kinds):
            for cell in range(cells):
                prefix[kind, cell + 1] = prefix[kind, cell] + prices[kind, cell] * width
                use[kind, cell] = -float(capacity[kind] * width)
            bound -= capacity[kind] * prefix[kind, cells]
        for job in range(release.size):
            value, start = cheapest(weight[job], ready[job], release[job], length[job], demand[job], prefix, prices, width, cells, buffer)
            bound += value
            mean_starts[job] += 0.05 * (start - mean_starts[job])
            for kind in range(kinds):
                take(use, kind, demand[job, kind], start, start + length[job], width, cells)
        numbers[2] += 1
        if bound > numbers[0]:
            if bound > numbers[0] + 1e-6 * abs(target):
                numbers[2] = 0
            numbers[0] = bound
            best_prices[:] = prices
        elif numbers[2] >= 20:
            numbers[1] *= 0.7
            numbers[2] = 0
            prices[:] = best_prices
        norm = 0.0
        for kind in range(kinds):
            for cell in range(cells):
                direction[kind, cell] = 0.6 * use[kind, cell] + 0.4 * direction[kind, cell]
                if prices[kind, cell] <= 0.0 and direction[kind, cell] < 0.0:
                    direction[kind, cell] = 0.0
                norm += direction[kind, cell] ** 2
        gap = target - bound
        if norm == 0.0 or numbers[1] < 1e-3 or target - numbers[0] <= 1e-9 * abs(target):
            return iteration + 1
        step = numbers[1] * gap / norm
        for kind in range(kinds):
            for cell in range(cells):
                prices[kind, cell] = max(0.0, prices[kind, cell] + step * direction[kind, cell])
    return iterations


@compiled
def least_costs(release: Ints, length: Ints, demand: Ints, ready: Ints, weight: Ints, width: int, prices: Ints, least: Ints) -> None:
    """Write each job's exact least cost under integer prices, all in the same unit, to `least` (n,)."""
    kinds, cells = prices.shape
    prefix, buffer = np.zeros((kinds, cells + 1), np.int64), np.zeros(BLOCK, np.int64)
    for kind in range(kinds):
        for cell in range(cells):
            prefix[kind, cell + 1] = prefix[kind, cell] + prices[kind, cell] * width
    for job in range(release.size):
        least[job], _ = cheapest(weight[job], ready[job], release[job], length[job], demand[job], prefix, prices, width, cells, buffer)


class Proof(NamedTuple):
    """A bound in integers: every schedule's summed cost >= numerator / scale. prices (kinds, cells) and weight (n,) count 1 / scale; least (n,) per job."""

    numerator: int
    scale: int
    prices: Ints
    weight: Ints
    least: Ints

    @property
    def cost(self) -> Fraction:
        """The bound of the summed cost (>= 0)."""
        return max(Fraction(0), Fraction(self.numerator, self.scale))


def prove(instance: Instance, grid: Grid, prices: Floats) -> Proof:
    """Evaluate L at `prices` rounded to whole multiples of 1 / scale, in integers, so that the bound holds whatever the floats did.

    The slope 1 / divisor of a job's cost becomes floor(scale / divisor) / scale, which is never more than it (and equal where the scale is a multiple of all
    divisors, which is chosen when it is small). The scale is as large as 64 bits allow: no value met is above 2^61.
    """
    units = np.maximum(prices, 0.0)
    income = float(sum(int(c) * float(u.sum()) * grid.width for c, u in zip(instance.capacity, units)))
    end = grid.origin + grid.width * (grid.cells + 1)
    delay = np.maximum(0, np.maximum(end, instance.ready) - instance.ready) + instance.length
    largest = 2.0 * (income + float((delay / instance.divisor).max()) + 1.0)
    scale = max(1, int(2.0**61 / largest))
    common = 1
    for divisor in np.unique(instance.divisor).tolist():
        common = common * divisor // np.gcd(common, divisor).item() if common < 1 << 30 else common * divisor
        if common > scale:
            break
    else:
        scale -= scale % common
    whole = np.rint(units * float(scale)).astype(np.int64)
    weight = scale // instance.divisor
    least = np.zeros(instance.jobs, np.int64)
    least_costs(
        instance.release - grid.origin, instance.length, instance.demand, instance.ready - grid.origin, weight, grid.width, whole, least
    )
    outgo = sum(int(c) * sum(u.tolist()) for c, u in zip(instance.capacity, whole)) * grid.width
    return Proof(sum(least.tolist()) - outgo, scale, whole, weight, least)


class Dual:
    """Prices under improvement. `improve` may be called again with a better target; `proof` is exact at any moment."""

    def __init__(self, instance: Instance, end: int, max_cells: int = 1 << 14) -> None:
        """Prices reach to about tick `end`: a schedule's end is a good choice, and any choice gives a valid bound."""
        self.instance, self.grid = instance, grid_for(instance, end, max_cells)
        shape = (instance.capacity.size, self.grid.cells)
        self.prices, self.best, self._direction = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._numbers = np.array([-np.inf, 1.0, 0.0])
        self._starts = (instance.release - self.grid.origin).astype(np.float64)
        self.iterations = 0
        self.chunk = max(1, min(200, int(1e9 / (instance.jobs * self.grid.cells * shape[0]))))  # compiled calls of about a second at most

    @property
    def starts(self) -> Floats:
        """Smoothed starts of the relaxed schedules (n,), in ticks: an order to try."""
        return self._starts + self.grid.origin

    def improve(self, target: float, iterations: int, expired: Callable[[], bool] = lambda: False) -> bool:
        """Up to `iterations` steps towards the summed cost `target` of a schedule; returns whether `expired` cut them short."""
        instance, origin = self.instance, self.grid.origin
        self._numbers[1], self._numbers[2] = 1.0, 0.0
        self.prices[:], self._direction[:] = self.best, 0.0
        left, weight = iterations, 1.0 / instance.divisor
        while left > 0:
            chunk = min(left, self.chunk)
            done = subgradient(
                instance.release - origin, instance.length, instance.demand, instance.ready - origin, weight, instance.capacity, self.grid.width,
                self.prices, self.best, self._direction, self._starts, self._numbers, chunk, target,
            )  # fmt: skip
            self.iterations += done
            if done < chunk:
                return False
            left -= chunk
            if expired():
                return True
        return False

    def proof(self) -> Proof:
        """The exact bound at the best prices so far."""
        return prove(self.instance, self.grid, self.best)
