"""EASY backfilling, and the reference engine's fast variant of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import earlier
from escala.kernel.fit import fits_now, may_wake, on_at, start_if_fits
from escala.kernel.jobs import start
from escala.kernel.lanes import behind, first_of, is_mine
from escala.kernel.placement import readiness
from escala.kernel.plans import planned_fine
from escala.kernel.queue import SHORT_QUEUE, index_new, next_fit, rank_of, row_at
from escala.kernel.reach import grouped, note_reach
from escala.kernel.reservation import all_held, extra_on, most_extra, most_free, reserve_head
from escala.kernel.state import World
from escala.kernel.urgency import beyond_first, front_of, next_urgent


@inlined
def ends_in_time(w: World, j: int, ready: int) -> bool:
    """Would job `j`, with all its nodes on at `ready`, end by the head's reservation?"""
    s = w.s[0]
    end = ready + w.job[j].walltime + w.o[0].margin_us
    if end != s.shadow_us or w.o[0].exact == 0:
        return end <= s.shadow_us
    return not earlier(s.shadow_us, s.shadow_fine, end, planned_fine(w, j, ready))


@inlined
def window_of(w: World) -> int:
    """Walltime of a job that started now and ended by the head's reservation, us."""
    return w.s[0].shadow_us - w.s[0].now - w.o[0].margin_us


@lean
def pass_head(w: World, j: int) -> None:
    """Start job `j` if it fits now and leaves the head's reservation alone."""
    s = w.s[0]
    cores = np.int64(w.job[j].cores)
    waking = may_wake(w, j)
    free = s.free_on + s.free_boot + s.free_off if waking else s.free_on
    if cores > free:
        return
    ready = s.now if cores <= s.free_on else readiness(w, cores, False)
    if ends_in_time(w, j, ready):
        start(w, j, False, waking)
    elif cores <= (s.extra if waking else extra_on(w)):
        if w.o[0].head == codes.LATEST_RELEASED:
            start(w, j, False, waking)
            s.extra -= cores
        else:
            start(w, j, True, waking)


@lean
def easy(w: World, frontier: Any) -> None:
    """The head starts while it fits, else it gets a reservation; the others are tried once, in the scheduler's order.

    With nothing released since the last decision only the new jobs can start: the reservation stands, and time alone
    makes passing it harder.
    """
    s = w.s[0]
    by_queue = w.o[0].ordering == codes.BY_QUEUE
    if s.changed == 0 and s.head != codes.NONE and (by_queue or s.next_job - s.new_from <= 1):
        for j in range(s.new_from, s.next_job):
            pass_head(w, j)
        return
    s.head = codes.NONE
    while s.n_queued > 0 and start_if_fits(w, s.first):
        pass
    if s.n_queued == 0:
        return
    reserve_head(w, s.first, frontier)
    held = all_held(w, s.first)
    if s.n_queued == 1 or most_free(w, held) == 0:
        return
    if by_queue and s.n_queued <= SHORT_QUEUE:
        j = np.int64(w.run[s.first].next)
        while j != codes.NONE:
            after = np.int64(w.run[j].next)
            pass_head(w, j)
            j = after
    elif w.o[0].ordering in codes.CHANGING:
        window = window_of(w)
        backfill_urgent(w, 0, front_of(w, 0, most_free(w, held), window, most_extra(w, held)), window, held)
    else:
        _backfill_tree(w, held)


@lean
def _backfill_tree(w: World, held: bool) -> None:
    """Try the others in order, looking only at those that may pass. held: see `reservation.all_held`."""
    s = w.s[0]
    o = w.o[0]
    index_new(w)
    rank = rank_of(w, s.head) + 1 if o.ordering == codes.BY_QUEUE else 0
    window = window_of(w)
    while True:
        rank = next_fit(w, rank, most_free(w, held), window, most_extra(w, held))
        if rank >= o.n_ranks:
            return
        j = row_at(w, rank)
        if j != s.head:
            pass_head(w, j)
        rank += 1


@lean
def backfill_urgent(w: World, k: int, n: int, window: int, held: bool) -> None:
    """Try the others in the order `k`, from a front of size n, looking only at those that may pass. window: time to the
    reservation, us; held: see `reservation.all_held`."""
    while True:
        free = most_free(w, held)
        n = next_urgent(w, k, n, free, window, most_extra(w, held))
        if n == 0:
            return
        j = w.front[0].row
        if j != w.s[0].head:
            pass_head(w, j)
        n = beyond_first(w, k, n, free, window, most_extra(w, held))


@lean
def _pass_fast(w: World, j: int) -> None:
    """Start job `j` if it fits now and ends by the head's time."""
    if fits_now(w, j) and ends_in_time(w, j, on_at(w, j)):
        start(w, j, False, may_wake(w, j))


@lean
def head_without_time(w: World) -> bool:
    """Jobs in front start while they fit; is the one that does not a new head? One that was head before keeps its
    time."""
    s = w.s[0]
    if s.changed == 1 and s.head != codes.NONE:
        head = s.head
        s.head = codes.NONE
        if not start_if_fits(w, head):
            s.head = head
    if s.head != codes.NONE:
        return False
    while first_of(w) != codes.NONE and start_if_fits(w, first_of(w)):
        pass
    return first_of(w) != codes.NONE


@lean
def pass_fast(w: World) -> None:
    """The others start that fit now and end by the head's time; without a release only the new ones are tried."""
    s = w.s[0]
    if s.changed == 0:
        for j in range(s.new_from, s.next_job):
            if w.run[j].state == codes.QUEUED and j != s.head and is_mine(w, j):
                _pass_fast(w, j)
    elif s.n_queued <= SHORT_QUEUE:
        j = behind(w, s.head)
        while j != codes.NONE:
            after = behind(w, j)
            _pass_fast(w, j)
            j = after
    else:
        _pass_fast_by_tree(w)


@lean
def easy_fast(w: World, frontier: Any) -> None:
    """The head's time is found once, by count, when it becomes head; no core is reserved.

    Order in a decision: the head; the queue (the next head is the first that does not fit); the new jobs, one by one.
    Without a release only the new jobs.
    """
    if head_without_time(w):
        reserve_head(w, w.s[0].first, frontier)
    if w.s[0].head != codes.NONE:
        pass_fast(w)


@lean
def _pass_fast_by_tree(w: World) -> None:
    """Try the jobs behind the head, looking only at those that may end in time."""
    s = w.s[0]
    index_new(w)
    window = window_of(w)
    if grouped(w):
        note_reach(w, False, codes.NONE)
    j = next_fit(w, s.head + 1, s.free_on + s.free_boot + s.free_off, window, codes.NONE)
    while j < w.o[0].n_jobs:
        if is_mine(w, j):
            _pass_fast(w, j)
            if grouped(w) and w.run[j].state != codes.QUEUED:
                note_reach(w, False, codes.NONE)
        j = next_fit(w, j + 1, s.free_on + s.free_boot + s.free_off, window, codes.NONE)
