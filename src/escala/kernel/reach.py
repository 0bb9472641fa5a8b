"""What room there is for jobs that go by nodes, so that a search of a long queue passes over those for which no node
has any.

Such jobs fall into groups (`World.group`): who may lie on the same nodes and demands the same further kinds, or takes
cores of any nodes. `World.branch` holds of each cell of the search tree (`escala.kernel.queue`), for each group, the
least size of its queued jobs (cores of a part, or all) and their least walltimes, as the tree does for all.
`note_reach` says which sizes a node has room for, now and beside the reservation. Group 0 is anybody's: free cores
alone count there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.lanes import has_node
from escala.kernel.nodes import free_cores
from escala.kernel.parts import level_of_size, share_of
from escala.kernel.reservation import most_free
from escala.kernel.state import World

# Columns of `World.group`: any nodes; a row of `World.allowed`; the lane, 0: none; least demands
SPREAD, ALLOWED, LANE, LEAST = range(4)
ROOM, BESIDE, WIDTH = range(3)  # columns of `World.reach`: the largest size; beside the reservation; see `width_of`
EMPTY = 1 << 62  # least value of a cell without queued jobs
NO_LIMIT = EMPTY - 1  # of cores or walltime, in a search: every job passes, an empty cell never does


@inlined
def grouped(w: World) -> bool:
    """Are there groups?"""
    return w.reach.shape[0] > 0


@inlined
def size_of(w: World, j: int) -> int:
    """Cores of the largest part of job `j`, or all."""
    return np.int64(w.job[j].cores) if w.job[j].single == 0 else share_of(w, j)


@inlined
def branch_of(w: World, j: int) -> int:
    """The first row of the group of job `j` in `World.branch`."""
    return np.int64(w.member[j]) * (w.branch.shape[0] // w.reach.shape[0])


@inlined
def width_of(w: World, size: int) -> int:
    """The least limit of sizes, as a row behind the first, that holds all jobs of at most this size."""
    limit = w.o[0].widths  # WIDTHS of them, so that this is a comparison of vectors
    narrow = (size > limit[0]) + (size > limit[1]) + (size > limit[2]) + (size > limit[3])
    return narrow + (size > limit[4]) + (size > limit[5]) + (size > limit[6])


@inlined
def may_reach(w: World, j: int, window: int) -> bool:
    """May there be room for job `j`, and either it ends in time or the room is beside the reservation?"""
    row, size = w.reach[w.member[j]], size_of(w, j)
    return size <= row[ROOM] and (w.job[j].walltime <= window or size <= row[BESIDE])


@lean
def some_may_reach(w: World, at: int, window: int) -> bool:
    """May that be so for some job of the cell at position `at` of the tree?"""
    rows = w.branch.shape[0] // w.reach.shape[0]
    for g in range(w.reach.shape[0]):
        row, least = w.reach[g], w.branch[g * rows, at]
        if least <= row[ROOM] and (least <= row[BESIDE] or w.branch[g * rows + row[WIDTH], at] <= window):
            return True
    return False


@lean
def note_reach(w: World, held: bool, beside: int) -> None:
    """For which sizes there is room now. held: no waiting job may be given nodes that are not on; beside: so many cores
    are free beside the reservation, whatever their nodes, NONE: none; NO_LIMIT: what it leaves on each node."""
    free = most_free(w, held)
    for g in range(w.reach.shape[0]):
        row = w.reach[g]
        lane = w.group[g, LANE]
        if lane > 0 and w.s[0].lane > 0 and lane != w.s[0].lane:
            row[ROOM] = codes.NONE
            row[BESIDE] = codes.NONE
        elif g == 0 or w.group[g, SPREAD] == 1:
            row[ROOM] = free
            row[BESIDE] = min(free, beside)
        else:
            row[ROOM] = _most(w, g, held, False)
            row[BESIDE] = min(beside, row[ROOM])
            if beside == NO_LIMIT and row[ROOM] > 0:
                row[BESIDE] = min(row[BESIDE], _most(w, g, held, True))
        row[WIDTH] = 1 + width_of(w, np.int64(row[ROOM]))


@lean
def _most(w: World, g: int, held: bool, beside: bool) -> int:
    """The most free cores of a node on which jobs of group `g` may lie, and which has of each further kind what they
    demand at least. beside: which the reservation leaves alone."""
    most = 0
    for i in range(w.bits.shape[1]):
        word = w.bits[codes.SET_ON, i]
        if not held:
            word |= w.bits[codes.SET_BOOT, i] | w.bits[codes.SET_OFF, i]
        if w.allowed.shape[0] > 0:
            word &= w.allowed[w.group[g, ALLOWED], i]
        word &= _more(w, i, most)
        while word != bits.ZERO:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            here = free_cores(w, n)
            if beside and bits.has(w.bits[codes.SET_RESERVED], n):
                here = min(here, np.int64(w.cores[n]))
            if here > most and has_node(w, n) and _has_kinds(w, g, n):
                most = here
                word &= _more(w, i, most)
    return most


@inlined
def _more(w: World, i: int, most: int) -> Any:
    """Word `i` of a set of nodes that holds all with more than so many free cores."""
    return w.roomy[level_of_size(most + 1), i]


@inlined
def _has_kinds(w: World, g: int, n: int) -> bool:
    """Has node `n` of each further kind what jobs of group `g` demand at least?"""
    enough = True
    for k in range(w.room.shape[1]):
        enough = enough and w.room[n, k] >= w.group[g, LEAST + k]
    return enough
