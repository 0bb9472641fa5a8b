"""How a machine stands at a moment, brought into the tables: jobs that hold nodes, and jobs that wait."""

from __future__ import annotations

from escala.compile import compiled
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.drive import next_tick
from escala.kernel.slurm.limits import count_run
from escala.kernel.slurm.lists import add_running, enqueue, push_end, sort_queue
from escala.kernel.slurm.tables import (
    ASKED,
    LAST_UPDATE,
    N_QUEUE,
    NEXT_TURN,
    NONE,
    RUNNING,
    TICK,
    WAITING,
    Grid,
    Ints,
    one,
)


@compiled
def occupy(table: Grid, rows: Ints, held: Ints) -> bool:
    """Jobs of these rows hold what stands in `allocated` for them. held: the record by which each runs, or NONE. False
    where more of a node is held than it has."""
    w = one(table, 0)
    free, jobs, allocated = w.free, w.jobs, w.allocated
    fits = True
    for i in range(rows.size):
        j = rows[i]
        jobs.state[j] = RUNNING
        jobs.ran[j] = held[i]
        for at in range(jobs.first[j], jobs.last[j]):
            n = allocated.node[at]
            free.cpus[n] -= allocated.cpus[at]
            free.memory[n] -= allocated.memory[at]
            free.jobs[n] += 1
            fits = fits and free.cpus[n] >= 0
            for k in range(free.gpus.shape[1]):
                free.gpus[n, k] -= allocated.gpus[at, k]
                fits = fits and free.gpus[n, k] >= 0
        if w.rules.limited > 0 and held[i] != NONE:
            count_run(w, held[i], 1)
        push_end(w.lists, i, jobs.finish[j], j)
        add_running(jobs, w.lists, w.s, j)
    return fits


@compiled
def queue_up(table: Grid, rows: Ints) -> None:
    """Jobs of these rows wait, by the priorities that their records have."""
    w = one(table, 0)
    for i in range(rows.size):
        w.jobs.state[rows[i]] = WAITING
        for record in range(w.jobs.record[rows[i]], w.jobs.record[rows[i] + 1]):
            enqueue(w.records, w.lists, w.s, record)


@compiled
def idled(table: Grid, now: int) -> bool:
    """Was there a tick now that left nothing to do? Then the next is found when the next event is known: it is taken
    back."""
    w = one(table, 0)
    s = w.s
    idle = s[N_QUEUE] == 0 and s[ASKED] == 0 and s[TICK] - w.rules.tick_us == now
    if idle:
        s[TICK] = now
    return idle


@compiled
def go_on(table: Grid, now: int) -> None:
    """After such a tick, as `drive` would have gone on: something happens now, and nothing did before."""
    w = one(table, 0)
    turn = w.s[NEXT_TURN]
    next_tick(w.s, w.rules, min(now, w.closed.moment[turn, 0]) if turn < w.closed.moment.shape[0] else now)


@compiled
def reorder(table: Grid, now: int) -> None:
    """The queue anew, now that its jobs have other priorities: something has changed for backfill."""
    w = one(table, 0)
    sort_queue(w)
    w.s[LAST_UPDATE] = unix_s(w.rules, now)
