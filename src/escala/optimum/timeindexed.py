"""The time-indexed model: x[j, t] = 1 if job j starts at tick t, thinned out exactly before any solver sees it.

minimise sum of cost, one start per job, and at every tick the demands of the running jobs within the capacities. A start goes if the Lagrangian bound plus its
reduced cost, both in integers, is above the best schedule's cost: no better or equal schedule uses it. Jobs of equal length, demand and grace are one
class, of which y[class, t] start at t: of two such jobs the one released first may go first, and delays only add up. That leaves no symmetry.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from escala.compile import compiled
from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.lagrange import Grid, Proof, paid

MAX_STARTS = 20_000_000  # (job, tick) pairs that are looked at
MAX_ENTRIES = 4_000_000  # non-zero entries of the matrix that are given to a solver


@compiled
def _reduced(
    release: Ints, length: Ints, demand: Ints, ready: Ints, weight: Ints, width: int, prices: Ints, least: Ints, slack: int, unit: int, first: Ints, keep: Ints
) -> None:
    """keep[first[j] + k] = 1 if starting job j at release + k * unit costs at most `slack` more than its least cost."""
    kinds, cells = prices.shape
    prefix = np.zeros((kinds, cells + 1), np.int64)
    for kind in range(kinds):
        for cell in range(cells):
            prefix[kind, cell + 1] = prefix[kind, cell] + prices[kind, cell] * width
    for job in range(release.size):
        for at in range(first[job], first[job + 1]):
            start = release[job] + (at - first[job]) * unit
            value = weight[job] * max(0, start - ready[job])
            for kind in range(kinds):
                value += demand[job, kind] * (
                    paid(prefix, prices, kind, start + length[job], width, cells) - paid(prefix, prices, kind, start, width, cells)
                )
            keep[at] = 1 if value - least[job] <= slack else 0


class Starts(NamedTuple):
    """Starts that may belong to a schedule as good as the best: job j's are ticks[first[j]:first[j + 1]], ascending; all multiples of `unit` from origin."""

    ticks: Ints
    first: Ints
    origin: int
    unit: int


def open_starts(instance: Instance, grid: Grid, proof: Proof, cost: float) -> Starts | None:
    """All starts up to the horizon that the proof does not rule out against a schedule of summed cost `cost`; None if there are too many to look at."""
    origin = grid.origin
    unit = int(np.gcd.reduce(np.concatenate([instance.release - origin, instance.length])))
    count = (instance.horizon - instance.length - instance.release) // unit + 1
    if int(count.sum(dtype=object)) > MAX_STARTS:
        return None
    first = np.concatenate([[0], np.cumsum(count)])
    # integers on both sides; the cost, a float, is raised by more than its error, so ties stay
    slack = int(Fraction(cost) * proof.scale * (1 + Fraction(1, 10**9))) + 1 - proof.numerator
    keep = np.zeros(int(first[-1]), np.int64)
    _reduced(
        instance.release - origin, instance.length, instance.demand, instance.ready - origin, proof.weight, grid.width, proof.prices,
        proof.least, min(slack, 1 << 62), unit, first, keep,
    )  # fmt: skip
    job = np.repeat(np.arange(instance.jobs), count)
    ticks = instance.release[job] + (np.arange(keep.size) - first[job]) * unit
    kept = keep.astype(bool)
    return Starts(ticks[kept], np.concatenate([[0], np.cumsum(np.bincount(job[kept], minlength=instance.jobs))]), origin, unit)


class Model(NamedTuple):
    """A mixed-integer programme: minimise cost @ y, low <= A y <= high, 0 <= y <= top whole; A in coordinates.

    The last column stands for the best schedule known: 1 there and 0 elsewhere is feasible. `offset` is to be added to the objective; the sum is the summed
    cost of the schedule. classes[c] are the rows of a class by release; column k (but the last) starts one job of class owner[k] at tick[k].
    """

    cost: Floats
    top: Floats
    low: Floats
    high: Floats
    rows: Ints
    columns: Ints
    entries: Floats
    offset: float
    classes: list[Ints]
    owner: Ints
    tick: Ints

    def starts(self, y: Floats, jobs: int) -> Ints | None:
        """The schedule of a solution (n,), or None where it is the one known already. Equal jobs take their starts in order of release."""
        times = np.zeros(jobs, np.int64)
        counts = np.rint(y[:-1]).astype(np.int64)
        for c, members in enumerate(self.classes):
            columns = np.flatnonzero(self.owner == c)
            taken = np.sort(np.repeat(self.tick[columns], counts[columns]))
            if taken.size != members.size:
                return None
            times[members] = taken
        return times


