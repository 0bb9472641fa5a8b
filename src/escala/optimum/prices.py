"""The compiled loops of the Lagrangian bound: a job's cheapest start under prices, the subgradient of all of them, the
exact evaluation.

Times are ticks from the grid's origin; prices are per unit and tick, constant over cells of `width` ticks and zero
behind the last. See `lagrange` for why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.compile.pointer import PointerType, row_of
from escala.optimum.instance import Floats, Ints

# edges looked at in one go, twice as many each time: most jobs start soon, and the delay alone ends the search
FIRST_BLOCK, BLOCK = 8, 64
NEVER = 1 << 62

GRID = np.dtype([("width", "i8")])


def priced(number: Any) -> Mapping[str, tuple[Any, int]]:
    """Fields of jobs (n,) under prices that are floats or integers."""
    return {
        "grid": (GRID, 0),
        "earliest": (np.int64, 1),  # jobs start in [earliest, latest]
        "latest": (np.int64, 1),
        "length": (np.int64, 1),
        "demand": (np.int64, 2),  # (n, kinds)
        "ready": (np.int64, 1),  # from which delay costs `weight` a tick
        "weight": (number, 1),
        "prices": (number, 2),  # (kinds, cells)
        "prefix": (number, 2),  # (kinds, cells + 1): sums of price * width in front of each cell's edge
        "block": (number, 1),  # (BLOCK,), to work in
    }


CLIMB = np.dtype(
    [
        ("bound", "f8"),  # the best so far
        ("theta", "f8"),  # length of the steps
        ("stalls", "i8"),  # steps since the bound was last better
    ]
)
CLIMBING = PointerType(
    "Climbing",
    {
        **priced(np.float64),
        "climb": (CLIMB, 0),
        "best": (np.float64, 2),  # prices of the best bound
        "direction": (np.float64, 2),
        "use": (np.float64, 2),  # demand less supply, in units and ticks
    },
)
DUAL = PointerType(
    "Dual",
    {
        "capacity": (np.int64, 1),
        "starts": (np.float64, 1),  # smoothed starts, whose order makes good schedules
        "spread": (np.float64, 1),  # their smoothed distance from it
        # for many kinds, the jobs that demand the same are priced together; all empty where kinds are few
        "alike": (np.int64, 1),  # (n,): the class of each job
        "first": (np.int64, 1),  # (classes,): a job of each
        "rates": (np.float64, 2),  # (classes, cells), to work in
        "sums": (np.float64, 2),  # (classes, cells + 1)
        "one": (np.int64, 1),  # 1: what a job takes of its class's rate
    },
)
PROOF = PointerType("Proof", {**priced(np.int64), "least": (np.int64, 1)})
# inside compiled code: prices under improvement, or those of a proof, and what belongs to capacities
Priced = Any
Dual = Any
climbing: Any = row_of(CLIMBING)  # climbing(table, 0)
proof_at: Any = row_of(PROOF)
_dual: Any = row_of(DUAL)


@inlined
def cheapest(p: Priced, job: int, demand: Ints, prefix: Any, prices: Any) -> tuple[Any, int]:
    """Least cost of one job over all starts in [earliest, latest], and such a start. Floats or integers alike.

    demand (kinds,), prices (kinds, cells), prefix (kinds, cells + 1): what the job pays; the record's own, or those of
    its class. Works in blocks and stops when the delay alone costs more than the best.
    """
    weight, ready, release, latest, length = p.weight[job], p.ready[job], p.earliest[job], p.latest[job], p.length[job]
    width, cells, block = p.grid.width, prices.shape[1], p.block
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
        many = FIRST_BLOCK
        while low <= last:
            high = min(last + 1, low + many)
            many = min(2 * many, BLOCK)
            if weight * max(0, low * width - back - ready) >= best:
                break
            for k in range(low, high):
                block[k - low] = weight * max(0, k * width - back - ready)
            for kind in range(demand.size):
                units = demand[kind]
                if units == 0:
                    continue
                if side == 0:
                    plain = max(low, min(high, cells - steps))
                    for k in range(low, plain):
                        block[k - low] += units * (
                            prefix[kind, k + steps] + rest * prices[kind, k + steps] - prefix[kind, k]
                        )
                    for k in range(plain, high):
                        block[k - low] += units * (prefix[kind, cells] - prefix[kind, k])
                else:
                    for k in range(low, high):
                        block[k - low] += units * (
                            prefix[kind, min(cells, k + steps)]
                            - (prefix[kind, k] - rest * prices[kind, k - 1] if k > 0 else prefix[kind, 0])
                        )
            for k in range(low, high):
                if block[k - low] < best:
                    best, where = block[k - low], k * width - back
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
def _rate(p: Priced, d: Dual, one: int) -> None:
    """What a job of a class pays a tick, and its sums in front of each cell's edge."""
    demand, prices, rate, total, width = p.demand[d.first[one]], p.prices, d.rates[one], d.sums[one], p.grid.width
    rate[:] = 0.0
    for kind in range(demand.size):
        if demand[kind] > 0:
            for cell in range(rate.size):
                rate[cell] += demand[kind] * prices[kind, cell]
    for cell in range(rate.size):
        total[cell + 1] = total[cell] + rate[cell] * width


