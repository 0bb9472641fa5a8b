"""The oracle's ledgers: node states and joules over a window, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.oracle.world import World

STATES = ("computing", "idle", "off", "switching_off", "switching_on")


def merged(numbers: list[int]) -> str:
    """Interval list: [0, 1, 2, 7] -> "0-2 7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def ledgers(world: World, begin: int, end: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tables `nodes` and `power` over [begin, end] of the clock."""
    nodes: list[dict[str, Any]] = []
    power: list[dict[str, Any]] = []
    for node in world.nodes:
        stretches = [*node.stretches, (node.since, max(end, node.since), node.label, node.watts)]
        seconds = dict.fromkeys(STATES, 0)  # microseconds
        joules = dict.fromkeys(STATES, Fraction(0))
        for start, to, state, watts in stretches:
            start, to = max(start, begin), min(to, end)
            if to <= start:
                continue
            seconds[state] += to - start
            joules[state] += watts * (to - start) / 10**6
            if nodes and nodes[-1]["node"] == node.number and nodes[-1]["state"] == state:
                nodes[-1]["to_s"] = to / 1e6  # the watts alone have changed
            else:
                nodes.append({"node": node.number, "from_s": start / 1e6, "to_s": to / 1e6, "state": state})
        for state in STATES:
            entries = sum(1 for time, entered in node.entries if entered == state and begin <= time < end)
            row = {
                "node": node.number,
                "state": state,
                "seconds": seconds[state] / 1e6,
                "joules": joules[state],
                "transitions": entries,
            }
            power.append(row)
    return nodes, power
