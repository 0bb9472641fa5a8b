"""Conservative backfilling: every waiting job holds a reservation on concrete nodes.

On arrival a job gets the first hole for its whole walltime: cores of any nodes, or nodes with room for all its parts.
When a job ends, every waiting job, in the scheduler's order, is taken out and put back at its first fit, the
reservations of all others in place ("compress"). With `rebuild` all are planned anew from an empty agenda at each
decision: another policy. Where nodes may switch, every decision compresses: a reservation may have lost its nodes, or
may have gained some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.agenda import is_bare, kept, note_asleep, tidy, width
from escala.kernel.bookings import add, bring_forward, hold, note_switching, rebuild
from escala.kernel.holes import FROM, HELD, UNTIL, choose, first_hole, held_until, note_barred
from escala.kernel.jobs import place
from escala.kernel.nodes import add_free, set_free, set_of, switch_on
from escala.kernel.parts import alike, cores_of, parts_in, use_kinds
from escala.kernel.placement import append_chunk, recycle
from escala.kernel.reservation import exact
from escala.kernel.state import World
from escala.kernel.sums import TIME, possible
from escala.kernel.urgency import begin_walk, walk_on

NOWHERE, STAYS, MOVED = range(3)
"""Where a job with a reservation is put."""


@lean
def conservative(w: World) -> None:
    """One decision."""
    _decide(w)
    if w.o[0].given == 1 or not kept(w):
        _note_next_plan(w)


@lean
def _note_next_plan(w: World) -> None:
    """The next planned start, an event of its own: by a residue it may miss the end that made room for it; and a job
    whose nodes are still to switch on may have taken that room since."""
    s = w.s[0]
    s.next_plan_us = codes.NEVER_US
    j = s.first
    while j != codes.NONE:
        if w.run[j].chunk != codes.NONE and w.run[j].plan > s.now:
            s.next_plan_us = min(s.next_plan_us, w.run[j].plan)
        j = np.int64(w.run[j].next)


@lean
def _decide(w: World) -> None:
    s = w.s[0]
    o = w.o[0]
    least = w.least
    keep = kept(w)
    ended = s.n_ended > s.n_planned
    s.n_planned = s.n_ended
    if o.given == 1:
        s.woke >>= 1
        for n in range(o.n_nodes):
            note_asleep(w, n, 1)
    if s.n_slices == 0 or (not keep and (ended or o.rebuild == 1 or o.given == 1)):
        _plan_all(w, least)
        return
    if keep:
        tidy(w)
        if o.given == 1:
            s.below >>= 1
            note_switching(w)
        if ended or o.given == 1:
            _compress(w, least)
            return
    waiting = 0
    j = begin_walk(w)
    while j != codes.NONE and waiting < o.depth:
        after = walk_on(w, j)
        if w.run[j].chunk == codes.NONE:
            _put(w, j, least)
        elif w.run[j].plan <= s.now:
            hold(w, j, 1)
            _hold_or_start(w, j)
        waiting += w.run[j].state == codes.QUEUED
        j = after


@lean
def _compress(w: World, least: Any) -> None:
    """Every waiting job at its first fit.

    Where nothing more is free than at its last fit, a job has no earlier hole, and no other nodes: so it is looked at
    up to the time until which more may be free. That ends with what jobs that ended had planned, and with the holes
    that others leave. With exact residues, and where planned ends move, all are looked for anew.
    """
    s = w.s[0]
    o = w.o[0]
    until = s.freer_us
    s.freer_us = 0
    waiting = 0
    before = codes.NONE  # the job that was looked at last, if it still has a reservation
    j = begin_walk(w)
    while j != codes.NONE and waiting < o.depth:
        after = walk_on(w, j)
        if w.run[j].chunk == codes.NONE:
            _put(w, j, least)
        elif is_bare(w):
            until = _sooner(w, j, least, until)
        else:
            now = w.run[j].plan <= s.now or w.job[j].walltime + o.margin_us == 0
            anew = s.below > 0 or o.exact == 1 or o.moves == 1 or _held_anew(w, j)
            if now or anew or w.run[j].plan < until or _may_move(w, j, until):
                latest = codes.NEVER_US if anew or w.run[j].plan < until else max(until, s.now + 1)
                _put_back(w, j, least, latest, np.int64(s.now) if anew else _since(w, j, before))
                until = max(until, s.freer_us)
        waiting += w.run[j].state == codes.QUEUED
        before = j if w.run[j].state == codes.QUEUED and w.run[j].chunk != codes.NONE else codes.NONE
        j = after


@inlined
def _held_anew(w: World, j: int) -> bool:
    """Is job `j` held to nodes that are on, with more of them than when it was looked for, or until another time? One
    that has a place among them may lose it as they fall asleep, or to others who may have more."""
    if w.o[0].given == 0:
        return False
    held = held_until(w, j)
    if held != w.barred[j, HELD] or (held > 0 and w.s[0].woke > 0):
        return True
    return w.run[j].plan < held and _lies_asleep(w, j)


@lean
def _lies_asleep(w: World, j: int) -> bool:
    """Has job `j` a reservation on a node of which something is asleep?"""
    wide = width(w)
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        for entry in range(w.chunk[c].low * wide, (w.chunk[c].high + 1) * wide):
            if w.asleep[entry] > 0:
                return True
        c = np.int64(w.chunk[c].next)
    return False


@inlined
def _since(w: World, j: int, before: int) -> int:
    """From when on job `j`, which has a reservation, may have a hole. One that asks for the same nodes and no longer,
    and was looked at just `before`, has none before its own; job `j` then has none either, but with what it holds."""
    s = w.s[0]
    if before == codes.NONE or w.o[0].given == 1 or w.allowed.shape[0] == 0 or not alike(w, j, before):
        return np.int64(s.now)
    length = np.int64(w.job[j].walltime)
    if length < w.job[before].walltime:
        return np.int64(s.now)
    return np.int64(max(s.now, min(w.run[before].plan, w.run[j].plan - length - w.o[0].margin_us)))


@inlined
def _may_move(w: World, j: int, until: int) -> bool:
    """May job `j` have a hole before its own, by the sums and by what its last search saw, where nothing more is free
    from `until` on?"""
    if until > w.barred[j, UNTIL]:
        note_barred(w, j, codes.NEVER_US, 0)
    k = possible(w, j, 0, until, w.run[j].plan)
    return k != codes.NONE and w.slices[TIME, k] < w.barred[j, FROM]


@inlined
def _sooner(w: World, j: int, least: Any, until: int) -> int:
    """Job `j` of a pool at its first fit. Until when more may be free now."""
    s = w.s[0]
    plan = w.run[j].plan
    length = w.job[j].walltime + w.o[0].margin_us
    if plan <= s.now or length == 0:
        hold(w, j, 1)
        recycle(w, j)
        _put(w, j, least)
        return until
    k = possible(w, j, 0, min(plan, until), plan)  # its own hole is a fit: only earlier ones count
    if k == codes.NONE:
        return until
    bring_forward(w, j, k)
    if w.run[j].plan == s.now:
        _start_on_chunks(w, j)
    s.freer_us = max(s.freer_us, plan + length)
    return max(until, plan + length)


@lean
def _put_back(w: World, j: int, least: Any, before: int, since: int) -> None:
    """Job `j` at its first fit before a time (us), where none is before `since`; else it keeps its reservation, but
    loses it where no fit at all is left. What it leaves is freer."""
    plan = w.run[j].plan
    where = _put_again(w, j, least, before, since)
    if where == NOWHERE and before == codes.NEVER_US:
        hold(w, j, 1)
        recycle(w, j)
    elif where != MOVED:
        return
    w.s[0].freer_us = max(w.s[0].freer_us, plan + w.job[j].walltime + w.o[0].margin_us)


@lean
def _put_again(w: World, j: int, least: Any, before: int, since: int) -> int:
    """Job `j`, which has a reservation, at its first fit before a time (us), where none is before `since`: NOWHERE, it
    has none; STAYS, its reservation was that; MOVED."""
    plan, fine, chunk = w.run[j].plan, w.run[j].fine, np.int64(w.run[j].chunk)
    if not first_hole(w, j, least, before, since):
        return NOWHERE
    choose(w, j, least)
    stays = w.run[j].plan == plan and w.run[j].fine == fine and _same(w, np.int64(w.run[j].chunk), chunk)
    new_plan, new_fine, new = w.run[j].plan, w.run[j].fine, np.int64(w.run[j].chunk)
    if stays and plan != w.s[0].now:
        recycle(w, j)
        w.run[j].chunk = chunk
        return STAYS
    w.run[j].plan, w.run[j].fine, w.run[j].chunk = plan, fine, chunk
    hold(w, j, 1)
    recycle(w, j)
    w.run[j].plan, w.run[j].fine, w.run[j].chunk = new_plan, new_fine, new
    _hold_or_start(w, j)
    return STAYS if stays else MOVED


@lean
def _same(w: World, a: int, b: int) -> bool:
    """Do two lists of chunks name the same cores?"""
    while a != codes.NONE and b != codes.NONE:
        one, other = w.chunk[a], w.chunk[b]
        if one.low != other.low or one.high != other.high or one.per != other.per:
            return False
        a = np.int64(one.next)
        b = np.int64(other.next)
    return a == b


@lean
def _plan_all(w: World, least: Any) -> None:
    """Every waiting job at its first fit, the agenda made anew."""
    s = w.s[0]
    o = w.o[0]
    rebuild(w, w.frontier)
    j = s.first
    while j != codes.NONE:
        if w.run[j].chunk != codes.NONE:
            if o.rebuild == 1:
                recycle(w, j)
            else:
                hold(w, j, -1)
        j = np.int64(w.run[j].next)
    _compress(w, least)


@lean
def _put(w: World, j: int, least: Any) -> None:
    """Give job `j` its reservation; start it if that begins now. Without a hole it waits for the next decision."""
    if is_bare(w):
        k = possible(w, j, 0, codes.NEVER_US, codes.NEVER_US)
        if k != codes.NONE:
            _put_at(w, j, k)
    elif first_hole(w, j, least, codes.NEVER_US, np.int64(w.s[0].now)):
        choose(w, j, least)
        _hold_or_start(w, j)


@lean
def _put_at(w: World, j: int, k: int) -> None:
    """Give job `j` its reservation of a pool's cores from slice `k` on."""
    w.run[j].plan = w.slices[TIME, k]
    w.run[j].fine = 0
    append_chunk(w, j, codes.NONE, 0, 0, w.job[j].cores)
    _hold_or_start(w, j)


