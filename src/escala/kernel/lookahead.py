"""Many small futures of one machine, replayed one after the other in one simulation's tables: what a look-ahead policy
compares.

A future is the jobs that run now, those that wait, and those that may come; a choice is one of the waiting jobs, which
then starts first, or WAIT: no waiting job may start before the future's next event. Every choice meets the same
futures. Jobs are numbered: the waiting ones first, then those that may come, in order of arrival. The machine is one
pool of cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.calls import clear, prepare
from escala.kernel.easy import easy
from escala.kernel.schedule import greedy, strict
from escala.kernel.state import World
from escala.kernel.world import one

WAIT = -1
RUNTIME, WALLTIME, CORES, ARRIVAL, LATE = range(5)  # rows of a future's jobs


@lean
def _add(w: World, n: int, submit: int, runtime: int, walltime: int, cores: int) -> None:
    """Job row `n` of the future."""
    job = w.job[n]
    job.submit = submit
    job.runtime = min(runtime, walltime)
    job.walltime = walltime
    job.cores = cores
    job.load = 0.0
    job.killed = 0
    job.single = 0
    job.user = codes.NONE


@lean
def _fill(w: World, choice: int, future: Any, row: Any) -> int:
    """Write one future under one choice; `row` int64 [jobs] gets the row of each job. Returns the number of rows."""
    running, left, drawn, soon, release, order = future
    n = 0
    for r in range(running.shape[1]):
        _add(w, n, 0, left[r], running[1, r], running[0, r])
        n += 1
    row[:] = codes.NONE
    if choice != WAIT:
        _add(w, n, 0, drawn[RUNTIME, choice], drawn[WALLTIME, choice], drawn[CORES, choice])
        row[choice] = n
        n += 1
    first = soon if choice == WAIT else 0
    for late in range(2):
        for j in range(row.shape[0]):
            at = drawn[ARRIVAL, j]
            if row[j] == codes.NONE and at != codes.NEVER_US and drawn[LATE, j] == late:
                at = max(first, release if late == 1 else at)
                _add(w, n, at, drawn[RUNTIME, j], drawn[WALLTIME, j], drawn[CORES, j])
                row[j] = n
                n += 1
    if w.order.shape[1] > 0:
        _rank(w, n, choice, running.shape[1], order, row)
    return n


@lean
def _rank(w: World, n: int, choice: int, running: int, order: Any, row: Any) -> None:
    """The base policy's order, behind the jobs that run and the chosen one."""
    rank = running
    for r in range(running):
        w.order[0, r] = r
    if choice != WAIT:
        w.order[0, rank] = row[choice]
        rank += 1
    for p in range(order.shape[0]):
        if order[p] != choice and row[order[p]] != codes.NONE:
            w.order[0, rank] = row[order[p]]
            rank += 1
    for k in range(n):
        w.order[1, w.order[0, k]] = k


@lean
def _start_at_once(queueing: int, free: int, drawn: Any, release: int, order: Any, at_once: Any) -> None:
    """The jobs that a strict or greedy base starts at once, marked in `at_once` int64 [jobs]. Whichever of them is
    chosen, the future is the same: the others still fit beside it, and what did not fit beside them all fits no better.
    (EASY starts heads in another order than it backfills in: there a choice may change who gets the reservation.)"""
    at_once[:] = 0
    if queueing == codes.EASY:
        return
    for p in range(order.shape[0]):
        j = order[p]
        here = release <= 0 if drawn[LATE, j] == 1 else drawn[ARRIVAL, j] <= 0
        if here and drawn[CORES, j] <= free:
            at_once[j] = 1
            free -= drawn[CORES, j]
        elif here and queueing == codes.STRICT:
            return


@compiled
def _play(w: World, queueing: int, frontier: Any) -> None:
    """Until the last job has started."""
    s = w.s[0]
    while advance(w, codes.NEVER_US) == codes.DECISION:
        if s.n_queued > 0:
            if queueing == codes.STRICT:
                strict(w)
            elif queueing == codes.GREEDY:
                greedy(w)
            else:
                easy(w, frontier)
        if s.n_queued == 0 and s.next_job == w.o[0].n_jobs:
            return


@lean
def _cost(w: World, weight: Any, row: Any) -> float:
    """Sum over jobs of weight x start."""
    total = 0.0
    for j in range(row.shape[0]):
        if row[j] != codes.NONE:
            total += weight[j] * w.run[row[j]].start
    return total


@compiled
def look_ahead(table: Any, start: Any, choices: Any, futures: Any, out: Any) -> None:
    """Cost of each choice in each future, float64 out [choices, K]: sum over jobs of weight x start (us from now).

    table: of the one simulation that is used; start: of the same as at its start (`calls.clear`). choices int64 [C]: a
    waiting job, or WAIT. futures: running int64 [2, R]: cores, what is left of the walltime (us); left int64 [K, R]:
    how long each still runs; drawn int64 [K, 5, J]: runtime, walltime, cores, arrival (us from now, NEVER_US: does not
    come), 1: held back until release [K]; weight float64 [K, J]; soon int64 [K]: the next event, before the first
    arrival; release; order int64 [K, J]: the base policy's order.
    """
    running, left, drawn, weight, soon, release, order = futures
    w = one(table, 0)
    row = np.empty(weight.shape[1], np.int64)
    at_once = np.zeros(weight.shape[1], np.int64)
    frontier = np.empty(w.plans.shape[0] + 1, np.int64)
    queueing = w.o[0].queueing
    free = w.o[0].n_cores - running[0].sum()
    for k in range(weight.shape[0]):
        future = running, left[k], drawn[k], soon[k], release[k], order[k]
        _start_at_once(queueing, free, drawn[k], release[k], order[k], at_once)
        first = codes.NONE  # the first choice of those
        for c in range(choices.shape[0]):
            if choices[c] != WAIT and at_once[choices[c]] == 1:
                if first != codes.NONE:
                    out[c, k] = out[first, k]
                    continue
                first = c
            n = _fill(w, choices[c], future, row)
            clear(table, 0, n, start)
            prepare(table, 0, False)
            _play(w, queueing, frontier)
            out[c, k] = _cost(w, weight[k], row)
