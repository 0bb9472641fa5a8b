"""Nodes that are down or drained for a while, and come back."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.world import Job, World, microseconds


def turns(platform: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """(moment, closure), us: moments at which nodes go or come back; those before the clock's zero are at it."""
    found = []
    for one in platform.get("closed", ()):
        begins, ends = microseconds(one["from_s"]), microseconds(one["until_s"])
        if ends > 0:
            found += [(max(begins, 0), one), (ends, one)]
    return found


def go_and_come_back(world: World, closed: list[tuple[int, dict[str, Any]]]) -> bool:
    """Nodes are gone that are in some closure now; does one go or come back?"""
    if not any(moment == world.now for moment, _ in closed):
        return False
    is_on = [one for moment, one in closed if max(microseconds(one["from_s"]), 0) <= world.now]
    is_on = [one for one in is_on if world.now < microseconds(one["until_s"])]
    goes = [one for one in is_on if max(microseconds(one["from_s"]), 0) == world.now]
    before = {node.number for node in world.nodes if node.gone}
    for job in [*world.running, *world.given]:
        world.spans.append((job, world.given_at[job.row], world.now, world.cores_there(job)))
        world.given_at[job.row] = world.now
    for node in world.nodes:
        node.gone = any(node.number in one["nodes"] for one in is_on)
        if node.gone or node.number in before:
            node.timer = None
        if node.number in before and not node.gone and world.is_idle(node):
            node.idle_since = world.now
    for job in [*world.running, *world.given]:
        mine = {number for number, _ in job.held}
        if job.state == "given":
            if any(world.nodes[number].gone and number not in before for number in mine):
                wait_again(world, job)
            continue
        hit = [one for one in goes if one.get("kind", "down") == "down" and mine & set(one["nodes"])]
        # the first closure in which each of its nodes is
        firsts = [next(one for one in hit if n in one["nodes"]) for n in mine if any(n in one["nodes"] for one in hit)]
        if not hit:
            continue
        if all(one.get("requeue", True) for one in firsts):
            assert job.start is not None
            job.lost += world.now - job.start
            wait_again(world, job)
        else:
            job.cut = True
            world.end(job)
    for job in [*world.running, *world.given]:
        job.gone = frozenset(number for number, _ in job.held if world.nodes[number].gone)
    for job in world.queue:
        job.plan = None
    world.reservations.clear()
    world.refresh()
    return True


def wait_again(world: World, job: Job) -> None:
    """From its old place in the queue; it runs anew."""
    (world.running if job.state == "running" else world.given).remove(job)
    job.state = "waiting"
    for number, _ in job.held:
        node = world.nodes[number]
        node.holders = [holder for holder in node.holders if holder[0] is not job]
        world.note_idle(node)
        world.changed(node)
    job.gone = frozenset()
    job.held, job.parts_on, job.start, job.planned_end, job.moves = [], {}, None, None, 0
    world.queue = sorted([*world.queue, job], key=world.queue_key)


def draw_outages(rng: random.Random, jobs: list[dict[str, Any]], platform: dict[str, Any]) -> None:
    """Some nodes of a drawn world are gone for a while. Not where jobs name nodes that have no names: a site refuses
    that."""
    if "names" not in platform and any(job.get("required_nodes") or job.get("excluded_nodes") for job in jobs):
        return
    nodes, closed, grid = len(platform["cores"]), [], rng.choice((1.0, 1.0, 0.5, 10.0, 0.1, 1e-6))
    last = max(job["submit_s"] + job["runtime_s"] for job in jobs)
    steps = max(4, min(60, int(1.5 * last / grid)))
    for _ in range(rng.choice((1, 2, 3, 5, 8))):
        near = rng.choice(jobs)
        begins = rng.choice((rng.randint(-2, steps), int((near["submit_s"] + near["runtime_s"] / 2) / grid)))
        some = rng.sample(range(nodes), rng.choice((1, 1, min(2, nodes), rng.randint(1, nodes))))
        closed.append(
            {
                "nodes": sorted(some),
                "from_s": round(begins * grid, 6),
                "until_s": round((begins + rng.choice((1, 2, 3, 8, 20))) * grid, 6),
                "kind": rng.choice(("down", "down", "drain")),
                "requeue": rng.random() < 0.7,
            }
        )
    platform["closed"] = closed
