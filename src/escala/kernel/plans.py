"""Planned ends of the jobs that hold cores, and the walk that finds when enough cores will be free.

Few of them stand in order, found by halving; more are an indexed heap, which what stands in order is as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import earlier
from escala.kernel.clock import fine as fine_of
from escala.kernel.lanes import lane_of, note
from escala.kernel.state import World

FEW, FEW_BY_NODES = 64, 4096
"""Up to so many, moving them along costs less than the steps of a heap and of the walk through it, which is longer
where jobs go by nodes."""


@inlined
def _few(w: World) -> int:
    return FEW if w.cores.shape[0] == 0 else FEW_BY_NODES


@inlined
def _sooner(w: World, a: int, b: int) -> bool:
    """Is the planned end of job a before that of job b (ties by row)?"""
    if earlier(w.run[a].plan, w.run[a].fine, w.run[b].plan, w.run[b].fine):
        return True
    if earlier(w.run[b].plan, w.run[b].fine, w.run[a].plan, w.run[a].fine):
        return False
    return a < b


@inlined
def _seat(w: World, i: int, j: int) -> None:
    w.plans[i] = j
    w.run[j].place = i


@lean
def _rise(w: World, i: int) -> None:
    j = np.int64(w.plans[i])
    while i > 0:
        parent = (i - 1) >> 1
        if not _sooner(w, j, w.plans[parent]):
            break
        _seat(w, i, w.plans[parent])
        i = parent
    _seat(w, i, j)


@lean
def _sink(w: World, i: int, n: int) -> None:
    j = np.int64(w.plans[i])
    child = 2 * i + 1
    while child < n:
        if child + 1 < n and _sooner(w, w.plans[child + 1], w.plans[child]):
            child += 1
        if not _sooner(w, w.plans[child], j):
            break
        _seat(w, i, w.plans[child])
        i = child
        child = 2 * i + 1
    _seat(w, i, j)


@lean
def _rank(w: World, j: int) -> int:
    """How many planned ends are before that of job `j`, where all stand in order."""
    low = 0
    high = w.s[0].n_plans
    while low < high:
        middle = (low + high) >> 1
        if _sooner(w, w.plans[middle], j):
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _put_in_order(w: World) -> None:
    """From a heap to an order."""
    for n in range(1, w.s[0].n_plans):
        j = np.int64(w.plans[n])
        i = n
        while i > 0 and _sooner(w, j, w.plans[i - 1]):
            w.plans[i] = w.plans[i - 1]
            i -= 1
        w.plans[i] = j
    w.s[0].heaped = 0


@lean
def _insert(w: World, j: int) -> None:
    """Job `j` takes its place in the order; past FEW it becomes a heap."""
    s = w.s[0]
    at = _rank(w, j)
    last, plans = s.n_plans, w.plans
    for k in range(last - at):  # by unsigned numbers, as in `agenda.make_room`
        plans[np.uint64(last - k)] = plans[np.uint64(last - k - 1)]
    w.plans[at] = j
    s.n_plans += 1
    if s.n_plans > _few(w):
        s.heaped = 1
        for i in range(s.n_plans):
            w.run[w.plans[i]].place = i


@lean
def _take_out(w: World, at: int) -> None:
    """Who stands at this position leaves the order."""
    w.s[0].n_plans -= 1
    plans = w.plans
    for i in range(at, w.s[0].n_plans):
        plans[np.uint64(i)] = plans[np.uint64(i + 1)]


@lean
def add_plan(w: World, j: int) -> None:
    """Job `j` holds cores until `RUN.plan`, as far as anybody may know."""
    s = w.s[0]
    if s.heaped == 0:
        _insert(w, j)
        return
    _seat(w, s.n_plans, j)
    s.n_plans += 1
    _rise(w, s.n_plans - 1)


@lean
def remove_plan(w: World, j: int) -> None:
    """Job `j` has given its cores back."""
    s = w.s[0]
    if s.heaped == 0:
        _take_out(w, _rank(w, j))
        return
    i = np.int64(w.run[j].place)
    s.n_plans -= 1
    if i < s.n_plans:
        moved = np.int64(w.plans[s.n_plans])
        _seat(w, i, moved)
        _rise(w, i)
        _sink(w, w.run[moved].place, s.n_plans)
    if s.n_plans <= _few(w) // 2:
        _put_in_order(w)


@lean
def following(w: World, frontier: Any, n: int) -> tuple[int, int]:
    """Next job of a walk in order of planned end: (its position, size of the frontier after it).

    `frontier` holds positions whose parents in the heap have been visited, itself a small heap by planned end; start it
    with position 0.
    """
    position = frontier[0]
    if w.s[0].heaped == 0:
        frontier[0] = position + 1
        return position, 1 if position + 1 < w.s[0].n_plans else 0
    n -= 1
    if n > 0:
        moved = frontier[n]
        i = 0
        child = 1
        while child < n:
            if child + 1 < n and _sooner(w, w.plans[frontier[child + 1]], w.plans[frontier[child]]):
                child += 1
            if not _sooner(w, w.plans[frontier[child]], w.plans[moved]):
                break
            frontier[i] = frontier[child]
            i = child
            child = 2 * i + 1
        frontier[i] = moved
    for child in range(2 * position + 1, min(2 * position + 3, w.s[0].n_plans)):
        i = n
        while i > 0 and _sooner(w, w.plans[child], w.plans[frontier[(i - 1) >> 1]]):
            frontier[i] = frontier[(i - 1) >> 1]
            i = (i - 1) >> 1
        frontier[i] = child
        n += 1
    return position, n


@lean
def plan_end(w: World, j: int, ready: int) -> None:
    """Set the planned end of job `j`, whose nodes are all on at `ready`."""
    run = w.run[j]
    o = w.o[0]
    run.plan = ready + w.job[j].walltime + o.margin_us
    run.fine = planned_fine(w, j, ready)


@inlined
def planned_fine(w: World, j: int, ready: int) -> int:
    """Exact residue of ready + walltime + margin; 0 unless plans are exact."""
    if w.o[0].exact == 0:
        return 0
    return fine_of(ready) + fine_of(w.job[j].walltime) + fine_of(w.o[0].margin_us)


@lean
def move_outlived(w: World) -> bool:
    """Jobs that run on though their planned end has come get a later one; True if there is one. Whoever holds a
    reservation may start later, so all plans are made anew."""
    s = w.s[0]
    moved = False
    while s.n_plans > 0 and w.run[w.plans[0]].plan <= s.now:
        j = np.int64(w.plans[0])
        if s.heaped == 0:
            _take_out(w, 0)
            _move(w, j)
            _insert(w, j)
        else:
            _move(w, j)
            _sink(w, 0, s.n_plans)
        moved = True
        note(w, lane_of(w, j))
    if moved:
        s.n_planned = codes.NONE
    return moved


@lean
def _move(w: World, j: int) -> None:
    """The planned end of job `j`, which runs, moves by its next step, at most to the end of its request."""
    run = w.run[j]
    o = w.o[0]
    limit = w.forecast[j].limit
    us = run.start + limit + o.margin_us
    fine = 0
    if o.exact == 1:
        fine = fine_of(run.start) + fine_of(limit) + fine_of(o.margin_us)
    k = w.forecast[j].moved
    w.forecast[j].moved = k + 1
    if k < w.steps.shape[0]:
        sooner = run.plan + w.steps[k]
        residue = run.fine + (fine_of(w.steps[k]) if o.exact == 1 else 0)
        if earlier(sooner, residue, us, fine):
            us = sooner
            fine = residue
    run.plan = us
    run.fine = fine
