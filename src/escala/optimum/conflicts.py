"""Conflicts: what the capacities imply beyond themselves, written as further resource kinds, so that whatever prices
kinds prices these.

Of a set of jobs of which no two can run at one time, at most one runs at any tick: a clique of the conflict graph
(Atamturk, Nemhauser and Savelsbergh 2000). The capacity alone allows half of a job as wide as the machine beside a
whole narrow one, and a Lagrangian or linear relaxation makes use of that. The sets here are one for each narrow job:
itself and the wide ones (more than half of a capacity) that do not fit beside it; and the wide ones alone where some
are narrower than the machine. On lists of which half the jobs take the whole machine this closes half of the gap
(docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from escala.optimum.instance import Instance, Ints

# about what a step may cost: (kinds + non-zero demands of jobs that demand the same) x cells + what the jobs use
MAX_WORK = 4_000_000


def sharpened(instance: Instance, cells: int) -> Instance:
    """The instance with its conflicts as further kinds, behind its own; itself where there are none, or too many for so
    many cells.

    Every schedule of the instance is one of the result, at the same cost, and the other way round. A conflict takes as
    many units as half of the capacity that it comes from: prices of both kinds then move at about the same pace.
    """
    sets: list[Ints] = []
    units: list[int] = []
    left = MAX_WORK
    span = max(1, int((instance.release + instance.length).max() - instance.release.min()))
    runs = instance.length * (cells / span) + 2.0  # about how many cells each job uses
    for kind, capacity in enumerate(instance.capacity.tolist()):
        widths = np.unique(instance.demand[instance.demand[:, kind] * 2 > capacity], axis=0).shape[0]
        for jobs in _sets(instance.demand[:, kind], capacity):
            left -= (widths + 4) * cells + int(runs[jobs].sum())
            if left < 0:
                return instance
            sets.append(jobs)
            units.append(max(1, capacity // 2))
    if not sets:
        return instance
    more = np.zeros((instance.jobs, len(sets)), np.int64)
    for column, (jobs, each) in enumerate(zip(sets, units)):
        more[jobs, column] = each
    sharp = copy(instance)  # with its ready ticks and divisors, which may have been rounded
    object.__setattr__(sharp, "demand", np.ascontiguousarray(np.hstack([instance.demand, more])))
    object.__setattr__(sharp, "capacity", np.concatenate([instance.capacity, units]))
    return sharp


def _sets(demand: Ints, capacity: int) -> Iterator[Ints]:
    """Rows of jobs of which no two fit into a capacity."""
    wide = 2 * demand > capacity
    if np.any(demand[wide] < capacity):
        yield np.flatnonzero(wide)
    for job in np.flatnonzero(~wide & (demand > 0)).tolist():
        others = np.flatnonzero(wide & (demand + demand[job] > capacity))
        if others.size:
            yield np.append(others, job)
