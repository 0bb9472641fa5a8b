"""The order in which a policy wants waiting jobs to start, as nices: the priorities that Slurm has given are dealt out anew among them.

So, where they differ, no job gets a priority that none had, and whatever Slurm or an administrator adds later still counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from escala.bridges.slurm.guard import NICE, Wanted
from escala.bridges.slurm.seen import Job, Seen
from escala.bridges.slurm.snapshots import Layout, waits
from escala.errors import EscalaError
from escala.live import Desk, Orders, Snapshot

FIRST = 50
MOST_WAITING = 500
STEP = 10


def wished(desk: Desk, asked: Snapshot, orders: Orders, waiting: int) -> list[str]:
    """Jobs in the order in which the policy would start them, the first ones only: those of now, then as planned."""
    first = [start.job_id for start in orders.starts]
    if waiting > MOST_WAITING:
        return first
    try:
        planned = [one.job_id for one in desk.plan(asked, first=min(FIRST, max(waiting, 1)))]
    except EscalaError:  # an object, which cannot plan
        planned = []
    return [*first, *(job for job in planned if job not in set(first))]


def nices(seen: Seen, at: Layout, wish: Sequence[str], longest_wait_s: float, fixed: Collection[str] = ()) -> list[Wanted]:
    """What to set so that the jobs start in this order; nothing where Slurm would start them so already. Tasks of arrays keep their place,
    as do the jobs that are fixed, and jobs that have waited too long go first, as Slurm has them."""
    jobs = [job for job in seen.jobs.values() if waits(job, at) and "_" not in job.job_id and job.job_id not in fixed]
    jobs.sort(key=lambda job: (-job.priority, int(job.job_id)))
    by_name = {job.job_id: job for job in jobs}
    late = [job for job in jobs if seen.now_s - job.submit_s > longest_wait_s]
    order = list(dict.fromkeys([*(job.job_id for job in late), *(name for name in wish if name in by_name)]))
    chosen = set(order)
    now = [job for job in jobs if job.job_id in chosen]
    if [job.job_id for job in now] == order:
        return []
    targets = _targets(now)
    dealt = [(by_name[name], target) for name, target in zip(order, targets, strict=True)]
    return [Wanted(NICE, job.job_id, job.nice + job.priority - target) for job, target in dealt if job.priority != target]


def _targets(jobs: list[Job]) -> list[int]:
    """The jobs' own priorities, highest first. Where some are equal, as all are without weights, each is a step above the one behind it:
    more than one, since Slurm cuts priorities off at 1."""
    step = 1 if len({job.priority for job in jobs}) == len(jobs) else STEP
    out: list[int] = []
    for job in reversed(jobs):
        out.append(job.priority if not out else max(job.priority, out[-1] + step))
    return out[::-1]
