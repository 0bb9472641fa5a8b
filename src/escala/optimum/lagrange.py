"""Lagrangian lower bound: the capacity of every tick gets a price instead of a limit.

With prices u[kind, tick] >= 0 every schedule costs at least

    L(u) = sum_j min_s [ c_j(s) + sum_kind demand_j,kind * sum of u[kind] over [s, s + length_j) ] - sum_kind
    capacity_kind * sum of u[kind]

since its jobs pay for no more than the capacities. L is a bound for every u >= 0: prices need no trust, only the
evaluation does. The best L equals the linear programme of the time-indexed model (Geoffrion 1974; Christofides,
Alvarez-Valdes and Tamarit 1987; Moehring et al. 2003).

Prices are constant over cells of `width` ticks and zero behind the last cell; starts are *not* limited to the cells. A
job's cost is then piecewise linear in its start, so the minimum lies at a release, a ready tick, a cell's edge, or an
edge minus the length: few candidates, exact at any resolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.optimum.conflicts import sharpened
from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.prices import (
    BLOCK,
    CLIMBING,
    DUAL,
    GRID,
    NEVER,
    PROOF,
    climb_from,
    least_costs,
    prefix_of,
    subgradient,
)
from escala.optimum.record import Record


class Grid(NamedTuple):
    """The cells that carry prices: cell k covers ticks [origin + k * width, origin + (k + 1) * width), k < cells."""

    origin: int
    width: int
    cells: int


def grid_for(instance: Instance, end: int, max_cells: int) -> Grid:
    """Cells from the first release to about `end`. Their width is a multiple of the greatest common divisor of all
    times, at most `max_cells` in number.
    """
    origin = int(instance.release.min())
    unit = int(np.gcd.reduce(np.concatenate([instance.release - origin, instance.length])))
    span = max(unit, end - origin)
    width = unit * max(1, -(-span // (unit * max_cells)))
    return Grid(origin, width, -(-span // width))


class Proof(NamedTuple):
    """A bound in integers: every schedule's summed cost >= numerator / scale. prices (kinds, cells) and weight (n,)
    count 1 / scale; least (n,) per job.
    """

    numerator: int
    scale: int
    prices: Ints
    weight: Ints
    least: Ints

    @property
    def cost(self) -> Fraction:
        """The bound of the summed cost (>= 0)."""
        return max(Fraction(0), Fraction(self.numerator, self.scale))


class Window(NamedTuple):
    """Where jobs may start: in [earliest, latest], both (n,), ticks from the grid's origin."""

    earliest: Ints
    latest: Ints


def everywhere(instance: Instance, grid: Grid) -> Window:
    """From the release on, without an end."""
    return Window(instance.release - grid.origin, np.full(instance.jobs, NEVER, np.int64))


def prove(
    instance: Instance, grid: Grid, prices: Floats, window: Window | None = None, record: Record | None = None
) -> Proof:
    """Evaluate L, of the schedules within the window, at `prices` rounded down to whole multiples of 1 / scale, in
    integers, so that the bound holds whatever the floats did.

    The slope 1 / divisor of a job's cost becomes floor(scale / divisor) / scale, which is never more than it (and equal
    where the scale is a multiple of all divisors, which is chosen when it is small). The scale is as large as 64 bits
    allow: no value met is above 2^61. record: as `proof_record` makes it, for callers that prove often.
    """
    units = np.maximum(prices, 0.0)
    window = everywhere(instance, grid) if window is None else window
    income = float(sum(int(c) * float(u.sum()) * grid.width for c, u in zip(instance.capacity, units)))
    end = grid.origin + np.maximum(grid.width * (grid.cells + 1), window.earliest)
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
    whole = np.floor(units * float(scale)).astype(np.int64)  # down, so that sums stay below what the scale was made for
    weight = scale // instance.divisor
    record = proof_record(instance, grid) if record is None else record
    load_prices(record, window, weight, whole)
    least_costs(record.table)
    least = record.least.copy()
    outgo = sum(int(c) * sum(u.tolist()) for c, u in zip(instance.capacity, whole)) * grid.width
    return Proof(sum(least.tolist()) - outgo, scale, whole, weight, least)


def proof_record(instance: Instance, grid: Grid) -> Record:
    """What evaluations in integers work with, see `load_prices`."""
    jobs, kinds = instance.jobs, instance.capacity.size
    window = Window(*(np.zeros(jobs, np.int64) for _ in range(2)))
    return Record(
        PROOF,
        **priced_jobs(instance, grid, window, np.zeros(jobs, np.int64)),
        prices=np.zeros((kinds, grid.cells), np.int64), prefix=np.zeros((kinds, grid.cells + 1), np.int64),
        block=np.zeros(BLOCK, np.int64), least=np.zeros(jobs, np.int64),
    )  # fmt: skip


