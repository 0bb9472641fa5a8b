"""Arrays: at most so many tasks of one run at a time, and once a task finds no way to start, the others of a pass are not looked at.

slurmctld keeps the tasks that wait as one record, from which it splits those that start. Tasks of which a backfill pass plans the start are
at most bf_max_job_array_resv. Sources: https://slurm.schedmd.com/job_array.html, and slurmctld's job_scheduler.c and backfill.c.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import EVENTS, NONE, PASSES, World


@lean
def is_skipped(w: World, j: int, part: int) -> bool:
    """Is job j, a task of an array, not looked at in this pass? If it is, it counts as one that fails until it starts or is planned."""
    a, now = w.jobs.array[j], w.s[EVENTS] + w.s[PASSES]
    if w.arrays.failed[a, part] == now:
        return True
    w.arrays.failed[a, part] = now
    return w.arrays.run[a] >= w.arrays.most[a]


@lean
def task_began(w: World, j: int, part: int) -> None:
    """Job j has started, if it is a task: the next is looked at."""
    if w.jobs.array[j] != NONE:
        w.arrays.failed[w.jobs.array[j], part] = NONE


@lean
def task_planned(w: World, j: int, part: int) -> None:
    """The start of job j is planned, if it is a task: the next is looked at, unless there are enough."""
    a, now = w.jobs.array[j], w.s[EVENTS] + w.s[PASSES]
    if a == NONE:
        return
    if w.arrays.planned[a] != now:
        w.arrays.planned[a] = now
        w.arrays.plans[a] = 0
    w.arrays.plans[a] += 1
    if w.arrays.plans[a] < w.rules.bf_array_reserve:
        w.arrays.failed[a, part] = NONE


@lean
def count_task(w: World, j: int, step: int) -> None:
    """One task more that runs, or one less."""
    if w.jobs.array[j] != NONE:
        w.arrays.run[w.jobs.array[j]] += step
