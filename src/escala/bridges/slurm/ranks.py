"""The order in which a policy wants waiting jobs to start, as nices: the priorities that Slurm has given are dealt out
anew among them.

So, where they differ, no job gets a priority that none had, and whatever Slurm or an administrator adds later still
counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from escala.bridges.slurm.guard import NICE, Wanted
from escala.bridges.slurm.seen import Job, Seen
from escala.bridges.slurm.snapshots import Layout, waits
from escala.bridges.slurm.watch import FIRST, MOST_WAITING
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot

STEP = 10


def wished(desk: Desk, asked: Snapshot, orders: Orders, waiting: int) -> list[str]:
    """Jobs in the order in which the policy would start them, the first ones only: those of now, then as planned; where
    too many wait for a plan, those of now."""
    first = [start.job_id for start in orders.starts]
    if waiting > MOST_WAITING:
        return first
    try:
        planned = [one.job_id for one in desk.plan(asked, first=min(FIRST, max(waiting, 1)))]
    except EscalaError:  # an object, which cannot plan
        planned = []
    return list(dict.fromkeys([*first, *planned]))


def nices(
    seen: Seen,
    at: Layout,
    wish: Sequence[str],
    late: Collection[str] = (),
    fixed: Collection[str] = (),
    most: int = 10**9,
) -> tuple[list[Wanted], list[str]]:
    """What to set so that these jobs start first, in this order; nothing where Slurm would start them so already.
    Others that stand among the first take the places that these leave. late: jobs that have waited too long go before
    all, as Slurm has them. What cannot be moved by itself keeps its place (see `movable`), and so do the fixed jobs.
    most: changes now; where it takes more, the first of the order come first. Also the jobs that were left for
    later."""
    jobs = [job for job in seen.jobs.values() if waits(job, at) and movable(job) and job.job_id not in fixed]
    jobs.sort(key=lambda job: (-job.priority, int(job.job_id)))
    by_name = {job.job_id: job for job in jobs}
    before = [job.job_id for job in jobs if job.job_id in late]
    first = [by_name[name] for name in dict.fromkeys([*before, *(name for name in wish if name in by_name)])]
    whole = some = _dealt(jobs, first)
    while len(some) > most:
        first = first[: len(first) * 3 // 4]
        some = _dealt(jobs, first)
    now = {one.name for one in some}
    return some, [one.name for one in whole if one.name not in now]


def _dealt(jobs: Sequence[Job], first: Sequence[Job]) -> list[Wanted]:
    """jobs: as Slurm has them. first: those that are to stand before the others, in this order."""
    ahead, behind = jobs[: len(first)], jobs[len(first) :]
    if ahead == first:
        return []
    chosen = {job.job_id for job in first}
    places = [*ahead, *(job for job in behind if job.job_id in chosen)]
    order = [*first, *(job for job in ahead if job.job_id not in chosen)]
    dealt = zip(order, _targets(places), strict=True)
    return [
        Wanted(NICE, job.job_id, job.nice + job.priority - target) for job, target in dealt if job.priority != target
    ]


def movable(job: Job) -> bool:
    """Is it one job, of one partition? Tasks of arrays and parts of heterogeneous jobs share a nice, and of several
    partitions another process may have an opinion."""
    return job.job_id.isascii() and job.job_id.isdigit() and "," not in job.partition


def _targets(jobs: Sequence[Job]) -> list[int]:
    """The jobs' own priorities, highest first. Where some are equal, as all are without weights, each is a step above
    the one behind it: more than one, since Slurm cuts priorities off at 1."""
    step = 1 if len({job.priority for job in jobs}) == len(jobs) else STEP
    out: list[int] = []
    for job in reversed(jobs):
        out.append(job.priority if not out else max(job.priority, out[-1] + step))
    return out[::-1]
