"""The event pass: jobs in order of priority; a partition whose first job cannot start is closed, with its nodes."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import all_free, is_on
from escala.kernel.slurm.arrays import is_skipped, task_began
from escala.kernel.slurm.choose import choose
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.closed import next_reservation, put_inner, reservation_at, take_reserved
from escala.kernel.slurm.limits import may_ask, may_run
from escala.kernel.slurm.lists import records_before
from escala.kernel.slurm.plan import count_bits, covers
from escala.kernel.slurm.preempt import NO_WAY, OVER_LIMIT, preempt_for
from escala.kernel.slurm.start import AT_LIMIT, NO_ROOM, STARTED, start
from escala.kernel.slurm.tables import (
    BY_PASS,
    EVENTS,
    EXCLUSIVE,
    LIMIT_S,
    MAX_NODES,
    MIN_CORES,
    MIN_NODES,
    N_QUEUE,
    N_RUNNING,
    NONE,
    NOW,
    PASSES,
    REQ_NODES,
    WAITING,
    Free,
    Ints,
    Jobs,
    Machine,
    Records,
    Rules,
    Scratch,
    Words,
    World,
)

TOOK = 3
"""Beside what becomes of a start: it has taken nodes from others."""


@lean
def way_of(machine: Machine, rules: Rules, jobs: Jobs, j: int, part: int) -> int:
    """How nodes are chosen for job j in a partition; see `choose`."""
    how = 4 if rules.by_memory > 0 else 0
    if rules.least_loaded > 0 or machine.loaded[part] > 0:
        return how + 1
    if rules.serial_at_end > 0 and jobs.shape[j, MIN_CORES] == 1 and jobs.shape[j, REQ_NODES] == 1:
        return how + 3
    return how


@lean
def is_awaited(w: World, record: int) -> bool:
    """Is the record's reservation, which its job asks for, not there yet, or over? Then it is in no queue
    (job_independent, job_mgr.c)."""
    own = w.records.inside[record]
    return own != NONE and w.records.drawn[record] == 0 and reservation_at(w, own, unix_s(w.rules, w.s[NOW])) == NONE


@lean
def _passes_by(rules: Rules, jobs: Jobs, records: Records, s: Ints, record: int) -> bool:
    """May a job that cannot start be passed by others, since it is young or of low priority?"""
    j = records.job[record]
    waited = unix_s(rules, s[NOW]) - unix_s(rules, jobs.eligible[j])
    young = rules.bf_min_age_reserve > 0 and waited < rules.bf_min_age_reserve
    return young or (rules.bf_min_prio_reserve > 0 and records.priority[record] < rules.bf_min_prio_reserve)


@lean
def waits_for_nodes(w: World, j: int) -> bool:
    """Has job j taken nodes from others in this pass, by another partition?"""
    return w.rules.preempt > 0 and w.preempting.tried[j] == w.s[EVENTS] + w.s[PASSES]


@lean
def _open(machine: Machine, room: Scratch) -> int:
    """Open all partitions; how many there are."""
    parts = machine.part.shape[0]
    for p in range(parts):
        room.parts[p, 0] = 0  # 1: closed
        room.parts[p, 1] = 0  # jobs looked at
    for word in range(room.used.size):
        room.used[word] = 0  # nodes of closed partitions
    return parts


@lean
def event_pass(w: World, full: bool) -> bool:
    """Start what can start; True if it has come to the end of the queue. full: without the limit of
    default_queue_depth."""
    machine, free, jobs, records = w.machine, w.free, w.jobs, w.records
    lists, s, rules, room = w.lists, w.s, w.rules, w.room
    s[BY_PASS] = 0
    limited = rules.limited > 0 and rules.limit_stop == 0
    open_parts = _open(machine, room)
    i, depth, started = 0, 0, 0
    while i < s[N_QUEUE] and open_parts > 0:
        record = lists.queue[i]
        j, p = records.job[record], records.part[record]
        i += 1
        if is_awaited(w, record) or _is_too_large(w, record):
            continue
        if rules.sched_max_job_start > 0 and started >= rules.sched_max_job_start:
            return False
        if jobs.array[j] != NONE and not waits_for_nodes(w, j) and is_skipped(w, record):
            continue
        room.parts[p, 1] += 1
        if rules.partition_depth > 0 and room.parts[p, 1] > rules.partition_depth:
            continue
        depth += 1
        if not full and depth - 1 > rules.queue_depth:
            return False
        if _is_closed(w, record) or jobs.state[j] != WAITING or waits_for_nodes(w, j):
            continue
        if limited and not may_run(w.limits, record):
            continue
        for word in range(room.wanted.size):
            room.wanted[word] = machine.mask[records.mask[record], word] & ~room.used[word]
        if records.inside[record] != NONE and _few_left(w, record):
            open_parts -= _close(machine, room, p)
            continue
        if w.closed.kind.size > 0 and _held_by_reservation(w, record):
            continue
        how = way_of(machine, rules, jobs, j, p) + (8 if put_inner(w, record, unix_s(rules, s[NOW])) else 0)
        count = choose(machine, free, jobs.shape, j, room.wanted, how, room)
        if count > 0:
            earlier = records_before(jobs, records, lists, i - 1, j)
            found = start(w, record, count)
            if found == STARTED:
                task_began(w, record)
                started += 1
                i -= 1 + earlier
                continue
        else:
            found = _taking(w, record, how)
        if limited and (found == AT_LIMIT or (found == NO_ROOM and _asks_too_much(w, record, how))):
            continue
        if _passes_by(rules, jobs, records, s, record) or (found == NO_ROOM and _lacks_nodes(w, record, how)):
            continue
        if records.inside[record] != NONE:
            w.closed.failed[records.inside[record]] = s[EVENTS]
        else:
            open_parts -= _close(machine, room, p)
    return True


@lean
def _taking(w: World, record: int, how: int) -> int:
    """Let the record's job take nodes from others: TOOK, NO_ROOM where that is of no use, or AT_LIMIT."""
    found = preempt_for(w, record, how) if w.rules.preempt > 0 else NO_WAY
    return NO_ROOM if found == NO_WAY else AT_LIMIT if found == OVER_LIMIT else TOOK


