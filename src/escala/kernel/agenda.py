"""Future availability for conservative backfilling: slices of time, each with the free cores of every node.

Slice i holds from its time to that of slice i + 1; the last one for ever. Slices are kept in order through row numbers, so that cutting
one in two moves three numbers a slice and copies one row. The last column of a row is the sum over nodes.
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

TIME = 0
FINE = 1
ROW = 2


@lean
def _new_slice(w: World, at: int, us: int, fine: int, source: int) -> None:
    """Insert a slice at position `at` with the counts of row `source`."""
    s = w.s[0]
    row = s.n_slices
    for i in range(s.n_slices, at, -1):
        w.slices[TIME, i] = w.slices[TIME, i - 1]
        w.slices[FINE, i] = w.slices[FINE, i - 1]
        w.slices[ROW, i] = w.slices[ROW, i - 1]
    w.slices[TIME, at] = us
    w.slices[FINE, at] = fine
    w.slices[ROW, at] = row
    if source != codes.NONE:
        for n in range(w.agenda.shape[1]):
            w.agenda[row, n] = w.agenda[source, n]
    s.n_slices += 1


@lean
def slice_at(w: World, us: int, fine: int) -> int:
    """Position of the slice that begins at this time, cut from the one that covers it. The time is not before the first slice."""
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
    _new_slice(w, low, us, fine, w.slices[ROW, low - 1])
    return low


@lean
def rebuild(w: World, frontier: Any) -> None:
    """The agenda of what is certain: free cores now, planned ends of jobs, ends of switch-offs."""
    s = w.s[0]
    nodes = w.o[0].n_nodes
    s.n_slices = 0
    _new_slice(w, 0, s.now, exact(w, s.now), codes.NONE)
    total = 0
    for n in range(nodes):
        usable = w.node[n].held == 0 and w.node[n].power != codes.SWITCHING_OFF
        w.agenda[0, n] = free_cores(w, n) if usable else 0
        total += w.agenda[0, n]
    w.agenda[0, nodes] = total
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
                w.agenda[w.slices[ROW, k], nodes] += w.node[n].cores


@lean
def add(w: World, j: int, from_us: int, from_fine: int, to_us: int, to_fine: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) the chunks of job `j` over [from, to)."""
    nodes = w.o[0].n_nodes
    first = slice_at(w, from_us, from_fine)
    end = w.s[0].n_slices
    if to_us < codes.NEVER_US:
        end = slice_at(w, to_us, to_fine)
    for k in range(first, end):
        row = w.slices[ROW, k]
        c = np.int64(w.run[j].chunk)
        while c != codes.NONE:
            per = sign * w.chunk[c].per
            for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                w.agenda[row, n] += per
            c = np.int64(w.chunk[c].next)
        w.agenda[row, nodes] += sign * w.job[j].cores


@lean
def hold(w: World, j: int, sign: int) -> None:
    """The reservation of job `j` [RUN.plan, + walltime + margin) leaves (sign -1) or re-enters (1) what is free. A start that has passed
    counts from now."""
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


@inlined
def _position(w: World) -> int:
    """Position of the slice that covers now."""
    i = 0
    while i + 1 < w.s[0].n_slices and w.slices[TIME, i + 1] <= w.s[0].now:
        i += 1
    return i


@lean
def first_hole(w: World, j: int, least: Any) -> None:
    """Set RUN.plan of job `j` to the earliest start of a hole for its whole walltime; `least` [nodes] becomes the cores free throughout
    it."""
    s = w.s[0]
    o = w.o[0]
    nodes = o.n_nodes
    need = np.int64(w.job[j].cores)
    waking = permission(w, j) if o.given == 1 else 0
    if waking > s.now:
        slice_at(w, waking, exact(w, waking))
    i = _position(w)
    first = i
    while True:
        us = s.now if i == first else w.slices[TIME, i]
        fine = exact(w, s.now) if i == first else w.slices[FINE, i]
        end = us + w.job[j].walltime + o.margin_us
        end_fine = fine + exact(w, w.job[j].walltime) + exact(w, o.margin_us)
        k = i
        fits = True
        while k < s.n_slices and (k == i or earlier(w.slices[TIME, k], w.slices[FINE, k], end, end_fine)):
            row = w.slices[ROW, k]
            if o.given == 0 and w.agenda[row, nodes] < need:
                fits = False
                i = k  # no hole can contain this slice
                break
            if k == i:
                for n in range(nodes):
                    least[n] = w.agenda[row, n]
                if us < waking:
                    for n in range(nodes):
                        if w.node[n].power != codes.ON:  # what no job has there must wait for the end of the hold
                            least[n] = max(0, least[n] - free_cores(w, n))
            total = 0
            for n in range(nodes):
                least[n] = min(least[n], w.agenda[row, n])
                total += max(least[n], 0)
            if total < need:
                fits = False
                break
            k += 1
        if fits:
            w.run[j].plan = us
            w.run[j].fine = fine
            return
        i += 1


@lean
def choose(w: World, j: int, least: Any) -> None:
    """Chunks for job `j` out of the cores free throughout its hole: at once, in the order on, switching on, off; later, the lowest."""
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
