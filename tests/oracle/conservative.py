"""Conservative backfilling: every waiting job has a planned start and place."""

from __future__ import annotations

from typing import Any

from tests.oracle.easy import releases
from tests.oracle.nodes import deal, first_cores, may_lie, parts_in, times
from tests.oracle.scores import Scheduler, Score, ordered
from tests.oracle.world import OFF, ON, SWITCHING_ON, Allocation, Job, World


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
    if job.parts is not None:
        return first_hole_by_nodes(world, job)
    now, length = world.plan_time(world.now), world.plan_length(job)
    # (time, cores on nodes, +1 they become free or -1 they become busy)
    changes: list[tuple[Any, Allocation, int]] = []
    for time, cores in releases(world, job):
        changes.append((time, cores, +1))
    for other in world.queue:
        if other.plan is not None:
            start, cores = other.plan[0], promised(other)
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


def first_hole_by_nodes(world: World, job: Job) -> tuple[Any, Allocation] | None:
    """As `first_hole`: the earliest start at which nodes have room for all parts of the job throughout its length."""
    now, length = world.plan_time(world.now), world.plan_length(job)
    uses = [(node.number, usage(world, job, node.number) if may_lie(job, node) else []) for node in world.nodes]
    starts = sorted({max(now, time) for _, changes in uses for time, _, _ in changes} | {now})
    for start in starts:
        room = {n: least_room(job, changes, start, start + length) for n, changes in uses}
        order = world.nodes if start > now else world.ranked_nodes(world.only_on(job, False))
        place = deal(job, order, lambda node, room=room: room[node.number])  # type: ignore[misc]
        if place is not None:
            return start, place
    return None


def promised(job: Job) -> Allocation:
    """What is kept for a planned job: for each of its parts the cores of the largest."""
    assert job.plan is not None
    if job.parts is None:
        return job.plan[1]
    return [(number, count * max(job.parts)) for number, count in parts_in(job, job.plan[1]).items()]


def usage(world: World, job: Job, number: int) -> list[tuple[Any, int, dict[str, int]]]:
    """(time, cores, further kinds) that become free on a node for the job, negative: are taken, from that time on."""
    node, now = world.nodes[number], world.plan_time(world.now)
    changes: list[tuple[Any, int, dict[str, int]]] = []
    if node.gone:
        return changes
    if not node.reserved:
        opened = now
        if node.power not in (ON, OFF, SWITCHING_ON):
            assert node.switch_end is not None
            opened = world.plan_time(node.switch_end)
        if node.power != ON:
            opened = max(opened, world.plan_time(max(world.now, world.hold_end(job))))
        changes.append((opened, world.free_on(node), {kind: world.free_on(node, kind) for kind in node.capacity}))
    for holder, count in node.holders:
        parts = holder.parts_on[number] if holder.demands else 0
        changes.append((holder.planned_end, count, {kind: parts * n for kind, n in holder.demands.items()}))
    for other in world.queue:
        if other.plan is not None and number in dict(other.plan[1]):
            start, place = other.plan
            count, parts = dict(promised(other))[number], parts_in(other, place)[number] if other.demands else 0
            for time, sign in ((start, -1), (start + world.plan_length(other), 1)):
                changes.append((time, sign * count, {kind: sign * parts * n for kind, n in other.demands.items()}))
    return changes


def least_room(job: Job, changes: list[tuple[Any, int, dict[str, int]]], start: Any, end: Any) -> int:
    """For how many parts of the job a node has room all the time from `start` to `end`."""
    assert job.parts is not None
    moments = [start, *(time for time, _, _ in changes if start < time < end)]

    def free(at: Any, kind: str | None) -> int:
        return sum(n if kind is None else kinds.get(kind, 0) for time, n, kinds in changes if time <= at)

    def least(kind: str | None) -> int:
        return max(0, min(free(at, kind) for at in moments))

    return times(job, least(None), least)


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
