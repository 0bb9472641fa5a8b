"""Future availability for conservative backfilling: slices of time, each with the free cores of every node.

Slice i holds from its time to that of slice i + 1; the last one for ever. Slices are kept in order through row numbers,
so that cutting one in two moves four numbers a slice and copies one row. A row has the free cores of a node, then what
is free there of each further kind, then those of the next node. The sums over nodes lie side by side: of one
pool they say everything, and it has no rows; of more nodes they say where looking at rows is in vain. Where no node
ever switches the agenda is kept from decision to decision: jobs that end give back what they had planned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import earlier
from escala.kernel.nodes import free_cores
from escala.kernel.parts import parts_in
from escala.kernel.plans import following
from escala.kernel.reservation import exact
from escala.kernel.state import HEAP_SWITCHES, World
from escala.kernel.sums import FINE, ROW, TIME


@inlined
def kept(w: World) -> bool:
    """Is the agenda kept from decision to decision? Not where nodes switch, nor with exact residues, nor if all is
    planned anew, nor if planned ends move."""
    o = w.o[0]
    never = o.shutdown == codes.NEVER and o.given == 0
    return o.queueing == codes.CONSERVATIVE and never and o.exact == 0 and o.rebuild == 0 and o.moves == 0


@inlined
def is_pool(w: World) -> bool:
    """Do sums say everything? Of one node, and cores alone."""
    return w.o[0].n_nodes == 1 and w.demand.shape[0] == 0


@inlined
def width(w: World) -> int:
    """Entries of a row for one node."""
    return 1 + w.room.shape[1]


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
def _make_room(line: Any, n: int, at: int) -> None:
    """The entries of a line from `at` to `n` move one further (by unsigned numbers this is one move of memory)."""
    for k in range(n - at):
        line[np.uint64(n - k)] = line[np.uint64(n - k - 1)]


@lean
def _new_slice(w: World, at: int, us: int, fine: int) -> None:
    """Insert a slice at position `at` with the counts of the one before it, if there is one."""
    s = w.s[0]
    n = s.n_slices
    s.n_slices += 1
    _make_room(w.slices[TIME], n, at)
    _make_room(w.spare, n, at)
    w.slices[TIME, at] = us
    if at > 0:
        w.spare[at] = w.spare[at - 1]
    if is_pool(w) and kept(w):  # no residues and no rows
        return
    if n == s.n_rows:
        w.slices[ROW, n] = n
        s.n_rows += 1
    row = w.slices[ROW, n]
    _make_room(w.slices[FINE], n, at)
    _make_room(w.slices[ROW], n, at)
    w.slices[FINE, at] = fine
    w.slices[ROW, at] = row
    if at > 0 and not is_pool(w):
        source = w.slices[ROW, at - 1]
        for entry in range(w.agenda.shape[1]):
            w.agenda[row, entry] = w.agenda[source, entry]


@lean
def _alike(w: World, a: int, b: int) -> bool:
    """Do two slices of several nodes say the same?"""
    if w.spare[a] != w.spare[b]:
        return False
    one, other = w.agenda[w.slices[ROW, a]], w.agenda[w.slices[ROW, b]]
    n = 0
    while n < one.shape[0] and one[n] == other[n]:
        n += 1
    return n == one.shape[0]


@lean
def tidy(w: World) -> None:
    """The first slice begins now; where one has passed, none says what the one before it says. (Else that can wait: no
    first hole begins with a slice that says what the one before it says.)"""
    s = w.s[0]
    first = position_now(w)
    pool = is_pool(w)
    if first > 0:
        n = 0
        for i in range(first, s.n_slices):
            if i > first and (w.spare[n - 1] == w.spare[i] if pool else _alike(w, n - 1, i)):
                continue
            w.slices[TIME, n] = w.slices[TIME, i]
            w.spare[n] = w.spare[i]
            if not pool:
                row = w.slices[ROW, n]
                w.slices[ROW, n] = w.slices[ROW, i]
                w.slices[ROW, i] = row
            n += 1
        s.n_slices = n
    w.slices[TIME, 0] = s.now


@lean
def slice_before(w: World, us: int, fine: int) -> int:
    """Position of the last slice that begins at this time or before it."""
    low = 0
    high = w.s[0].n_slices
    while low < high:  # first slice after the time
        middle = (low + high) >> 1
        if earlier(us, fine, w.slices[TIME, middle], w.slices[FINE, middle]):
            high = middle
        else:
            low = middle + 1
    return low - 1


@lean
def slice_at(w: World, us: int, fine: int) -> int:
    """Position of the slice that begins at this time, cut from the one that covers it. A time before the first slice,
    by a residue, counts as its."""
    at = slice_before(w, us, fine)
    if at < 0:
        return 0
    if w.slices[TIME, at] == us and w.slices[FINE, at] == fine:
        return at
    _new_slice(w, at + 1, us, fine)
    return at + 1


@lean
def rebuild(w: World, frontier: Any) -> None:
    """The agenda of what is certain: free cores now, planned ends of jobs, ends of switch-offs."""
    s = w.s[0]
    nodes = w.o[0].n_nodes
    s.n_slices = 0
    s.freer_us = codes.NEVER_US
    s.below = 0
    _new_slice(w, 0, s.now, exact(w, s.now))
    line, wide = w.agenda[w.slices[ROW, 0]], width(w)
    total = 0
    for n in range(nodes):
        usable = w.node[n].held == 0 and w.node[n].power != codes.SWITCHING_OFF
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
    cores = np.int32(sign * (_cores_in(w, j) if w.job[j].single == 2 else np.int64(w.job[j].cores)))
    free = w.spare
    for k in range(first, end):
        free[np.uint64(k)] = np.int32(free[np.uint64(k)] + cores)  # unsigned: several at once, as in `_make_room`
    if is_pool(w):
        return
    wide = width(w)
    lowest = np.int64(0)
    for k in range(first, end):
        row = w.slices[ROW, k]
        c = np.int64(w.run[j].chunk)
        while c != codes.NONE:
            per = sign * w.chunk[c].per
            for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                w.agenda[row, n * wide] += per
                lowest = min(lowest, np.int64(w.agenda[row, n * wide]))
            if w.job[j].single != 0:
                add_kinds(w, j, c, sign, w.agenda[row])
            c = np.int64(w.chunk[c].next)
    if lowest < 0:
        w.s[0].below = 1


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
            _make_room(times, last, at)
            _make_room(free, last, at)
            times[at] = end
            free[at] = free[at - 1]
        else:
            _new_slice(w, at, end, 0)
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
        add(w, j, s.now, 0, w.run[j].plan, w.run[j].fine, 1)


@inlined
def position_now(w: World) -> int:
    """Position of the slice that covers now."""
    i = 0
    while i + 1 < w.s[0].n_slices and w.slices[TIME, i + 1] <= w.s[0].now:
        i += 1
    return i


@inlined
def note_asleep(w: World, n: int) -> None:
    """What `holes` asks of node `n`, in as few steps as there can be: it does so for each job and each slice."""
    wide, sleeps = width(w), w.node[n].power != codes.ON
    w.asleep[n * wide] = free_cores(w, n) if sleeps else 0
    for k in range(wide - 1):
        w.asleep[n * wide + 1 + k] = w.room[n, k] if sleeps else 0