def classes_of(instance: Instance) -> list[Ints]:
    """Rows of jobs that are alike, each by release. With a period of grace delays do not simply add up: such jobs are alike only if released together."""
    grace = instance.ready - instance.release
    keys: dict[tuple[int, ...], list[int]] = {}
    for job in np.argsort(instance.release, kind="stable").tolist():
        key = (int(instance.length[job]), *instance.demand[job].tolist())
        if grace[job] > 0:
            key += (int(grace[job]), int(instance.release[job]))
        keys.setdefault(key, []).append(job)
    return [np.array(rows, np.int64) for rows in keys.values()]


def build(instance: Instance, starts: Starts, cost: float) -> Model | None:
    """The programme over the open starts, given the best schedule's summed cost; None if it has too many entries."""
    classes = classes_of(instance)
    heads = np.array([rows[0] for rows in classes])
    sizes = np.array([rows.size for rows in classes])
    slots = [np.unique(np.concatenate([starts.ticks[starts.first[j] : starts.first[j + 1]] for j in rows])) for rows in classes]
    owner = np.repeat(np.arange(len(classes)), [s.size for s in slots])
    tick, head = np.concatenate(slots), heads[owner]
    span = instance.length[head] // starts.unit
    if int((span * np.count_nonzero(instance.demand[head], axis=1)).sum()) > MAX_ENTRIES:
        return None
    price = np.maximum(0, tick - instance.ready[head]) / instance.divisor[head]
    least = np.array([price[owner == c].min() for c in range(len(classes))])
    # members released after the head are charged from the head's release: put that right once, in the offset
    early = np.array([float((instance.release[rows] - instance.release[rows[0]]).sum()) / int(instance.divisor[rows[0]]) for rows in classes])
    offset = float((least * sizes).sum() - early.sum())
    fits = np.min(instance.capacity // np.maximum(1, instance.demand[head]), axis=1)
    top = np.append(np.minimum(sizes[owner], fits), 1.0)
    blocks = [_members(classes, sizes, owner, tick, instance.release), *_capacities(instance, starts, owner, tick, head, span, top)]
    rows, columns, entries, low, high, base = [], [], [], [], [], 0
    for r, c, e, lo, hi in blocks:
        rows.append(r + base), columns.append(c), entries.append(e), low.append(lo), high.append(hi)
        base += lo.size
    return Model(
        np.append(price - least[owner], cost - offset), top, np.concatenate(low), np.concatenate(high),
        np.concatenate(rows), np.concatenate(columns), np.concatenate(entries), offset, classes, owner, tick,
    )  # fmt: skip


Block = tuple[Ints, Ints, Floats, Floats, Floats]


def _members(classes: list[Ints], sizes: Ints, owner: Ints, tick: Ints, release: Ints) -> Block:
    """Every job once (or the last column); and before the release of a class's (k + 1)th job no more than k of it."""
    rows, columns, entries, low, high = [owner, np.arange(len(classes))], [np.arange(owner.size), np.full(len(classes), owner.size)], [], [], []
    entries += [np.ones(owner.size), sizes.astype(float)]
    low, high = sizes.astype(float).tolist(), sizes.astype(float).tolist()
    for c, members in enumerate(classes):
        mine = np.flatnonzero(owner == c)
        for k in range(1, members.size):
            before = mine[tick[mine] < release[members[k]]]
            if release[members[k]] > release[members[k - 1]] and before.size:
                rows.append(np.full(before.size, len(high)))
                columns.append(before)
                entries.append(np.ones(before.size))
                low.append(-np.inf), high.append(float(k))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(entries), np.array(low), np.array(high)


def _capacities(instance: Instance, starts: Starts, owner: Ints, tick: Ints, head: Ints, span: Ints, top: Floats) -> list[Block]:
    """One row per kind and tick at which something may start (at any other tick no more runs than just before)."""
    cell = (tick - starts.origin) // starts.unit
    begins = np.unique(cell)
    low = np.searchsorted(begins, cell)
    count = np.searchsorted(begins, cell + span) - low
    column = np.repeat(np.arange(tick.size), count)
    row = np.repeat(low - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(column.size)
    blocks: list[Block] = []
    for kind, units in enumerate(instance.capacity.tolist()):
        demand = instance.demand[head[column], kind].astype(float)
        most = np.bincount(row, demand * top[column], begins.size)
        tight = most > units
        number = np.cumsum(tight) - 1
        used = tight[row] & (demand > 0)
        size = int(tight.sum())
        blocks.append((number[row[used]], column[used], demand[used], np.full(size, -np.inf), np.full(size, float(units))))
    return blocks
