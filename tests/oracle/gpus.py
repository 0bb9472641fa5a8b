"""Watts of GPUs, from first principles: those of a running job compute, the others of a node that is on idle."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

KINDS = ("", "a", "b")


def draw_watts(rng: random.Random, platform: dict[str, Any]) -> None:
    """To every profile of a platform with GPUs watts of them: one number, or by kind."""
    if "gpu" not in platform.get("resources", {}):
        return
    by_kind = rng.random() < 0.6
    for profile in platform["profiles"]:
        low = {kind: rng.choice((0.0, 7.0, 12.5)) for kind in KINDS}
        high = {kind: low[kind] + rng.choice((0.0, 30.0, 62.5)) for kind in KINDS}
        profile["gpu_idle_w"], profile["gpu_computing_w"] = (low, high) if by_kind else (low[""], high[""])


def have(capacity: dict[str, int]) -> dict[str, int]:
    """Kind -> GPUs of a node, from its further resources."""
    found = {kind: capacity.get(f"gpu:{kind}", 0) for kind in KINDS[1:]}
    return found | {"": capacity.get("gpu", 0) - sum(found.values())}


def idle_of(node: Any) -> Fraction:
    """Watts of a node of the oracle while it is on and nothing computes."""
    return Fraction(node.profile.idle_w) + idle_w(node.capacity, node.profile.gpu_idle_w)


def more_of(node: Any, job: Any) -> Fraction:
    """What the GPUs of a running job on that node draw more."""
    held = {kind: amount * job.parts_on[node.number] for kind, amount in job.demands.items()}
    return more_w(node.capacity, node.profile.gpu_idle_w, node.profile.gpu_computing_w, held)


def idle_w(capacity: dict[str, int], told: Any) -> Fraction:
    """All GPUs of a node, idle."""
    return sum((count * _watts(told, kind) for kind, count in have(capacity).items()), Fraction(0))


def more_w(capacity: dict[str, int], idle: Any, computing: Any, held: dict[str, int]) -> Fraction:
    """What those that a job has draw more: of its kind, or the mean of the node's."""
    there = have(capacity)
    extra = {kind: _watts(computing, kind) - _watts(idle, kind) for kind in there}
    named = {kind: held.get(f"gpu:{kind}", 0) for kind in KINDS[1:]}
    mean = sum((extra[kind] * count for kind, count in there.items()), Fraction(0)) / max(sum(there.values()), 1)
    any_kind = held.get("gpu", 0) - sum(named.values())
    return sum((extra[kind] * count for kind, count in named.items()), any_kind * mean)


def _watts(told: Any, kind: str) -> Fraction:
    if isinstance(told, dict):
        return Fraction(told[kind] if kind in told else told.get("", 0.0))
    return Fraction(told)
