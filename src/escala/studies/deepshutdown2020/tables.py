"""What the cells of the study `deepshutdown2020` hold, by policy: the fixed rules, the searched agents, and the other
learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from escala.platform import Platform, read_platform
from escala.studies.deepshutdown2020.cells import HOLDS
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.resampled import Floats, table_of, to_end_of

AGENT, LIKELIEST = "agent", "agent, likeliest"
FRONTIER = ("timeout:0", *HOLDS)
LEARNERS = {"ordered": "MaskablePPO, ordered", "printed": "MaskablePPO, printed"}
"""Preset -> the name of its agents, sampled, in tables."""
Cells = Mapping[str, Any]


def seeds_of(cells: Cells, name: str, worth: str = "1") -> list[Any]:
    """The searched agents of an input."""
    return _under(cells, f"search/{name}/{worth}/")


def learners_of(cells: Cells, name: str) -> dict[str, list[Any]]:
    """Preset -> the agents of an input that MaskablePPO trained, where there are some."""
    every = {preset: _under(cells, f"ppo/{name}/{preset}/") for preset in LEARNERS}
    return {preset: found for preset, found in every.items() if found}


def worths_of(cells: Cells, name: str) -> list[str]:
    """The prices that agents of an input were searched at, in multiples of the usual one."""
    return sorted({key.split("/")[2] for key in cells if key.startswith(f"search/{name}/")}, key=float)


def _under(cells: Cells, start: str) -> list[Any]:
    return [cells[key] for key in sorted(cells) if key.startswith(start)]


def tables(cells: Cells, name: str, window: str, part: str = "test", worth: str = "1") -> dict[str, dict[str, Floats]]:
    """Policy -> column -> [seeds, days]: the fixed policies, on held-out days all of them, the searched agents as
    "agent", and those of MaskablePPO; energies are counted until T(0)'s end of each day."""
    out = {policy: table_of([columns]) for policy, columns in fixed_of(cells, name, window, part).items()}
    for how, label in (("sampled", AGENT), ("likeliest", LIKELIEST)):
        out[label] = table_of([cell[part][window][how] for cell in seeds_of(cells, name, worth)])
    for preset, found in learners_of(cells, name).items():
        out[LEARNERS[preset]] = table_of([cell[part][window]["sampled"] for cell in found])
    return to_end_of(out, "timeout:0", platform_of(cells, name).asleep_w)


def fixed_of(cells: Cells, name: str, window: str, part: str) -> dict[str, Any]:
    """Policy -> columns of the policies without learning."""
    if part != "test":
        return dict(cells[f"fixed/{part}"][window])
    rules = cells[f"fixed/{name}"][window] | cells[f"variants/{name}"][window]
    return rules | (cells["random/test"].get(window, {}) if name == inputs.AUTHOR else {})


def idle_minute_j(cells: Cells, name: str) -> float:
    """J that an input's whole platform takes in a minute of idling: all have the dissertation's profile, a node
    each."""
    platform = platform_of(cells, name)
    return 60.0 * platform.n_nodes * platform.profiles[0].idle_w


def platform_of(cells: Cells, name: str) -> Platform:
    """An input's nodes, for their power; of one core each."""
    return read_platform(f"{cells[f'about/{name}']['nodes']}x1", inputs.POWER)