@lean
def _hold_or_start(w: World, j: int) -> None:
    """Enter the reservation of job `j`. What begins at this instant of the clock, by a residue later or not, starts."""
    starts = w.run[j].plan == w.s[0].now
    if starts:
        w.run[j].fine = exact(w, w.s[0].now)
        _trim(w, j)
    hold(w, j, -1)
    if starts:
        _start_on_chunks(w, j)


@lean
def _trim(w: World, j: int) -> None:
    """A job of uneven parts that starts takes what they need: its reservation, which has left the agenda, had a large
    one for each."""
    if w.job[j].single != 2 or w.shape[j].share == w.shape[j].less:
        return
    c = np.int64(w.run[j].chunk)
    w.run[j].chunk = codes.NONE
    last, first = codes.NONE, 0
    while c != codes.NONE:
        low, high, after = np.int64(w.chunk[c].low), np.int64(w.chunk[c].high), np.int64(w.chunk[c].next)
        count = parts_in(w, j, np.int64(w.chunk[c].per))
        w.chunk[c].next = w.s[0].free_chunk
        w.s[0].free_chunk = c
        for n in range(low, high + 1):
            last = append_chunk(w, j, last, n, n, cores_of(w, j, first, count))
            first += count
        c = after
    w.s[0].freer_us = max(w.s[0].freer_us, w.run[j].plan + w.job[j].walltime + w.o[0].margin_us)


