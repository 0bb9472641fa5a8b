"""When a job could start, by the ends that running jobs plan."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.choose import pick
from escala.kernel.slurm.fit import least_cpus, offer, offers
from escala.kernel.slurm.tables import N_RUNNING, NONE, Free, Ints, Rules, World

WINDOW_S = 30
MOST_AT_ONCE = 200


@lean
def copy_free(free: Free, to: Free) -> None:
    """What is free now, to be played with."""
    for n in range(free.cpus.size):
        to.cpus[n] = free.cpus[n]
        to.memory[n] = free.memory[n]
        to.jobs[n] = free.jobs[n]
        for k in range(free.gpus.shape[1]):
            to.gpus[n, k] = free.gpus[n, k]


@lean
def late_end(rules: Rules, end_s: int, now_s: int) -> int:
    """When a job that is past its limit may end."""
    return max(end_s + rules.kill_wait + rules.over_time * 60, now_s + 1)


@lean
def leaves(w: World, r: int, j: int, mask: Ints, memory: bool, least: int) -> tuple[bool, int, int]:
    """Running job r leaves its nodes of `mask` in w.future; (was it on one, more nodes with an offer for job j, more CPUs offered)."""
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
        room.base[n] = offer(machine, future, w.jobs.shape, j, n, memory, least, room)
        nodes += int(room.base[n] > 0) - int(before > 0)
        cpus += room.base[n] - before
    return touched, nodes, cpus


@lean
def first_start(w: World, j: int, mask: Ints, how: int, now_s: int) -> tuple[int, int]:
    """(start, nodes): the second at which job j could start on nodes of `mask`, and how many it gets (in room.node); (NONE, 0): never.

    Running jobs leave in groups. The first group holds all that end up to 30 s after the next multiple of 30 s of unix time; the windows
    then double (or grow by bf_window_linear). A group counts as gone at its last end.
    """
    jobs, lists, rules, room = w.jobs, w.lists, w.rules, w.room
    memory, least = how & 4 > 0, least_cpus(jobs.shape, j)
    count, total = offers(w.machine, w.free, jobs.shape, j, mask, memory, room)
    found = pick(w.machine, jobs.shape, j, count, total, how, room)
    if found > 0:
        return now_s, found
    copy_free(w.free, w.future)
    window, anchor = WINDOW_S, 0
    at, running = 0, w.s[N_RUNNING]
    busy = 2 if rules.bf_busy_nodes > 0 else how & 3
    while at < running:
        last, following, removed = NONE, NONE, 0
        while at < running:
            r = lists.running[at]
            at += 1
            touched, more, cpus = leaves(w, r, j, mask, memory, least)
            if not touched:
                continue
            count += more
            total += cpus
            last = jobs.end_s[r]
            if anchor == 0:
                anchor = last + WINDOW_S - last % WINDOW_S
            following = jobs.end_s[lists.running[at]] if at < running else NONE
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
        found = pick(w.machine, jobs.shape, j, count, total, (how & 4) + busy, room)
        if found > 0:
            return (last if last > now_s else late_end(rules, last, now_s)), found
    return NONE, 0
