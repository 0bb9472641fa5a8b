"""Nodes that are closed for a while: what runs on failing ones ends or is queued again, and no job may run into a
reservation.

slurmctld does not foresee an outage or a drain: while it lasts its nodes are in no set of available ones. Reservations
it knows beforehand (https://slurm.schedmd.com/reservations.html): a job whose limit reaches into one may not have its
nodes. "Jobs using that reservation can use only those resources", from its begin to its end.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import release
from escala.kernel.slurm.arrays import count_task
from escala.kernel.slurm.clock import kill_beat, unix_s
from escala.kernel.slurm.limits import count_run
from escala.kernel.slurm.lists import remove_running
from escala.kernel.slurm.shares import charge
from escala.kernel.slurm.tables import (
    ASKED,
    LAST_UPDATE,
    MOVED,
    NEXT_TURN,
    NONE,
    NOW,
    SECOND,
    WORST,
    Closed,
    Rules,
    Words,
    World,
)

DOWN, DRAIN, RESERVED = range(3)


@lean
def turn(w: World) -> None:
    """The next closure begins or ends."""
    closed, s = w.closed, w.s
    c, opens = closed.moment[s[NEXT_TURN], 1], closed.moment[s[NEXT_TURN], 2] == 1
    s[NEXT_TURN] += 1
    s[ASKED] += 1
    s[MOVED] = s[NOW]
    s[LAST_UPDATE] = unix_s(w.rules, s[NOW])
    if closed.kind[c] == RESERVED:
        if opens:
            closed.gone_us[c] = kill_beat(s, w.rules, (closed.end_s[c] + 1) * SECOND - w.rules.epoch_us)
        return
    for word in range(closed.gone.size):
        closed.gone[word] = 0
    closed.on[c] = 0 if opens else 1
    for other in range(closed.kind.size):
        if closed.on[other] == 1:
            for word in range(closed.gone.size):
                closed.gone[word] |= closed.nodes[other, word]


@lean
def break_off(w: World, j: int) -> None:
    """Running job j, no longer in the heap, loses its nodes now: what it held is free, and its use is charged."""
    jobs, s = w.jobs, w.s
    if w.rules.fair > 0 and w.rules.at_ends > 0:
        charge(w, j, unix_s(w.rules, s[NOW]))
    if w.rules.limited > 0:
        count_run(w, jobs.ran[j], -1)
    count_task(w, j, -1)
    if w.rules.preempt > 0:
        w.preempting.notice_s[j] = NONE
    release(w.free, jobs, w.allocated, j)
    remove_running(jobs, w.lists, s, j)
    jobs.again[j] += 1
    if w.records.drawn[jobs.ran[j]] == 1:
        jobs.inside[j] = NONE
    jobs.found[j, 0] = 0
    jobs.lost[j] += s[NOW] - jobs.start[j]
    s[WORST] = max(s[WORST], jobs.again[j])


@lean
def reservation_at(w: World, own: int, at_s: int) -> int:
    """The reservation of this name that its jobs may use at a moment, NONE: one that lasts, or a flexible one that is
    there."""
    found = next_reservation(w, own, at_s)
    return found if found != NONE and (w.closed.begin_s[found] <= at_s or w.closed.flex[found] == 1) else NONE


@lean
def next_reservation(w: World, own: int, at_s: int) -> int:
    """The first reservation of this name that is not over at a moment, NONE. A flexible one is there until slurmctld
    takes it away, at the beat behind its end (job_resv_check in reservation.c)."""
    closed, found = w.closed, NONE
    for c in range(closed.kind.size):
        there = w.s[NOW] < closed.gone_us[c] if closed.flex[c] == 1 else at_s <= closed.end_s[c]
        if closed.name[c] == own and there and (found == NONE or closed.begin_s[c] < closed.begin_s[found]):
            found = c
    return found


@lean
def put_inner(w: World, record: int, now_s: int) -> bool:
    """Is the record of a flexible reservation? Then its nodes, in room.inner, stand before all others
    (_set_sched_weight in node_scheduler.c)."""
    if w.closed.kind.size == 0 or w.records.inside[record] == NONE:
        return False
    c = reservation_at(w, w.records.inside[record], now_s)
    if c == NONE or w.closed.flex[c] == 0:
        return False
    for word in range(w.room.inner.size):
        w.room.inner[word] = w.closed.nodes[c, word]
    return True


@lean
def is_foreign(closed: Closed, c: int, own: int) -> bool:
    """Is this a reservation, and of another name?"""
    return closed.kind[c] == RESERVED and (own == NONE or closed.name[c] != own)


@lean
def take_reserved(closed: Closed, wanted: Words, first_s: int, end_s: int, own: int) -> bool:
    """Take nodes out of `wanted` that are reserved for others at some time in [first_s, end_s); were there any?"""
    some = False
    for c in range(closed.kind.size):
        if is_foreign(closed, c, own) and closed.begin_s[c] < end_s and closed.end_s[c] > first_s:
            for word in range(wanted.size):
                some |= wanted[word] & closed.nodes[c, word] != 0
                wanted[word] &= ~closed.nodes[c, word]
    return some


@lean
def is_in_the_way(closed: Closed, nodes: Words, first_s: int, end_s: int, own: int) -> bool:
    """Is some of these nodes reserved for others at some time in [first_s, end_s)?"""
    found = 0
    for c in range(closed.kind.size):
        if is_foreign(closed, c, own) and closed.begin_s[c] < end_s and closed.end_s[c] > first_s:
            for word in range(nodes.size):
                found |= nodes[word] & closed.nodes[c, word]
    return found != 0


@lean
def behind_reservation(closed: Closed, rules: Rules, at_s: int) -> int:
    """The second behind the first end of a reservation at or behind a moment, in whole steps; 0 where there is none.
    (find_resv_end in reservation.c)"""
    first, step = 0, rules.bf_resolution
    for c in range(closed.kind.size):
        if closed.kind[c] == RESERVED and closed.end_s[c] >= at_s and (first == 0 or closed.end_s[c] < first):
            first = closed.end_s[c]
    return -(-first // step) * step + 1 if first > 0 else 0