@lean
def _asks_too_much(w: World, record: int, how: int) -> bool:
    """Is a job that finds no nodes over a limit by what it asks for? How many nodes it would get slurmctld sees by
    those of room.wanted, as if all were idle, where enough of them may serve (an exclusive job: are idle), or else by
    all of its partition."""
    machine, shape, room, j = w.machine, w.jobs.shape, w.room, w.records.job[record]
    count, found = shape[j, MIN_NODES], 0
    if shape[j, MAX_NODES] > count or shape[j, EXCLUSIVE] == 1:
        all_free(machine, w.future)
        for word in range(room.there.size):
            room.there[word] = machine.mask[w.records.mask[record], word]
        now_s = unix_s(w.rules, w.s[NOW])
        take_reserved(w.closed, room.there, now_s, now_s + shape[j, LIMIT_S], w.records.inside[record])
        serving = _idle(w.free, room.wanted) if shape[j, EXCLUSIVE] == 1 else count_bits(room.wanted)
        if serving >= count:
            found = choose(machine, w.future, shape, j, room.wanted, how, room)
        if found == 0 and count_bits(room.there) >= count:
            found = choose(machine, w.future, shape, j, room.there, how, room)
        count = max(found, count)
    return not may_ask(w, record, count, found > 0)


@lean
def _lacks_nodes(w: World, record: int, how: int) -> bool:
    """Could the record's job not run on the nodes of room.wanted if they were idle? Then slurmctld calls them not
    available (or reserved), not busy, unless an exclusive job has some of them, and closes nothing. But a partition
    with fewer nodes left than the job asks for is closed. (job_scheduler.c; ESLURM_NODE_NOT_AVAIL in
    node_scheduler.c)"""
    machine, room, shape, j = w.machine, w.room, w.jobs.shape, w.records.job[record]
    mask, some = machine.mask[w.records.mask[record]], w.closed.kind.size > 0
    if _few_left(w, record) or covers(mask, room.wanted):
        return False
    all_free(machine, w.future)
    if choose(machine, w.future, shape, j, room.wanted, how, room) > 0:
        return False
    if some:
        for word in range(room.there.size):
            room.there[word] = mask[word]
        now_s = unix_s(w.rules, w.s[NOW])
        take_reserved(w.closed, room.there, now_s, now_s + shape[j, LIMIT_S], w.records.inside[record])
        if choose(machine, w.future, shape, j, room.there, how, room) == 0:
            return True
    return w.rules.preempt > 0 or not _held_alone(w, j)


