"""The compiled loops of the Lagrangian bound: a job's cheapest start under prices, the subgradient of all of them, the
exact evaluation.

Times are ticks from the grid's origin; prices are per unit and tick, constant over cells of `width` ticks and zero
behind the last. See `lagrange` for why.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, inlined, lean
from escala.optimum.instance import Floats, Ints

# edges looked at in one go, twice as many each time: most jobs start soon, and the delay alone ends the search
FIRST_BLOCK, BLOCK = 8, 64
NEVER = 1 << 62


@inlined
def cheapest(
    weight: Any, ready: int, release: int, latest: int, length: int, demand: Ints, prefix: Any, prices: Any, width: int,
    cells: int, buffer: Any,
) -> tuple[Any, int]:  # fmt: skip
    """Least cost of one job over all starts in [release, latest], and such a start. Times from the grid's origin;
    floats or integers alike.

    prefix: (kinds, cells + 1) sums of price * width in front of each cell's edge. Works in blocks and stops when the
    delay alone costs more than the best.
    """
    best, where = weight * 0, release
    # the candidates that are no edges: the ends, the ready tick
    for place in range(3 if latest != ready and latest < NEVER else 2):
        start = release if place == 0 else latest if place == 2 else max(release, min(ready, latest))
        value = weight * max(0, start - ready)
        for kind in range(demand.size):
            if demand[kind] > 0:
                before = paid(prefix, prices, kind, start, width, cells)
                value += demand[kind] * (paid(prefix, prices, kind, start + length, width, cells) - before)
        if place == 0 or value < best:
            best, where = value, start
    steps, rest = length // width, length % width
    for side in range(2 if rest > 0 else 1):
        # side 0: starts on an edge k; side 1: ends on an edge, that is starts `rest` before edge k with k + steps the
        # edge of the end
        back = 0 if side == 0 else rest
        low = (release + back + width - 1) // width
        last = min(cells, (latest + back) // width)
        block = FIRST_BLOCK
        while low <= last:
            high = min(last + 1, low + block)
            block = min(2 * block, BLOCK)
            if weight * max(0, low * width - back - ready) >= best:
                break
            for k in range(low, high):
                buffer[k - low] = weight * max(0, k * width - back - ready)
            for kind in range(demand.size):
                units = demand[kind]
                if units == 0:
                    continue
                if side == 0:
                    plain = max(low, min(high, cells - steps))
                    for k in range(low, plain):
                        buffer[k - low] += units * (
                            prefix[kind, k + steps] + rest * prices[kind, k + steps] - prefix[kind, k]
                        )
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
def paid(prefix: Any, prices: Any, kind: int, at: int, width: int, cells: int) -> Any:
    """Sum of one kind's prices over the ticks before `at` (>= 0)."""
    cell = at // width
    return prefix[kind, cells] if cell >= cells else prefix[kind, cell] + (at - cell * width) * prices[kind, cell]


@inlined
def take(use: Floats, kind: int, units: int, start: int, end: int, width: int, cells: int) -> None:
    """Add `units` x ticks to the cells that [start, end) covers."""
    first, last = start // width, min(cells, end // width)
    for cell in range(first, last):
        use[kind, cell] += units * width
    if first < cells:
        use[kind, first] -= units * (start - first * width)
    if last < cells:
        use[kind, last] += units * (end - last * width)


@inlined
def _rate(demand: Ints, prices: Floats, width: int, rate: Floats, total: Floats) -> None:
    """What a job of these demands pays a tick, (cells,), and its sums in front of each cell's edge, (cells + 1,)."""
    rate[:] = 0.0
    for kind in range(demand.size):
        if demand[kind] > 0:
            for cell in range(rate.size):
                rate[cell] += demand[kind] * prices[kind, cell]
    for cell in range(rate.size):
        total[cell + 1] = total[cell] + rate[cell] * width


@inlined
def _supply(capacity: Ints, width: int, prices: Floats, prefix: Floats, use: Floats) -> float:
    """What the whole capacity is worth at these prices, negative. `prefix`: prices summed over time; `use`: demand less
    supply, as yet without jobs."""
    bound = 0.0
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            prefix[kind, cell + 1] = prefix[kind, cell] + prices[kind, cell] * width
            use[kind, cell] = -float(capacity[kind] * width)
        bound -= capacity[kind] * prefix[kind, prices.shape[1]]
    return bound


