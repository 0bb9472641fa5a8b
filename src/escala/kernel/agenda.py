"""Future availability for conservative backfilling: slices of time, each with the free cores of every node.

Slice i holds from its time to that of slice i + 1; the last one for ever. Slices are kept in order through row numbers,
so that cutting one in two moves four numbers a slice and copies one row. The sums over nodes lie side by side: of one
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
from escala.kernel.placement import append_chunk
from escala.kernel.plans import following
from escala.kernel.reservation import exact, permission
from escala.kernel.state import HEAP_SWITCHES, World
from escala.kernel.sums import FINE, ROW, TIME, possible


@inlined
def kept(w: World) -> bool:
    """Is the agenda kept from decision to decision? Not where nodes switch, nor with exact residues, nor if all is
    planned anew, nor if planned ends move."""
    o = w.o[0]
    never = o.shutdown == codes.NEVER and o.given == 0
    return o.queueing == codes.CONSERVATIVE and never and o.exact == 0 and o.rebuild == 0 and o.moves == 0


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
    if w.o[0].n_nodes == 1 and kept(w):  # no residues and no rows
        return
    if n == s.n_rows:
        w.slices[ROW, n] = n
        s.n_rows += 1
    row = w.slices[ROW, n]
    _make_room(w.slices[FINE], n, at)
    _make_room(w.slices[ROW], n, at)
    w.slices[FINE, at] = fine
    w.slices[ROW, at] = row
    if at > 0 and w.o[0].n_nodes > 1:
        source = w.slices[ROW, at - 1]
        for node in range(w.agenda.shape[1]):
            w.agenda[row, node] = w.agenda[source, node]


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
    first = _position(w)
    pool = w.o[0].n_nodes == 1
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
def slice_at(w: World, us: int, fine: int) -> int:
    """Position of the slice that begins at this time, cut from the one that covers it. The time is not before the first
    slice."""
    low = 0
    high = w.s[0].n_slices
    while low < high:  # first slice after the time
        middle = (low + high) >> 1
        if earlier(us, fine, w.slices[TIME, middle], w.slices[FINE, middle]):
            high = middle
        else:
            low = middle + 1
    if w.slices[TIME, low - 1] == us and w.slices[FINE, low - 1] == fine:
        return low - 1
    _new_slice(w, low, us, fine)
    return low


@lean
def rebuild(w: World, frontier: Any) -> None:
    """The agenda of what is certain: free cores now, planned ends of jobs, ends of switch-offs."""
    s = w.s[0]
    nodes = w.o[0].n_nodes
    s.n_slices = 0
    s.freer_us = codes.NEVER_US
    s.below = 0
    _new_slice(w, 0, s.now, exact(w, s.now))
    row = w.slices[ROW, 0]
    total = 0
    for n in range(nodes):
        usable = w.node[n].held == 0 and w.node[n].power != codes.SWITCHING_OFF
        free = free_cores(w, n) if usable else 0
        w.agenda[row, n] = free
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
                w.agenda[w.slices[ROW, k], n] += w.node[n].cores
                w.spare[k] += w.node[n].cores


@lean
def add(w: World, j: int, from_us: int, from_fine: int, to_us: int, to_fine: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) the chunks of job `j` over [from, to)."""
    first = slice_at(w, from_us, from_fine)
    end = w.s[0].n_slices
    if to_us < codes.NEVER_US:
        end = slice_at(w, to_us, to_fine)
    cores = np.int32(sign * w.job[j].cores)
    free = w.spare
    for k in range(first, end):
        free[np.uint64(k)] = np.int32(free[np.uint64(k)] + cores)  # unsigned: several at once, as in `_make_room`
    if w.o[0].n_nodes == 1:
        return
    lowest = np.int64(0)
    for k in range(first, end):
        row = w.slices[ROW, k]
        c = np.int64(w.run[j].chunk)
        while c != codes.NONE:
            per = sign * w.chunk[c].per
            for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                w.agenda[row, n] += per
                lowest = min(lowest, np.int64(w.agenda[row, n]))
            c = np.int64(w.chunk[c].next)
    if lowest < 0:
        w.s[0].below = 1


