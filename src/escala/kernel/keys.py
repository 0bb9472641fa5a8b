"""Numbers of jobs in the orders of the queue (`World.fixed`) that become known only at submission, as they depend on
the length that is expected of a job. `k` is the order: 0 that of the queue, 1 that of those who pass its first.
"""

from __future__ import annotations

import math

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.state import World

HOUR_US = 3_600_000_000.0


@inlined
def ordering_of(w: World, k: int) -> int:
    """codes.BY_..., of this order."""
    return w.o[0].ordering if k == 0 else w.o[0].passing


@lean
def give_numbers(w: World, j: int) -> None:
    """The length by which job `j` is ordered is known: so are its numbers."""
    for k in range(w.fixed.shape[0]):
        key = w.o[0].key if k == 0 else w.o[0].passing_key
        if key != codes.NONE:
            w.fixed[k, j] = _key(w, j, key)
        elif ordering_of(w, k) == codes.BY_LINEAR:
            length = math.log(max(w.forecast[j].order, 1) / HOUR_US)
            share = math.log(np.int64(w.job[j].cores) / w.o[0].n_cores)
            w.fixed[k, j] = w.terms[k].length * length + w.terms[k].length_cores * (length * share) + w.fixed[k, j]


@lean
def _key(w: World, j: int, key: int) -> float:
    """The fixed scores of `escala.scores` that use the length, in the same operations."""
    us = float(w.forecast[j].order)
    cores = np.int64(w.job[j].cores)
    if key == codes.KEY_SJF:
        return us
    if key == codes.KEY_LJF:
        return -us
    if key == codes.KEY_SAF:
        return us * cores
    if key == codes.KEY_SQRT_AREA:
        return us * np.sqrt(cores)
    s = max(w.job[j].submit / 1e6, 1.0)
    r = us / 1e6
    if key == codes.KEY_F1:
        return np.log10(r) * cores + 8.70e2 * np.log10(s)
    if key == codes.KEY_F2:
        return np.sqrt(r) * cores + 2.56e4 * np.log10(s)
    if key == codes.KEY_F3:
        return r * cores + 6.86e6 * np.log10(s)
    return r * np.sqrt(cores) + 5.30e5 * np.log10(s)
