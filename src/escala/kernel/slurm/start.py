"""A job starts, or ends."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import distribute, give, release
from escala.kernel.slurm.closed import DOWN, break_off, struck, turn
from escala.kernel.slurm.limits import count_end, count_gone, count_run, may_come, may_run, may_take
from escala.kernel.slurm.lists import add_running, dequeue, enqueue, push_end, remove_running
from escala.kernel.slurm.priority import first_priority
from escala.kernel.slurm.shares import charge
from escala.kernel.slurm.tables import (
    ASKED,
    BY_PASS,
    COMING,
    ENDED,
    HELD,
    LAST_UPDATE,
    LIMIT_S,
    MOVED,
    N_ENDED,
    N_RUNNING,
    NEVER,
    NEXT_TURN,
    NOW,
    RUNNING,
    SECOND,
    WAITING,
    Rules,
    World,
    unix_s,
)

AT_START, AT_END = range(2)
STARTED, NO_ROOM, AT_LIMIT = range(3)


@lean
def _killed_us(rules: Rules, end_s: int, now: int) -> int:
    """The first beat of 30 s, counted from slurmctld's start, at which a job is past its limit."""
    due = (end_s + 60 * rules.over_time) * SECOND - rules.epoch_us
    beat = 30 * SECOND
    return max(rules.started_us + -((rules.started_us - due) // beat) * beat, now + 1)


@lean
def start(w: World, record: int, count: int) -> int:
    """Start the record's job now on the chosen nodes: STARTED, or NO_ROOM where their memory does not suffice, or AT_LIMIT."""
    j = w.records.job[record]
    distribute(w.machine, w.jobs.shape, j, count, w.room)
    if w.rules.limited > 0 and not (may_run(w.limits, record) and may_take(w, record, count)):
        return AT_LIMIT
    if not give(w, j, count):
        return NO_ROOM
    jobs, lists, s, rules = w.jobs, w.lists, w.s, w.rules
    jobs.state[j] = RUNNING
    jobs.start[j] = s[NOW]
    jobs.by[j] = s[BY_PASS]
    jobs.ran[j] = record
    now_s = unix_s(rules, s[NOW])
    jobs.end_s[j] = now_s + jobs.shape[j, LIMIT_S]
    jobs.finish[j] = s[NOW] + jobs.run[j]
    if jobs.cut[j] == 1:
        jobs.finish[j] = min(jobs.finish[j], _killed_us(rules, jobs.end_s[j], s[NOW]))
    s[MOVED] = s[NOW]
    if rules.limited > 0:
        count_run(w, record, 1)
    push_end(lists, s[N_RUNNING], jobs.finish[j], j)
    add_running(jobs, lists, s, j)
    dequeue(w.records, lists, s, j)
    s[LAST_UPDATE] = now_s
    if w.closed.again.size == 0 or w.closed.again[j] == 0:
        free_followers(w, j, AT_START)
    return STARTED


@lean
def end(w: World, j: int) -> None:
    """Job j, which the heap has given, ends now."""
    jobs, s = w.jobs, w.s
    if w.rules.fair > 0:
        charge(w, j, unix_s(w.rules, s[NOW]))
    if w.rules.limited > 0:
        count_end(w, j)
    release(w.free, jobs, w.allocated, j)
    jobs.state[j] = ENDED
    s[MOVED] = s[NOW]
    remove_running(jobs, w.lists, s, j)
    s[N_ENDED] += 1
    s[ASKED] += 1
    s[LAST_UPDATE] = unix_s(w.rules, s[NOW])
    free_followers(w, j, AT_END)


@lean
def fail(w: World) -> None:
    """A closure begins or ends; the jobs on nodes that fail are queued again, or are over."""
    c, opens = w.closed.moment[w.s[NEXT_TURN], 1], w.closed.moment[w.s[NEXT_TURN], 2] == 1
    turn(w)
    if opens or w.closed.kind[c] != DOWN:
        return
    i = 0
    while i < w.s[N_RUNNING]:
        if not struck(w, i, c):
            i += 1
            continue
        j = w.lists.running[i]
        break_off(w, j)
        if w.closed.requeue[c] == 1:
            _queue(w, j)
            continue
        w.jobs.finish[j] = w.s[NOW]
        w.jobs.state[j] = ENDED
        w.closed.again[j] = -1
        w.s[N_ENDED] += 1
        if w.rules.limited > 0:
            count_gone(w, j)
        free_followers(w, j, AT_END)


@lean
def submit(w: World, j: int) -> None:
    """Job j comes: into the queue, or held until those are done that it depends on, or it is refused."""
    jobs, s = w.jobs, w.s
    if jobs.state[j] != COMING:
        return
    if w.rules.limited > 0 and not may_come(w, j):
        jobs.state[j] = NEVER
        s[N_ENDED] += 1
        free_followers(w, j, AT_START)
        free_followers(w, j, AT_END)
        return
    s[MOVED] = s[NOW]
    s[ASKED] += 1
    s[LAST_UPDATE] = unix_s(w.rules, s[NOW])
    if jobs.left[j] > 0:
        jobs.state[j] = HELD
        return
    _queue(w, j)


@lean
def _queue(w: World, j: int) -> None:
    w.jobs.state[j] = WAITING
    for record in range(w.jobs.record[j], w.jobs.record[j + 1]):
        if w.rules.fair > 0:
            first_priority(w, record)
        enqueue(w.machine, w.records, w.lists, w.s, record)


@lean
def free_followers(w: World, j: int, when: int) -> None:
    """Jobs that waited for this one."""
    jobs, s = w.jobs, w.s
    for k in range(jobs.after[j], jobs.after[j + 1]):
        follower = jobs.follower[k, 0]
        if jobs.follower[k, 1] != when:
            continue
        if jobs.follower[k, 2] == 1:
            if jobs.state[follower] == COMING or jobs.state[follower] == HELD:
                jobs.state[follower] = NEVER
                s[N_ENDED] += 1
            continue
        jobs.left[follower] -= 1
        if jobs.left[follower] == 0 and jobs.state[follower] == HELD:
            _queue(w, follower)
            s[ASKED] += 1
