"""The classic schedulers, each a function of the world that starts jobs. One call is one decision."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.oracle import linear
from tests.oracle.conservative import conservative
from tests.oracle.easy import easy, easy_fast, easy_priority
from tests.oracle.lanes import apart
from tests.oracle.nodes import ALONE, could_hold, parts_in
from tests.oracle.scores import SCORES, Scheduler, Score, ordered
from tests.oracle.world import OFF, ON, SWITCHING_ON, Allocation, Job, World


# --- strict -------------------------------------------------------------------------------------
def strict(score: Score | None) -> Scheduler:
    """The first job starts if it fits on nodes that are on, and again; the first that does not blocks the rest; nodes
    are woken for it."""

    @apart
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
    sleeping = [node for node in world.nodes if node.power == OFF and not node.barred]
    if head.parts is not None:
        lacking = len(head.parts)
        lacking -= sum(world.room_now(node, head) for node in world.nodes if node.power == ON and not node.gone)
        lacking -= sum(could_hold(node, head) for node in world.nodes if node.power == SWITCHING_ON and not node.gone)
        for node in sleeping:
            if lacking > 0 and could_hold(node, head) > 0:
                world.switch_on(node)
                lacking -= could_hold(node, head)
        return
    need = head.cores
    for node in [node for node in world.nodes if not node.gone]:
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


def best_first(value: Callable[[Job, World, Allocation | None], float]) -> Scheduler:
    """The job of the largest value among those that fit starts; again, until none fits. Ties in queue order."""

    def decide(world: World) -> None:
        for job in [job for job in world.queue if world.waited_the_guard(job)]:
            place = world.place(job)
            if place is not None:
                world.launch(job, place)
        while True:
            best: tuple[float, Job, Allocation] | None = None
            for job in world.queue:
                place = world.place(job)
                if place is None:
                    continue
                worth = value(job, world, None if job.parts is None else place)
                if best is None or worth > best[0]:
                    best = (worth, job, place)
            if best is None:
                return
            world.launch(best[1], best[2])

    return decide


def packer(job: Job, world: World, place: Allocation | None) -> float:
    """Sum over resource kinds of demand x free; free on each of the job's nodes, or all cores that may be given to a
    job that spreads."""
    if place is None:
        return job.cores * sum(free for _, free in world.takeable(job))
    total = 0
    for number, parts in parts_in(job, place).items():
        node = world.nodes[number]
        total += dict(place)[number] * world.free_on(node)
        total += sum(parts * n * world.free_on(node, kind) for kind, n in job.demands.items() if kind != ALONE)
    return total


def tetris(job: Job, world: World, place: Allocation | None) -> float:
    """0.5 x demand (summed over kinds and parts) + 0.5 / walltime, raw numbers."""
    further = sum(n for kind, n in job.demands.items() if kind != ALONE) * len(job.parts or [])
    return 0.5 * (job.cores + further) + 0.5 / job.order_s


def split(name: str) -> tuple[str, dict[str, str]]:
    """easy:queue=sjf:guard=3 -> easy, {queue: sjf, guard: 3}; easy:queue=score:FILE -> easy, {queue: score:FILE}."""
    first, *parts = re.split(":(?=(?:queue|guard|backfill|estimate|order_estimate)=)", name)
    return first, dict(part.split("=", 1) for part in parts)


def score_of(name: str) -> Score:
    return linear.Score(name.removeprefix("score:")) if name.startswith("score:") else SCORES[name]


def renewed(decide: Scheduler, *scores: Score | None) -> Scheduler:
    """Linear scores are brought up to date at the beginning of each decision."""

    def begin(world: World) -> None:
        for score in scores:
            if isinstance(score, linear.Score):
                score.renew(world)
        decide(world)

    return begin


# --- names --------------------------------------------------------------------------------------
def scheduler(
    name: str, head: str = "lowest-id", depth: int | None = None, rebuild: bool = False, keys: list[float] | None = None
) -> tuple[Scheduler, bool]:
    """(decide, strict) by name. `keys` [jobs]: the order of "random"."""
    latest = head == "latest-released"
    name, parts = split(name)
    name = {"easy+": "easy", "easy++": "easy-sjf"}.get(name, name)
    if "queue" in parts:
        score = score_of(parts["queue"])
        passing = score_of(parts["backfill"]) if "backfill" in parts else None
        decide = easy_priority(score, latest, passing) if name == "easy" else conservative(depth, rebuild, score)
        return renewed(decide, score, passing), False
    if name == "fcfs":
        return strict(None), True
    if name in ("saf", "easy-saf"):
        return easy(SCORES["saf"], latest), False
    if name in ("saf-strict",) or (name in SCORES and name != "saf"):
        return strict(SCORES[name.removesuffix("-strict")]), True
    if name == "random":
        assert keys is not None
        drawn = list(keys)
        return greedy(lambda job, world: drawn[job.row]), False
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
