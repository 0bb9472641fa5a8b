"""Jobs that go by nodes: each is made of parts, and each part lies on one node with all its cores and demands.

A single-node job has one part; a job of n nodes has n, each on a node of its own; tasks that pack as they fit are parts
of which a node may hold several. The first parts may have more cores than the others; a node has room for a part if it
has room for a large one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined
from escala.kernel import bits
from escala.kernel.state import LEVELS, World


@inlined
def parts_of(w: World, j: int) -> int:
    """How many parts job `j` has, which goes by nodes."""
    return 1 if w.job[j].single == 1 else np.int64(w.shape[j].parts)


@inlined
def takes_any(w: World, j: int) -> bool:
    """Does job `j` ask for cores of any nodes? Where some jobs have nodes to themselves it is made of parts too, see
    `escala.parts.Parts.anywhere`."""
    return w.job[j].single == 0 or (w.job[j].single == 2 and w.shape[j].most > w.shape[j].parts)


@inlined
def share_of(w: World, j: int) -> int:
    """Cores of its largest part."""
    return np.int64(w.job[j].cores) if w.job[j].single == 1 else np.int64(w.shape[j].share)


@inlined
def cores_of(w: World, j: int, first: int, count: int) -> int:
    """Cores of so many of its parts, from `first` on."""
    if w.job[j].single == 1:
        return np.int64(w.job[j].cores)
    shape = w.shape[j]
    large = min(max(shape.large - first, 0), count)
    return large * np.int64(shape.share) + (count - large) * np.int64(shape.less)


@inlined
def parts_in(w: World, j: int, per: int) -> int:
    """How many of its parts are `per` cores of it on one node."""
    if w.job[j].single == 1 or w.shape[j].most == 1:
        return 1
    return per // np.int64(w.shape[j].share)


@inlined
def alike(w: World, a: int, b: int) -> bool:
    """Do two jobs of parts ask for the same, whatever their lengths, on some nodes alone?"""
    if w.job[a].single != 2 or w.job[b].single != 2 or w.job[a].cores != w.job[b].cores:
        return False
    return w.shape[a].allowed > 0 and asks_same(w, a, b)


@inlined
def asks_same(w: World, a: int, b: int) -> bool:
    """Do two jobs ask for the same, whatever their lengths?"""
    same = w.job[a].cores == w.job[b].cores and w.job[a].single == w.job[b].single
    if same and w.job[a].single == 2:
        one, other = w.shape[a], w.shape[b]
        same = one.allowed == other.allowed and one.parts == other.parts and one.most == other.most
        same = same and one.share == other.share and one.less == other.less and one.large == other.large
    for k in range(w.demand.shape[1] if w.demand.shape[0] > 0 else 0):
        same = same and w.demand[a, k] == w.demand[b, k]
    return same


@inlined
def allowed_of(w: World, j: int) -> int:
    """The row of `World.allowed` with the nodes on which job `j` may lie; 0: all."""
    return np.int64(w.shape[j].allowed) if w.job[j].single == 2 else 0


@inlined
def may_lie(w: World, j: int, n: int) -> bool:
    """May job `j` lie on node `n`, by what it asks of nodes?"""
    return w.allowed.shape[0] == 0 or bits.has(w.allowed[w.shape[j].allowed], n)


@inlined
def level_of(w: World, j: int) -> int:
    """In which set of `World.roomy` all nodes are that have room for a part of job `j`, which goes by nodes."""
    return level_of_size(share_of(w, j))


@inlined
def level_of_size(size: int) -> int:
    """The set of `World.roomy` that has all nodes with so many free cores, and the fewest others."""
    level = 0
    while size > 1 and level < LEVELS - 1:
        size >>= 1
        level += 1
    return level


@inlined
def word_for(w: World, j: int, which: int, i: int, level: int) -> Any:
    """Word `i` of a set of nodes: of those on which job `j`, which goes by nodes, may lie and may have room. level: see
    `level_of`."""
    word = w.bits[which, i]
    if w.roomy.shape[0] > 0:
        word &= w.roomy[level, i]
    return word if w.allowed.shape[0] == 0 else word & w.allowed[w.shape[j].allowed, i]


@inlined
def room_in(w: World, j: int, left: int, free: int, room: Any) -> int:
    """For how many parts of job `j`, of `left`, there is room in `free` cores and `room` [kinds]."""
    share = share_of(w, j)
    if free < share:
        return 0
    count = 1
    if w.job[j].single != 1 and left > 1 and w.shape[j].most > 1:
        count = min(left, np.int64(w.shape[j].most), free // share)
    if w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            if room[k] < w.demand[j, k]:
                return 0
            if count > 1 and w.demand[j, k] > 0:
                count = min(count, np.int64(room[k]) // np.int64(w.demand[j, k]))
    return count


@inlined
def parts_on(w: World, j: int, n: int, left: int) -> int:
    """For how many parts of job `j`, of `left`, node `n` has room now, whatever its power state."""
    return room_on(w, j, n, left) if may_lie(w, j, n) else 0


@inlined
def room_on(w: World, j: int, n: int, left: int) -> int:
    """The same of a node on which it may lie."""
    return room_in(w, j, left, 1 if w.o[0].unit == 1 else np.int64(w.node[n].free), w.room[n])


@inlined
def use_kinds(w: World, j: int, n: int, count: int) -> None:
    """So many parts of job `j` take their further kinds on node `n`; negative: give them back."""
    if w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            w.room[n, k] -= count * w.demand[j, k]
