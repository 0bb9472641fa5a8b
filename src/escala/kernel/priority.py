"""EASY with a queue in order of priority: the first in the scheduler's order has the reservation, and the others pass in that order.

A job that has waited the guard stands in front of all that have not, the oldest first (`queue.note_age`).
"""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.kernel import codes
from escala.kernel.easy import pass_head
from escala.kernel.fit import start_if_fits
from escala.kernel.queue import NO_LIMIT, index_new, next_fit, rank_of, row_at
from escala.kernel.reservation import reserve_head
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, next_urgent


@lean
def easy_priority(w: World, frontier: Any) -> None:
    """The first in order starts while it fits, else it gets a reservation; the others are tried once, in order.

    With nothing released since the last decision and the same head only the new job can start: the reservation stands, and time alone
    makes passing it harder.
    """
    if w.o[0].ordering in codes.CHANGING:
        _by_urgency(w, frontier)
    else:
        _by_rank(w, frontier)


@lean
def _only_new(w: World) -> bool:
    """May at most the one new job start, if the head is the same?"""
    s = w.s[0]
    return s.changed == 0 and s.head != codes.NONE and s.next_job - s.new_from <= 1


@lean
def _by_rank(w: World, frontier: Any) -> None:
    s = w.s[0]
    o = w.o[0]
    if _only_new(w) and (s.new_from == s.next_job or rank_of(w, s.new_from) > rank_of(w, s.head)):
        if s.new_from < s.next_job:
            pass_head(w, s.new_from)
        return
    s.head = codes.NONE
    index_new(w)
    rank = next_fit(w, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    while rank < o.n_ranks and start_if_fits(w, row_at(w, rank)):
        rank = next_fit(w, rank + 1, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if rank >= o.n_ranks:
        return
    reserve_head(w, row_at(w, rank), frontier)
    window = s.shadow_us - s.now - o.margin_us
    while s.n_queued > 1:
        free = s.free_on + s.free_boot + s.free_off
        rank = next_fit(w, rank + 1, free, window, s.extra) if free > 0 else o.n_ranks
        if rank >= o.n_ranks:
            return
        pass_head(w, row_at(w, rank))


@lean
def _by_urgency(w: World, frontier: Any) -> None:
    s = w.s[0]
    n = front_of(w, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if _only_new(w) and w.front[0].row == s.head:
        if s.new_from < s.next_job:
            pass_head(w, s.new_from)
        return
    s.head = codes.NONE
    while n > 0 and start_if_fits(w, w.front[0].row):
        n = beyond_first(w, n, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if n == 0:
        return
    reserve_head(w, w.front[0].row, frontier)
    window = s.shadow_us - s.now - w.o[0].margin_us
    n = beyond_first(w, n, s.free_on + s.free_boot + s.free_off, window, s.extra)
    while True:
        free = s.free_on + s.free_boot + s.free_off
        n = next_urgent(w, n, free, window, s.extra)
        if n == 0:
            return
        pass_head(w, w.front[0].row)
        n = beyond_first(w, n, free, window, s.extra)
