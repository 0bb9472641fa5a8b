"""Queues of their own: groups of partitions that share no node, and that no job names together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.oracle.nodes import taking_of

if TYPE_CHECKING:
    from tests.oracle.scores import Scheduler
    from tests.oracle.world import World


def lanes_of(rows: list[dict[str, Any]], nodes: int, partitions: Sequence[dict[str, Any]]) -> list[set[int]]:
    """The nodes of each queue; those of no partition are one more. All nodes, where there is one queue."""
    lanes = list[set[int]]()
    for some in [[one] for one in partitions if one.get("up", True)] + [taking_of(row, partitions) for row in rows]:
        mine = {number for one in some for number in one["nodes"]}
        if mine:
            mine = mine.union(*(lane for lane in lanes if lane & mine))
            lanes = [lane for lane in lanes if not lane & mine] + [mine]
    rest = set(range(nodes)).difference(*lanes)
    return lanes + [rest] * bool(rest) if len(lanes) > 1 else [set(range(nodes))]


def lane_of(row: dict[str, Any], lanes: list[set[int]], partitions: Sequence[dict[str, Any]]) -> int:
    """In which of them a job stands."""
    mine = {number for one in taking_of(row, partitions) for number in one["nodes"]}
    return next((k for k, lane in enumerate(lanes) if lane & mine), 0)


def apart(decide: Scheduler) -> Scheduler:
    """One queue after the other, each as if there were no other."""

    def each(world: World) -> None:
        every = list(world.queue)
        for k in range(len(world.lanes)):
            world.queue = [job for job in every if job.lane == k]
            decide(world)
        world.queue = [job for job in every if job.state == "waiting"]

    return each
