"""Holes in the agenda: when a job can start, and on which cores.

A job that has a reservation already is looked for with it in place: in its slices the job's own cores count as free
(`World.own`). So a job that stays where it is, as most do, changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.agenda import position_now, slice_at, span_of
from escala.kernel.clock import earlier
from escala.kernel.placement import append_chunk
from escala.kernel.reservation import exact, permission
from escala.kernel.state import World
from escala.kernel.sums import FINE, ROW, TIME, possible


@lean
def first_hole(w: World, j: int, least: Any, before: int) -> bool:
    """Set RUN.plan of job `j` to the earliest start of a hole for its whole walltime, where that is before a time (us);
    `least` [nodes] becomes the cores free throughout it. False if there is none: an off-reservation keeps nodes for
    good. The reservation that the job may have stands in the agenda, and still does."""
    s = w.s[0]
    waking = permission(w, j) if w.o[0].given == 1 else 0
    if waking > s.now:
        slice_at(w, waking, exact(w, waking))
    _count_own(w, j, 1)
    i = position_now(w)
    first = i
    bad = i
    while bad != codes.NONE and i < s.n_slices and (s.now if i == first else w.slices[TIME, i]) < waking:
        bad = _lacks_awake(w, j, i, first, bad, least, waking)
        i += 1
    i = _later_hole(w, j, i, first, least, before) if bad != codes.NONE else i - 1
    _count_own(w, j, -1)
    if i == s.n_slices:
        return False
    w.run[j].plan = s.now if i == first else w.slices[TIME, i]
    w.run[j].fine = exact(w, s.now) if i == first else w.slices[FINE, i]
    return True


@lean
def _count_own(w: World, j: int, sign: int) -> None:
    """The cores that job `j` has in the agenda already, and in which slices; of sign -1 none any longer."""
    s = w.s[0]
    s.own_first = 0
    s.own_end = 0
    if w.run[j].chunk == codes.NONE:
        return
    if sign == 1:
        s.own_first, s.own_end = span_of(w, j)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            w.own[n] += sign * w.chunk[c].per
        c = np.int64(w.chunk[c].next)


@inlined
def _reaches(w: World, j: int, i: int, first: int, k: int) -> bool:
    """Does slice `k` begin before job `j` ends that begins with slice `i`?"""
    length = w.job[j].walltime + w.o[0].margin_us
    us = w.s[0].now if i == first else w.slices[TIME, i]
    fine = exact(w, w.s[0].now) if i == first else w.slices[FINE, i]
    residue = fine + exact(w, w.job[j].walltime) + exact(w, w.o[0].margin_us)
    return k < w.s[0].n_slices and earlier(w.slices[TIME, k], w.slices[FINE, k], us + length, residue)


@lean
def _lacks_awake(w: World, j: int, i: int, first: int, bad: int, least: Any, waking: int) -> int:
    """A slice that leaves too little for job `j` from slice `i` on, where up to the time `waking` (us) only nodes that
    are on, or that jobs hold, may be had; NONE if there is a hole. `bad`: the slice that left too little from the one
    before on, which is looked at first."""
    need = np.int64(w.job[j].cores)
    least[:] = codes.MANY
    if bad > i and _reaches(w, j, i, first, bad):
        _narrow_awake(w, i, least)
        if _narrow_until(w, bad, least, waking) < need:
            return bad
    k = i
    while k == i or _reaches(w, j, i, first, k):
        if _narrow_until(w, k, least, waking) < need:
            return k
        k += 1
    return codes.NONE


@inlined
def _narrow_until(w: World, k: int, least: Any, waking: int) -> int:
    """As `_narrow`, in place; before the time `waking` without what sleeps."""
    return _narrow_awake(w, k, least) if w.slices[TIME, k] < waking else _narrow(w, k, least, least)


@lean
def _narrow_awake(w: World, k: int, least: Any) -> int:
    """The same without what no job has on nodes that are not on: it must wait for the end of the hold."""
    line, asleep = w.agenda[_row(w, k)], w.asleep
    own = 1 if w.s[0].own_first <= k < w.s[0].own_end else 0
    total = 0
    for n in range(w.o[0].n_nodes):
        least[n] = min(least[n], line[n] + own * w.own[n] - asleep[n])
        total += max(0, least[n])
    return total


@lean
def _later_hole(w: World, j: int, i: int, first: int, least: Any, before: int) -> int:
    """Position of the first slice from `i` on, and before a time, that begins a hole for job `j`, of all nodes alike;
    the number of slices for none; `least` becomes the cores free throughout it.

    A window is looked at from its end, so that a slice that leaves too little with those behind it rules out all starts
    up to it. What is known of the slices behind it serves the next start, where that is the slice behind it.
    """
    o, s = w.o[0], w.s[0]
    n = s.n_slices
    need = np.int64(w.job[j].cores)
    summed = s.below == 0 or o.n_nodes == 1  # else a node is promised twice: to a job that runs on, and to another
    known = codes.NONE  # `least` holds the slices from this one on
    last = codes.NONE  # up to this one
    while i < n and w.slices[TIME, i] < before:
        if summed:
            i = _next_possible(w, j, i, before)
            if i == n:
                return n
        end = _last_reached(w, j, i, first)
        if known == i:
            while last < end and _narrow(w, last + 1, least, least) >= need:
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
def _next_possible(w: World, j: int, i: int, before: int) -> int:
    """The first slice from `i` on, and before a time, where by the sums a hole for job `j` may begin; the number of
    slices for none. Its own reservation is a hole, by the sums."""
    s = w.s[0]
    if s.own_first <= i < s.own_end:
        return i
    own = w.slices[TIME, s.own_first] if i < s.own_first else codes.NEVER_US
    if w.slices[TIME, i] >= own:
        return i
    k = possible(w, j, i, min(before, own), own)
    if k != codes.NONE:
        return k
    if own >= before:
        return s.n_slices
    k = s.own_first
    while w.slices[TIME, k - 1] == own:  # some begin a residue before it
        k -= 1
    return k


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
    while k >= i and _narrow(w, k, known, trial) >= need:
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
def _narrow(w: World, k: int, known: Any, into: Any) -> int:
    """`into` [nodes] becomes what is free in slice `k` too, of what is `known`; all nodes together."""
    line, own = w.agenda[_row(w, k)], w.own
    total = np.int32(0)  # 32 bits at each step, and unsigned numbers: eight or sixteen nodes at once
    if w.s[0].own_first <= k < w.s[0].own_end:
        for n in range(w.o[0].n_nodes):
            at = np.uint64(n)
            both = min(known[at], np.int32(line[at] + own[at]))
            into[at] = both
            total = np.int32(total + max(both, np.int32(0)))
    else:
        for n in range(w.o[0].n_nodes):
            at = np.uint64(n)
            both = min(known[at], line[at])
            into[at] = both
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
