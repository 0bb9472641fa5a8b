"""The EASY family: the head of the queue has a reservation, the others may pass if they do not delay it."""

from __future__ import annotations

from typing import Any

from tests.oracle.lanes import apart
from tests.oracle.nodes import deal, first_cores, may_lie, parts_in, times
from tests.oracle.scores import Scheduler, Score, ordered
from tests.oracle.world import (
    OFF,
    ON,
    SWITCHING_OFF,
    SWITCHING_ON,
    Allocation,
    Job,
    Node,
    World,
)


def start_head_while_it_fits(world: World) -> None:
    while world.queue:
        place = world.place(world.queue[0])
        if place is None:
            return
        world.launch(world.queue[0], place)


def releases(world: World, job: Job) -> list[tuple[Any, Allocation]]:
    """(time, cores on nodes): when which cores become available to the job. Cores reserved by off-reservation never
    do."""
    now = world.plan_time(world.now)
    hold_end = world.plan_time(max(world.now, world.hold_end(job)))
    found: list[tuple[Any, Allocation]] = []
    for holder in world.running + world.given:
        found.append((holder.planned_end, [(n, count) for n, count in holder.held if not world.nodes[n].gone]))
    for node in world.nodes:
        free = world.free_on(node)
        if node.barred or not free:
            continue
        if node.power == ON:
            found.append((now, [(node.number, free)]))
        elif node.power in (SWITCHING_ON, OFF):
            found.append((hold_end, [(node.number, free)]))
        else:
            assert node.power == SWITCHING_OFF and node.switch_end is not None
            found.append((max(world.plan_time(node.switch_end), hold_end), [(node.number, free)]))
    return sorted(found, key=lambda pair: pair[0])


def earliest_start(world: World, head: Job) -> tuple[Any, list[int]] | None:
    """(s, cores available by s on each node): s is the time at which enough cores are available; all that come at the
    same time count."""
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


class Reservation:
    """The head's: from time s on, cores on nodes. What may a job take that runs past s?"""

    def __init__(self, world: World, head: Job, latest_released: bool) -> None:
        self.world = world
        self.head = head
        self.counted = latest_released and head.parts is None
        self.s: Any = None  # None: the head can never start as things are, there is nothing to protect
        self.kept: Allocation = []  # of a head that goes by nodes
        self.beyond: list[int] = []  # lowest-id: cores per node beside the reservation
        self.spare = 0  # latest-released: cores beside the reservation, counted
        if head.parts is not None:
            fit = earliest_fit(world, head)
            if fit is not None:
                self.s, self.kept = fit
            return
        found = earliest_start(world, head)
        if found is not None:
            self.s, available = found
            self.spare = sum(available) - head.cores
            need = head.cores
            # the reservation takes the nodes of lowest numbers
            for node, count in zip(world.nodes, available, strict=True):
                taken = min(need, count)
                need -= taken
                self.beyond.append(count - taken + self.of_no_use_to_the_head(node))

    def of_no_use_to_the_head(self, node: Node) -> int:
        """Cores free now that the head may not be given by s, because its hold ends later; others may."""
        held_back = node.power in (SWITCHING_ON, OFF) and self.world.plan_time(self.world.hold_end(self.head)) > self.s
        return self.world.free_on(node) if held_back and not node.barred else 0

    def limit(self, node: Node) -> int:
        """Cores of the node that jobs running past s may still take."""
        if self.s is None:
            return node.cores
        if self.head.parts is not None:
            past = sum(count for j, count in node.holders if j.planned_end > self.s)
            # a node has room for a part of the head where it has room for the largest
            return node.cores - past - parts_in(self.head, self.kept).get(node.number, 0) * max(self.head.parts)
        return self.spare if self.counted else self.beyond[node.number]

    def allows(self, place: Allocation, job: Job) -> bool:
        """Does the job, running past s at this place, leave the reservation as it is?"""
        if any(count > self.limit(self.world.nodes[number]) for number, count in place):
            return False
        return self.s is None or not self.counted or job.takes <= self.spare

    def room_beside(self, node: Node, job: Job) -> int:
        """For how many parts of the job, running past s, the node has room now and beside the reservation."""
        now = self.world.room_now(node, job)
        if self.counted:
            return now if job.takes <= self.spare else 0
        of_head = parts_in(self.head, self.kept).get(node.number, 0)

        def free(kind: str) -> int:
            past = sum(
                j.demands.get(kind, 0) * j.parts_on[node.number] for j, _ in node.holders if j.planned_end > self.s
            )
            return node.capacity.get(kind, 0) - past - of_head * self.head.demands.get(kind, 0)

        return min(now, times(job, self.limit(node), free))

    def take(self, place: Allocation) -> None:
        """Note that a job running past s was given this place."""
        if self.s is not None and self.head.parts is None:
            for number, count in place:
                self.beyond[number] -= count
                self.spare -= count


