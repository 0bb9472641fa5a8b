"""Jobs that go by nodes: what a job's columns ask for, as parts that each lie on one node.

Written from the rule (docs/design.md, section 4), for one job at a time. `nodes` are those of the platform, empty.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.oracle.world import Allocation, Job, Node


ALONE, ALL = "alone", 1 << 20
"""Of this each node has ALL, where some jobs have nodes of several sizes to themselves: their parts take all of it, and
those of others one."""


class Parts(NamedTuple):
    cores: list[int]  # of each part; the first ones may have more
    most: int  # on one node
    demands: dict[str, int]  # of each part
    impossible: bool = False  # it asks for a kind of GPU that there is not
    allowed: frozenset[int] | None = None  # numbers of the nodes on which they may lie; None: all


def is_alone(row: dict[str, Any], nodes: list[Node], partitions: Sequence[dict[str, Any]] = ()) -> bool:
    """Has a job nodes to itself, which may be of several sizes? Where it says no number of nodes, they are as many as
    it can be dealt out to evenly; where it cannot, it shares them."""
    parts = parts_of(row, nodes, partitions, True)
    return parts is not None and parts.demands[ALONE] == ALL


def parts_of(
    row: dict[str, Any], nodes: list[Node], partitions: Sequence[dict[str, Any]] = (), beside: bool = False
) -> Parts | None:
    """None: cores of any nodes. beside: some jobs are `alone`."""
    kinds = nodes[0].capacity if nodes else {}
    cores, single = int(row["cores"]), bool(row.get("single_node"))
    named = {k.removeprefix("demand_"): v for k, v in row.items() if single and k.startswith("demand_") and v}
    per, a_node = row.get("cores_per_task") or 1, row.get("tasks_per_node")
    memory_core, memory_node = (
        (row.get(f"memory_mb_per_{what}") or 0) * ("memory" in kinds) for what in ("core", "node")
    )
    gpus_node, gpus_task = ((row.get(f"gpus_per_{what}") or 0) * ("gpu" in kinds) for what in ("node", "task"))
    taking = taking_of(row, partitions) if partitions else None
    allowed = allowed_of(row, nodes, taking)
    mine = [node for node in nodes if allowed is None or node.number in allowed]
    exclusive = row.get("exclusive") or (taking and taking[0].get("exclusive"))
    whole = mine[0].cores if exclusive and len({node.cores for node in mine}) == 1 else 0
    required = row.get("required_nodes") and nodes[0].name is not None
    asked = row.get("nodes") or (1 if single else None)
    count = asked or (1 if required else None)
    tasks = row.get("tasks")
    if tasks is None:
        tasks = asked * a_node if asked and a_node else max(-(-cores // per), asked or 1)
    alone = bool(exclusive) and not whole
    if count is None and (memory_node or gpus_node or exclusive):
        count = fewest(mine, tasks, per, a_node, memory_core, memory_node, gpus_node, gpus_task)
        if alone and not dealt_out(mine, count, tasks, per, a_node, memory_core, memory_node, gpus_node, gpus_task):
            alone = False
            count = count if memory_node or gpus_node else None
    if count is None and per == 1 and not a_node and not memory_core and not gpus_task and allowed is None:
        return Parts([1] * cores, cores, {ALONE: 1}) if beside else None
    if count is None:  # tasks pack as they fit
        each = per if tasks * per == cores else -(-cores // tasks)
        found, most, tasks_in_part = [each] * tasks, a_node or tasks, 1
    else:
        by_task = tasks * per == cores and tasks >= count
        units, unit = (tasks, per) if by_task else (max(cores, count), 1)
        found = [unit * len(range(k, units, count)) for k in range(count)]  # dealt out one by one
        most, tasks_in_part = 1, -(-tasks // count)
    if whole:
        found = [max(whole, *found)] * len(found) if len(found) > 1 else [max(whole, found[0])]
    demands = {
        "memory": memory_node + memory_core * max(found),
        "gpu": gpus_node + gpus_task * tasks_in_part,
    }
    kind = row.get("gpu_kind")
    some = any(name.startswith("gpu:") for name in kinds)
    if kind and some:
        demands[f"gpu:{kind}"] = demands["gpu"]
    wanted = {name: max(amount, named.get(name, 0)) for name, amount in (named | demands).items()}
    wanted = {name: amount for name, amount in wanted.items() if amount}
    wanted |= {ALONE: ALL if alone else 1} if beside else {}
    return Parts(found, most, wanted, bool(kind and some and f"gpu:{kind}" not in kinds), allowed)


def taking_of(row: dict[str, Any], partitions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the partitions that a job names, else of its queue or the default, those that take it."""
    named = row.get("partition")
    if named is None and row.get("queue") in {one["name"] for one in partitions}:
        named = row["queue"]
    asked = [one for one in partitions if one.get("default")] if named is None else []
    for name in [] if named is None else named.split(","):
        asked += [one for one in partitions if one["name"] == name.strip()]
    limit = 60 * math.ceil(row["walltime_s"] / 60 - 1e-9)
    return [one for one in asked if one.get("up", True) and limit <= (one.get("max_s") or math.inf)]


