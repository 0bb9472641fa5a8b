"""A job starts, or ends."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import distribute, give, is_on, release
from escala.kernel.slurm.arrays import count_task
from escala.kernel.slurm.clock import forgotten_us, kill_beat, unix_s
from escala.kernel.slurm.closed import DOWN, break_off, reservation_at, turn
from escala.kernel.slurm.limits import count_end, count_gone, count_run, may_come, may_run, may_take
from escala.kernel.slurm.lists import add_running, dequeue, drop_end, enqueue, push_end, put_later, remove_running
from escala.kernel.slurm.names import count_namesake, is_over, lone_singleton
from escala.kernel.slurm.pace import goes_well, pace
from escala.kernel.slurm.preempt import REQUEUE
from escala.kernel.slurm.priority import first_priority
from escala.kernel.slurm.shares import charge
from escala.kernel.slurm.tables import (
    ASKED,
    BY_PASS,
    CLEANUP_US,
    COMING,
    ENDED,
    FAR,
    FIRST_LATER,
    HELD,
    LAST_UPDATE,
    LIMIT_S,
    MOVED,
    MULTIFACTOR,
    N_ENDED,
    N_FREED,
    N_LATER,
    N_RUNNING,
    NEVER,
    NEXT_TURN,
    NONE,
    NOW,
    RUNNING,
    SECOND,
    WAITING,
    World,
)

AT_START, AT_END = range(2)
STARTED, NO_ROOM, AT_LIMIT = range(3)
ANYHOW, WELL, BADLY = range(3)
"""How a job must have gone for one that depends on it."""
DELAY_S, DUE = 3, 4
MET = -2
"""Of the minutes that a follower waits: they are over."""


@lean
def start(w: World, record: int, count: int) -> int:
    """Start the record's job now on the chosen nodes: STARTED, or NO_ROOM where their memory does not suffice, or
    AT_LIMIT."""
    j = w.records.job[record]
    distribute(w.machine, w.jobs.shape, j, count, w.room)
    if w.rules.limited > 0 and not (may_run(w.limits, record) and may_take(w, record, count, False)):
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
    if w.machine.speed.shape[0] > 0:
        pace(w, j)
    jobs.finish[j] = s[NOW] + jobs.run[j]
    if jobs.cut[j] == 1:
        due = (jobs.end_s[j] + 60 * rules.over_time) * SECOND - rules.epoch_us
        kill_at(w, j, kill_beat(s, rules, due))
    jobs.inside[j] = w.records.inside[record]
    c = reservation_at(w, jobs.inside[j], now_s) if jobs.inside[j] != NONE else NONE
    # slurmctld looks for the end to have passed
    if c != NONE and w.closed.flex[c] == 0 and rules.over_reservation >= 0:
        due = (w.closed.end_s[c] + 60 * rules.over_reservation + 1) * SECOND - rules.epoch_us
        kill_at(w, j, kill_beat(s, rules, due))
    s[MOVED] = s[NOW]
    if rules.limited > 0:
        count_run(w, record, 1)
    count_task(w, j, 1)
    count_namesake(w, j, 1)
    push_end(lists, s[N_RUNNING], jobs.finish[j], j)
    add_running(jobs, lists, s, j)
    dequeue(w.records, lists, s, j)
    s[LAST_UPDATE] = now_s
    if jobs.again[j] == 0:
        free_followers(w, j, AT_START)
    else:
        _await_again(w, j)
    return STARTED


@lean
def kill_at(w: World, j: int, beat_us: int) -> None:
    """Running job j is killed at this moment, if it has not ended before."""
    if w.jobs.finish[j] > beat_us:
        w.jobs.finish[j] = beat_us + CLEANUP_US


@lean
def end(w: World, j: int) -> None:
    """Job j, which the heap has given, ends now. Whoever has had notice, and has run whole within the grace, has ended
    like others."""
    jobs, s = w.jobs, w.s
    if w.rules.preempt > 0 and w.preempting.notice_s[j] != NONE and jobs.finish[j] != jobs.start[j] + jobs.run[j]:
        again = w.preempting.mode[w.preempting.of_record[w.jobs.ran[j]]] == REQUEUE
        s[ASKED] += 1
        s[MOVED] = s[NOW]
        s[LAST_UPDATE] = unix_s(w.rules, s[NOW])
        _lose(w, j, again, s[NOW])
        return
    if w.rules.fair > 0 and w.rules.at_ends > 0:
        charge(w, j, unix_s(w.rules, s[NOW]))
    if w.rules.limited > 0:
        count_end(w, j)
    count_task(w, j, -1)
    count_namesake(w, j, -1)
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
        j = w.lists.running[i]
        if not is_on(w.jobs, w.allocated, j, w.closed.nodes[c]):
            i += 1
            continue
        drop_end(w.lists, w.s[N_RUNNING], j)
        _lose(w, j, w.closed.requeue[c] == 1, w.s[NOW] + CLEANUP_US)


@lean
def _lose(w: World, j: int, again: bool, cleared_us: int) -> None:
    """Running job j loses its nodes, and is queued again after a while, from the whole second on in which they have
    been cleared, or it is over."""
    break_off(w, j)
    count_namesake(w, j, -1)
    if again:
        later = unix_s(w.rules, cleared_us) * SECOND - w.rules.epoch_us + w.rules.again_us
        for k in range(w.jobs.after[j], w.jobs.after[j + 1]):
            if w.jobs.follower[k, DUE] != NONE and w.jobs.follower[k, DUE] != MET:
                w.jobs.follower[k, DUE] = FAR
        w.jobs.state[j] = HELD
        w.jobs.eligible[j] = later
        put_later(w.lists, w.s, later, j)
        _free_singleton(w, j)
        return
    w.jobs.finish[j] = w.s[NOW]
    w.jobs.state[j] = ENDED
    w.jobs.again[j] = -1
    w.s[N_ENDED] += 1
    if w.rules.limited > 0:
        count_gone(w, j)
    free_followers(w, j, AT_END)


@lean
def come_back(w: World) -> None:
    """The first job that has waited to be queued again is, or the minutes are over that one waits behind the start of
    another."""
    j = w.lists.later_job[w.s[FIRST_LATER]]
    w.s[FIRST_LATER] = (w.s[FIRST_LATER] + 1) % w.lists.later_job.size
    w.s[N_LATER] -= 1
    if j >= 0:
        w.s[MOVED] = w.s[NOW]
        _queue(w, j)
        return
    k = -1 - j
    due = w.jobs.follower[k, DUE]
    if due == MET:
        return
    if due <= w.s[NOW]:
        w.jobs.follower[k, DUE] = MET
        begin(w, w.jobs.follower[k, 0])
    elif due == FAR:
        w.jobs.follower[k, DUE] = NONE
    else:
        put_later(w.lists, w.s, due, j)


@lean
def _await(w: World, k: int) -> None:
    """Follower k of a job that starts now waits some minutes more, in whole seconds. It is in the table of those that
    wait once only."""
    follower = w.jobs.follower
    listed = follower[k, DUE] != NONE
    follower[k, DUE] = (unix_s(w.rules, w.s[NOW]) + follower[k, DELAY_S]) * SECOND - w.rules.epoch_us
    if not listed:
        put_later(w.lists, w.s, follower[k, DUE], -1 - k)


@lean
def _await_again(w: World, j: int) -> None:
    """Job j starts once more: minutes behind its start count anew, where they were not over when it lost its nodes."""
    for k in range(w.jobs.after[j], w.jobs.after[j + 1]):
        if w.jobs.follower[k, DELAY_S] > 0 and w.jobs.follower[k, DUE] != MET:
            _await(w, k)


@lean
def _forget_minutes(w: World, j: int, forgotten: int) -> None:
    """Nobody waits behind the start of a job that slurmctld has forgotten. (test_job_dependency in job_scheduler.c)"""
    for k in range(w.jobs.after[j], w.jobs.after[j + 1]):
        due = w.jobs.follower[k, DUE]
        if due != NONE and due != MET and due > forgotten:
            w.jobs.follower[k, DUE] = forgotten
            put_later(w.lists, w.s, forgotten, -1 - k)


@lean
def begin(w: World, j: int) -> None:
    """The begin time of job j has come. Nobody is asked to look: it starts at the next pass that there is."""
    w.s[MOVED] = w.s[NOW]
    w.jobs.left[j] -= 1
    if w.jobs.left[j] == 0 and w.jobs.state[j] == HELD:
        w.jobs.eligible[j] = w.s[NOW]
        _queue(w, j)


@lean
def submit(w: World, j: int) -> None:
    """Job j comes: into the queue, or held until its begin time and until those are done that it depends on, or it is
    refused."""
    jobs, s = w.jobs, w.s
    if jobs.state[j] != COMING:
        if w.rules.limited > 0 and jobs.state[j] == NEVER and jobs.record[j] < jobs.record[j + 1]:
            may_come(w, j)  # what it depends on has gone otherwise: it is submitted for ever
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
        _free_singleton(w, j)
    else:
        _queue(w, j)


@lean
def _queue(w: World, j: int) -> None:
    w.jobs.state[j] = WAITING
    for record in range(w.jobs.record[j], w.jobs.record[j + 1]):
        if w.rules.by_priority == MULTIFACTOR:
            first_priority(w, record)
        enqueue(w.records, w.lists, w.s, record)


@lean
def _free_singleton(w: World, j: int) -> None:
    """The one that waited until this job, and all others of its name, did not run or wait before it."""
    follower = lone_singleton(w, j)
    if follower == NONE:
        return
    w.jobs.left[follower] -= 1
    if w.jobs.left[follower] == 0:
        w.jobs.eligible[follower] = w.s[NOW]
        w.s[ASKED] += 1
        _queue(w, follower)


@lean
def free_followers(w: World, j: int, when: int) -> None:
    """Jobs that waited for this one."""
    jobs, s = w.jobs, w.s
    forgotten = FAR
    if when == AT_END:
        is_over(w, j)
        _free_singleton(w, j)
        if jobs.after[j] < jobs.after[j + 1]:
            forgotten = forgotten_us(s, w.rules, jobs.finish[j]) if jobs.state[j] == ENDED else FAR
            _forget_minutes(w, j, forgotten)
    for k in range(jobs.after[j], jobs.after[j + 1]):
        follower = jobs.follower[k, 0]
        if jobs.follower[k, 1] != when:
            continue
        if jobs.follower[k, DELAY_S] > 0 and jobs.state[j] == RUNNING:
            _await(w, k)
            continue
        wanted = jobs.follower[k, 2] if jobs.submit[follower] <= forgotten else ANYHOW
        whole = jobs.inside[j] == NONE or jobs.finish[j] - jobs.start[j] == jobs.run[j]
        well = jobs.state[j] == ENDED and jobs.again[j] >= 0 and goes_well(w, j) and whole
        if (wanted == WELL and not well) or (wanted == BADLY and well):
            if jobs.state[follower] == COMING or jobs.state[follower] == HELD:
                jobs.state[follower] = NEVER
                s[N_ENDED] += 1
            continue
        jobs.left[follower] -= 1
        if jobs.left[follower] == 0 and jobs.state[follower] == HELD:
            jobs.eligible[follower] = s[NOW]
            s[ASKED] += 1
            if when == AT_START:
                w.lists.freed[s[N_FREED]] = follower
                s[N_FREED] += 1
            else:
                _queue(w, follower)


@lean
def queue_freed(w: World) -> None:
    """Jobs that waited for the start of others: a pass sees the queue as it was when it began."""
    for k in range(w.s[N_FREED]):
        _queue(w, w.lists.freed[k])
    w.s[N_FREED] = 0
