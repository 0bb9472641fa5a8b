"""Agents of slotted worlds (`grid2019`, `a2c2020`) on lists of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from escala.agents import load_agent
from escala.studies import grid2019_cells as grid
from escala.studies.published import LOADS, folder_of_author, published_lists
from escala.studies.replay.figures import PRINTED, Figure, NotAtHand, Study, wide

WAYS = ("sampled", "likeliest")


def grid2019(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """Those of the author's lists (published-LOAD-SEED) and of fresh lists (fresh-LOAD-SEED, imitated-LOAD-SEED, fresh-all-SEED)."""
    kind, trained, number = _parts(agent)
    drawn = int(number) if seed is None else seed
    if kind == "published":
        author = folder_of_author()
        if author is None:
            raise NotAtHand(f"{agent}: the author's lists are not at hand (set ESCALA_TRACES)")
        row = study.rows("published_seeds", agent, load=trained, seed=number)[0]
        lists = published_lists(author).part([LOADS.index(int(trained))] * study.settings["episodes"])
        made = load_agent(study.folder / "agents" / agent)
        yield from _figures(agent, f"load {trained}", "published_seeds", row, grid.judge(made, lists, drawn), seed)
        return
    raise NotAtHand(f"{agent}: no row of its own in the tables")


def _parts(agent: str) -> tuple[str, str, str]:
    """(kind, what it was trained for, seed) of a name such as published-190-0."""
    parts = agent.rsplit("-", 2)
    if len(parts) < 3 or not parts[2].isdigit():
        raise NotAtHand(f"{agent}: no row of its own in the tables")
    return parts[0], parts[1], parts[2]


def _figures(agent: str, where: str, table: str, row: dict[str, Any], judged: dict[str, Any], seed: int | None) -> Iterator[Figure]:
    """The mean slowdown, sampled and by the likeliest actions. seed: of a new test set, None: the study's own."""
    for how in WAYS:
        values = np.array(judged[how]["slowdown"], np.float64)
        page = np.nan if row[how] is None else float(row[how])
        yield Figure(agent, f"{where}, {how}", table, page, float(values.mean()), PRINTED if seed is None else wide(values))