def easy(score: Score | None, latest_released: bool) -> Scheduler:
    @apart
    def decide(world: World) -> None:
        start_head_while_it_fits(world)
        if not world.queue:
            return
        others = ordered(world, world.queue[1:], score)
        kept = Reservation(world, world.queue[0], latest_released)
        for job in others:
            try_to_pass(world, kept, job)

    return decide


def easy_priority(score: Score | None, latest_released: bool, passing: Score | None = None) -> Scheduler:
    """The queue is in the order of the score: its first job starts, and again; the first that does not fit gets the
    reservation. The others are tried in that order, or in that of `passing`."""

    @apart
    def decide(world: World) -> None:
        line = ordered(world, list(world.queue), score)
        while line:
            place = world.place(line[0])
            if place is None:
                break
            world.launch(line.pop(0), place)
        if line:
            kept = Reservation(world, line[0], latest_released)
            for job in (
                line[1:]
                if passing is None
                else [job for job in ordered(world, list(world.queue), passing) if job is not line[0]]
            ):
                try_to_pass(world, kept, job)

    return decide


def try_to_pass(world: World, kept: Reservation, job: Job) -> None:
    """Start the job if it fits now and ends by the reservation's start, or else uses only what the reservation
    leaves."""
    if job.parts is not None:
        pass_by_nodes(world, kept, job)
        return
    place = world.place(job)
    if place is not None and (kept.s is None or world.planned_end(job, place) <= kept.s):
        world.launch(job, place)
        return
    beside = first_cores([(n, min(free, kept.limit(world.nodes[n]))) for n, free in world.takeable(job)], job.cores)
    if beside is not None and kept.allows(beside, job):
        kept.take(beside)
        world.launch(job, beside)


def pass_by_nodes(world: World, kept: Reservation, job: Job) -> None:
    """Of the nodes in the order in which they are taken, as few as hold all parts of the job, on those where it ends by
    the reservation's start, or else on those with room beside the reservation."""
    order = world.ranked_nodes(world.only_on(job, False))
    for many in range(1, len(order) + 1):
        reached = order[:many]
        timely = [n for n in reached if kept.s is None or world.planned_end(job, [(n.number, 1)]) <= kept.s]
        place = deal(job, timely, lambda node: world.room_now(node, job))
        if place is not None:
            world.launch(job, place)
            return
        place = None if kept.s is None else deal(job, reached, lambda node: kept.room_beside(node, job))
        if place is not None:
            kept.take(place)
            world.launch(job, place)
            return


def opens(world: World, job: Job, node: Node) -> Any:
    """The plan time from which the job may be given the node, None: never."""
    if node.barred:
        return None
    found = world.plan_time(world.now)
    if node.power == SWITCHING_OFF:
        assert node.switch_end is not None
        found = world.plan_time(node.switch_end)
    if node.power != ON:
        found = max(found, world.plan_time(max(world.now, world.hold_end(job))))
    return found


def moments(world: World, job: Job, node: Node) -> set[Any]:
    """Plan times at which there is more room for the job on the node: what is unclaimed there opens, or what others
    have is released."""
    first = opens(world, job, node)
    return set() if first is None else {first, *(holder.planned_end for holder, _ in node.holders)}


def room_at(world: World, job: Job, node: Node, time: Any) -> int:
    """For how many parts of the job there is room on the node at a plan time."""
    first = opens(world, job, node)
    if first is None or not may_lie(job, node):
        return 0
    opened = first <= time
    over = [(j, count) for j, count in node.holders if j.planned_end <= time]

    def free(kind: str) -> int:
        released = sum(j.demands.get(kind, 0) * j.parts_on[node.number] for j, _ in over)
        return released + (world.free_on(node, kind) if opened else 0)

    return times(job, sum(count for _, count in over) + (world.free_on(node) if opened else 0), free)


def earliest_fit(world: World, head: Job) -> tuple[Any, Allocation] | None:
    """Of a head that goes by nodes: the earliest time at which they have room, and the lowest of them."""
    for time in sorted({time for node in world.nodes for time in moments(world, head, node)}):
        place = deal(head, world.nodes, lambda node, time=time: room_at(world, head, node, time))  # type: ignore[misc]
        if place is not None:
            return time, place
    return None


@apart
def easy_fast(world: World) -> None:
    """The reservation is a time, computed when the job becomes head and kept: by count, or by room on nodes for a head
    that goes by them. A job may pass only if it ends by that time."""
    start_head_while_it_fits(world)
    if not world.queue:
        return
    head = world.queue[0]
    if head.lane not in world.reservations or world.reservations[head.lane][0] is not head:
        found = earliest_start(world, head) if head.parts is None else earliest_fit(world, head)
        world.reservations[head.lane] = (head, None if found is None else found[0])
    limit = world.reservations[head.lane][1]
    for job in world.queue[1:]:
        place = world.place(job)
        if place is not None and (limit is None or world.planned_end(job, place) <= limit):
            world.launch(job, place)
