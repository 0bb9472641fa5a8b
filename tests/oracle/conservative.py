"""Conservative backfilling: every waiting job has a planned start and place."""

from __future__ import annotations

from typing import Any

from tests.oracle.easy import releases
from tests.oracle.scores import Scheduler, Score, ordered
from tests.oracle.world import Allocation, Job, World, first_cores


def conservative(depth: int | None, rebuild: bool, score: Score | None = None) -> Scheduler:
    def decide(world: World) -> None:
        put_back = world.job_ended or world.plan_moved or world.can_change
        if rebuild:
            for job in world.queue:
                job.plan = None
        waiting = 0
        for job in ordered(world, list(world.queue), score):
            if depth is not None and waiting == depth:
                return
            if job.plan is None or put_back:
                job.plan = None
                job.plan = first_hole(world, job)
            if job.plan is not None and world.clock_of(job.plan[0]) <= world.now:
                world.launch(job, job.plan[1])
            else:
                waiting += 1

    return decide


def first_hole(world: World, job: Job) -> tuple[Any, Allocation] | None:
    """Earliest planned start and place such that the cores are free over [start, start + length), beside every other
    plan."""
    now, length = world.plan_time(world.now), world.plan_length(job)
    # (time, cores on nodes, +1 they become free or -1 they become busy)
    changes: list[tuple[Any, Allocation, int]] = []
    for time, cores in releases(world, job):
        changes.append((time, cores, +1))
    for other in world.queue:
        if other.plan is not None:
            start, cores = other.plan
            changes += [(start, cores, -1), (start + world.plan_length(other), cores, +1)]
    steps = free_over_time(world, now, changes)
    for first, (time, _) in enumerate(steps):
        free = fewest(steps[first:], time + length, job.cores)
        if free is None:
            continue
        order = range(len(world.nodes)) if time > now else [number for number, _ in world.takeable(job)]
        place = first_cores([(number, free[number]) for number in order], job.cores)
        assert place is not None
        return time, place
    return None


def free_over_time(world: World, now: Any, changes: list[tuple[Any, Allocation, int]]) -> list[tuple[Any, list[int]]]:
    """Step function: (time, free cores per node from then on), beginning now; what lies before now counts as now."""
    steps: list[tuple[Any, list[int]]] = [(now, [0] * len(world.nodes))]
    for time, cores, sign in sorted(changes, key=lambda change: change[0]):
        if time > steps[-1][0]:
            steps.append((time, list(steps[-1][1])))
        for number, count in cores:
            steps[-1][1][number] += sign * count
    return steps


def fewest(steps: list[tuple[Any, list[int]]], end: Any, need: int) -> list[int] | None:
    """The fewest free cores of each node from the first step until `end`; None as soon as the sum is below the need."""
    free = [max(0, count) for count in steps[0][1]]
    for time, counts in steps:
        if time >= end:
            break
        free = [min(a, b) for a, b in zip(free, counts, strict=True)]
        if sum(count for count in free if count > 0) < need:
            return None
    return [max(0, count) for count in free]
