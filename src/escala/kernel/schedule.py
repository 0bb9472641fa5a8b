"""Schedulers without reservations.

STRICT   the first in order starts while it fits; the first that does not blocks the rest.
GREEDY   whatever fits starts, in order.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.fit import can_hold, start_if_fits
from escala.kernel.lanes import end_turns, first_of, takes_turn, turns
from escala.kernel.nodes import free_cores, switch_on
from escala.kernel.parts import may_lie, parts_of, room_in
from escala.kernel.queue import SHORT_QUEUE, index_new, least_of_all, least_rank, next_fit, rank_of, row_at
from escala.kernel.reach import NO_LIMIT, grouped, note_reach
from escala.kernel.reservation import all_held, most_free, permission
from escala.kernel.scores import best_packing, by_rank
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, most_urgent, next_urgent


@lean
def first_in_order(w: World) -> int:
    """The queued job of this turn that comes first in the scheduler's order; NONE when nobody waits."""
    ordering = w.o[0].ordering
    if ordering == codes.BY_QUEUE or first_of(w) == codes.NONE:
        return first_of(w)
    if ordering == codes.BY_RANK:
        return least_of_all(w)
    return most_urgent(w)


@inlined
def leader(w: World) -> int:
    """The queued job that EASY's reservation is for: the first in order, or the oldest; NONE when nobody waits."""
    return first_in_order(w) if w.o[0].queueing == codes.EASY_PRIORITY else first_of(w)


@lean
def strict(w: World) -> None:
    """One decision, for each lane."""
    for k in range(turns(w)):
        if takes_turn(w, k):
            _strict(w)
    end_turns(w)


@lean
def _strict(w: World) -> None:
    """Start the first in order while it fits; then wake nodes for it. With nothing released since the last decision the
    one that did not fit then does not fit now, and unless it is held all has been done for it."""
    s = w.s[0]
    lane = w.lane[s.lane]
    j = first_in_order(w)
    held = w.o[0].shutdown == codes.HOLD or w.o[0].shutdown == codes.ORACLE
    if s.changed == 0 and j == lane.blocked and not held:
        return
    while j != codes.NONE and start_if_fits(w, j):
        j = first_in_order(w)
    lane.blocked = j
    if j != codes.NONE and permission(w, j) <= s.now:
        wake_for(w, j)


@lean
def wake_for(w: World, j: int) -> None:
    """Switch on as many off nodes, lowest first, as the blocked first job lacks: its cores - free cores of on nodes -
    cores of nodes switching on."""
    s = w.s[0]
    if w.job[j].single != 0:
        _wake_for_parts(w, j)
        return
    need = w.job[j].cores - s.free_on - s.free_boot
    n = 0
    while need > 0 and s.free_off > 0 and n < w.o[0].n_nodes:
        if w.node[n].power == codes.OFF and w.node[n].held == 0:
            need -= w.node[n].cores
            switch_on(w, n)
        n += 1


@lean
def _wake_for_parts(w: World, j: int) -> None:
    """Wake the lowest off nodes that can hold what the job lacks: its parts - those for which nodes that are on have
    room - those that nodes on their way can hold."""
    left = parts_of(w, j) if w.s[0].free_off > 0 else 0
    for n in range(w.o[0].n_nodes if left > 0 else 0):
        if w.node[n].power == codes.ON and left > 0:
            left -= room_in(w, j, left, free_cores(w, n), w.room[n]) if may_lie(w, j, n) else 0
        elif w.node[n].power == codes.SWITCHING_ON and left > 0:
            left -= can_hold(w, j, n, left)
    for n in range(w.o[0].n_nodes if left > 0 else 0):
        if left > 0 and w.node[n].power == codes.OFF and w.node[n].held == 0:
            count = can_hold(w, j, n, left)
            if count > 0:
                left -= count
                switch_on(w, n)


@lean
def greedy(w: World) -> None:
    """Start whatever fits, in order. With nothing released since the last decision only the new jobs can start."""
    s = w.s[0]
    o = w.o[0]
    new = s.next_job - s.new_from if s.changed == 0 else o.n_jobs
    counted = o.plain == 1 or grouped(w)
    if o.ordering == codes.BY_QUEUE and (s.changed == 0 or s.n_queued <= SHORT_QUEUE or not counted):
        j = s.first if s.changed == 1 else first_new(w)
        while j != codes.NONE:
            after = np.int64(w.run[j].next)
            start_if_fits(w, j)
            j = after
    elif o.ordering in codes.CHANGING:
        _greedy_urgent(w, new)
    elif o.ordering == codes.BY_QUEUE or (by_rank(w) and s.n_queued > SHORT_QUEUE and new > SHORT_QUEUE):
        _greedy_tree(w)
    elif by_rank(w):
        _greedy_walk(w)
    else:
        j = best_packing(w)
        while j != codes.NONE and start_if_fits(w, j):
            j = best_packing(w)


@lean
def first_new(w: World) -> int:
    """The first queued job that was submitted since the last decision; NONE if there is none."""
    s = w.s[0]
    for j in range(s.new_from, s.next_job):
        if w.run[j].state == codes.QUEUED:
            return j
    return codes.NONE


@lean
def _greedy_walk(w: World) -> None:
    """By rank, a short queue, or few that might start: they are walked for each job that starts."""
    s = w.s[0]
    first = s.first if s.changed == 1 else first_new(w)
    done = codes.NONE  # ranks up to here were looked at
    held = all_held(w, codes.NONE)
    while first != codes.NONE:
        free = most_free(w, held) if w.o[0].plain == 1 else NO_LIMIT
        best = least_rank(w, first, done, free, NO_LIMIT, NO_LIMIT)
        if best == codes.NONE:
            return
        done = rank_of(w, best)
        if best == first:
            first = np.int64(w.run[first].next)
        start_if_fits(w, best)


@lean
def _greedy_tree(w: World) -> None:
    s = w.s[0]
    o = w.o[0]
    index_new(w)
    rank = s.first if o.ordering == codes.BY_QUEUE and s.n_queued > 0 else 0
    held = all_held(w, codes.NONE)
    started = True
    while s.n_queued > 0:
        if started and grouped(w):
            note_reach(w, held, NO_LIMIT)
        free = most_free(w, held) if o.plain == 1 or grouped(w) else NO_LIMIT
        rank = next_fit(w, rank, free, NO_LIMIT, NO_LIMIT)
        if rank >= o.n_ranks:
            return
        started = start_if_fits(w, row_at(w, rank))
        rank += 1


@lean
def _greedy_urgent(w: World, new: int) -> None:
    """In the order of a score that grows with the wait; `new`: jobs of which one might start."""
    s = w.s[0]
    if s.changed == 0 and new <= 1 and w.o[0].shutdown != codes.ORACLE:
        j = first_new(w)
        if j != codes.NONE:
            start_if_fits(w, j)
        return
    held = all_held(w, codes.NONE)
    if grouped(w):
        note_reach(w, held, NO_LIMIT)
    n = front_of(w, 0, most_free(w, held), NO_LIMIT, NO_LIMIT)
    while True:
        free = most_free(w, held)
        n = next_urgent(w, 0, n, free, NO_LIMIT, NO_LIMIT)
        if n == 0:
            return
        if start_if_fits(w, w.front[0].row) and grouped(w):
            note_reach(w, held, NO_LIMIT)
        n = beyond_first(w, 0, n, free, NO_LIMIT, NO_LIMIT)