@lean
def hold(w: World, j: int, sign: int) -> None:
    """The reservation of job `j` [RUN.plan, + walltime + margin) leaves (sign -1) or re-enters (1) what is free. A
    start that has passed counts from now."""
    o = w.o[0]
    run = w.run[j]
    end = run.plan + w.job[j].walltime + o.margin_us
    fine = run.fine + exact(w, w.job[j].walltime) + exact(w, o.margin_us)
    first = w.slices[TIME, 0]
    if end <= first:
        return
    if run.plan < first:
        add(w, j, first, w.slices[FINE, 0], end, fine, sign)
    else:
        add(w, j, run.plan, run.fine, end, fine, sign)


@lean
def release(w: World, j: int) -> None:
    """Job `j`, which holds cores, ends now: what it had planned to hold from here on is free."""
    s = w.s[0]
    if s.n_slices > 0 and w.run[j].plan > s.now:
        s.freer_us = max(s.freer_us, w.run[j].plan)
        add(w, j, s.now, 0, w.run[j].plan, w.run[j].fine, 1)


@inlined
def _position(w: World) -> int:
    """Position of the slice that covers now."""
    i = 0
    while i + 1 < w.s[0].n_slices and w.slices[TIME, i + 1] <= w.s[0].now:
        i += 1
    return i


@lean
def first_hole(w: World, j: int, least: Any, before: int) -> bool:
    """Set RUN.plan of job `j` to the earliest start of a hole for its whole walltime, where that is before a time (us);
    `least` [nodes] becomes the cores free throughout it. False if there is none: an off-reservation keeps nodes for
    good."""
    s = w.s[0]
    waking = permission(w, j) if w.o[0].given == 1 else 0
    if waking > s.now:
        slice_at(w, waking, exact(w, waking))
    i = _position(w)
    first = i
    bad = i
    while i < s.n_slices and (s.now if i == first else w.slices[TIME, i]) < waking:
        bad = _lacks_awake(w, j, i, first, bad, least)
        if bad == codes.NONE:
            _plan_at(w, j, i, first)
            return True
        i += 1
    i = _later_hole(w, j, i, first, least, before)
    if i == s.n_slices:
        return False
    _plan_at(w, j, i, first)
    return True


@inlined
def _plan_at(w: World, j: int, i: int, first: int) -> None:
    """Job `j` begins with slice `i`; the first one begins now."""
    w.run[j].plan = w.s[0].now if i == first else w.slices[TIME, i]
    w.run[j].fine = exact(w, w.s[0].now) if i == first else w.slices[FINE, i]


@inlined
def _reaches(w: World, j: int, i: int, first: int, k: int) -> bool:
    """Does slice `k` begin before job `j` ends that begins with slice `i`?"""
    length = w.job[j].walltime + w.o[0].margin_us
    us = w.s[0].now if i == first else w.slices[TIME, i]
    fine = exact(w, w.s[0].now) if i == first else w.slices[FINE, i]
    residue = fine + exact(w, w.job[j].walltime) + exact(w, w.o[0].margin_us)
    return k < w.s[0].n_slices and earlier(w.slices[TIME, k], w.slices[FINE, k], us + length, residue)


@inlined
def note_asleep(w: World, n: int) -> None:
    """What `_lacks_awake` asks of node `n`, in as few steps as there can be: it does so for each job and each slice."""
    w.asleep[n] = free_cores(w, n) if w.node[n].power != codes.ON else 0


@lean
def _lacks_awake(w: World, j: int, i: int, first: int, bad: int, least: Any) -> int:
    """A slice that leaves too little for job `j` from slice `i` on, where only nodes that are on, or that jobs hold,
    may be had at its beginning; NONE if there is a hole. `bad`: the slice that left too little from the one before on,
    which is looked at first."""
    need = np.int64(w.job[j].cores)
    line, asleep = w.agenda[_row(w, i)], w.asleep
    for n in range(w.o[0].n_nodes):  # what no job has on nodes that are not on must wait for the end of the hold
        least[n] = max(0, line[n] - asleep[n])
    if bad > i and _reaches(w, j, i, first, bad) and _narrow(w, bad, least) < need:
        return bad
    k = i
    while k == i or _reaches(w, j, i, first, k):
        if _narrow(w, k, least) < need:
            return k
        k += 1
    return codes.NONE