def allowed_of(
    row: dict[str, Any], nodes: list[Node], taking: list[dict[str, Any]] | None = None
) -> frozenset[int] | None:
    """The nodes on which a job may lie, None: all. Features count where some node has one, names where nodes are
    named. A feature that no node has is of no node, whatever it is joined to. taking: the partitions, if there are
    any."""
    every = frozenset(node.number for node in nodes)
    known = {word for node in nodes for word in node.features}
    words = re.findall("[&|,()]|[^&|,()]+", row.get("features") or "") if known else []
    if set(words) - known - set("&|,()"):
        return frozenset()
    found = having(words, nodes)
    if taking is not None:
        found &= {number for one in taking for number in one["nodes"]}
    required, excluded = (row.get(f"{what}_nodes") for what in ("required", "excluded"))
    if required and nodes[0].name is not None:
        found &= {node.number for node in nodes if node.name in required.split(",")}
    if excluded and nodes[0].name is not None:
        found -= {node.number for node in nodes if node.name in excluded.split(",")}
    return None if found == every else found


def having(words: list[str], nodes: list[Node]) -> frozenset[int]:
    """Those with these features, up to the end or to the parenthesis that closes; these words go."""
    found, joined = frozenset(node.number for node in nodes), "&"
    while words and (word := words.pop(0)) != ")":
        if word in "&|,":
            joined = word
            continue
        inner = having(words, nodes) if word == "(" else {node.number for node in nodes if word in node.features}
        found = found | inner if joined == "|" else found & inner
    return found


def may_lie(job: Job, node: Node) -> bool:
    return job.allowed is None or node.number in job.allowed


def fewest(nodes: list[Node], tasks: int, *asked: Any) -> int:
    """The fewest nodes that could hold so many tasks, dealt out evenly; where no number could, what the best needs.
    asked: as `tasks_on` takes it."""
    found = tasks_on(nodes, *asked)
    best = max(found, default=0)
    for count in range(1, len(nodes) + 1):
        if sum(here >= -(-tasks // count) for here in found) >= count:
            return count
    return -(-tasks // best) if best else 1


def dealt_out(nodes: list[Node], count: int, tasks: int, *asked: Any) -> bool:
    """Could so many nodes hold them, dealt out evenly?"""
    return sum(here >= -(-tasks // count) for here in tasks_on(nodes, *asked)) >= count


def tasks_on(
    nodes: list[Node],
    per: int,
    a_node: int | None,
    memory_core: int,
    memory_node: int,
    gpus_node: int,
    gpus_task: int,
) -> list[int]:
    """How many tasks each node could hold, of those that have what is asked of each."""
    found = list[int]()
    for node in nodes:
        memory, gpus = node.capacity.get("memory", 0), node.capacity.get("gpu", 0)
        if memory < memory_node or gpus < gpus_node:
            continue
        here = 0
        while (
            (here + 1) * per <= node.cores
            and (here + 1) * per * memory_core <= memory
            and (here + 1) * gpus_task <= gpus
            and (a_node is None or here + 1 <= a_node)
        ):
            here += 1
        found.append(here)
    return found


def times(job: Job, cores: int, free: Callable[[str], int]) -> int:
    """How many parts of the job, as large as its largest, go into so many cores and what is free of further kinds."""
    assert job.parts is not None
    count = 0
    while (
        count < job.most
        and (count + 1) * max(job.parts) <= cores
        and all((count + 1) * amount <= free(kind) for kind, amount in job.demands.items())
    ):
        count += 1
    return count


def could_hold(node: Node, job: Job) -> int:
    """Capacity alone: how many parts of the job the empty node holds."""
    return times(job, node.cores, lambda kind: node.capacity.get(kind, 0)) if may_lie(job, node) else 0


def deal(job: Job, nodes: list[Node], room: Callable[[Node], int]) -> Allocation | None:
    """The parts of the job dealt out to the nodes in their order, to each as many as there is room for; None if there
    is not enough."""
    assert job.parts is not None
    left, place = list(job.parts), list[tuple[int, int]]()
    for node in nodes:
        here, left = left[: room(node)] if left else [], left[room(node) :] if left else []
        if here:
            place.append((node.number, sum(here)))
    return None if left else place


def lasts(job: Job, speeds: Sequence[float]) -> int:
    """us that the job would run without a limit on nodes of these speeds: as long as on the slowest, if it computes."""
    us, slowest = math.floor(job.runtime_s * 1e6 + 0.5), min(speeds, default=1.0)
    return us if slowest == 1.0 or job.load == 0 else max(1, math.floor(us / slowest + 0.5))


def parts_in(job: Job, place: Allocation) -> dict[int, int]:
    """Node -> how many parts of the job a place has there."""
    left, found = list(job.parts or []), dict[int, int]()
    for number, count in place:
        k = 0
        while job.parts is not None and count > 0:
            count -= left.pop(0)
            k += 1
        found[number] = k
    return found


def first_cores(offers: list[tuple[int, int]], cores: int) -> list[tuple[int, int]] | None:
    """The first so many cores of the offers, in their order; None if there are too few."""
    place: list[tuple[int, int]] = []
    for number, free in offers:
        count = min(free, cores)
        if count > 0:
            place.append((number, count))
            cores -= count
    return place if cores == 0 else None