@inlined
def _supply(p: Priced, capacity: Ints) -> float:
    """What the whole capacity is worth at these prices, negative. `use`: as yet without jobs."""
    prices, prefix, use, width = p.prices, p.prefix, p.use, p.grid.width
    bound = 0.0
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            prefix[kind, cell + 1] = prefix[kind, cell] + prices[kind, cell] * width
            use[kind, cell] = -float(capacity[kind] * width)
        bound -= capacity[kind] * prefix[kind, prices.shape[1]]
    return bound


@inlined
def _deflect(p: Priced) -> tuple[float, float]:
    """The next direction; its squared length, and that of the ascent: 0 where supply meets demand wherever it matters,
    these prices are the best."""
    prices, use, direction = p.prices, p.use, p.direction
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
def copy_prices(prices: Floats, to: Floats) -> None:
    """Copy (kinds, cells)."""
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            to[kind, cell] = prices[kind, cell]


@inlined
def judge(p: Priced, bound: float, target: float, patience: int) -> bool:
    """Keep prices of a better bound. After `patience` steps without one, theta times 0.7: returns whether it is so."""
    climb = p.climb
    climb.stalls += 1
    if bound > climb.bound:
        if bound > climb.bound + 1e-6 * abs(target):
            climb.stalls = 0
        climb.bound = bound
        copy_prices(p.prices, p.best)
    elif climb.stalls >= patience:
        climb.theta *= 0.7
        climb.stalls = 0
        return True
    return False


@inlined
def advance(p: Priced, bound: float, target: float) -> bool:
    """A Polyak step towards `target`, deflected (direction = 0.6 new + 0.4 old). Returns False, and takes none, where
    theta is spent or the bound meets the target."""
    norm, ascent = _deflect(p)
    climb, prices, direction = p.climb, p.prices, p.direction
    if norm == 0.0 or ascent == 0.0 or climb.theta < 1e-3 or target - climb.bound <= 1e-9 * abs(target):
        return False
    step = climb.theta * (target - bound) / max(norm, 0.3 * ascent)  # where old and new directions cancel, no leap
    for kind in range(prices.shape[0]):
        for cell in range(prices.shape[1]):
            prices[kind, cell] = max(0.0, prices[kind, cell] + step * direction[kind, cell])
    return True


@lean
def subgradient(table: Ints, more: Ints, iterations: int, target: float) -> int:
    """`iterations` steps towards `target` (cost of the best schedule), all in place: calls can be chained.

    After 20 steps without a better bound they are shorter, from the best prices. table: of `CLIMBING`, more: of `DUAL`.
    Returns the iterations done.
    """
    p, d = climbing(table, 0), _dual(more, 0)
    starts, spread, width, cells = d.starts, d.spread, p.grid.width, p.prices.shape[1]
    for iteration in range(iterations):
        bound = _supply(p, d.capacity)
        for one in range(d.first.size):
            _rate(p, d, one)
        for job in range(p.length.size):
            demand, prefix, prices = p.demand[job], p.prefix, p.prices
            if d.first.size > 0:
                one = d.alike[job]
                demand, prefix, prices = d.one, d.sums[one : one + 1], d.rates[one : one + 1]
            value, start = cheapest(p, job, demand, prefix, prices)
            bound += value
            spread[job] += 0.05 * (abs(start - starts[job]) - spread[job])
            starts[job] += 0.05 * (start - starts[job])
            for kind in range(p.demand.shape[1]):
                if p.demand[job, kind] > 0:
                    take(p.use, kind, p.demand[job, kind], start, start + p.length[job], width, cells)
        if judge(p, bound, target, 20):
            copy_prices(p.best, p.prices)
        if not advance(p, bound, target):
            return iteration + 1
    return iterations


@lean
def least_costs(table: Ints) -> None:
    """Write each job's exact least cost under integer prices, all in the same unit, to `least` (n,). table: of
    `PROOF`."""
    p = proof_at(table, 0)
    for job in range(p.least.size):
        p.least[job], _ = cheapest(p, job, p.demand[job], p.prefix, p.prices)


def climb_from(best: Floats) -> dict[str, NDArray[Any]]:
    """The fields of `CLIMBING` that move, from prices (kinds, cells)."""
    kinds, cells = best.shape
    return {
        "climb": np.array((-np.inf, 1.0, 0), CLIMB),
        "best": best,
        **{name: np.zeros_like(best) for name in ("prices", "direction", "use")},
        "prefix": np.zeros((kinds, cells + 1)),
        "block": np.zeros(BLOCK),
    }


def prefix_of(prices: Ints, width: int, out: Ints | None = None) -> Ints:
    """Sums of price * width in front of each cell's edge, (kinds, cells + 1). out: where to, its first column 0."""
    prefix = np.zeros((prices.shape[0], prices.shape[1] + 1), prices.dtype) if out is None else out
    np.cumsum(prices * width, axis=1, out=prefix[:, 1:])
    return prefix
