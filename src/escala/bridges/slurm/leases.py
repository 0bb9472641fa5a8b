"""Nodes that are kept off by short reservations: when nobody renews them they end, and Slurm wakes its nodes itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from escala.bridges.slurm.guard import FREE, LEASE, OFF_NODE, RENEW, WAKE, Guard, Wanted
from escala.bridges.slurm.seen import Reservation, Seen
from escala.bridges.slurm.snapshots import OFF, ON, Layout, power_of

FRESH_S = 15.0
"""How long a node may take to show that it goes off."""


def held(seen: Seen, owns: Callable[[Reservation], bool]) -> dict[str, float]:
    """Nodes with a lease of ours -> when it ends."""
    return {one.hosts[0]: one.end_s for one in seen.reservations.values() if owns(one)}


def wanted(seen: Seen, at: Layout, guard: Guard, wakes: Iterable[str], offs: Iterable[str]) -> list[Wanted]:
    """What to do with nodes at a look, leases first: those of nodes that are on again are given up, others renewed when
    a third of their time has gone; nodes that are off without one get it. Where jobs have waited too long, or Slurm
    does not start what it could, all leases are given up; those of nodes that jobs of other partitions wait for,
    too."""
    kept, limits, now = held(seen, guard.owns), guard.limits, seen.now_s
    waking = [name for name in wakes if power_of(seen.nodes[name]) == OFF]
    claimed = guard.claimed(seen)
    if guard.held_up(seen):
        given_up = [Wanted(FREE, name) for name in kept if name in at.index]
        return [*given_up, *(Wanted(OFF_NODE, name) for name in offs)]  # which the guard refuses
    out: list[Wanted] = []
    for name, end in kept.items():
        node = seen.nodes.get(name)
        if node is None or name not in at.index:
            continue
        if (power_of(node) == ON and not _fresh(guard, name, now)) or "DOWN" in node.state or name in claimed:
            out.append(Wanted(FREE, name))
        elif end - now < limits.lease_s * 2 / 3:
            out.append(Wanted(RENEW, name))
    out += [Wanted(WAKE, name) for name in waking]
    out += [Wanted(LEASE, name) for name in _bare(seen, at, kept, claimed.union(waking)) if name in limits.allowed]
    return out + [Wanted(OFF_NODE, name) for name in offs if name not in kept or not _fresh(guard, name, now)]


def _fresh(guard: Guard, name: str, now: float) -> bool:
    """Was it told to go off a moment ago?"""
    off = guard.memory.off_at.get(name, -1e18)
    return now - off < FRESH_S and guard.memory.on_since.get(name, -1e18) <= off


def _bare(seen: Seen, at: Layout, kept: dict[str, float], waking: Set[str]) -> list[str]:
    """Nodes that are off without a lease, as a bridge that died leaves them."""
    nodes = (seen.nodes[name] for name in at.names if name not in kept and name not in waking)
    return [
        node.name for node in nodes if power_of(node) == OFF and "IDLE" in node.state and "RESERVED" not in node.state
    ]
