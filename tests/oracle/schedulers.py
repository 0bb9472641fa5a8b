"""The classic schedulers, each a function of the world that starts jobs. One call is one decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.scores import SCORES, Score
from tests.oracle.world import OFF, ON, SWITCHING_OFF, SWITCHING_ON, Allocation, Job, Node, World, first_cores

Scheduler = Callable[[World], None]


def ordered(world: World, jobs: list[Job], score: Score | None) -> list[Job]:
    """By score, smallest first, ties in queue order; without a score the queue order."""
    return jobs if score is None else sorted(jobs, key=lambda job: score(job, world))  # sorted() is stable


# --- strict -------------------------------------------------------------------------------------
def strict(score: Score | None) -> Scheduler:
    """The first job starts if it fits on nodes that are on, and again; the first that does not blocks the rest; nodes are woken for it."""

    def decide(world: World) -> None:
        for job in ordered(world, list(world.queue), score):
            place = world.place(job, strict=True)
            if place is None:
                wake_for(world, job)
                return
            world.launch(job, place)

    return decide


def wake_for(world: World, head: Job) -> None:
    if world.now < world.hold_end(head):
        return
    sleeping = [node for node in world.nodes if node.power == OFF and not node.reserved]
    if head.single_node:
        coming = any(node.power == SWITCHING_ON and world.could_hold(node, head) for node in world.nodes)
        able = [node for node in sleeping if world.could_hold(node, head)]
        if not coming and able:
            world.switch_on(able[0])
        return
    need = head.cores
    for node in world.nodes:
        if node.power == ON:
            need -= world.free_on(node)
        elif node.power == SWITCHING_ON:
            need -= node.cores
    for node in sleeping:
        if need <= 0:
            return
        world.switch_on(node)
        need -= node.cores


# --- greedy -------------------------------------------------------------------------------------
def greedy(score: Score | None) -> Scheduler:
    """One walk over the queue; whatever fits now starts."""

    def decide(world: World) -> None:
        for job in ordered(world, list(world.queue), score):
            place = world.place(job)
            if place is not None:
                world.launch(job, place)

    return decide


def best_first(value: Callable[[Job, World, Node | None], float]) -> Scheduler:
    """The job of the largest value among those that fit starts; again, until none fits. Ties in queue order."""

    def decide(world: World) -> None:
        while True:
            best: tuple[float, Job, Allocation] | None = None
            for job in world.queue:
                place = world.place(job)
                if place is None:
                    continue
                worth = value(job, world, world.nodes[place[0][0]] if job.single_node else None)
                if best is None or worth > best[0]:
                    best = (worth, job, place)
            if best is None:
                return
            world.launch(best[1], best[2])

    return decide


def packer(job: Job, world: World, node: Node | None) -> float:
    """Sum over resource kinds of demand x free; free on the job's node, or all cores that may be given to a job that spreads."""
    if node is None:
        return job.cores * sum(free for _, free in world.takeable(job))
    return job.cores * world.free_on(node) + sum(n * world.free_on(node, kind) for kind, n in job.demands.items())


def tetris(job: Job, world: World, node: Node | None) -> float:
    """0.5 x demand (summed over kinds) + 0.5 / walltime, raw numbers."""
    return 0.5 * (job.cores + sum(job.demands.values())) + 0.5 / job.seen_s


# --- EASY ---------------------------------------------------------------------------------------
def start_head_while_it_fits(world: World) -> None:
    while world.queue:
        place = world.place(world.queue[0])
        if place is None:
            return
        world.launch(world.queue[0], place)


def releases(world: World, job: Job) -> list[tuple[Any, Allocation]]:
    """(time, cores on nodes): when which cores become available to the job. Cores reserved by off-reservation never do."""
    now = world.plan_time(world.now)
    hold_end = world.plan_time(max(world.now, world.hold_end(job)))
    found: list[tuple[Any, Allocation]] = []
    for holder in world.running + world.given:
        found.append((holder.planned_end, holder.held))
    for node in world.nodes:
        free = world.free_on(node)
        if node.reserved or not free:
            continue
        if node.power == ON:
            found.append((now, [(node.number, free)]))
        elif node.power in (SWITCHING_ON, OFF):
            found.append((hold_end, [(node.number, free)]))
        else:
            assert node.power == SWITCHING_OFF and node.switch_end is not None
            found.append((max(world.plan_time(node.switch_end), hold_end), [(node.number, free)]))
    return sorted(found, key=lambda pair: pair[0])


def reservation(world: World, head: Job) -> tuple[Any, list[int]] | None:
    """(s, cores available by s on each node): s is the time at which enough cores are available; all that come at the same time count."""
    available = [0] * len(world.nodes)
    s = None
    for time, cores in releases(world, head):
        if s is not None and time > s:
            break
        for number, count in cores:
            available[number] += count
        if s is None and sum(available) >= head.cores:
            s = time
    return None if s is None else (s, available)


