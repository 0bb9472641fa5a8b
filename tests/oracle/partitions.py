"""Random partitions of a world, and which of them its jobs name."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.nodes import could_hold, parts_of
from tests.oracle.oracle import make_nodes
from tests.oracle.world import Job

ASKED = (
    *("nodes", "tasks", "cores_per_task", "tasks_per_node", "memory_mb_per_core", "memory_mb_per_node"),
    *("gpus_per_node", "gpus_per_task", "gpu_kind", "exclusive", "features", "required_nodes", "excluded_nodes"),
)


def draw_partitions(
    rng: random.Random, jobs: list[dict[str, Any]], platform: dict[str, Any], options: dict[str, Any]
) -> None:
    """Partitions that overlap, some with limits, and one of all nodes for jobs that fit no other."""
    nodes = range(len(platform["cores"]))
    every: dict[str, Any] = {"name": "all", "nodes": [*nodes], "default": rng.random() < 0.5}
    platform["partitions"] = [every]
    for name in rng.sample(("p", "q", "r"), rng.randint(1, 3)):
        one = {"name": name, "nodes": sorted(rng.sample(nodes, rng.randint(1, len(nodes))))}
        one |= {"max_s": rng.choice((None, None, None, 60, 120)), "up": rng.random() < 0.9}
        platform["partitions"].append(one | {"exclusive": rng.random() < 0.2})
    if not every["default"]:
        rng.choice(platform["partitions"])["default"] = True
    known = [one["name"] for one in platform["partitions"]]
    for job in jobs:
        several = ", ".join(rng.sample(known, rng.randint(1, len(known))))
        asked = {"partition": rng.choice((None, several, *known)), "queue": rng.choice((None, "none", *known))}
        dropped = options.get("oversized") == "drop" and not is_possible(job | asked, platform, "never")
        possible = dropped or is_possible(job | asked, platform, options["shutdown"])
        job |= asked if possible else {"partition": "all", "queue": None}


def is_possible(job: dict[str, Any], platform: dict[str, Any], shutdown: str) -> bool:
    """Could the job run on the empty platform, whatever nodes an off-reservation keeps?"""
    nodes = make_nodes(platform, False)
    parts = parts_of(job, nodes, platform.get("partitions", ()))
    kept = int(shutdown.partition(":")[2]) if shutdown.startswith("off-reservation") else 0
    if parts is None:
        return bool(job["cores"] <= sum(sorted(platform["cores"])[: len(nodes) - kept]))
    asking = Job(0, "", 0.0, 1.0, 1.0, job["cores"], parts=parts.cores, most=parts.most, demands=parts.demands)
    asking.allowed = parts.allowed
    room = sorted(could_hold(node, asking) for node in nodes)[: len(nodes) - kept]
    return not parts.impossible and sum(room) >= len(parts.cores)


def draw_apart(
    rng: random.Random, jobs: list[dict[str, Any]], platform: dict[str, Any], options: dict[str, Any]
) -> None:
    """Groups of nodes that share none, each of one partition or of several that overlap; some nodes may be of no
    partition. In some worlds a job may name partitions of two groups. Jobs that fit none become small."""
    nodes = list(range(len(platform["cores"])))
    platform.setdefault("names", [f"n{k}" for k in nodes])
    rng.shuffle(nodes)
    edges = sorted(rng.sample(range(1, len(nodes)), rng.randint(1, min(len(nodes) - 1, 4))))
    groups = [sorted(nodes[a:b]) for a, b in zip([0, *edges], [*edges, len(nodes)], strict=True)]
    if len(groups) > 2 and rng.random() < 0.2:
        groups.pop()
    platform["partitions"] = []
    for k, group in enumerate(groups):
        one = {"max_s": rng.choice((None, None, None, 60)), "up": True, "exclusive": rng.random() < 0.1}
        platform["partitions"].append({"name": f"p{k}", "nodes": group, **one})
        if rng.random() < 0.3:
            some = sorted(rng.sample(group, rng.randint(1, len(group))))
            platform["partitions"].append({"name": f"q{k}", "nodes": some, "up": rng.random() < 0.8})
    rng.choice(platform["partitions"])["default"] = True
    kind, _, number = options["shutdown"].partition(":")
    if kind == "off-reservation" and int(number) >= max(map(len, groups)):
        options["shutdown"] = "timeout:0"
    across = rng.choice((0.0, 0.0, 0.05))
    known = [one["name"] for one in platform["partitions"]]
    for job in jobs:
        for name in rng.sample(known, len(known)):
            asked = {"partition": rng.choice((None, name, name, name)), "queue": rng.choice((None, name))}
            if rng.random() < across:
                asked["partition"] = ",".join(rng.sample(known, 2)) if len(known) > 1 else name
            if is_possible(job | asked, platform, options["shutdown"]):
                job |= asked
                break
        else:
            job |= smallest(job, platform, options["shutdown"])


def smallest(job: dict[str, Any], platform: dict[str, Any], shutdown: str) -> dict[str, Any]:
    """A job of one core, in a partition that takes it, and short enough for it."""
    nothing = {name: None for name in ASKED if name in job} | {name: 0 for name in job if name.startswith("demand_")}
    short = {name: min(job[name], 60.0) for name in ("runtime_s", "walltime_s")}
    little = nothing | short | {"cores": 1, "single_node": False}
    largest = max((one for one in platform["partitions"] if one["up"]), key=lambda one: len(one["nodes"]))
    return little | {"partition": largest["name"], "queue": None}
