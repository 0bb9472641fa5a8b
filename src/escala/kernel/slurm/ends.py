"""When a job could start, by the ends that running jobs plan."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import copy_free
from escala.kernel.slurm.choose import pick
from escala.kernel.slurm.fit import least_cpus, offer, offers
from escala.kernel.slurm.preempt import leave_future, may_preempt
from escala.kernel.slurm.tables import N_RUNNING, NONE, STAMP, Ints, Rules, World

WINDOW_S = 30
MOST_AT_ONCE = 200


@lean
def late_end(rules: Rules, end_s: int, now_s: int) -> int:
    """When a job that is past its limit may end."""
    return max(end_s + rules.kill_wait + rules.over_time * 60, now_s + 1)


@lean
def leaves(w: World, r: int, j: int, mask: Ints, how: int, least: int) -> tuple[bool, int, int]:
    """Running job r leaves its nodes of `mask` in w.future; (was it on one, more nodes with an offer for job j, more
    CPUs offered)."""
    machine, future, allocated, room = w.machine, w.future, w.allocated, w.room
    touched = False
    nodes, cpus = 0, 0
    for at in range(w.jobs.first[r], w.jobs.last[r]):
        n = allocated.node[at]
        if (mask[n >> 6] >> (n & 63)) & 1 == 0:
            continue
        touched = True
        future.cpus[n] += allocated.cpus[at]
        future.memory[n] += allocated.memory[at]
        future.jobs[n] -= 1
        for k in range(future.gpus.shape[1]):
            future.gpus[n, k] += allocated.gpus[at, k]
        before = room.base[n]
        room.base[n] = offer(machine, future, w.jobs.shape, j, n, how, least, room)
        nodes += int(room.base[n] > 0) - int(before > 0)
        cpus += room.base[n] - before
    return touched, nodes, cpus


@lean
def _how_later(w: World, how: int) -> int:
    """How nodes are chosen for a start to come: with bf_busy_nodes those first that are in use now."""
    if w.rules.bf_busy_nodes == 0 or how & 3 > 0:
        return how
    for n in range(w.room.busy.size):
        w.room.busy[n] = int(w.free.jobs[n] > 0)
    return how + 2


@lean
def _following(w: World, at: int, preempts: bool) -> int:
    """The end of the next running job from place `at` on that has not left already, NONE."""
    for i in range(at, w.s[N_RUNNING]):
        r = w.lists.running[i]
        if not preempts or w.preempting.left[r] != w.s[STAMP]:
            return w.jobs.end_s[r]
    return NONE


@lean
def first_start(w: World, record: int, mask: Ints, how: int, only_now: bool, now_s: int) -> tuple[int, int, bool]:
    """(start, nodes, preempts): the second at which the record's job could start on nodes of `mask`, how many it gets
    (in room.node), and whether others lose them now; (NONE, 0, False): never, or not now where only that is asked.

    Those that it may preempt leave first. The others leave in groups: the first holds all that end up to 30 s after the
    next multiple of 30 s of unix time; the windows then double (or grow by bf_window_linear). A group counts as gone at
    its last end.
    """
    jobs, lists, rules, room = w.jobs, w.lists, w.rules, w.room
    j = w.records.job[record]
    least = least_cpus(jobs.shape, j)
    count, total = offers(w.machine, w.free, jobs.shape, j, mask, how, room)
    found = pick(w.machine, jobs.shape, j, count, total, how, room)
    if found > 0:
        return now_s, found, False
    preempts = rules.preempt > 0 and may_preempt(w.preempting, record)
    if only_now and not preempts:
        return NONE, 0, False
    copy_free(w.free, w.future)
    if preempts:
        preempts = leave_future(w, record) > 0
        count, total = offers(w.machine, w.future, jobs.shape, j, mask, how, room)
        found = pick(w.machine, jobs.shape, j, count, total, how, room)
        if found > 0:
            return now_s, found, preempts
        if only_now:
            return NONE, 0, False
    window, anchor, at, running = WINDOW_S, 0, 0, w.s[N_RUNNING]
    later = _how_later(w, how)
    while at < running:
        last, following, removed = NONE, NONE, 0
        while at < running:
            r = lists.running[at]
            at += 1
            if preempts and w.preempting.left[r] == w.s[STAMP]:
                continue
            touched, more, cpus = leaves(w, r, j, mask, how, least)
            if not touched:
                continue
            count += more
            total += cpus
            last = jobs.end_s[r]
            if anchor == 0:
                anchor = last + WINDOW_S - last % WINDOW_S
            following = _following(w, at, preempts)
            removed += 1
            if following == NONE or following > anchor + window or removed > MOST_AT_ONCE + 1:
                break
        if last == NONE:
            break
        if removed > MOST_AT_ONCE + 1 and following != NONE and following <= anchor + window:
            continue
        while True:
            window += rules.bf_window_linear if rules.bf_window_linear > 0 else window
            if following == NONE or following <= anchor + window:
                break
        found = pick(w.machine, jobs.shape, j, count, total, later, room)
        if found > 0:
            return (last if last > now_s else late_end(rules, last, now_s)), found, False
    return NONE, 0, False
