"""Arrays: at most so many tasks of one run at a time, and once a task finds no way to start, the others of a pass are
not looked at.

slurmctld keeps the tasks that wait as one record, from which it splits those that start. Tasks of which a backfill pass
plans the start are at most bf_max_job_array_resv. Sources: https://slurm.schedmd.com/job_array.html, and slurmctld's
job_scheduler.c and backfill.c.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import EVENTS, NONE, PASSES, World


@lean
def _place(w: World, record: int) -> int:
    """Where it is noted of an array that a task has failed: in this partition, in this reservation or outside of
    all."""
    return (w.records.inside[record] + 1) * w.machine.part.shape[0] + w.records.part[record]


@lean
def is_skipped(w: World, record: int) -> bool:
    """Is the record's job, a task of an array, not looked at in this pass? If it is, it counts as one that fails until
    it starts or is planned."""
    a, now, place = w.jobs.array[w.records.job[record]], w.s[EVENTS] + w.s[PASSES], _place(w, record)
    if w.arrays.failed[a, place] == now:
        return True
    w.arrays.failed[a, place] = now
    return w.arrays.run[a] >= w.arrays.most[a]


@lean
def task_began(w: World, record: int) -> None:
    """The record's job has started, if it is a task: the next is looked at."""
    a = w.jobs.array[w.records.job[record]]
    if a != NONE:
        w.arrays.failed[a, _place(w, record)] = NONE


@lean
def task_planned(w: World, record: int) -> None:
    """The start of the record's job is planned, if it is a task: the next is looked at, unless there are enough."""
    a, now = w.jobs.array[w.records.job[record]], w.s[EVENTS] + w.s[PASSES]
    if a == NONE:
        return
    if w.arrays.planned[a] != now:
        w.arrays.planned[a] = now
        w.arrays.plans[a] = 0
    w.arrays.plans[a] += 1
    if w.arrays.plans[a] < w.rules.bf_array_reserve:
        w.arrays.failed[a, _place(w, record)] = NONE


@lean
def count_task(w: World, j: int, step: int) -> None:
    """One task more that runs, or one less."""
    if w.jobs.array[j] != NONE:
        w.arrays.run[w.jobs.array[j]] += step