def easy(score: Score | None, latest_released: bool) -> Scheduler:
    def decide(world: World) -> None:
        start_head_while_it_fits(world)
        if not world.queue:
            return
        head, others = world.queue[0], ordered(world, world.queue[1:], score)
        if head.single_node or any(job.single_node for job in others):
            easy_on_single_nodes(world, head, others)
            return
        found = reservation(world, head)
        if found is None:  # the head can never start as things are: nothing to protect
            for job in others:
                place = world.place(job)
                if place is not None:
                    world.launch(job, place)
            return
        s, available = found
        spare = sum(available) - head.cores  # latest-released: counted
        beyond = available_beside(available, head.cores)  # lowest-id: what a job that runs past s may take, per node
        for job in others:
            place = world.place(job)
            if place is None:
                continue
            if world.planned_end(job, place) <= s:
                world.launch(job, place)
            elif latest_released:
                if job.cores <= spare:
                    spare -= job.cores
                    world.launch(job, place)
            else:
                place = first_cores([(number, min(free, beyond[number])) for number, free in world.takeable(job)], job.cores)
                if place is not None:
                    for number, count in place:
                        beyond[number] -= count
                    world.launch(job, place)

    return decide


def available_beside(available: list[int], need: int) -> list[int]:
    """The reservation takes the cores available by s on the nodes of lowest numbers; the rest, per node."""
    rest = []
    for count in available:
        taken = min(need, count)
        need -= taken
        rest.append(count - taken)
    return rest


def easy_on_single_nodes(world: World, head: Job, others: list[Job]) -> None:
    """The head's reservation is on the node where it fits first, lowest number first."""
    best: tuple[Any, Node] | None = None
    for node in world.nodes:
        time = earliest_fit(world, head, node)
        if time is not None and (best is None or time < best[0]):
            best = (time, node)
    for job in others:
        for node in world.ranked_nodes(world.only_on(job, False)):
            if not world.fits_on(node, job):
                continue
            place = [(node.number, job.cores)]
            if best is None or node is not best[1] or world.planned_end(job, place) <= best[0] or leaves_intact(world, head, best, job):
                world.launch(job, place)
                break


def earliest_fit(world: World, job: Job, node: Node) -> Any:
    """The earliest plan time at which the demand fits on the node, or None."""
    if node.reserved or not world.could_hold(node, job):
        return None
    now = world.plan_time(world.now)
    opens = now
    if node.power == SWITCHING_OFF:
        assert node.switch_end is not None
        opens = world.plan_time(node.switch_end)
    if node.power != ON:
        opens = max(opens, world.plan_time(max(world.now, world.hold_end(job))))
    holders = [j for j, _ in node.holders]
    times = sorted({opens} | {max(opens, j.planned_end) for j in holders})
    for time in times:
        if fits_at(node, job, [j for j in holders if j.planned_end > time]):
            return time
    return None


def fits_at(node: Node, job: Job, holders: list[Job]) -> bool:
    if job.cores > node.cores - sum(j.cores for j in holders):
        return False
    return all(n <= node.capacity[kind] - sum(j.demands.get(kind, 0) for j in holders) for kind, n in job.demands.items())


def leaves_intact(world: World, head: Job, best: tuple[Any, Node], job: Job) -> bool:
    """The candidate still holds its demand on the head's node at s; does the head fit beside it?"""
    time, node = best
    holders = [j for j, _ in node.holders if j.planned_end > time]
    return fits_at(node, head, [*holders, job])


def easy_fast(world: World) -> None:
    """The reservation is a time by count, computed when the job becomes head and kept; a job may pass only if it ends by that time."""
    start_head_while_it_fits(world)
    if not world.queue:
        return
    head = world.queue[0]
    if world.reservation is None or world.reservation[0] is not head:
        found = reservation(world, head)
        world.reservation = (head, None if found is None else found[0])
    limit = world.reservation[1]
    for job in world.queue[1:]:
        place = world.place(job)
        if place is not None and (limit is None or world.planned_end(job, place) <= limit):
            world.launch(job, place)


# --- conservative -------------------------------------------------------------------------------
def conservative(depth: int | None, rebuild: bool) -> Scheduler:
    def decide(world: World) -> None:
        put_back = world.job_ended or world.can_change
        if rebuild:
            for job in world.queue:
                job.plan = None
        waiting = 0
        for job in list(world.queue):
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
    """Earliest planned start and place such that the cores are free over [start, start + length), beside every other plan."""
    now, length = world.plan_time(world.now), world.plan_length(job)
    changes: list[tuple[Any, Allocation, int]] = []  # (time, cores on nodes, +1 they become free or -1 they become busy)
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


# --- names --------------------------------------------------------------------------------------
def scheduler(name: str, head: str = "lowest-id", depth: int | None = None, rebuild: bool = False) -> tuple[Scheduler, bool]:
    """(decide, strict) by name."""
    latest = head == "latest-released"
    if name == "fcfs":
        return strict(None), True
    if name in ("saf", "easy-saf"):
        return easy(SCORES["saf"], latest), False
    if name in ("saf-strict",) or (name in SCORES and name != "saf"):
        return strict(SCORES[name.removesuffix("-strict")]), True
    if name == "first-fit":
        return greedy(None), False
    if name.endswith("-fit") and name.removesuffix("-fit") in SCORES:
        return greedy(SCORES[name.removesuffix("-fit")]), False
    if name == "packer":
        return best_first(packer), False
    if name == "tetris":
        return best_first(tetris), False
    if name == "easy":
        return easy(None, latest), False
    if name == "easy-fast":
        return easy_fast, False
    if name.startswith("easy-") and name.removeprefix("easy-") in SCORES:
        return easy(SCORES[name.removeprefix("easy-")], latest), False
    if name == "conservative":
        return conservative(depth, rebuild), False
    raise ValueError(name)
