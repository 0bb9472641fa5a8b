"""Future availability for conservative backfilling: slices of time, each with the free cores of every node.

Slice i holds from its time to that of slice i + 1; the last one for ever. Slices are kept in order through row numbers,
so that cutting one in two moves four numbers a slice and copies one row. A row has the free cores of a node, then what
is free there of each further kind, then those of the next node. The sums over nodes lie side by side: of one
pool they say everything, and it has no rows; of more nodes they say where looking at rows is in vain. Mostly the agenda
is kept from decision to decision: jobs that end give back what they had planned, and what switches off is noted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import earlier
from escala.kernel.nodes import free_cores
from escala.kernel.runs import FIRST, LINE, LOST, end_of, find_least, make_runs, note_slice
from escala.kernel.state import World
from escala.kernel.sums import FINE, ROW, TIME


@inlined
def kept(w: World) -> bool:
    """Is the agenda kept from decision to decision? Not with exact residues, nor if all is planned anew, nor if planned
    ends move, nor where somebody outside, or an off-reservation, switches nodes."""
    o = w.o[0]
    never = o.shutdown == codes.NEVER and o.given == 0
    others = o.shutdown == codes.OFF_RESERVATION or o.shutdown == codes.POWER_EXTERNAL or o.pause_before != 0
    ours = never or (o.given == 1 and not others)
    return o.queueing == codes.CONSERVATIVE and ours and o.exact == 0 and o.rebuild == 0 and o.moves == 0


@inlined
def is_pool(w: World) -> bool:
    """Do sums say everything? Of one node, and cores alone."""
    return w.o[0].n_nodes == 1 and w.demand.shape[0] == 0


@inlined
def is_bare(w: World) -> bool:
    """Has the agenda neither rows nor residues? Of a pool whose node never switches, where it is kept."""
    return is_pool(w) and w.o[0].given == 0 and kept(w)


@inlined
def width(w: World) -> int:
    """Entries of a row for one node."""
    return 1 + w.room.shape[1]


@lean
def make_room(line: Any, n: int, at: int) -> None:
    """The entries of a line from `at` to `n` move one further (by unsigned numbers this is one move of memory)."""
    for k in range(n - at):
        line[np.uint64(n - k)] = line[np.uint64(n - k - 1)]


@lean
def new_slice(w: World, at: int, us: int, fine: int) -> None:
    """Insert a slice at position `at` with the counts of the one before it, if there is one."""
    s = w.s[0]
    n = s.n_slices
    s.n_slices += 1
    make_room(w.slices[TIME], n, at)
    make_room(w.spare, n, at)
    w.slices[TIME, at] = us
    if at > 0:
        w.spare[at] = w.spare[at - 1]
    if is_bare(w):
        return
    if n == s.n_rows:
        w.slices[ROW, n] = n
        s.n_rows += 1
    row = w.slices[ROW, n]
    make_room(w.slices[FINE], n, at)
    make_room(w.slices[ROW], n, at)
    w.slices[FINE, at] = fine
    w.slices[ROW, at] = row
    if at > 0 and not is_pool(w):
        source = w.slices[ROW, at - 1]
        for entry in range(w.agenda.shape[1]):
            w.agenda[row, entry] = w.agenda[source, entry]
        if s.n_runs > 0:
            note_slice(w, at)


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
    if first > 0 and is_pool(w):
        n = 0
        for i in range(first, s.n_slices):
            if i == first or w.spare[n - 1] != w.spare[i]:
                w.slices[TIME, n] = w.slices[TIME, i]
                w.spare[n] = w.spare[i]
                n += 1
        s.n_slices = n
    elif first > 0:
        _tidy_runs(w, first)
    w.slices[TIME, 0] = s.now


@lean
def _tidy_runs(w: World, first: int) -> None:
    """The slices from `first` on, in their runs, move to the front. A run that loses some has its least found anew, and
    one that loses all is none."""
    s = w.s[0]
    n, kept_runs = 0, 0
    for b in range(s.n_runs):
        begin, end = np.int64(w.runs[FIRST, b]), end_of(w, b)
        start = n
        for i in range(begin, end):
            if i < first or (i > first and _alike(w, n - 1, i)):
                continue
            w.slices[TIME, n] = w.slices[TIME, i]
            w.spare[n] = w.spare[i]
            row = w.slices[ROW, n]
            w.slices[ROW, n] = w.slices[ROW, i]
            w.slices[ROW, i] = row
            n += 1
        if n == start:
            continue
        line = w.runs[LINE, kept_runs]
        w.runs[LINE, kept_runs] = w.runs[LINE, b]
        w.runs[LINE, b] = line
        w.runs[FIRST, kept_runs] = start
        w.runs[LOST, kept_runs] = end - begin - (n - start)
        kept_runs += 1
    s.n_runs = kept_runs
    s.n_slices = n
    for b in range(s.n_runs):
        if w.runs[LOST, b] > 0:
            find_least(w, b, 0, w.lows.shape[1])
    if 4 * s.n_runs > n + 4:
        make_runs(w)


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
    new_slice(w, at + 1, us, fine)
    return at + 1


@inlined
def position_now(w: World) -> int:
    """Position of the slice that covers now."""
    i = 0
    while i + 1 < w.s[0].n_slices and w.slices[TIME, i + 1] <= w.s[0].now:
        i += 1
    return i


@inlined
def note_asleep(w: World, n: int, woke: int) -> None:
    """What `holes` asks of node `n`, in as few steps as there can be: it does so for each job and each slice. Where
    less of it is asleep than was, `SCALARS.woke` becomes `woke`, or stays more."""
    wide, sleeps, less = width(w), w.node[n].power != codes.ON, False
    for k in range(wide):
        now = np.int64(0)
        if sleeps:
            now = np.int64(free_cores(w, n)) if k == 0 else np.int64(w.room[n, k - 1])
        less = less or now < w.asleep[n * wide + k]
        w.asleep[n * wide + k] = now
    if less:
        w.s[0].woke = max(w.s[0].woke, woke)
