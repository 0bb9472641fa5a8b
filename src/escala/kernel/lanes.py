"""Lanes: queues of their own, where a site has groups of nodes and no job may lie on nodes of two of them
(`escala.partitions.lanes_of`).

A strict order stops in each lane apart, and EASY has a head in each: they decide for one lane after the other.
`SCALARS.lane` is the one whose turn it is, with its head among the SCALARS; `World.link` says in which lane each job
stands, and behind whom there. The queue of all (`RUN.next`) stays what it is: it is lane 0. Who takes no turns sees
all, and so does everybody where there are no lanes.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.state import World

LANE, BEFORE, BEHIND = range(3)  # columns of `World.link`


@inlined
def has_lanes(w: World) -> bool:
    """Are there several queues?"""
    return w.lane.shape[0] > 1


@inlined
def lane_of(w: World, j: int) -> int:
    """The lane of job `j`; 0 without lanes."""
    return np.int64(w.link[j, LANE]) if has_lanes(w) else 0


@inlined
def is_mine(w: World, j: int) -> bool:
    """Does job `j` stand in the lane whose turn it is?"""
    return w.s[0].lane == 0 or w.link[j, LANE] == w.s[0].lane


@inlined
def has_node(w: World, n: int) -> bool:
    """May jobs of the lane whose turn it is lie on node `n`?"""
    return w.s[0].lane == 0 or w.node[n].lane == w.s[0].lane


@inlined
def first_of(w: World) -> int:
    """The oldest waiting job of the lane whose turn it is; NONE without any."""
    s = w.s[0]
    return s.first if s.lane == 0 else w.lane[s.lane].first


@inlined
def behind(w: World, j: int) -> int:
    """Who came next behind job `j` in the lane whose turn it is."""
    return np.int64(w.run[j].next) if w.s[0].lane == 0 else np.int64(w.link[j, BEHIND])


@lean
def join(w: World, j: int) -> None:
    """Job `j` joins the end of its lane."""
    lane = w.lane[w.link[j, LANE]]
    w.link[j, BEFORE] = lane.last
    w.link[j, BEHIND] = codes.NONE
    if lane.last == codes.NONE:
        lane.first = j
    else:
        w.link[lane.last, BEHIND] = j
    lane.last = j


@lean
def leave(w: World, j: int) -> None:
    """Job `j` leaves its lane."""
    lane = w.lane[w.link[j, LANE]]
    before = np.int64(w.link[j, BEFORE])
    after = np.int64(w.link[j, BEHIND])
    if before == codes.NONE:
        lane.first = after
    else:
        w.link[before, BEHIND] = after
    if after == codes.NONE:
        lane.last = before
    else:
        w.link[after, BEFORE] = before


@lean
def clear_lanes(w: World, overdue: int) -> None:
    """Nobody waits, and all is to be looked at. overdue: as in LANE, of each."""
    w.s[0].lane = 0
    for k in range(w.lane.shape[0]):
        lane = w.lane[k]
        lane.first = codes.NONE
        lane.last = codes.NONE
        lane.head = codes.NONE
        lane.blocked = codes.NONE
        lane.changed = 1
        lane.overdue = overdue
        lane.given_back = 0


@lean
def turn(w: World, to: int) -> None:
    """It is the turn of lane `to`."""
    s = w.s[0]
    lane = w.lane[s.lane]
    lane.head = s.head
    lane.shadow_us = s.shadow_us
    lane.shadow_fine = s.shadow_fine
    lane = w.lane[to]
    s.lane = to
    s.head = lane.head
    s.shadow_us = lane.shadow_us
    s.shadow_fine = lane.shadow_fine


@inlined
def turns(w: World) -> int:
    """How many turns a decision has."""
    return max(w.lane.shape[0] - 1, 1)


@lean
def takes_turn(w: World, k: int) -> bool:
    """The k-th turn of a decision: does somebody wait who may start in it? It is told only of what has changed for its
    lane."""
    if not has_lanes(w):
        return True
    lane = w.lane[k + 1]
    if lane.first == codes.NONE:
        return False
    turn(w, k + 1)
    w.s[0].changed = lane.changed
    lane.changed = 0
    return True


@lean
def end_turns(w: World) -> None:
    """All are in view again. Whoever looks at the tables finds the reservation of the oldest job, if it has one."""
    s = w.s[0]
    if s.lane != 0:
        turn(w, 0)
        s.head = codes.NONE
        if s.first != codes.NONE:
            lane = w.lane[lane_of(w, s.first)]
            s.head = lane.head
            s.shadow_us = lane.shadow_us
            s.shadow_fine = lane.shadow_fine


@inlined
def note(w: World, lane: int) -> None:
    """Something has changed for the jobs of this lane; 0: for all."""
    w.s[0].changed = 1
    if has_lanes(w):
        _note(w, lane)


@lean
def _note(w: World, lane: int) -> None:
    w.lane[lane].changed = 1
    if lane == 0:
        for k in range(w.lane.shape[0]):
            w.lane[k].changed = 1
