"""Cheap bounds, exact in Python's integers and event-driven: mean busy times for sums, energy and rounding arguments
for the makespan.

Mean busy time (Goemans 1997; Goemans et al. 2002): in any schedule, job j's work length * demand is done at a constant
rate around its midpoint start + length / 2, and all work together is done at a rate of at most the capacity. Let one
machine of the whole capacity do the work instead, preempting and in any shares. The weighted sum of mean times at which
the work is done is least if always the released work of the largest weight per unit is done. The bound is near the
truth in deep overload and worth little elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush

import numpy as np

from escala.optimum.instance import Instance, Ints

SCALE = 1 << 80


def mean_busy_bound(instance: Instance) -> Fraction:
    """Lower bound of the sum of max(0, start - ready) / divisor, over all kinds; O(n log n) events. ValueError for the
    makespan."""
    if not instance.summed:
        raise ValueError("the mean busy time bounds sums, not the makespan")
    best = Fraction(0)
    for kind in range(instance.capacity.size):
        works = instance.demand[:, kind] > 0
        # sum of max(0, x) over all jobs >= sum of x over any of them: take all, or those without a period of grace (or
        # of a tick, which rounding makes)
        sets = [works, *(works & (instance.ready - instance.release <= grace) for grace in (1, 0))]
        for size in sorted({int(rows.sum()) for rows in sets}):
            rows = next(rows for rows in sets if rows.sum() == size)
            best = max(best, _mean_busy(instance, kind, np.flatnonzero(rows)))
    return best


def _mean_busy(instance: Instance, kind: int, rows: Ints) -> Fraction:
    """The bound for one kind and the jobs `rows`. Time is counted in 1 / capacity ticks, so that all event times are
    whole."""
    capacity = int(instance.capacity[kind])
    rows = rows[np.argsort(instance.release[rows], kind="stable")]
    release = [int(r) * capacity for r in instance.release[rows]]
    length, divisor, ready = (a[rows].tolist() for a in (instance.length, instance.divisor, instance.ready))
    work = [p * int(q) for p, q in zip(length, instance.demand[rows, kind])]
    left, moments = list(work), [0] * len(work)  # moments: sum of end^2 - begin^2 over a job's pieces
    heap: list[tuple[int, int]] = []
    now, arrived = 0, 0
    while heap or arrived < len(work):
        if not heap:
            now = max(now, release[arrived])
        while arrived < len(work) and release[arrived] <= now:
            heappush(heap, (divisor[arrived] * work[arrived], arrived))
            arrived += 1
        _, job = heap[0]
        until = now + left[job]
        if arrived < len(work):
            until = min(until, release[arrived])
        moments[job] += until * until - now * now
        left[job] -= until - now
        now = until
        if left[job] == 0:
            heappop(heap)
    total = 0
    for job, moment in enumerate(moments):
        late = moment - work[job] * capacity * (length[job] + 2 * ready[job])
        total += late * SCALE // (2 * work[job] * capacity * divisor[job])
    return Fraction(total, SCALE)


def makespan_bound(instance: Instance) -> int:
    """Lower bound of the makespan in ticks: the longest job; and, from every release on, the rounded area of the jobs
    released by then or later.

    The roundings are dual feasible functions (Fekete and Schepers 2001), which also see that wide jobs exclude each
    other. A later release can only push the end back, so for each release rho: end >= rho + ceil(area of jobs with
    release >= rho).
    """
    first = int(instance.release.min())
    end = int((instance.release + instance.length).max())
    order = np.argsort(-instance.release, kind="stable")
    release, length = instance.release[order].tolist(), instance.length[order].tolist()
    for kind in range(instance.capacity.size):
        for shares, whole in rounded(instance.demand[order, kind], int(instance.capacity[kind])):
            area = 0
            for rho, ticks, share in zip(release, length, shares):
                area += ticks * share
                end = max(end, rho - (-area // whole))
    return end - first


def rounded(demand: Ints, capacity: int) -> Iterator[tuple[list[int], int]]:
    """Dual feasible roundings of demands: (whole shares per job, shares that fit at once)."""
    units = demand.tolist()
    yield units, capacity
    for parts in range(1, 6):
        # f(q) = floor((k + 1) q / C) / k, and q / C where (k + 1) q / C is whole; shares count 1 / (k C)
        yield (
            [parts * q if (parts + 1) * q % capacity == 0 else (parts + 1) * q // capacity * capacity for q in units],
            parts * capacity,
        )
    for least in sorted({q for q in units if 0 < 2 * q <= capacity})[:32]:
        # jobs below `least` count nothing, those that leave less than it count whole
        yield [capacity if q > capacity - least else 0 if q < least else q for q in units], capacity
