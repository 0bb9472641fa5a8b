"""A slotted world as a picture: charts with a colour a job, the slots, the backlog (R1's figures 1 and 5, R4's figure
1). No plotting library."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel import codes

CELL = 8  # pixels
GAP = 6
PAPER, EMPTY, LINE, WAITING = (255, 255, 255), (236, 239, 241), (176, 190, 197), (66, 66, 66)
HUES = 39
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


def colour(job: int) -> tuple[int, int, int]:
    """The colour of a job: neighbours in the log differ clearly."""
    red, green, blue = colorsys.hls_to_rgb((job * 16 % HUES) / HUES, 0.45 + 0.12 * (job % 2), 0.65)
    return int(255 * red), int(255 * green), int(255 * blue)


def grid(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cells [rows, columns, 3] as pixels, with lines between them."""
    pixels = np.pad(np.repeat(np.repeat(cells, CELL, axis=0), CELL, axis=1), ((0, 1), (0, 1), (0, 0)))
    pixels[::CELL] = LINE
    pixels[:, ::CELL] = LINE
    return pixels


def blank(rows: int, columns: int) -> NDArray[np.uint8]:
    """Empty cells."""
    return np.full((rows, columns, 3), EMPTY, np.uint8)


def _jobs(batch: Any, i: int) -> tuple[Any, Any]:
    """Jobs and further demands of the list that game i plays."""
    e = int(batch.worlds.chosen[i])
    rows = slice(int(batch.lists.first[e]), int(batch.lists.first[e + 1]))
    return batch.lists.job[rows], batch.lists.demand[rows]


def chart_of(batch: Any, i: int, machine: int, kind: int) -> NDArray[np.uint8]:
    """Rows to come x columns of one kind of a machine; running and reserved jobs in their colours, in order of their
    starts."""
    horizon, capacity = batch.options.horizon, int(batch.games.capacity[machine, kind])
    cells = blank(horizon, capacity)
    world, memory, settings = batch.worlds.world, batch.games.memory[i], batch.games.settings
    unit, now, (job, demand) = int(settings["unit_us"]), int(memory["row"]), _jobs(batch, i)
    run = world.run[i, : len(job)]
    placed = {
        int(b["job"]): (int(b["row"]), _members(int(b["nodes"])))
        for b in batch.games.booked[i, : int(memory["booked"])]
    }
    for j in np.flatnonzero(run["state"] == codes.RUNNING):
        nodes = _nodes(world, i, int(run["chunk"][j]))
        if settings["pool"] or nodes[0] == machine:
            placed[int(j)] = (int(run["start"][j]) // unit, nodes)
    taken = np.zeros((horizon, capacity), bool)
    for j, (start, nodes) in sorted(placed.items(), key=lambda item: (item[1][0], item[0])):
        low, high = max(start - now, 0), min(start - now + int(job["walltime"][j]) // unit, horizon)
        need = int(job["cores"][j] if kind == 0 else demand[j, kind - 1])
        named = kind == 0 and settings["named"]
        columns = nodes if named else np.flatnonzero(~taken[low:high].any(axis=0))[:need].tolist()
        taken[low:high, columns] = True
        cells[low:high, columns] = colour(j)
    return cells


def _members(word: int) -> list[int]:
    """Members of a set of columns."""
    return [c for c in range(word.bit_length()) if word >> c & 1]


def _nodes(world: Any, i: int, chunk: int) -> list[int]:
    """Nodes of an allocation."""
    nodes: list[int] = []
    while chunk != codes.NONE:
        part = world.chunk[i, chunk]
        nodes += range(int(part["low"]), int(part["high"]) + 1)
        chunk = int(part["next"])
    return nodes


def slot_of(batch: Any, i: int, k: int, kind: int) -> NDArray[np.uint8]:
    """One slot: demand x length."""
    cells = blank(batch.options.horizon, int(batch.games.scale[kind]))
    j = int(batch.games.slots[i, k])
    if j != codes.NONE:
        job, demand = _jobs(batch, i)
        need = int(job["cores"][j] if kind == 0 else demand[j, kind - 1])
        cells[: -(-int(job["walltime"][j]) // int(batch.games.settings["unit_us"])), :need] = colour(j)
    return cells


def backlog_of(batch: Any, i: int) -> NDArray[np.uint8]:
    """Waiting jobs without a slot, one cell a job, filled row by row."""
    horizon, columns = batch.options.horizon, int(batch.games.settings["columns"])
    cells = blank(horizon, columns).reshape(-1, 3)
    waiting = int(batch.worlds.world.s[i, 0]["next_job"]) - int(batch.games.memory["entered"][i])
    cells[: min(waiting, len(cells))] = WAITING
    return cells.reshape(horizon, columns, 3)


def picture_of(batch: Any, i: int, shown: int | None = None) -> NDArray[np.uint8]:
    """A line for each kind of a pool: chart, slots, backlog. shown: the chart and the first so many slots only (R1's
    figure 5). Else a line for each agent: its machines, the kinds side by side; then one for each kind: the slots, and
    in the first the backlog."""
    kinds, settings = range(len(batch.games.scale)), batch.games.settings
    slots = {kind: [slot_of(batch, i, k, kind) for k in range(batch.options.slots)[:shown]] for kind in kinds}
    backlog = [backlog_of(batch, i)] if shown is None else []
    if settings["pool"]:
        lines = [[chart_of(batch, i, 0, kind), *slots[kind], *backlog] for kind in kinds]
    else:
        lines = [_charts(batch, i, a) for a in range(int(settings["agents"]))] + [
            slots[kind] + backlog * (kind == 0) for kind in kinds
        ]
    drawn = [_beside([grid(cells) for cells in line]) for line in lines]
    wide = max(line.shape[1] for line in drawn)
    rows = [np.pad(line, ((GAP, GAP), (0, wide - line.shape[1]), (0, 0)), constant_values=255) for line in drawn]
    return np.ascontiguousarray(np.concatenate(rows))


def _charts(batch: Any, i: int, a: int) -> list[NDArray[np.uint8]]:
    """The machines of agent `a`, on its own background."""
    machines, kinds = (
        batch.games.capacity.shape[0] // int(batch.games.settings["agents"]),
        range(batch.games.capacity.shape[1]),
    )
    charts = [chart_of(batch, i, a * machines + n, kind) for n in range(machines) for kind in kinds]
    for cells in charts:
        cells[(cells == EMPTY).all(axis=2)] = OWN[a % len(OWN)]
    return charts


def middles(batch: Any, shown: int) -> list[float]:
    """Of `picture_of(batch, i, shown)` the column in the middle of the first kind's chart, and of each slot."""
    wide = int(batch.games.capacity[0, 0]) * CELL + 1
    return [GAP + k * (wide + GAP) + wide / 2 for k in range(min(shown, batch.options.slots) + 1)]


def _beside(parts: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    gap = np.full((parts[0].shape[0], GAP, 3), PAPER, np.uint8)
    out = [gap]
    for part in parts:
        out += [part, gap]
    return np.concatenate(out, axis=1)
