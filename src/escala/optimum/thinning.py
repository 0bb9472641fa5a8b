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
from escala.optimum.lagrange import Grid, Proof, Window
from escala.optimum.prices import paid, prefix_of

MAX_STARTS = 20_000_000  # (job, tick) pairs that are looked at


@lean
def _reduced(
    release: Ints, length: Ints, demand: Ints, ready: Ints, weight: Ints, width: int, prices: Ints, prefix: Ints,
    least: Ints, slack: int, unit: int, earliest: Ints, last: Ints, first: Ints, keep: Ints,
) -> None:  # fmt: skip
    """keep[first[j] + k] = 1 if starting job j at release + k * unit, in [earliest, last], costs at most `slack` more
    than its least cost; else it stays as it is."""
    cells = prices.shape[1]
    for job in range(release.size):
        most = least[job] + slack
        # a longer delay costs more by itself; its product might pass 64 bits
        latest = most // weight[job] if weight[job] > 0 else most
        for at in range(first[job], first[job + 1]):
            start = release[job] + (at - first[job]) * unit
            late = max(0, start - ready[job])
            if late > latest or start > last[job]:
                break
            if start < earliest[job] or keep[at] == 1:
                continue
            value = weight[job] * late
            for kind in range(demand.shape[1]):
                value += demand[job, kind] * (
                    paid(prefix, prices, kind, start + length[job], width, cells)
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
    for window, proof in parts:
        slack = int(Fraction(cost) * proof.scale * (1 + Fraction(1, 10**9))) + 1 - proof.numerator
        if slack < 0:
            continue  # no schedule of the part is as good
        _reduced(
            instance.release - origin, instance.length, instance.demand, instance.ready - origin, proof.weight,
            grid.width, proof.prices,
            prefix_of(proof.prices, grid.width), proof.least, min(slack, 1 << 62), unit, window.earliest, window.latest,
            first, keep,
        )  # fmt: skip
    job = np.repeat(np.arange(instance.jobs), count)
    ticks = instance.release[job] + (np.arange(keep.size) - first[job]) * unit
    kept = keep.astype(bool)
    return Starts(
        ticks[kept], np.concatenate([[0], np.cumsum(np.bincount(job[kept], minlength=instance.jobs))]), origin, unit
    )
