"""Which starts are left: a start goes if the Lagrangian bound plus its reduced cost, both in integers, is above the
best schedule's cost.

No schedule that is better or as good uses such a start, so the reduction is exact, and it is made before any solver
sees the model. Where the schedules were split into parts (`splitting`), every one of them lies in some part, and a
start stays if it stays in any part.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from escala.compile import lean
from escala.optimum.instance import Instance, Ints
from escala.optimum.lagrange import Grid, Proof, Window, load_prices, proof_record
from escala.optimum.prices import paid, proof_at

MAX_STARTS = 20_000_000  # (job, tick) pairs that are looked at


@lean
def _reduced(table: Ints, release: Ints, slack: int, unit: int, first: Ints, keep: Ints) -> None:
    """keep[first[j] + k] = 1 if starting job j at release + k * unit, within its window, costs at most `slack` more
    than its least cost; else it stays as it is. table: of `prices.PROOF`."""
    p = proof_at(table, 0)
    prefix, prices, width, cells = p.prefix, p.prices, p.grid.width, p.prices.shape[1]
    for job in range(release.size):
        most, weight = p.least[job] + slack, p.weight[job]
        # a longer delay costs more by itself; its product might pass 64 bits
        latest = most // weight if weight > 0 else most
        for at in range(first[job], first[job + 1]):
            start = release[job] + (at - first[job]) * unit
            late = max(0, start - p.ready[job])
            if late > latest or start > p.latest[job]:
                break
            if start < p.earliest[job] or keep[at] == 1:
                continue
            value = weight * late
            for kind in range(p.demand.shape[1]):
                value += p.demand[job, kind] * (
                    paid(prefix, prices, kind, start + p.length[job], width, cells)
                    - paid(prefix, prices, kind, start, width, cells)
                )
            if value <= most:
                keep[at] = 1


class Starts(NamedTuple):
    """Starts that may belong to a schedule as good as the best: job j's are ticks[first[j]:first[j + 1]], ascending;
    all multiples of `unit` from origin.
    """

    ticks: Ints
    first: Ints
    origin: int
    unit: int


def open_starts(instance: Instance, grid: Grid, parts: Sequence[tuple[Window, Proof]], cost: float) -> Starts | None:
    """All starts up to the horizon that the proofs of the parts do not rule out against a schedule of summed cost
    `cost`; None if there are too many to look at.
    """
    origin = grid.origin
    unit = int(np.gcd.reduce(np.concatenate([instance.release - origin, instance.length])))
    count = (instance.horizon - instance.length - instance.release) // unit + 1
    if int(count.sum(dtype=object)) > MAX_STARTS:
        return None
    first = np.concatenate([[0], np.cumsum(count)])
    # integers on both sides; the cost, a float, is raised by more than its error, so ties stay
    keep = np.zeros(int(first[-1]), np.int64)
    record = proof_record(instance, grid)
    for window, proof in parts:
        slack = int(Fraction(cost) * proof.scale * (1 + Fraction(1, 10**9))) + 1 - proof.numerator
        if slack < 0:
            continue  # no schedule of the part is as good
        load_prices(record, window, proof.weight, proof.prices)
        record.least[:] = proof.least
        _reduced(record.table, instance.release - origin, min(slack, 1 << 62), unit, first, keep)
    job = np.repeat(np.arange(instance.jobs), count)
    ticks = instance.release[job] + (np.arange(keep.size) - first[job]) * unit
    kept = keep.astype(bool)
    return Starts(
        ticks[kept], np.concatenate([[0], np.cumsum(np.bincount(job[kept], minlength=instance.jobs))]), origin, unit
    )