@lean
def _later_hole(w: World, j: int, i: int, first: int, least: Any, before: int) -> int:
    """Position of the first slice from `i` on, and before a time, that begins a hole for job `j`, of all nodes alike;
    the number of slices for none; `least` becomes the cores free throughout it.

    A window is looked at from its end, so that a slice that leaves too little with those behind it rules out all starts
    up to it. What is known of the slices behind it serves the next start, where that is the slice behind it.
    """
    o = w.o[0]
    n = w.s[0].n_slices
    need = np.int64(w.job[j].cores)
    summed = w.s[0].below == 0 or o.n_nodes == 1  # else a node is promised twice: to a job that runs on, and to another
    known = codes.NONE  # `least` holds the slices from this one on
    last = codes.NONE  # up to this one
    while i < n and w.slices[TIME, i] < before:
        if summed:
            i = possible(w, j, i, before, codes.NEVER_US)
            if i == codes.NONE:
                return n
        end = _last_reached(w, j, i, first)
        if known == i:
            while last < end and _narrow(w, last + 1, least) >= need:
                last += 1
            if last == end:
                return i
        bad = _last_bad(w, i, end, need, least)
        if bad < i:
            return i
        i = bad + 1
        known = i
        last = end
        if i > end:
            known = codes.NONE
    return n


@lean
def _last_reached(w: World, j: int, i: int, first: int) -> int:
    """The last slice that begins before job `j` ends, if it begins with slice `i`."""
    low = i
    high = w.s[0].n_slices
    while low + 1 < high:
        middle = (low + high) >> 1
        if _reaches(w, j, i, first, middle):
            low = middle
        else:
            high = middle
    return low


@lean
def _last_bad(w: World, i: int, end: int, need: int, least: Any) -> int:
    """The last slice from `i` to `end` that leaves too few cores together with those behind it, i - 1 if there is none;
    `least` becomes what those behind it leave."""
    least[:] = codes.MANY
    known, trial = least, w.trial
    k = end
    while k >= i:
        line = w.agenda[_row(w, k)]
        total = np.int32(0)
        for n in range(w.o[0].n_nodes):
            at = np.uint64(n)
            both = min(known[at], line[at])
            trial[at] = both
            total = np.int32(total + max(both, np.int32(0)))
        if total < need:
            break
        known, trial = trial, known
        k -= 1
    if (end - k) & 1 == 1:
        for n in range(w.o[0].n_nodes):
            least[n] = w.trial[n]
    return k


@inlined
def _row(w: World, k: int) -> int:
    """Where the nodes of slice `k` stand; of one pool no rows are kept."""
    row = w.slices[ROW, k]
    if w.o[0].n_nodes == 1:
        w.agenda[row, 0] = w.spare[k]
    return np.int64(row)


@inlined
def _narrow(w: World, k: int, least: Any) -> int:
    """What is free in slice `k` as well; all nodes together."""
    line = w.agenda[_row(w, k)]
    total = np.int32(0)  # 32 bits at each step, and unsigned numbers: eight or sixteen nodes at once
    for n in range(w.o[0].n_nodes):
        at = np.uint64(n)
        both = min(least[at], line[at])
        least[at] = both
        total = np.int32(total + max(both, np.int32(0)))
    return np.int64(total)


@lean
def choose(w: World, j: int, least: Any) -> None:
    """Chunks for job `j` out of the cores free throughout its hole: at once, in the order on, switching on, off; later,
    the lowest."""
    s = w.s[0]
    need = np.int64(w.job[j].cores)
    last = codes.NONE
    w.run[j].chunk = codes.NONE
    now = w.run[j].plan == s.now and w.run[j].fine == exact(w, s.now)
    for power in range(codes.ON, codes.OFF + 1):
        for n in range(w.o[0].n_nodes):
            if need > 0 and least[n] > 0 and (not now or w.node[n].power == power):
                k = min(need, least[n])
                last = append_chunk(w, j, last, n, n, k)
                need -= k
        if need == 0 or not now:
            return