@inlined
def _deflect(prices: Floats, use: Floats, direction: Floats) -> tuple[float, float]:
    """The next direction; its squared length, and that of the ascent: 0 where supply meets demand wherever it matters,
    these prices are the best."""
    norm, ascent = 0.0, 0.0
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            if prices[kind, cell] > 0.0 or use[kind, cell] > 0.0:
                ascent += use[kind, cell] ** 2
            direction[kind, cell] = 0.6 * use[kind, cell] + 0.4 * direction[kind, cell]
            if prices[kind, cell] <= 0.0 and direction[kind, cell] < 0.0:
                direction[kind, cell] = 0.0
            norm += direction[kind, cell] ** 2
    return norm, ascent


@lean
def _copy(prices: Floats, to: Floats) -> None:
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            to[kind, cell] = prices[kind, cell]


@compiled
def subgradient(
    release: Ints, latest: Ints, length: Ints, demand: Ints, ready: Ints, weight: Floats, capacity: Ints, width: int,
    prices: Floats, best_prices: Floats, direction: Floats, mean_starts: Floats, spread: Floats, numbers: Floats,
    iterations: int, target: float, prefix: Floats, use: Floats, buffer: Floats, alike: Ints, first: Ints,
    rates: Floats, sums: Floats,
) -> int:  # fmt: skip
    """`iterations` Polyak steps towards `target` (cost of the best schedule), all in place: calls can be chained.

    Deflected (direction = 0.6 new + 0.4 old), theta times 0.7 after 20 steps without a better bound. numbers: [best
    bound, theta, stalls]. Jobs start in [release, latest]. mean_starts: smoothed starts, whose order makes good
    schedules; spread: their smoothed distance from it. Returns the iterations done; stops when theta is spent or the
    bound meets the target.

    For many kinds, the jobs that demand the same are priced together: alike (n,), the class of each job, first
    (classes,) a job of each, rates (classes, cells) and sums (classes, cells + 1) to work in. All are empty where kinds
    are few.
    """
    kinds, cells = prices.shape
    together = np.ones(1, np.int64)
    for iteration in range(iterations):
        bound = _supply(capacity, width, prices, prefix, use)
        for one in range(first.size):
            _rate(demand[first[one]], prices, width, rates[one], sums[one])
        for job in range(release.size):
            if first.size > 0:
                one = alike[job]
                value, start = cheapest(
                    weight[job], ready[job], release[job], latest[job], length[job], together, sums[one : one + 1],
                    rates[one : one + 1], width, cells, buffer,
                )  # fmt: skip
            else:
                value, start = cheapest(
                    weight[job], ready[job], release[job], latest[job], length[job], demand[job], prefix, prices,
                    width, cells, buffer,
                )  # fmt: skip
            bound += value
            spread[job] += 0.05 * (abs(start - mean_starts[job]) - spread[job])
            mean_starts[job] += 0.05 * (start - mean_starts[job])
            for kind in range(kinds):
                if demand[job, kind] > 0:
                    take(use, kind, demand[job, kind], start, start + length[job], width, cells)
        numbers[2] += 1
        if bound > numbers[0]:
            if bound > numbers[0] + 1e-6 * abs(target):
                numbers[2] = 0
            numbers[0] = bound
            _copy(prices, best_prices)
        elif numbers[2] >= 20:
            numbers[1] *= 0.7
            numbers[2] = 0
            _copy(best_prices, prices)
        norm, ascent = _deflect(prices, use, direction)
        gap = target - bound
        if norm == 0.0 or ascent == 0.0 or numbers[1] < 1e-3 or target - numbers[0] <= 1e-9 * abs(target):
            return iteration + 1
        step = numbers[1] * gap / max(norm, 0.3 * ascent)  # where old and new directions cancel, no leap
        for kind in range(kinds):
            for cell in range(cells):
                prices[kind, cell] = max(0.0, prices[kind, cell] + step * direction[kind, cell])
    return iterations


@lean
def least_costs(
    release: Ints, latest: Ints, length: Ints, demand: Ints, ready: Ints, weight: Ints, width: int, prices: Ints,
    prefix: Ints, buffer: Ints, least: Ints,
) -> None:  # fmt: skip
    """Write each job's exact least cost under integer prices, all in the same unit, to `least` (n,). prefix: as
    `prefix_of` makes it."""
    cells = prices.shape[1]
    for job in range(release.size):
        least[job], _ = cheapest(
            weight[job],
            ready[job],
            release[job],
            latest[job],
            length[job],
            demand[job],
            prefix,
            prices,
            width,
            cells,
            buffer,
        )


def prefix_of(prices: Ints, width: int) -> Ints:
    """Sums of price * width in front of each cell's edge, (kinds, cells + 1)."""
    prefix = np.zeros((prices.shape[0], prices.shape[1] + 1), prices.dtype)
    np.cumsum(prices * width, axis=1, out=prefix[:, 1:])
    return prefix