@lean
def _start_on_chunks(w: World, j: int) -> None:
    """Give job `j` the nodes of its reservation."""
    s = w.s[0]
    ready = s.now
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        per = np.int64(w.chunk[c].per)
        parts = 0 if w.job[j].single == 0 else parts_in(w, j, per)
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if parts > 0:
                use_kinds(w, j, n, parts)
            which = set_of(w.node[n].power)
            add_free(w, which, -per)
            if w.o[0].unit == 1:
                bits.drop(w.bits[which], n)
            else:
                set_free(w, n, np.int64(w.node[n].free) - per)
                if w.node[n].free == 0:
                    bits.drop(w.bits[which], n)
            if w.node[n].power == codes.OFF:
                switch_on(w, n)
            if w.node[n].power == codes.SWITCHING_ON:
                ready = max(ready, w.node[n].done)
            if w.o[0].given == 1:
                note_asleep(w, n, 2)
        c = np.int64(w.chunk[c].next)
    end = s.now + w.job[j].walltime + w.o[0].margin_us
    fine = exact(w, s.now) + exact(w, w.job[j].walltime) + exact(w, w.o[0].margin_us)
    place(w, j, ready)
    if ready > s.now:  # it keeps its nodes for as long as they take to switch on, too
        add(w, j, end, fine, w.run[j].plan, w.run[j].fine, -1)