def load_prices(record: Record, window: Window, weight: Ints, prices: Ints) -> None:
    """Weights (n,) and prices (kinds, cells) of one unit, and where jobs may start, for the next evaluation."""
    record.earliest[:], record.latest[:], record.weight[:], record.prices[:] = *window, weight, prices
    prefix_of(prices, int(record.grid["width"]), record.prefix)


def priced_jobs(instance: Instance, grid: Grid, window: Window, weight: Ints | Floats) -> dict[str, NDArray[Any]]:
    """The fields of `prices.priced` that prices do not move."""
    return {
        "grid": np.array((grid.width,), GRID),
        "earliest": window.earliest,
        "latest": window.latest,
        "length": instance.length,
        "demand": instance.demand,
        "ready": instance.ready - grid.origin,
        "weight": weight,
    }


@dataclass
class Part:
    """The schedules within a window, and the best prices for them so far, (kinds, cells).

    starts, spread: (n,) smoothed start of each job in the relaxed schedules, ticks from the grid's origin, and how far
    it swings. bound: of the summed cost, a float.
    """

    window: Window
    prices: Floats
    starts: Floats
    spread: Floats
    bound: float = -np.inf


class Dual:
    """Prices under improvement. `improve` may be called again with a better target; `proof` is exact at any moment."""

    def __init__(self, instance: Instance, end: int, max_cells: int = 1 << 12) -> None:
        """Prices reach to about tick `end`: a schedule's end is a good choice, and any choice gives a valid bound.
        Conflicts of jobs carry prices too (`conflicts`)."""
        self.grid = grid_for(instance, end, max_cells)
        self.given = instance
        instance = self.instance = sharpened(instance, self.grid.cells)
        shape = (instance.capacity.size, self.grid.cells)
        window = everywhere(instance, self.grid)
        self.whole = Part(window, np.zeros(shape), window.earliest.astype(np.float64), np.zeros(instance.jobs))
        self._climbing, self._more = self._made(shape)
        self._proof = proof_record(instance, self.grid)
        self.iterations = 0
        # compiled calls of about a second at most
        self.chunk = max(1, min(200, int(1e9 / (instance.jobs * self.grid.cells * shape[0]))))

    @property
    def sharp(self) -> bool:
        """Whether conflicts carry prices."""
        return self.instance is not self.given

    @property
    def starts(self) -> Floats:
        """Smoothed starts of the relaxed schedules (n,), in ticks: an order to try."""
        return self.whole.starts + self.grid.origin

    def improve(self, target: float, iterations: int, expired: Callable[[], bool] = lambda: False) -> bool:
        """Up to `iterations` steps towards the summed cost `target` of a schedule; returns whether `expired` cut them
        short."""
        return self.ascend(self.whole, 1.0, target, iterations, expired)

    def ascend(
        self, part: Part, theta: float, target: float, iterations: int, expired: Callable[[], bool] = lambda: False
    ) -> bool:
        """`improve` for the schedules of one part, in steps of length `theta` at first."""
        r, more, left = self._climbing, self._more, iterations
        r.earliest[:], r.latest[:] = part.window
        r.prices[:], r.best[:], r.direction[:] = part.prices, part.prices, 0.0
        more.starts[:], more.spread[:], r.climb[...] = part.starts, part.spread, (part.bound, theta, 0)
        try:
            while left > 0:
                chunk = min(left, self.chunk)
                done = subgradient(r.table, more.table, chunk, target)
                self.iterations += done
                if done < chunk:
                    return False
                left -= chunk
                if expired():
                    return True
        finally:  # Ctrl-C too keeps what was found
            part.prices[:], part.starts[:], part.spread[:] = r.best, more.starts, more.spread
            part.bound = float(r.climb["bound"])
        return False

    def _made(self, shape: tuple[int, int]) -> tuple[Record, Record]:
        """What the compiled steps work with; shape: (kinds, cells). Filled by `ascend`."""
        instance, cells = self.instance, shape[1]
        first, alike = np.unique(instance.demand, axis=0, return_index=True, return_inverse=True)[1:]
        if not self.sharp:
            first = first[:0]
        window = Window(*(np.zeros(instance.jobs, np.int64) for _ in range(2)))
        climbing = Record(
            CLIMBING,
            **priced_jobs(instance, self.grid, window, 1.0 / instance.divisor),
            **climb_from(np.zeros(shape)),
        )
        more = Record(
            DUAL,
            capacity=instance.capacity, starts=np.zeros(instance.jobs), spread=np.zeros(instance.jobs),
            alike=alike.reshape(-1).astype(np.int64), first=first.astype(np.int64), one=np.ones(1, np.int64),
            rates=np.zeros((first.size, cells)), sums=np.zeros((first.size, cells + 1)),
        )  # fmt: skip
        return climbing, more

    def proof(self, part: Part | None = None) -> Proof:
        """The exact bound of the whole, or of a part, at its best prices so far."""
        part = self.whole if part is None else part
        return prove(self.instance, self.grid, part.prices, part.window, self._proof)
