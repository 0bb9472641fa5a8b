"""Preemption: a job that finds no room takes nodes from running jobs that it may preempt, and starts there in a later
pass.

Which of them go: they are taken out one after the other, those of the lowest QOS or tier and the smallest first, until
there is room; the order is then mended and it is tried again (PreemptParameters reorder_count, strict_order). Those
that are on the chosen nodes get notice, and lose their nodes at once or after their grace. Sources:
https://slurm.schedmd.com/preempt.html, and slurmctld's preempt.c, node_scheduler.c and cons_tres/job_test.c.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import copy_free, distribute, enough_memory, is_on, release
from escala.kernel.slurm.choose import choose
from escala.kernel.slurm.clock import kill_beat, unix_s
from escala.kernel.slurm.limits import may_run, may_take
from escala.kernel.slurm.lists import add_running, move_end, remove_running
from escala.kernel.slurm.order import BY_NUMBER, before, sort
from escala.kernel.slurm.tables import (
    CLEANUP_US,
    EVENTS,
    N_QUEUE,
    N_RUNNING,
    NONE,
    NOW,
    PASSES,
    SECOND,
    STAMP,
    Preempting,
    World,
)

BY_TIER, BY_QOS = 1, 2
STAYS, CANCEL, REQUEUE = range(3)
NEVER_MAY, ALWAYS, NOT_LOWER, HIGHER = range(4)
PREEMPTED, NO_WAY, OVER_LIMIT = range(3)
MOST = 0xFFFF
FIRST_OF_ALL = 99_999


@lean
def may_preempt(p: Preempting, record: int) -> bool:
    """Is there a class from which this record may take nodes?"""
    c = p.of_record[record]
    some = 0
    for other in range(p.may.shape[1]):
        some += p.may[c, other]
    return some > 0


@lean
def _may_go(w: World, record: int, r: int, now_s: int) -> bool:
    """May running job r lose its nodes to this record?"""
    p, records = w.preempting, w.records
    c = p.of_record[w.jobs.ran[r]]
    how = p.may[p.of_record[record], c]
    if how == NEVER_MAY or p.mode[c] == STAYS or w.jobs.finish[r] <= w.s[NOW] or _is_killed(w, r):
        return False
    mine, other = records.priority[record], records.priority[w.jobs.ran[r]]
    if (how == NOT_LOWER and mine < other) or (how == HIGHER and mine <= other) or other > w.rules.min_exempt_priority:
        return False
    if now_s < unix_s(w.rules, w.jobs.start[r]) + p.exempt_s[c]:
        return False
    return is_on(w.jobs, w.allocated, r, w.machine.part[records.part[record]])


@lean
def _is_killed(w: World, r: int) -> bool:
    """Has running job r been killed, and its nodes are not clear yet?"""
    return w.jobs.finish[r] <= w.s[NOW] + CLEANUP_US and w.jobs.finish[r] != w.jobs.start[r] + w.jobs.run[r]


@lean
def _stands_before(w: World, a: int, b: int) -> bool:
    """Does record a stand before record b: it may take nodes from such a job, or it does so by `before` and not the
    other way round?"""
    p, records = w.preempting, w.records
    mine, other = records.priority[a], records.priority[b]
    there, back = p.may[p.of_record[a], p.of_record[b]], p.may[p.of_record[b], p.of_record[a]]
    if there == ALWAYS or (there == HIGHER and mine > other):
        return True
    if back == ALWAYS or (back == HIGHER and other > mine):
        return False
    return before(records, a, b)


@lean
def _merge(w: World, low: int, middle: int, high: int) -> None:
    """Two sorted parts of the queue into one."""
    queue, other = w.lists.queue, w.preempting.order
    i, k = low, middle
    for at in range(low, high):
        if i < middle and (k >= high or not _stands_before(w, queue[k], queue[i])):
            other[at] = queue[i]
            i += 1
        else:
            other[at] = queue[k]
            k += 1
    for at in range(low, high):
        queue[at] = other[at]


@lean
def sort_by_preemption(w: World) -> None:
    """The queue anew, as slurmctld does in each pass: who may preempt another stands before it, whatever their tiers
    and priorities.

    With these that may be a circle; so it is sorted from the jobs' order on by halves, the first the smaller, as the C
    library does it.
    """
    n, queue = w.s[N_QUEUE], w.lists.queue
    sort(w, queue, n, BY_NUMBER)
    deep = 0
    while 1 << deep < n:
        deep += 1
    for depth in range(deep - 1, -1, -1):
        for part in range(1 << depth):
            low, size = 0, n
            for bit in range(depth - 1, -1, -1):
                half = size // 2
                if (part >> bit) & 1 == 1:
                    low += half
                    size -= half
                else:
                    size = half
            if size > 1:
                _merge(w, low, low + size // 2, low + size)


@lean
def find_candidates(w: World, record: int) -> int:
    """Running jobs that may go, in the order in which they go, into `listed`; how many."""
    p, jobs = w.preempting, w.jobs
    now_s = unix_s(w.rules, w.s[NOW])
    found = 0
    for i in range(w.s[N_RUNNING]):
        r = w.lists.running[i]
        if not _may_go(w, record, r, now_s):
            continue
        if w.rules.youngest > 0:
            key = -unix_s(w.rules, jobs.start[r])
        else:
            key = (min(p.first[p.of_record[w.jobs.ran[r]]], MOST) << 16) + min(jobs.last[r] - jobs.first[r], MOST)
        k = found
        while k > 0 and (p.key[k - 1] > key or (p.key[k - 1] == key and p.listed[k - 1] > r)):
            p.key[k] = p.key[k - 1]
            p.listed[k] = p.listed[k - 1]
            k -= 1
        p.key[k] = key
        p.listed[k] = r
        found += 1
    return found


@lean
def leave_future(w: World, record: int) -> int:
    """Take all that may go out of w.future, with a stamp in `left`; how many."""
    many = find_candidates(w, record)
    w.s[STAMP] += 1
    for k in range(many):
        r = w.preempting.listed[k]
        w.preempting.left[r] = w.s[STAMP]
        release(w.future, w.jobs, w.allocated, r)
    return many


@lean
def preempt_for(w: World, record: int, how: int) -> int:
    """Take nodes of room.wanted for the record's job: PREEMPTED, also where it has done so a moment ago; NO_WAY where
    there would be no room even then; or OVER_LIMIT."""
    p, room, jobs, rules = w.preempting, w.room, w.jobs, w.rules
    j = w.records.job[record]
    many = find_candidates(w, record) if may_preempt(p, record) else 0
    rounds = 0
    while True:
        copy_free(w.free, w.future)
        count, gone = 0, 0
        while gone < many and count == 0:
            release(w.future, jobs, w.allocated, p.listed[gone])
            gone += 1
            count = choose(w.machine, w.future, jobs.shape, j, room.wanted, how, room)
        if count == 0:
            return NO_WAY
        if rounds > rules.reorder or many <= rounds + 1:
            break
        rounds += 1
        _reorder(w, gone, many, count)
    distribute(w.machine, jobs.shape, j, count, room)
    if rules.limited > 0 and not (may_run(w.limits, record) and may_take(w, record, count, False)):
        return OVER_LIMIT
    if not enough_memory(w, w.future, j, count):
        return NO_WAY
    _take_nodes(w, j, gone, count)
    return PREEMPTED


@lean
def _take_nodes(w: World, j: int, gone: int, count: int) -> None:
    """Give notice to those of the first `gone` that are on the chosen nodes, unless it was done a moment ago."""
    p = w.preempting
    now_s = unix_s(w.rules, w.s[NOW])
    if p.begun_s[j] != NONE and p.begun_s[j] > now_s - w.rules.retry_s:
        return
    p.tried[j] = w.s[EVENTS] + w.s[PASSES]
    _mark_taken(w, count)
    for k in range(gone):
        if _on_taken(w, p.listed[k]) > 0:
            p.begun_s[j] = now_s
            _give_notice(w, p.listed[k], now_s)


@lean
def _give_notice(w: World, r: int, now_s: int) -> None:
    """Job r has to go: now, or at the first beat behind its grace, or now if that is over."""
    p, jobs, rules, s = w.preempting, w.jobs, w.rules, w.s
    finish, end_s = jobs.finish[r], jobs.end_s[r]
    grace_s = p.grace_s[p.of_record[w.jobs.ran[r]]]
    if p.notice_s[r] == NONE and grace_s > 0:
        end_s = min(end_s, now_s + grace_s)
        beat = kill_beat(s, rules, end_s * SECOND - rules.epoch_us)
    elif p.notice_s[r] == NONE or now_s >= end_s:
        end_s = now_s + 1
        beat = s[NOW]
    else:
        return
    if finish > beat:
        finish = beat + CLEANUP_US
    if p.notice_s[r] == NONE:
        p.notice_s[r] = now_s
    remove_running(jobs, w.lists, s, r)
    jobs.end_s[r] = end_s
    jobs.finish[r] = finish
    add_running(jobs, w.lists, s, r)
    move_end(w.lists, s[N_RUNNING], finish, r)


@lean
def _reorder(w: World, gone: int, many: int, count: int) -> None:
    """The last to go is the first now; the others that went, by how many of the chosen nodes they are on."""
    p = w.preempting
    last = p.listed[gone - 1]
    if w.rules.strict == 0:
        _mark_taken(w, count)
        for k in range(many):
            p.key[k] = 0 if k >= gone else FIRST_OF_ALL if k == gone - 1 else _on_taken(w, p.listed[k])
        for k in range(1, many):
            key, r, i = p.key[k], p.listed[k], k
            while i > 0 and p.key[i - 1] < key:
                p.key[i] = p.key[i - 1]
                p.listed[i] = p.listed[i - 1]
                i -= 1
            p.key[i] = key
            p.listed[i] = r
        return
    for k in range(gone - 1, 0, -1):
        p.listed[k] = p.listed[k - 1]
    p.listed[0] = last


@lean
def _mark_taken(w: World, count: int) -> None:
    """The chosen nodes in room.taken, which `choose` fills anew."""
    w.room.taken[:] = 0
    for i in range(count):
        w.room.taken[w.room.node[i]] = 1


@lean
def _on_taken(w: World, r: int) -> int:
    """On how many of them job r is."""
    found = 0
    for at in range(w.jobs.first[r], w.jobs.last[r]):
        found += w.room.taken[w.allocated.node[at]]
    return found
