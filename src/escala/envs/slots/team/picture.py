"""A game of several agents as a picture (R4's figure 1): a line for each agent with its machines, then the slots and the backlog."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.slots.picture import EMPTY, GAP, PAPER, WAITING, blank, colour, grid
from escala.kernel import codes

OWN = (
    (230, 243, 255),
    (255, 243, 224),
    (232, 245, 233),
    (252, 228, 236),
    (243, 229, 245),
    (255, 253, 231),
    (224, 247, 250),
    (239, 235, 233),
)
"""Backgrounds of the agents' lines."""


def _lists(batch: Any, i: int) -> tuple[Any, Any]:
    e = int(batch.worlds.chosen[i])
    rows = slice(int(batch.lists.first[e]), int(batch.lists.first[e + 1]))
    return batch.lists.job[rows], batch.lists.demand[rows]


def _need(job: Any, demand: Any, j: int, kind: int) -> int:
    return int(job["cores"][j] if kind == 0 else demand[j, kind - 1])


def chart_of(batch: Any, i: int, machine: int, kind: int) -> NDArray[np.uint8]:
    """Rows to come x units of one kind of one machine; running jobs in their colours, in order of their starts."""
    cells = blank(batch.options.horizon, int(batch.games.capacity[machine, kind]))
    world, (job, demand) = batch.worlds.world, _lists(batch, i)
    unit, now = int(batch.games.settings["unit_us"]), int(batch.games.memory["row"][i])
    run = world.run[i, : len(job)]
    its = [j for j in np.flatnonzero(run["state"] == codes.RUNNING) if int(world.chunk[i, int(run["chunk"][j])]["low"]) == machine]
    taken = np.zeros(cells.shape[:2], bool)
    for j in sorted(its, key=lambda j: (int(run["start"][j]), int(j))):
        high = min(int(run["start"][j]) // unit - now + int(job["walltime"][j]) // unit, len(cells))
        columns = np.flatnonzero(~taken[0])[: _need(job, demand, j, kind)]
        taken[:high, columns] = True
        cells[:high, columns] = colour(int(j))
    return cells


def slot_of(batch: Any, i: int, k: int, kind: int) -> NDArray[np.uint8]:
    """One slot: demand x length."""
    cells = blank(batch.options.horizon, int(batch.games.scale[kind]))
    j = int(batch.games.slots[i, k])
    if j != codes.NONE:
        job, demand = _lists(batch, i)
        length = -(-int(job["walltime"][j]) // int(batch.games.settings["unit_us"]))
        cells[:length, : _need(job, demand, j, kind)] = colour(j)
    return cells


def backlog_of(batch: Any, i: int) -> NDArray[np.uint8]:
    """Waiting jobs without a slot, one cell a job, filled row by row."""
    columns = max(1, -(-batch.options.backlog // batch.options.horizon))
    cells = blank(batch.options.horizon, columns).reshape(-1, 3)
    waiting = int(batch.worlds.world.s[i, 0]["next_job"]) - int(batch.games.memory["entered"][i])
    cells[: min(waiting, len(cells))] = WAITING
    return cells.reshape(batch.options.horizon, columns, 3)


def picture_of(batch: Any, i: int) -> NDArray[np.uint8]:
    """A line for each agent: its machines, the kinds side by side; a line for each kind: the slots; the backlog at the right of the first
    of these."""
    kinds, per = range(len(batch.games.scale)), batch.options.machines
    lines = []
    for a in range(batch.options.agents):
        charts = [chart_of(batch, i, a * per + n, kind) for n in range(per) for kind in kinds]
        for cells in charts:
            cells[(cells == EMPTY).all(axis=2)] = OWN[a % len(OWN)]
        lines.append(_beside([grid(cells) for cells in charts]))
    for kind in kinds:
        parts = [slot_of(batch, i, k, kind) for k in range(batch.options.slots)] + ([backlog_of(batch, i)] if kind == 0 else [])
        lines.append(_beside([grid(part) for part in parts]))
    wide = max(line.shape[1] for line in lines)
    rows = [np.pad(line, ((GAP, GAP), (0, wide - line.shape[1]), (0, 0)), constant_values=255) for line in lines]
    return np.ascontiguousarray(np.concatenate(rows))


def _beside(parts: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    gap = np.full((parts[0].shape[0], GAP, 3), PAPER, np.uint8)
    out = [gap]
    for part in parts:
        out += [part, gap]
    return np.concatenate(out, axis=1)
