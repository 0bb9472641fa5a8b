"""Nodes that are closed for a while: what runs on failing ones ends or is queued again, and no job may run into a reservation.

slurmctld does not foresee an outage or a drain: while it lasts its nodes are in no set of available ones. Reservations it knows beforehand
(https://slurm.schedmd.com/reservations.html): a job whose limit reaches into one may not have its nodes. "Jobs using that reservation can
use only those resources", from its begin to its end.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import release
from escala.kernel.slurm.arrays import count_task
from escala.kernel.slurm.limits import count_run
from escala.kernel.slurm.lists import remove_running
from escala.kernel.slurm.plan import reserve
from escala.kernel.slurm.shares import charge
from escala.kernel.slurm.tables import (
    ASKED,
    LAST_UPDATE,
    MOVED,
    NEXT_TURN,
    NONE,
    NOW,
    WORST,
    Closed,
    Rules,
    Scratch,
    Words,
    World,
    unix_s,
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
    jobs.found[j, 0] = 0
    jobs.lost[j] += s[NOW] - jobs.start[j]
    s[WORST] = max(s[WORST], jobs.again[j])


@lean
def reservation_at(closed: Closed, own: int, at_s: int) -> int:
    """The reservation of this name that lasts at a moment, NONE."""
    for c in range(closed.kind.size):
        if closed.name[c] == own and closed.begin_s[c] <= at_s < closed.end_s[c]:
            return c
    return NONE


@lean
def is_foreign(closed: Closed, c: int, own: int) -> bool:
    """Is this a reservation, and of another name?"""
    return closed.kind[c] == RESERVED and (own == NONE or closed.name[c] != own)


@lean
def take_reserved(closed: Closed, wanted: Words, first_s: int, end_s: int, own: int) -> bool:
    """Take nodes out of `wanted` that are reserved for others at some time in [first_s, end_s]; were there any?"""
    some = False
    for c in range(closed.kind.size):
        if is_foreign(closed, c, own) and closed.begin_s[c] <= end_s and closed.end_s[c] > first_s:
            for word in range(wanted.size):
                some |= wanted[word] & closed.nodes[c, word] != 0
                wanted[word] &= ~closed.nodes[c, word]
    return some


@lean
def take_used(closed: Closed, rules: Rules, wanted: Words, first_s: int, end_s: int, own: int, later_s: int) -> int:
    """The same for reservations that stand in no plan, since they have jobs of their own; later_s, or the earlier moment at which one of
    them ends that took nodes."""
    step = rules.bf_resolution
    for c in range(closed.kind.size):
        if closed.used[c] == 0 or not is_foreign(closed, c, own) or closed.begin_s[c] > end_s or closed.end_s[c] <= first_s:
            continue
        some = False
        for word in range(wanted.size):
            some |= wanted[word] & closed.nodes[c, word] != 0
            wanted[word] &= ~closed.nodes[c, word]
        until_s = -(-closed.end_s[c] // step) * step
        if some and (later_s == 0 or until_s < later_s):
            later_s = until_s
    return later_s


@lean
def runs_into(closed: Closed, nodes: Words, first_s: int, end_s: int, own: int) -> bool:
    """Is one of these nodes in such a reservation in [first_s, end_s]?"""
    found = 0
    for c in range(closed.kind.size):
        if closed.used[c] == 1 and is_foreign(closed, c, own) and closed.begin_s[c] <= end_s and closed.end_s[c] > first_s:
            for word in range(nodes.size):
                found |= nodes[word] & closed.nodes[c, word]
    return found != 0


@lean
def plan_reserved(closed: Closed, rules: Rules, now_s: int, size: int, room: Scratch) -> int:
    """Put the reservations that fall into the window of a backfill pass into its plan; the number of records used."""
    step = rules.bf_resolution
    for c in range(closed.kind.size):
        if closed.kind[c] != RESERVED or closed.used[c] == 1 or closed.end_s[c] <= now_s or closed.begin_s[c] >= now_s + rules.bf_window:
            continue
        for word in range(room.used.size):
            room.used[word] = closed.nodes[c, word]
        size = reserve(room, size, rules, closed.begin_s[c] // step * step, -(-closed.end_s[c] // step) * step)
    return size
