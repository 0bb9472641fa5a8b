"""The time-indexed model: x[j, t] = 1 if job j starts at tick t.

minimise the sum of costs, one start per job, and at every tick the demands of the running jobs within the capacities.
Only the starts that `thinning` leaves become columns. Jobs of equal length, demand and grace are one class, of which
y[class, t] start at t: of two such jobs the one released first may go first, and delays only add up. That leaves no
symmetry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escala.optimum.instance import Floats, Instance, Ints
from escala.optimum.thinning import Starts

MAX_ENTRIES = 4_000_000  # non-zero entries of the matrix that are given to a solver


class Model(NamedTuple):
    """A mixed-integer programme: minimise cost @ y, low <= A y <= high, 0 <= y <= top whole; A in coordinates.

    The last column stands for the best schedule known: 1 there and 0 elsewhere is feasible. `offset` is to be added to
    the objective; the sum is the summed cost of the schedule. classes[c] are the rows of a class by release; column k
    (but the last) starts one job of class owner[k] at tick[k].
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
        """The schedule of a solution (n,), or None where it is the one known already. Equal jobs take their starts in
        order of release."""
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
    """Rows of jobs that are alike (in length, demand and what delay costs), each by release. With a period of grace
    delays do not simply add up: such jobs are alike only if released together.
    """
    grace = instance.ready - instance.release
    keys: dict[tuple[int, ...], list[int]] = {}
    for job in np.argsort(instance.release, kind="stable").tolist():
        key = (int(instance.length[job]), int(instance.divisor[job]), *instance.demand[job].tolist())
        if grace[job] > 0:
            key += (int(grace[job]), int(instance.release[job]))
        keys.setdefault(key, []).append(job)
    return [np.array(rows, np.int64) for rows in keys.values()]


def build(instance: Instance, starts: Starts, cost: float) -> Model | None:
    """The programme over the open starts, given the best schedule's summed cost; None if it has too many entries."""
    classes = classes_of(instance)
    heads = np.array([rows[0] for rows in classes])
    sizes = np.array([rows.size for rows in classes])
    slots = [
        np.unique(np.concatenate([starts.ticks[starts.first[j] : starts.first[j + 1]] for j in rows]))
        for rows in classes
    ]
    owner = np.repeat(np.arange(len(classes)), [s.size for s in slots])
    tick, head = np.concatenate(slots), heads[owner]
    span = instance.length[head] // starts.unit
    if int((span * np.count_nonzero(instance.demand[head], axis=1)).sum()) > MAX_ENTRIES:
        return None
    price = np.maximum(0, tick - instance.ready[head]) / instance.divisor[head]
    least = np.array([price[owner == c].min() for c in range(len(classes))])
    # members released after the head are charged from the head's release: put that right once, in the offset
    early = np.array(
        [
            float((instance.release[rows] - instance.release[rows[0]]).sum()) / int(instance.divisor[rows[0]])
            for rows in classes
        ]
    )
    offset = float((least * sizes).sum() - early.sum())
    fits = np.min(instance.capacity // np.maximum(1, instance.demand[head]), axis=1)
    top = np.append(np.minimum(sizes[owner], fits), 1.0)
    blocks = [
        _members(classes, sizes, owner, tick, instance.release),
        *_capacities(instance, starts, owner, tick, head, span, top),
    ]
    base = np.cumsum([0] + [block[3].size for block in blocks])
    rows = np.concatenate([block[0] + shift for block, shift in zip(blocks, base)])
    columns, entries, low, high = (np.concatenate([block[k] for block in blocks]) for k in range(1, 5))
    return Model(
        np.append(price - least[owner], cost - offset),
        top,
        low,
        high,
        rows,
        columns,
        entries,
        offset,
        classes,
        owner,
        tick,
    )


Block = tuple[Ints, Ints, Floats, Floats, Floats]


def _members(classes: list[Ints], sizes: Ints, owner: Ints, tick: Ints, release: Ints) -> Block:
    """Every job once (or the last column); and before the release of a class's (k + 1)th job no more than k of it."""
    rows, columns = [owner, np.arange(len(classes))], [np.arange(owner.size), np.full(len(classes), owner.size)]
    entries = [np.ones(owner.size), sizes.astype(float)]
    low, high = sizes.astype(float).tolist(), sizes.astype(float).tolist()
    for c, members in enumerate(classes):
        mine = np.flatnonzero(owner == c)
        for k in range(1, members.size):
            before = mine[tick[mine] < release[members[k]]]
            if release[members[k]] > release[members[k - 1]] and before.size:
                rows.append(np.full(before.size, len(high)))
                columns.append(before)
                entries.append(np.ones(before.size))
                low.append(-np.inf)
                high.append(float(k))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(entries), np.array(low), np.array(high)


def _capacities(
    instance: Instance, starts: Starts, owner: Ints, tick: Ints, head: Ints, span: Ints, top: Floats
) -> list[Block]:
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
        blocks.append(
            (number[row[used]], column[used], demand[used], np.full(size, -np.inf), np.full(size, float(units)))
        )
    return blocks
