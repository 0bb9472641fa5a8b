"""Agents of slotted worlds (`grid2019`, `a2c2020`) on lists of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from escala.agents import load_agent
from escala.studies.a2c2020 import cells as a2c
from escala.studies.grid2019 import cells as grid
from escala.studies.grid2019.published import LOADS, folder_of_author, published_lists
from escala.studies.lab import horizons, open_end
from escala.studies.replay.figures import OTHER, PRINTED, Figure, NotAtHand, Study, wide

WAYS = ("sampled", "likeliest")


def grid2019(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """Those of the author's lists (published-LOAD-SEED; NotAtHand with a seed: nothing draws lists like them), of fresh
    lists (fresh-LOAD-SEED, fresh-all-SEED, imitated-LOAD-SEED), and the one that knows no end (open-all-SEED)."""
    kind, trained, number = _parts(agent)
    if kind == open_end.OPEN:
        yield from _open(study, agent, "pool", seed)
        return
    if kind == "published":
        if seed is not None:
            raise NotAtHand(
                f"{agent}: plays the author's lists, of which no seed draws new ones: "
                "leave --seed out, or name another agent"
            )
        author = folder_of_author()
        if author is None:
            raise NotAtHand(f"{agent}: the author's lists are not at hand (set ESCALA_TRACES)")
        row = study.rows("published_seeds", agent, load=trained, seed=number)[0]
        lists = published_lists(author).part([LOADS.index(int(trained))] * study.settings["episodes"])
        made = load_agent(study.folder / "agents" / agent)
        yield from _figures(
            agent, f"load {trained}", "published_seeds", row, grid.judge(made, lists, int(number)), seed
        )
        return
    drawn = int(number) if seed is None else seed
    rows = study.rows("fresh_seeds", agent, kind=kind, trained=trained, seed=number)
    made, more = load_agent(study.folder / "agents" / agent), dict(study.settings["more"])
    for row in rows:
        count = more.get(row["load"], 1) * study.settings["test"]
        lists = grid.lists_of(row["load"], count, grid.TEST if seed is None else OTHER + seed)
        yield from _figures(agent, f"load {row['load']}", "fresh_seeds", row, grid.judge(made, lists, drawn), seed)


def _open(study: Study, agent: str, world: str, seed: int | None) -> Iterator[Figure]:
    """An agent that knows no end, at every horizon of its rows. seed: of new test sets, None: the study's own."""
    made = load_agent(study.folder / "agents" / agent)
    for row in study.rows("horizons", agent, agent=agent):
        load, horizon = row["load"], str(row["horizon"])
        drawn = horizons.TEST if seed is None else OTHER + seed
        values = np.array(
            horizons.played(made, world, load, row["steps"], horizon == horizons.ENDLESS, drawn), np.float64
        )
        near = PRINTED if seed is None else wide(values)
        yield Figure(
            agent, f"load {load:g}, horizon {horizon}", "horizons", row["mean_slowdown"], float(values.mean()), near
        )


def a2c2020(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """The recommended agents, agent-RATE-SEED, and the one that knows no end (open-all-SEED)."""
    kind, rate, number = _parts(agent)
    if kind == open_end.OPEN:
        yield from _open(study, agent, "cpu-memory", seed)
        return
    row = study.rows("seeds", agent, kind=kind, rate=rate, seed=number)[0]
    lists = a2c.lists_of(float(rate), study.settings["test"], a2c.TEST if seed is None else OTHER + seed)
    made = load_agent(study.folder / "agents" / agent)
    yield from _figures(
        agent, f"rate {rate}", "seeds", row, a2c.judge(made, lists, int(number) if seed is None else seed), seed
    )


def _parts(agent: str) -> tuple[str, str, str]:
    """(kind, what it was trained for, seed) of a name such as published-190-0."""
    parts = agent.rsplit("-", 2)
    if len(parts) < 3 or not parts[2].isdigit():
        raise NotAtHand(f"{agent}: no row of its own in the tables")
    return parts[0], parts[1], parts[2]


def _figures(
    agent: str, where: str, table: str, row: dict[str, Any], judged: dict[str, Any], seed: int | None
) -> Iterator[Figure]:
    """The mean slowdown, sampled and by greedy actions. seed: of a new test set, None: the study's own."""
    for how in WAYS:
        values = np.array(judged[how]["slowdown"], np.float64)
        page = np.nan if row[how] is None else float(row[how])
        yield Figure(
            agent, f"{where}, {how}", table, page, float(values.mean()), PRINTED if seed is None else wide(values)
        )
