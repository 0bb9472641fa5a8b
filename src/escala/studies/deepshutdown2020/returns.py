"""Returns in the study `deepshutdown2020`: by the reward that the searches go by, and by R3's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from escala.studies.deepshutdown2020.tables import (
    AGENT,
    LEARNERS,
    LIKELIEST,
    Cells,
    idle_minute_j,
    learners_of,
    seeds_of,
)
from escala.studies.lab.claims import Claim, at_least
from escala.studies.lab.resampled import Floats, Resampled, interval

Columns = Mapping[str, Any]
Measure = Callable[[Columns], Floats]
"""Columns of a policy -> what each day returned, in idle minutes of the platform."""


def priced(cells: Cells, name: str, cost: float) -> Measure:
    """-(energy waste + `cost` a walltime waited)."""
    idle_j = idle_minute_j(cells, name)
    return lambda columns: -(np.array(columns["waste_j"]) / idle_j + cost * np.array(columns["waited"]))


def printed(cells: Cells, name: str) -> Measure:
    """R3's own: -(energy waste + the share of the cores that late jobs which could start want, a minute)."""
    idle_j, cores = idle_minute_j(cells, name), cells[f"about/{name}"]["cores"]
    return lambda columns: -(np.array(columns["waste_j"]) / idle_j + np.array(columns["late"]) / cores)


def price_of(cells: Cells, name: str) -> float:
    """What a walltime waited costs in an input's searches."""
    return float(np.mean([cell["cost"] for cell in seeds_of(cells, name)]))


def claims(cells: Cells, name: str, window: str) -> list[Claim]:
    """Returns of the searched agents against T(0)'s and the best constant choice's, by both rewards; those of
    MaskablePPO by R3's own."""
    cost, ended = price_of(cells, name), "drained" if window == "drain" else "cut"
    by_price = f"reward: -(energy waste + {cost:.3f} a walltime waited); test days, {ended}"
    by_r3 = (
        "R3's own reward, -(energy waste + share of the cores that late jobs which could start want, a minute); test "
        f"days, {ended}; the best constant is chosen in hindsight"
    )
    own = printed(cells, name)
    out = _against_constants(
        cells, name, window, "return", priced(cells, name, cost), seeds_of(cells, name), ("the agent", by_price)
    )
    out += _against_constants(
        cells,
        name,
        window,
        "return_r3",
        own,
        seeds_of(cells, name),
        ("the agent", f"{by_r3}; the agent was not searched by it"),
    )
    for preset, found in learners_of(cells, name).items():
        told = by_r3 if preset == "printed" else f"{by_r3}; the agent was not trained by it"
        out += _against_constants(cells, name, window, f"{preset}.return_r3", own, found, (LEARNERS[preset], told))
    return out


def _against_constants(
    cells: Cells, name: str, window: str, key: str, measure: Measure, seeds: Sequence[Any], words: tuple[str, str]
) -> list[Claim]:
    """words: the agent's name, and the note."""
    ours = np.array([measure(cell["test"][window]["sampled"]) for cell in seeds])
    theirs = {policy: measure(columns) for policy, columns in cells[f"constants/{name}"][window].items()}
    best = max(theirs, key=lambda policy: theirs[policy].sum())
    who, note = words
    out = []
    for against, policy, text in (
        ("t0", "hold:0", "T(0)'s"),
        ("constants", best, f"the best constant choice's ({best})"),
    ):
        r = Resampled({"a": {"x": ours - theirs[policy]}})
        value, low, high = interval(r.total("a", "x") / r.n)
        ident = f"r3.{key}_minus_{against}.{name}{'' if window == 'drain' else '.cut'}"
        text = f"return a day of {who}, above {text}" if "r3" in key else f"return a day, above {text}"
        unit = "idle minutes of the platform"
        out.append(
            Claim(ident, text, None, value, low, high, unit, len(ours), r.n, at_least(0.0)(value, low, high), note)
        )
    return out


def frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """What agents and constant choices return a held-out day, in idle minutes of the platform: by R3's own reward,
    -(energy waste + the share of the cores that jobs which have waited half of their walltime want, a minute), and by
    the one that the searches go by, -(energy waste + a price a walltime waited)."""
    rows = []
    for name in every:
        cost = price_of(cells, name)
        own, searched = printed(cells, name), priced(cells, name, cost)
        for window in ("cut", "drain"):
            found = {policy: [columns] for policy, columns in cells[f"constants/{name}"][window].items()}
            for how, label in (("sampled", AGENT), ("likeliest", LIKELIEST)):
                found[label] = [cell["test"][window][how] for cell in seeds_of(cells, name)]
            for preset, others in learners_of(cells, name).items():
                found[LEARNERS[preset]] = [cell["test"][window]["sampled"] for cell in others]
            for policy, seeds in found.items():
                rows.append({
                    "input": name, "window": window, "policy": policy,
                    "return_r3": float(np.mean([own(one) for one in seeds])),
                    "return_searched": float(np.mean([searched(one) for one in seeds])), "price": cost,
                })  # fmt: skip
    return pl.DataFrame(rows)
