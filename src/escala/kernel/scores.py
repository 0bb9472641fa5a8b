"""Scores that change with time or with what is free, recomputed at each decision; the smallest is first. Fixed ones are ranks, prepared
in `policies.scores`."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.kernel import codes
from escala.kernel.placement import find_single
from escala.kernel.reservation import permission, usable
from escala.kernel.state import World


@lean
def dynamic_score(w: World, j: int) -> float:
    """WFP3: -(wait / walltime)^3 cores. UNICEP: -wait / (log2(max(cores, 2)) walltime) (Tang et al. 2009). Seconds, cores."""
    ratio = (w.s[0].now - w.job[j].submit) / w.job[j].walltime  # one division of whole numbers: equal ratios tie
    cores = np.int64(w.job[j].cores)
    if w.o[0].ordering == codes.BY_WFP3:
        return -(ratio * ratio * ratio) * cores
    return -ratio / np.log2(max(cores, 2))


@lean
def packing_score(w: World, j: int) -> float:
    """Packer: -sum over kinds of demand x free. Tetris: -(0.5 sum of demands + 0.5 / walltime), raw numbers. inf if the job does not fit
    now.

    For a job of one node, free is what is free on the node that it would get; else the cores that it may be given.
    """
    waking = w.o[0].given == 1 and permission(w, j) <= w.s[0].now
    cores = np.int64(w.job[j].cores)
    n = codes.NONE
    if w.job[j].single == 1:
        n = find_single(w, j, waking)
        if n == codes.NONE:
            return np.inf
        free = 1 if w.o[0].unit == 1 else w.node[n].free
    else:
        free = usable(w, j)
        if cores > free:
            return np.inf
    alignment = float(cores) * free
    demand = float(cores)
    if w.job[j].single == 1 and w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            alignment += float(w.demand[j, k]) * w.room[n, k]
            demand += w.demand[j, k]
    if w.o[0].ordering == codes.BY_PACKER:
        return -alignment
    return -(0.5 * demand + 0.5 / (w.job[j].walltime / 1e6))


@lean
def best_dynamic(w: World, fitting: bool) -> int:
    """Queued job of the smallest score (ties in queue order); with `fitting` the best that fits now, or NONE."""
    best = codes.NONE
    least = np.inf
    j = w.s[0].first
    while j != codes.NONE:
        score = packing_score(w, j) if fitting else dynamic_score(w, j)
        if score < least:
            least = score
            best = j
        j = np.int64(w.run[j].next)
    return best


@compiled
def by_dynamic_score(w: World) -> Any:
    """Rows of the waiting jobs in the order of a score of this instant, int64 [queued]."""
    n = w.s[0].n_queued
    rows = np.empty(n, np.int64)
    values = np.empty(n, np.float64)
    j = w.s[0].first
    for i in range(n):
        rows[i] = j
        values[i] = dynamic_score(w, j)
        j = np.int64(w.run[j].next)
    return rows[np.argsort(values, kind="mergesort")]
