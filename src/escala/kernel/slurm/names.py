"""Singletons: none starts while a job of the same user and name runs, or waits that came before.

slurmctld looks whether this is so before each pass; once it is, it does not look again. Sources:
https://slurm.schedmd.com/sbatch.html (--dependency=singleton), and slurmctld's job_scheduler.c.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import HELD, NONE, World


@lean
def count_namesake(w: World, j: int, step: int) -> None:
    """One job more of its name that runs, or one less."""
    if w.names.of_job.size > 0 and w.names.of_job[j] != NONE:
        w.names.run[w.names.of_job[j]] += step


@lean
def lone_singleton(w: World, j: int) -> int:
    """The singleton of the name of job j that has no namesakes to wait for any more, and had some until now; NONE."""
    names = w.names
    if names.of_job.size == 0 or names.of_job[j] == NONE or names.run[names.of_job[j]] > 0:
        return NONE
    c = names.of_job[j]
    while names.at[c] < names.first[c + 1] and names.over[names.member[names.at[c]]] == 1:
        names.at[c] += 1
    if names.at[c] == names.first[c + 1]:
        return NONE
    first = names.member[names.at[c]]
    if names.single[first] == 0 or w.jobs.state[first] != HELD:
        return NONE
    names.single[first] = 0
    return first


@lean
def is_over(w: World, j: int) -> None:
    """Nobody waits for job j any more because of its name."""
    if w.names.of_job.size > 0:
        w.names.over[j] = 1
