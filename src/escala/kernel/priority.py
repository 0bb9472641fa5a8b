"""EASY with a queue in order of priority: the first in the scheduler's order has the reservation, and the others pass
in that order, or in another.

A job that has waited the guard stands in front of all that have not, the oldest first (`queue.note_age`).
"""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.kernel import codes
from escala.kernel.easy import backfill_urgent, pass_head, window_of
from escala.kernel.fit import start_if_fits
from escala.kernel.queue import SHORT_QUEUE, index_new, least_of_all, least_rank, next_fit, rank_of, row_at
from escala.kernel.reach import NO_LIMIT
from escala.kernel.reservation import all_held, most_extra, most_free, reserve_head
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of


@lean
def easy_priority(w: World, frontier: Any) -> None:
    """The first in order starts while it fits, else it gets a reservation; the others are tried once, in order.

    With nothing released since the last decision and the same head only the new job can start: the reservation stands,
    and time alone makes passing it harder.
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
    if _only_new(w) and (s.new_from == s.next_job or rank_of(w, s.new_from) > rank_of(w, s.head)):
        if s.new_from < s.next_job:
            pass_head(w, s.new_from)
        return
    j = _first_by_rank(w)
    s.head = codes.NONE
    while j != codes.NONE and start_if_fits(w, j):
        j = _behind(w, rank_of(w, j), NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if j == codes.NONE:
        return
    reserve_head(w, j, frontier)
    held = all_held(w, j)
    window = window_of(w)
    while s.n_queued > 1:
        free = most_free(w, held)
        j = _behind(w, rank_of(w, j), free, window, most_extra(w, held)) if free > 0 else codes.NONE
        if j == codes.NONE:
            return
        pass_head(w, j)


@lean
def _first_by_rank(w: World) -> int:
    """The queued job of the least rank: where one has the reservation, that one or one that came since."""
    s = w.s[0]
    first = s.head
    if first == codes.NONE:
        return least_of_all(w)
    for j in range(s.new_from, s.next_job):
        if rank_of(w, j) < rank_of(w, first):
            first = j
    return first


@lean
def _behind(w: World, beyond: int, free: int, window: int, extra: int) -> int:
    """The queued job of the least rank > beyond with cores <= free and (walltime <= window or cores <= extra); NONE if
    there is none."""
    if w.s[0].n_queued <= SHORT_QUEUE:
        return least_rank(w, w.s[0].first, beyond, free, window, extra)
    index_new(w)
    rank = next_fit(w, beyond + 1, free, window, extra)
    return row_at(w, rank) if rank < w.o[0].n_ranks else codes.NONE


@lean
def _by_urgency(w: World, frontier: Any) -> None:
    s = w.s[0]
    n = front_of(w, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if _only_new(w) and w.front[0].row == s.head:
        if s.new_from < s.next_job:
            pass_head(w, s.new_from)
        return
    s.head = codes.NONE
    while n > 0 and start_if_fits(w, w.front[0].row):
        n = beyond_first(w, 0, n, NO_LIMIT, NO_LIMIT, NO_LIMIT)
    if n == 0:
        return
    reserve_head(w, w.front[0].row, frontier)
    held = all_held(w, s.head)
    window = window_of(w)
    free, extra = most_free(w, held), most_extra(w, held)
    if w.o[0].passing == codes.BY_QUEUE:
        backfill_urgent(w, 0, beyond_first(w, 0, n, free, window, extra), window, held)
    else:
        backfill_urgent(w, 1, front_of(w, 1, free, window, extra), window, held)
