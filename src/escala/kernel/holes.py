"""Holes in the agenda: when a job can start, and on which cores.

A job that has a reservation already is looked for with it in place: in its slices what the job has itself counts as
free (`World.own`). So a job that stays where it is, as most do, changes nothing. Of a job of uneven parts a reservation
has the cores of a large one for each, since a node has room for a part where it has room for a large one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.agenda import is_pool, position_now, slice_at, slice_before, width
from escala.kernel.bookings import add_kinds, span_of
from escala.kernel.clock import earlier
from escala.kernel.parts import may_lie, parts_of, room_in, share_of
from escala.kernel.placement import append_chunk
from escala.kernel.reservation import exact, permission
from escala.kernel.runs import FIRST, LINE, end_of, run_at
from escala.kernel.state import World
from escala.kernel.sums import FINE, ROW, TIME, possible

FROM, UNTIL, HELD = range(3)  # of `World.barred`: see `note_barred`; `held_until` at the last search


@lean
def first_hole(w: World, j: int, least: Any, before: int, since: int) -> bool:
    """Set RUN.plan of job `j` to the earliest start of a hole for its whole walltime, where that is before a time (us);
    `least` [entries of a row] becomes what is free throughout it. False if there is none: an off-reservation keeps
    nodes for good. The reservation that the job may have stands in the agenda, and still does. since: no hole begins
    earlier; now, or later where the agenda is kept."""
    s = w.s[0]
    waking = held_until(w, j)
    note_barred(w, j, codes.NEVER_US, 0)
    w.barred[j, HELD] = waking
    if waking > s.now:
        slice_at(w, waking, exact(w, waking))
    _count_own(w, j, 1)
    i = position_now(w)
    first = i
    if since > s.now:
        i = max(i, slice_before(w, since, 0))
    if i != first or waking > s.now or not _fits_now(w, j, i, least):
        s.awake_end = slice_before(w, waking, exact(w, waking)) if waking > s.now else 0
        i = _later_hole(w, j, i, first, least, before)
    _count_own(w, j, -1)
    if i == s.n_slices:
        return False
    w.run[j].plan = s.now if i == first else w.slices[TIME, i]
    w.run[j].fine = exact(w, s.now) if i == first else w.slices[FINE, i]
    return True


@inlined
def held_until(w: World, j: int) -> int:
    """Until when job `j` may be given nodes that are on alone, us; 0 if it is not held."""
    until = permission(w, j) if w.o[0].given == 1 else 0
    return until if until > w.s[0].now else np.int64(0)


@inlined
def note_barred(w: World, j: int, begin: int, end: int) -> None:
    """No hole for job `j` begins from `begin` to `end`, us, and that for what is not free behind `end`."""
    w.barred[j, FROM] = begin
    w.barred[j, UNTIL] = end


@lean
def _count_own(w: World, j: int, sign: int) -> None:
    """What job `j` has in the agenda already, and in which slices; of sign -1 none any longer."""
    s = w.s[0]
    s.own_first = 0
    s.own_end = 0
    if w.run[j].chunk == codes.NONE:
        return
    if sign == 1:
        s.own_first, s.own_end = span_of(w, j)
    wide = width(w)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            w.own[n * wide] += sign * w.chunk[c].per
        if w.job[j].single != 0:
            add_kinds(w, j, c, sign, w.own)
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
def _fits_now(w: World, j: int, i: int, least: Any) -> bool:
    """May job `j` of parts begin at once, with slice `i`? Asked node by node, in the order in which `choose` takes
    them: few are looked at beyond that slice. `least` becomes what is free of those taken."""
    if w.demand.shape[0] == 0 or w.job[j].single == 0:
        return False
    left = _need(w, j)
    end = _last_reached(w, j, i, i)
    least[:] = 0
    for power in range(codes.ON, codes.OFF + 1):
        for n in range(w.o[0].n_nodes):
            if w.node[n].power == power:
                left -= _room_throughout(w, j, n, i, end, left, least)
                if left == 0:
                    return True
    return False


@lean
def _room_throughout(w: World, j: int, n: int, i: int, end: int, left: int, least: Any) -> int:
    """For how many parts of job `j`, of `left`, there is room on node `n` from slice `i` to `end`; its entries of
    `least` become what is free throughout them, 0 if that is too little."""
    wide = width(w)
    here = left
    for entry in range(n * wide, (n + 1) * wide):
        least[entry] = codes.MANY
    for k in range(i, end + 1):
        row, own = w.slices[ROW, k], 1 if w.s[0].own_first <= k < w.s[0].own_end else 0
        for entry in range(n * wide, (n + 1) * wide):
            least[entry] = max(0, min(least[entry], w.agenda[row, entry] + own * w.own[entry]))
        here = _here(w, j, n, left, least)
        if here == 0:
            for entry in range(n * wide, (n + 1) * wide):
                least[entry] = 0
            return 0
    return here


@lean
def _later_hole(w: World, j: int, i: int, first: int, least: Any, before: int) -> int:
    """Position of the first slice from `i` on, and before a time, that begins a hole for job `j`, of all nodes alike;
    the number of slices for none; `least` becomes what is free throughout it.

    A window is looked at from its end, so that a slice that leaves too little with those behind it rules out all starts
    up to it. What is known of the slices behind it serves the next start, where that is the slice behind it.
    """
    s = w.s[0]
    n = s.n_slices
    need = _need(w, j)
    summed = s.below == 0 or is_pool(w)  # else a node is promised twice: to a job that runs on, and to another
    known = codes.NONE  # `least` holds the slices from this one on
    last = codes.NONE  # up to this one
    while i < n and w.slices[TIME, i] < before:
        if summed:
            i = _next_possible(w, j, i, before)
            if i == n:
                return n
        end = _last_reached(w, j, i, first)
        if known == i and _narrow_to(w, j, last, end, least) == end:
            return i
        bad = _last_bad(w, j, i, end, need, least)
        if bad < i:
            return i
        if w.barred[j, FROM] == codes.NEVER_US:
            note_barred(w, j, s.now if i == first else w.slices[TIME, i], w.slices[TIME, bad])
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
    while k > 0 and w.slices[TIME, k - 1] == own:  # some begin a residue before it
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
def _narrow_to(w: World, j: int, last: int, end: int, least: Any) -> int:
    """`least`, which holds slices up to `last`, becomes what they and those up to `end` leave; up to which they leave
    enough for job `j`, which is at least some slice of the run in which they do not."""
    need = _need(w, j)
    b = run_at(w, last) + 1
    while last < end:
        if b < w.s[0].n_runs and w.runs[FIRST, b] == last + 1:
            behind = end_of(w, b)
            b += 1
            if behind <= end + 1 and _uniform(w, last + 1, behind):
                if _narrow(w, j, w.lows[w.runs[LINE, b - 1]], last + 1, least, least) < need:
                    return last
                last = behind - 1
                continue
        if _narrow(w, j, w.agenda[_row(w, last + 1)], last + 1, least, least) < need:
            return last
        last += 1
    return last


@lean
def _last_bad(w: World, j: int, i: int, end: int, need: int, least: Any) -> int:
    """The last slice from `i` to `end` that leaves too little for job `j` together with those behind it, i - 1 if there
    is none; `least` becomes what those behind it leave. Runs that lie in between are looked at whole."""
    least[:] = codes.MANY
    known, trial, turned = least, w.trial, False
    k = end
    b = run_at(w, k)
    behind = end_of(w, b) if w.s[0].n_runs > 0 else codes.NONE  # the last run of which no slice has been looked at
    if behind > k + 1:
        behind = np.int64(w.runs[FIRST, b])
        b -= 1
    while k >= i:
        begin = k
        if behind == k + 1:
            behind = np.int64(w.runs[FIRST, b])
            whole = behind >= i and _uniform(w, behind, k + 1)
            if whole and _narrow(w, j, w.lows[w.runs[LINE, b]], k, known, trial) >= need:
                begin = behind
            b -= 1
        if begin == k and _narrow(w, j, w.agenda[_row(w, k)], k, known, trial) < need:
            break
        known, trial, turned = trial, known, not turned
        k = begin - 1
    if turned:
        for n in range(least.shape[0]):
            least[n] = w.trial[n]
    return k


@inlined
def _uniform(w: World, first: int, end: int) -> bool:
    """Has the job that is looked for, in all slices from `first` to `end` (without it) or in none, cores of its own,
    and may it have nodes that are not on?"""
    s = w.s[0]
    own = first >= s.own_end or end <= s.own_first or (first >= s.own_first and end <= s.own_end)
    return own and (first >= s.awake_end or end <= s.awake_end)


@inlined
def _row(w: World, k: int) -> int:
    """Where the nodes of slice `k` stand; of one pool no rows are kept."""
    row = w.slices[ROW, k]
    if is_pool(w):
        w.agenda[row, 0] = w.spare[k]
    return np.int64(row)


@inlined
def _need(w: World, j: int) -> int:
    """How much a hole for job `j` must hold: parts, or cores."""
    return np.int64(w.job[j].cores) if w.job[j].single == 0 else parts_of(w, j)


@inlined
def _here(w: World, j: int, n: int, left: int, least: Any) -> int:
    """Of what job `j` needs, `left` of it, so much lies on node `n` where that is free."""
    wide = width(w)
    if w.job[j].single == 0:
        return max(0, min(left, np.int64(least[n * wide])))
    if not may_lie(w, j, n):
        return 0
    return room_in(w, j, left, np.int64(least[n * wide]), least[n * wide + 1 : (n + 1) * wide])


@lean
def _worth(w: World, j: int, least: Any) -> int:
    """How much of what job `j` needs has room in what is free: parts, or cores; all nodes together."""
    total = 0
    for n in range(w.o[0].n_nodes):
        total += _here(w, j, n, _need(w, j), least)
    return total


@lean
def _narrow_kinds(w: World, j: int, line: Any, k: int, known: Any, into: Any) -> int:
    """As `_narrow`, where jobs go by nodes or need further kinds; what is promised twice counts as 0."""
    own, asleep = w.own, w.asleep
    mine, sleeps = _owns(w, k), _sleeps(w, k)
    for n in range(into.shape[0]):
        at = np.uint64(n)
        into[at] = max(np.int32(0), min(known[at], np.int32(line[at] + mine * own[at] - sleeps * asleep[at])))
    return _worth(w, j, into)


@lean
def _narrow_some(w: World, j: int, line: Any, k: int, known: Any, into: Any) -> int:
    """As `_narrow_kinds`, of the nodes alone on which job `j` may lie: no other is looked at, here or later."""
    own, asleep, need, wide = w.own, w.asleep, _need(w, j), width(w)
    mine, sleeps = _owns(w, k), _sleeps(w, k)
    total = 0
    for i in range(w.allowed.shape[1]):
        word = w.allowed[w.shape[j].allowed, i]
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            if n < w.o[0].n_nodes:
                for entry in range(n * wide, (n + 1) * wide):
                    free = line[entry] + mine * own[entry] - sleeps * asleep[entry]
                    into[entry] = max(0, min(known[entry], free))
                total += room_in(w, j, need, np.int64(into[n * wide]), into[n * wide + 1 : (n + 1) * wide])
    return total


@inlined
def _owns(w: World, k: int) -> Any:
    """1 where the job that is looked for has cores in slice `k` already."""
    return np.int32(1 if w.s[0].own_first <= k < w.s[0].own_end else 0)


@inlined
def _sleeps(w: World, k: int) -> Any:
    """1 where it cannot have nodes in slice `k` that are not on now, but for what jobs have of them."""
    return np.int32(1 if k < w.s[0].awake_end else 0)


@inlined
def _narrow(w: World, j: int, line: Any, k: int, known: Any, into: Any) -> int:
    """`into` [entries of a row] becomes what is free of `line` too, of what is `known`: a row of slice `k`, or the
    least of a run with it; how much of what job `j` needs has room there, all nodes together."""
    if w.demand.shape[0] > 0:
        some = w.allowed.shape[0] > 0 and w.job[j].single != 0 and w.shape[j].allowed > 0
        return _narrow_some(w, j, line, k, known, into) if some else _narrow_kinds(w, j, line, k, known, into)
    own, asleep = w.own, w.asleep
    total = np.int32(0)  # 32 bits at each step, and unsigned numbers: eight or sixteen nodes at once
    if k < w.s[0].awake_end:
        mine = _owns(w, k)
        for n in range(w.o[0].n_nodes):
            at = np.uint64(n)
            both = min(known[at], np.int32(line[at] + mine * own[at] - asleep[at]))
            into[at] = both
            total = np.int32(total + max(both, np.int32(0)))
    elif w.s[0].own_first <= k < w.s[0].own_end:
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
    """Chunks for job `j` out of what is free throughout its hole: at once, in the order on, switching on, off; later,
    the lowest."""
    s = w.s[0]
    left = _need(w, j)
    last = codes.NONE
    w.run[j].chunk = codes.NONE
    now = w.run[j].plan == s.now and w.run[j].fine == exact(w, s.now)
    for power in range(codes.ON, codes.OFF + 1):
        for n in range(w.o[0].n_nodes):
            if left > 0 and (not now or w.node[n].power == power):
                here = _here(w, j, n, left, least)
                if here > 0:
                    each = 1 if w.job[j].single == 0 else share_of(w, j)
                    last = append_chunk(w, j, last, n, n, here * each)
                    left -= here
                    if left == 0:
                        return
        if not now:
            return
