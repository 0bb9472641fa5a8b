"""Figures of `marl2024`, episode by episode, out of its cells, and a claim on two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from escala.envs.slots.heuristics import PUBLISHED
from escala.metrics.bootstrap import paired
from escala.studies.lab.claims import Claim, at_most

Cells = Mapping[str, Any]
OVERLOAD = 70  # per cent
APART = (50, 90)
"""Loads of which each has a team of its own where teams learn from nothing."""
KINDS = {"team": "in turns, global", "imitated": "imitates dense", "void": "in turns, until void",
         "local": "in turns, local",
         "printed": "R4's settings", "ahead": "taught by look-ahead", "nothing": "from nothing, global",
         "nothing-local": "from nothing, local", "nothing-shared": "from nothing, shared parameters",
         "nothing-simultaneous": "from nothing, all at once", "growth": "growth", "central": "central"}  # fmt: skip
"""Kind of cells -> its name in tables; the cells of those that learn from nothing have the load as well, as in
growth-50."""


def plain(kind: str) -> str:
    """A kind of cells without the load that it may name."""
    return kind.rsplit("-", 1)[0] if kind.rsplit("-", 1)[-1].isdigit() else kind


def seeds_of(cells: Cells, prefix: str) -> list[str]:
    """Cells done of this kind."""
    return sorted(name for name in cells if name.rsplit("/", 1)[0] == prefix)


def values(cells: Cells, names: list[str], load: int, how: str, what: str = "slowdown") -> np.ndarray:
    """[seeds, episodes]; NaN where a run was not finished."""
    rows = [cells[name][str(load)][how][what] for name in names]
    return np.array([[np.nan if v is None else float(v) for v in row] for row in rows], np.float64)


def best_acting(cells: Cells, names: list[str], loads: Sequence[int]) -> str:
    """Sampled or greedy actions of these trainings, by the mean of the logarithm of their mean slowdown on validation
    lists."""
    tried = {"likeliest": "validation", "sampled": "validation_sampled"}
    means = {
        how: np.array([values(cells, names, load, which).mean() for load in loads]) for how, which in tried.items()
    }
    return min(means, key=lambda how: np.inf if np.isnan(means[how]).any() else float(np.log(means[how]).mean()))


def rule_values(cells: Cells, shape: str, load: int, rule: str, *path: str) -> np.ndarray:
    """[episodes]."""
    content = cells[f"rules/{shape}/{load}"][rule]
    for key in path or ("slowdown",):
        content = content[key]
    return np.array(content, np.float64)


def best_of(cells: Cells, shape: str, load: int, *path: str) -> tuple[str, np.ndarray]:
    """The best of R4's heuristics, as a team of as many agents, by mean slowdown on these very lists. path: ("central",
    "slowdown") for one scheduler of all machines, ("void", "slowdown") for teams whose turns last until the no-op."""
    found = {rule: rule_values(cells, shape, load, rule, *path) for rule in PUBLISHED}
    best = min(found, key=lambda rule: float(found[rule].mean()))
    return best, found[best]


def claim(ident: str, text: str, ours: np.ndarray, theirs: np.ndarray, most: float, note: str) -> Claim:
    """Relative change of a mean; holds: `at_most(most)`, and every run finished."""
    unfinished = int(np.isnan(ours).sum() + np.isnan(theirs).sum())
    if unfinished or not ours.size:
        told = f"{note}; {unfinished} runs not finished"
        return Claim(ident, text, None, None, None, None, "relative change", len(ours), ours.shape[1], False, told)
    found = paired(ours, theirs)
    holds = at_most(most, slack=0.0)(float(found.value), float(found.low), float(found.high))
    return Claim(
        ident,
        text,
        None,
        found.value,
        found.low,
        found.high,
        "relative change",
        found.seeds,
        found.episodes,
        holds,
        note,
    )


def kept(cells: Cells, names: list[str], first: str = "as imitated") -> str:
    """What a note says of the weights that judges kept. first: how a team is before it learns."""
    return f"; weights kept after {', '.join(str(cells[name]['kept']) for name in names)} decisions (0: {first})"


def label(load: int) -> str:
    """What a note says of such a load."""
    return "; overload, depends on the window" if load > OVERLOAD else ""
