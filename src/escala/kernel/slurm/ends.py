"""When a job could start, by the ends that running jobs plan."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.allocate import release, touches
from escala.kernel.slurm.choose import choose
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
def first_start(w: World, j: int, mask: Ints, how: int, now_s: int) -> tuple[int, int]:
    """(start, nodes): the second at which job j could start on nodes of `mask`, and how many it gets (in room.node); (NONE, 0): never.

    Running jobs leave in groups. The first group holds all that end up to 30 s after the next multiple of 30 s of unix time; the windows
    then double (or grow by bf_window_linear). A group counts as gone at its last end.
    """
    free, future, jobs, allocated, lists, rules = w.free, w.future, w.jobs, w.allocated, w.lists, w.rules
    machine, room = w.machine, w.room
    found = choose(machine, free, jobs.shape, j, mask, how, room)
    if found > 0:
        return now_s, found
    copy_free(free, future)
    window = WINDOW_S
    anchor = 0
    at, total = 0, w.s[N_RUNNING]
    busy = 2 if rules.bf_busy_nodes > 0 else how & 3
    while at < total:
        last, following, removed = NONE, NONE, 0
        while at < total:
            r = lists.running[at]
            at += 1
            if not touches(jobs, allocated, r, mask):
                continue
            end = jobs.end_s[r]
            if anchor == 0:
                anchor = end + WINDOW_S - end % WINDOW_S
            last = end
            release(future, jobs, allocated, r)
            following = jobs.end_s[lists.running[at]] if at < total else NONE
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
        found = choose(machine, future, jobs.shape, j, mask, (how & 4) + busy, room)
        if found > 0:
            return (last if last > now_s else late_end(rules, last, now_s)), found
    return NONE, 0
