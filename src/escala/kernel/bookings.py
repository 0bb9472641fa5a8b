"""What jobs have in the agenda (`escala.kernel.agenda`): those that run until their planned ends, and reservations of
those that wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.kernel import codes
from escala.kernel.agenda import is_pool, kept, make_room, new_slice, slice_at, slice_before, width
from escala.kernel.clock import earlier
from escala.kernel.nodes import free_cores
from escala.kernel.parts import parts_in
from escala.kernel.plans import following
from escala.kernel.reservation import exact
from escala.kernel.runs import FIRST, LINE, end_of, find_least, make_runs, run_at
from escala.kernel.state import HEAP_SWITCHES, World
from escala.kernel.sums import FINE, ROW, TIME

DENSE = 8
"""Adding to so many nodes that lie side by side takes no longer than to one that is looked up."""


@lean
def _cores_in(w: World, j: int) -> int:
    """All cores of the chunks of job `j`."""
    total = np.int64(0)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        total += np.int64(w.chunk[c].per) * (1 + w.chunk[c].high - w.chunk[c].low)
        c = np.int64(w.chunk[c].next)
    return total


@lean
def rebuild(w: World, frontier: Any) -> None:
    """The agenda of what is certain: free cores now, planned ends of jobs, ends of switch-offs."""
    s = w.s[0]
    nodes = w.o[0].n_nodes
    if s.n_slices == 0:
        s.freer_us = codes.NEVER_US
    s.n_slices = 0
    s.n_runs = 0
    s.below = 0
    new_slice(w, 0, s.now, exact(w, s.now))
    line, wide = w.agenda[w.slices[ROW, 0]], width(w)
    total = 0
    for n in range(nodes):
        usable = w.node[n].held == 0 and w.node[n].power != codes.SWITCHING_OFF
        w.node[n].noted = w.node[n].done
        free = free_cores(w, n) if usable else 0
        line[n * wide] = free
        for k in range(wide - 1):
            line[n * wide + 1 + k] = w.room[n, k] if usable else 0
        total += free
    w.spare[0] = total
    size = 0
    if s.n_plans > 0:
        frontier[0] = 0
        size = 1
    while size > 0:
        position, size = following(w, frontier, size)
        j = np.int64(w.plans[position])
        add(w, j, max(w.run[j].plan, s.now), w.run[j].fine, codes.NEVER_US, 0, 1)
    for i in range(s.n_switches):
        n = w.heaps[HEAP_SWITCHES, i].id
        if w.node[n].power == codes.SWITCHING_OFF and w.node[n].held == 0:
            at = slice_at(w, w.node[n].done, exact(w, w.node[n].done))
            for k in range(at, s.n_slices):
                line = w.agenda[w.slices[ROW, k]]
                line[n * wide] += w.node[n].cores
                for kind in range(wide - 1):
                    line[n * wide + 1 + kind] += w.room[n, kind]
                w.spare[k] += w.node[n].cores
    if not is_pool(w):
        make_runs(w)


@lean
def add(w: World, j: int, from_us: int, from_fine: int, to_us: int, to_fine: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) the chunks of job `j` over [from, to)."""
    first = slice_at(w, from_us, from_fine)
    end = w.s[0].n_slices
    if to_us < codes.NEVER_US:
        end = slice_at(w, to_us, to_fine)
    _add_slices(w, j, first, end, sign)


@lean
def _add_slices(w: World, j: int, first: int, end: int, sign: int) -> None:
    _add_cores(w, first, end, sign * (_cores_in(w, j) if w.job[j].single == 2 else np.int64(w.job[j].cores)))
    if first < end and not is_pool(w):
        low, high, dense = _spread(w, j, sign)
        _add_rows(w, j, first, end, low, high, dense)


@lean
def _add_cores(w: World, first: int, end: int, cores: int) -> None:
    """So many cores are added to the sums of some slices."""
    more, free = np.int32(cores), w.spare
    for k in range(first, end):
        free[np.uint64(k)] = np.int32(free[np.uint64(k)] + more)  # unsigned: several at once, as in `agenda.make_room`
    if is_pool(w) and w.o[0].given == 1:
        for k in range(first, end):
            if free[k] < 0:
                w.s[0].below = 2


@lean
def _add_rows(w: World, j: int, first: int, end: int, low: int, high: int, dense: bool) -> None:
    """`World.trial` (see `_spread`) is added to the rows of some slices."""
    lowest = np.int32(0)
    for k in range(first, end):
        lowest = min(lowest, _add_to(w, j, w.agenda[w.slices[ROW, k]], low, high, dense))
    if lowest < 0:
        w.s[0].below = 2
    if w.s[0].n_runs > 0:
        _add_runs(w, j, first, end, low, high, dense)


@lean
def note_switching(w: World) -> None:
    """Nodes that have begun to switch off since the last decision are free only from the end of that on."""
    wide = width(w)
    for n in range(w.o[0].n_nodes):
        node = w.node[n]
        if node.power == codes.SWITCHING_OFF and node.noted != node.done:
            node.noted = node.done
            first, end = 0, slice_at(w, node.done, 0)
            _add_cores(w, first, end, -np.int64(node.cores))
            w.trial[n * wide] = -node.cores
            for k in range(wide - 1):
                w.trial[n * wide + 1 + k] = -w.room[n, k]
            if first < end and not is_pool(w):
                _add_rows(w, codes.NONE, first, end, n * wide, (n + 1) * wide, True)


