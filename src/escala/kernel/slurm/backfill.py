"""The backfill pass: every job that is tested, in order of priority, starts now or gets a reservation that later ones
respect."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import distribute
from escala.kernel.slurm.arrays import is_skipped, task_began, task_planned
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.closed import behind_reservation, is_in_the_way, put_inner, reservation_at, take_reserved
from escala.kernel.slurm.ends import first_start
from escala.kernel.slurm.event_pass import is_awaited, waits_for_nodes, way_of
from escala.kernel.slurm.limits import gives_no_reservation, may_run, may_take
from escala.kernel.slurm.lists import records_before
from escala.kernel.slurm.plan import count_bits, free_through, new_plan, overlaps, reserve
from escala.kernel.slurm.preempt import OVER_LIMIT, preempt_for
from escala.kernel.slurm.start import NO_ROOM, start
from escala.kernel.slurm.start import STARTED as BEGUN
from escala.kernel.slurm.tables import (
    BY_PASS,
    EXCLUSIVE,
    LIMIT_S,
    MIN_NODES,
    N_QUEUE,
    NONE,
    NOW,
    SECOND,
    TESTED,
    USER,
    WAITING,
    Jobs,
    Records,
    Rules,
    Scratch,
    World,
)

NEXT, STOP, STARTED = range(3)
MOST_TRIES = 100_000


@lean
def _begin(rules: Rules, room: Scratch) -> None:
    """Counts of users and partitions at the start of a pass."""
    if rules.bf_max_job_user > 0:
        room.users[:] = 0
    room.parts[:, 1:] = 0
    if rules.bf_max_job_user_part > 0:
        room.both[:] = 0


@lean
def _over_limits(rules: Rules, room: Scratch, user: int, part: int, counts: bool) -> bool:
    """Has enough been tested for this user or partition? If not, it counts, but not what a magnetic reservation
    draws."""
    if rules.bf_max_job_user_part > 0 and room.both[user, part] >= rules.bf_max_job_user_part:
        return True
    if rules.bf_max_job_part > 0 and room.parts[part, 1] >= rules.bf_max_job_part:
        return True
    if rules.bf_max_job_user > 0 and room.users[user] >= rules.bf_max_job_user:
        return True
    if not counts:
        return False
    if rules.bf_max_job_user_part > 0:
        room.both[user, part] += 1
    room.parts[part, 1] += 1
    if rules.bf_max_job_user > 0:
        room.users[user] += 1
    return False


@lean
def _now_only(rules: Rules, jobs: Jobs, records: Records, room: Scratch, record: int, now_s: int) -> bool:
    """May the job start now, but get no reservation?"""
    j = records.job[record]
    if rules.bf_min_prio_reserve > 0 and records.priority[record] < rules.bf_min_prio_reserve:
        return True
    if rules.bf_min_age_reserve > 0 and now_s - unix_s(rules, jobs.eligible[j]) < rules.bf_min_age_reserve:
        return True
    return rules.bf_part_reserve > 0 and room.parts[records.part[record], 2] >= rules.bf_part_reserve


@lean
def _most_tests(rules: Rules, quiet_us: int) -> int:
    """How many jobs a pass tests at most. Where a test takes time, it sleeps each bf_yield_interval for bf_yield_sleep,
    goes on no longer than bf_max_time, and without bf_continue ends with the first sleep in which something has
    happened. quiet_us: so long nothing does."""
    if rules.bf_test_us == 0:
        return rules.bf_max_job_test
    at_once = -(-rules.bf_yield_us // rules.bf_test_us)
    stretch = at_once * rules.bf_test_us + rules.bf_sleep_us
    most, time_us = 0, 0
    while most < rules.bf_max_job_test and time_us < rules.bf_max_time * SECOND:
        left = -(-(rules.bf_max_time * SECOND - time_us) // rules.bf_test_us)
        most += min(at_once, left)
        time_us += stretch
        if rules.bf_continue == 0 and quiet_us <= time_us:
            break
    return min(most, rules.bf_max_job_test)


@lean
def lasts_us(rules: Rules, tested: int) -> int:
    """How long a pass takes that has tested so many jobs."""
    if rules.bf_test_us == 0 or tested == 0:
        return 0
    at_once = -(-rules.bf_yield_us // rules.bf_test_us)
    return tested * rules.bf_test_us + (tested - 1) // at_once * rules.bf_sleep_us


@lean
def backfill_pass(w: World, next_us: int) -> int:
    """One pass, now; how many jobs it starts. next_us: when something happens next."""
    jobs, records, lists, s, rules, room = w.jobs, w.records, w.lists, w.s, w.rules, w.room
    now_s = unix_s(rules, s[NOW])
    s[BY_PASS] = 1
    _begin(rules, room)
    size = new_plan(rules, now_s, room)
    s[TESTED] = 0
    started, i = 0, 0
    most = _most_tests(rules, next_us - s[NOW])
    while i < s[N_QUEUE] and s[TESTED] < most:
        record = lists.queue[i]
        j = records.job[record]
        i += 1
        if jobs.state[j] != WAITING or waits_for_nodes(w, j) or is_awaited(w, record):
            continue
        if rules.limited > 0 and rules.limit_stop == 0 and not may_run(w.limits, record):
            continue
        if jobs.array[j] != NONE and is_skipped(w, record):
            continue
        only_now = _now_only(rules, jobs, records, room, record, now_s)
        if _over_limits(rules, room, jobs.shape[j, USER], records.part[record], records.drawn[record] == 0):
            continue
        own = records.inside[record]
        if own != NONE and reservation_at(w, own, now_s) == NONE:
            continue
        earlier = records_before(jobs, records, lists, i - 1, j)
        found, size = _test(w, record, only_now, now_s, size)
        if found == STARTED:
            task_began(w, record)
            started += 1
            i -= 1 + earlier
            if rules.bf_max_job_start > 0 and started >= rules.bf_max_job_start:
                break
        elif found == STOP:
            break
    return started


@lean
def _usable(w: World, record: int, start_s: int, end_s: int) -> int:
    """Nodes of the record that are not reserved in [start, end] into room.wanted; the first later moment that may be
    better, or 0."""
    nodes, room, rules = w.machine.mask[w.records.mask[record]], w.room, w.rules
    crossed = False
    if w.closed.kind.size > 0:
        for word in range(nodes.size):
            room.there[word] = nodes[word]
        crossed = _take_closed(w, record, start_s, end_s)
        nodes = room.there
    for word in range(nodes.size):
        room.wanted[word] = nodes[word]
    later = free_through(room, nodes, start_s, end_s)
    behind_s = behind_reservation(w.closed, rules, start_s) if crossed else 0
    ahead = 0 < behind_s < unix_s(rules, w.s[NOW]) + rules.bf_window
    return behind_s if ahead and (later == 0 or behind_s < later) else later


@lean
def _take_closed(w: World, record: int, start_s: int, end_s: int) -> bool:
    """Take closed nodes out of room.there, and those outside of its own reservation. Is one of others in the way, even
    if only on nodes of its partition that it does not need? A plan does not hold what is reserved: it is asked for the
    time of the first start alone. (job_test_resv in reservation.c)"""
    closed, room, own = w.closed, w.room, w.records.inside[record]
    part = w.machine.part[w.records.part[record]]
    for word in range(room.there.size):
        room.there[word] &= ~closed.gone[word]
    if own == NONE:
        take_reserved(closed, room.there, start_s, end_s, own)
        return is_in_the_way(closed, part, start_s, end_s, own)
    c = reservation_at(w, own, unix_s(w.rules, w.s[NOW]))
    if c == NONE or closed.flex[c] == 0:
        c = reservation_at(w, own, start_s)
        for word in range(room.there.size):
            room.there[word] &= closed.nodes[c, word] if c != NONE else 0
        crossed = c != NONE and is_in_the_way(closed, closed.nodes[c], start_s, end_s, own)
    else:
        crossed = is_in_the_way(closed, w.machine.everywhere, start_s, end_s, own)
    take_reserved(closed, room.there, start_s, end_s, own)
    return crossed


@lean
def _test(w: World, record: int, only_now: bool, now_s: int, size: int) -> tuple[int, int]:
    """(what became of it, records of the plan): the job starts now, or is reserved, or neither."""
    machine, jobs, records, s, rules, room = w.machine, w.jobs, w.records, w.s, w.rules, w.room
    j, part = records.job[record], records.part[record]
    limit = jobs.shape[j, LIMIT_S]
    if rules.preempt > 0 and w.preempting.short[w.preempting.of_record[record]] == 1:
        limit = min(limit, 60)
    own = records.inside[record]
    how = way_of(machine, rules, jobs, j, part)
    if put_inner(w, record, now_s):
        how += 8
    later = now_s
    counted = records.drawn[record] == 1
    for _ in range(MOST_TRIES):
        asked_s = later
        later = _usable(w, record, asked_s, max(asked_s, now_s) + limit)
        if limit < jobs.shape[j, LIMIT_S] and w.closed.kind.size > 0:
            take_reserved(w.closed, room.wanted, asked_s, max(asked_s, now_s) + jobs.shape[j, LIMIT_S], own)
        if count_bits(room.wanted) < jobs.shape[j, MIN_NODES]:
            if later > 0 and not only_now:
                continue
            return NEXT, size
        if not counted:
            s[TESTED] += 1
            counted = True
        begin_s, count, preempts = first_start(w, record, room.wanted, how, only_now, now_s)
        if count == 0:
            if later > 0 and not only_now:
                continue
            return NEXT, size
        begin_s = max(begin_s, asked_s)
        if jobs.shape[j, EXCLUSIVE] == 1:
            _note_cpus(w, j, count)
        if begin_s <= now_s and preempts:
            _mark(room, count)
            if preempt_for(w, record, how) == OVER_LIMIT and rules.limit_stop == 0:
                return NEXT, size
            return _reserve(w, record, size, begin_s, limit)
        if begin_s <= now_s:
            became = start(w, record, count)
            if became != NO_ROOM:
                return (STARTED if became == BEGUN else NEXT), size
        elif rules.limited > 0:
            distribute(machine, jobs.shape, j, count, room)
        within = rules.limited == 0 or may_take(w, record, count, True) or rules.limit_stop > 0
        if only_now or (rules.limited > 0 and gives_no_reservation(w.limits, record)):
            return NEXT, size
        if later > 0 and begin_s > later:
            continue
        if begin_s > now_s + rules.bf_window:
            return NEXT, size
        _mark(room, count)
        step = rules.bf_resolution
        if begin_s > now_s and overlaps(room, begin_s // step * step, (begin_s + limit) // step * step):
            later = begin_s
            continue
        return _reserve(w, record, size, begin_s, limit) if within else (NEXT, size)
    return NEXT, size


@lean
def _reserve(w: World, record: int, size: int, begin_s: int, limit: int) -> tuple[int, int]:
    """The nodes of room.used are the record's in the plan, but those that a magnetic reservation gives need none;
    (NEXT, or STOP where there is no place for it, records of the plan)."""
    rules, room = w.rules, w.room
    drawn = w.records.drawn[record] == 1
    if size >= rules.bf_node_space_size and not drawn:
        return STOP, size
    step = rules.bf_resolution
    room.parts[w.records.part[record], 2] += 1
    task_planned(w, record)
    if drawn:
        return NEXT, size
    return NEXT, reserve(room, size, rules, begin_s // step * step, (begin_s + limit) // step * step)


@lean
def _note_cpus(w: World, j: int, count: int) -> None:
    """The CPUs of the nodes that were found for exclusive job j: it counts as so large from now on."""
    w.jobs.found[j, 0] = 0
    for i in range(count):
        w.jobs.found[j, 0] += w.machine.cpus[w.room.node[i]]


@lean
def _mark(room: Scratch, count: int) -> None:
    """The chosen nodes as a set, in room.used."""
    for w in range(room.used.size):
        room.used[w] = 0
    for i in range(count):
        n = room.node[i]
        room.used[n >> 6] |= 1 << (n & 63)