@lean
def _few_left(w: World, record: int) -> bool:
    """Are fewer nodes left in the record's partition than its job asks for?"""
    for word in range(w.room.there.size):
        w.room.there[word] = w.machine.part[w.records.part[record], word] & ~w.room.used[word]
        if w.closed.kind.size > 0:
            w.room.there[word] &= ~w.closed.gone[word]
    return count_bits(w.room.there) < w.jobs.shape[w.records.job[record], MIN_NODES]


@lean
def _is_too_large(w: World, record: int) -> bool:
    """Has the partition fewer nodes of the record's reservation than its job asks for? An event pass leaves it to
    backfill, also where it may have others (_job_runnable_test3 in job_scheduler.c)."""
    own = w.records.inside[record]
    c = next_reservation(w, own, unix_s(w.rules, w.s[NOW])) if own != NONE else NONE
    if c == NONE:
        return False
    for word in range(w.room.there.size):
        w.room.there[word] = w.machine.part[w.records.part[record], word] & w.closed.nodes[c, word]
    return count_bits(w.room.there) < w.jobs.shape[w.records.job[record], MIN_NODES]


@lean
def _held_alone(w: World, j: int) -> bool:
    """Does an exclusive job run on a node of room.wanted, or any job, where job j is exclusive?"""
    alone = w.jobs.shape[j, EXCLUSIVE] == 1
    for i in range(w.s[N_RUNNING]):
        r = w.lists.running[i]
        if (alone or w.jobs.shape[r, EXCLUSIVE] == 1) and is_on(w.jobs, w.allocated, r, w.room.wanted):
            return True
    return False


@lean
def _idle(free: Free, nodes: Words) -> int:
    """How many nodes of a set run no job?"""
    count = 0
    for n in range(free.jobs.size):
        if (nodes[n >> 6] >> (n & 63)) & 1 == 1 and free.jobs[n] == 0:
            count += 1
    return count


@lean
def _is_closed(w: World, record: int) -> bool:
    """Has a job of the same reservation found no room in this pass, or, without one, a job of the same partition?"""
    own = w.records.inside[record]
    return w.room.parts[w.records.part[record], 0] == 1 if own == NONE else w.closed.failed[own] == w.s[EVENTS]


@lean
def _held_by_reservation(w: World, record: int) -> bool:
    """Take closed nodes out of room.wanted. Are too few left only because of reservations, or is it not the time of its
    own? Then others may pass the job; but one that is drawn by a reservation to come keeps them off its nodes
    (ESLURM_RESERVATION_NOT_USABLE in job_scheduler.c)."""
    j, own = w.records.job[record], w.records.inside[record]
    now_s, least = unix_s(w.rules, w.s[NOW]), w.jobs.shape[j, MIN_NODES]
    c = reservation_at(w, own, now_s) if own != NONE else NONE
    if own != NONE and c == NONE:
        c = next_reservation(w, own, now_s)
        if c != NONE:
            for word in range(w.room.used.size):
                w.room.used[word] |= w.closed.nodes[c, word]
        return True
    for word in range(w.room.wanted.size):
        w.room.wanted[word] &= ~w.closed.gone[word]
        if c != NONE and w.closed.flex[c] == 0:
            w.room.wanted[word] &= w.closed.nodes[c, word]
    enough, wanted = count_bits(w.room.wanted) >= least, w.room.wanted
    return (
        take_reserved(w.closed, wanted, now_s, now_s + w.jobs.shape[j, LIMIT_S], own)
        and enough
        and count_bits(wanted) < least
    )


@lean
def _close(machine: Machine, room: Scratch, p: int) -> int:
    """No other job of this partition starts in this pass, and none on its nodes; 1 where it was open."""
    opened = 1 - room.parts[p, 0]
    room.parts[p, 0] = 1
    for word in range(room.used.size):
        room.used[word] |= machine.part[p, word]
    return opened