@lean
def _spread(w: World, j: int, sign: int) -> tuple[int, int, bool]:
    """What job `j` has becomes `World.trial`, as it is added to a row: the first entry, that behind the last, and
    whether adding all of them at once is quicker than node by node."""
    wide = width(w)
    low, high, nodes = w.o[0].n_nodes, 0, 0
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        low, high = min(low, np.int64(w.chunk[c].low)), max(high, 1 + np.int64(w.chunk[c].high))
        nodes += 1 + w.chunk[c].high - w.chunk[c].low
        c = np.int64(w.chunk[c].next)
    for entry in range(low * wide, high * wide):
        w.trial[entry] = 0
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            w.trial[n * wide] = sign * w.chunk[c].per
        if w.job[j].single != 0:
            add_kinds(w, j, c, sign, w.trial)
        c = np.int64(w.chunk[c].next)
    return low * wide, high * wide, high - low <= DENSE * nodes


@lean
def _add_to(w: World, j: int, line: Any, low: int, high: int, dense: bool) -> Any:
    """`World.trial` (see `_spread`) is added to a row; the least of the entries looked at."""
    lowest, change = np.int32(0), w.trial
    if dense:
        for entry in range(low, high):
            at = np.uint64(entry)
            line[at] = np.int32(line[at] + change[at])
            lowest = min(lowest, line[at])
        return lowest
    wide = width(w)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for entry in range(w.chunk[c].low * wide, (w.chunk[c].high + 1) * wide):
            line[entry] = np.int32(line[entry] + change[entry])
            lowest = min(lowest, line[entry])
        c = np.int64(w.chunk[c].next)
    return lowest


@lean
def _add_runs(w: World, j: int, first: int, end: int, low: int, high: int, dense: bool) -> None:
    """The same of the runs that have one of the slices from `first` to `end`, without it, to which it was added."""
    wide = width(w)
    b = run_at(w, first)
    while b < w.s[0].n_runs and w.runs[FIRST, b] < end:
        line = w.lows[w.runs[LINE, b]]
        if first <= w.runs[FIRST, b] and end_of(w, b) <= end:
            _add_to(w, j, line, low, high, dense)
        elif dense:
            find_least(w, b, low, high)
        else:
            c = np.int64(w.run[j].chunk)
            while c != codes.NONE:
                find_least(w, b, w.chunk[c].low * wide, (w.chunk[c].high + 1) * wide)
                c = np.int64(w.chunk[c].next)
        b += 1


@lean
def add_kinds(w: World, j: int, c: int, sign: int, line: Any) -> None:
    """What job `j` has of further kinds on the nodes of its chunk `c` is added to a row (sign 1) or taken from it."""
    wide = width(w)
    if wide == 1:
        return
    parts = sign * parts_in(w, j, np.int64(w.chunk[c].per))
    for n in range(w.chunk[c].low, w.chunk[c].high + 1):
        for k in range(wide - 1):
            line[n * wide + 1 + k] += parts * w.demand[j, k]


@lean
def span_of(w: World, j: int) -> tuple[int, int]:
    """The slices of the reservation of job `j` [RUN.plan, + walltime + margin): the first, and that behind the last. A
    start that has passed counts from now."""
    o = w.o[0]
    run = w.run[j]
    end = run.plan + w.job[j].walltime + o.margin_us
    if end <= w.slices[TIME, 0]:
        return 0, 0
    passed = earlier(run.plan, run.fine, w.slices[TIME, 0], w.slices[FINE, 0])
    first = 0 if passed else slice_at(w, run.plan, run.fine)
    fine = run.fine + exact(w, w.job[j].walltime) + exact(w, o.margin_us)
    return first, slice_at(w, end, fine)


@lean
def hold(w: World, j: int, sign: int) -> None:
    """The reservation of job `j` leaves (sign -1) or re-enters (1) what is free."""
    first, end = span_of(w, j)
    _add_slices(w, j, first, end, sign)


@lean
def bring_forward(w: World, j: int, k: int) -> None:
    """The reservation of job `j` of a pool moves to the earlier slice `k`, where the agenda is kept. A slice that only
    began with its end gives its place to the one that begins with its new end."""
    free, times = w.spare, w.slices[TIME]
    cores = w.job[j].cores
    length = w.job[j].walltime + w.o[0].margin_us
    first, last = span_of(w, j)
    end = times[k] + length
    at = slice_before(w, end, 0) + 1
    if times[at - 1] == end:
        at -= 1
    else:
        if free[last] == free[last - 1] + cores:
            make_room(times, last, at)
            make_room(free, last, at)
            times[at] = end
            free[at] = free[at - 1]
        else:
            new_slice(w, at, end, 0)
        last += 1
        first += first >= at
    for i in range(k, min(at, first)):
        free[np.uint64(i)] = np.int32(free[np.uint64(i)] - cores)
    for i in range(max(at, first), last):
        free[np.uint64(i)] = np.int32(free[np.uint64(i)] + cores)
    w.run[j].plan = times[k]
    w.run[j].fine = 0


@lean
def release(w: World, j: int) -> None:
    """Job `j`, which holds cores, ends now: what it had planned to hold from here on is free."""
    s = w.s[0]
    if s.n_slices > 0 and w.run[j].plan > s.now:
        s.freer_us = max(s.freer_us, w.run[j].plan)
        if kept(w):
            add(w, j, s.now, 0, w.run[j].plan, w.run[j].fine, 1)
