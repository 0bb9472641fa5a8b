"""The compiled loops of the energy bound: a node's cheapest life under prices, and the subgradient of nodes and jobs
together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.compile.pointer import PointerType, row_of
from escala.optimum.instance import Floats, Ints
from escala.optimum.prices import GRID, advance, cheapest, climbing, judge, take

# steps without a better bound; more than for jobs, and no return to the best prices: all nodes live alike and jump
# together
PATIENCE = 200


def _life(number: Any) -> np.dtype[Any]:
    """What a node's life costs."""
    return np.dtype(
        [
            ("idle", number),  # a tick
            ("on", number),  # to switch on
            ("off", number),
            ("free", "i8"),  # the edge from which switching off costs nothing
        ]
    )


def _fields(number: Any) -> Mapping[str, tuple[Any, int]]:
    return {
        "grid": (GRID, 0),
        "life": (_life(number), 0),
        "prices": (number, 2),  # (1, cells), of a busy node and tick
        "came": (
            np.int64,
            2,
        ),  # (2, cells + 1), by whether it is on at the start; bits: 1 off came from on, 2 on from off
        "path": (np.int64, 2),  # (2, cells): 1 where it is on
    }


CLUSTER = np.dtype(
    [
        ("total", "i8"),  # nodes
        ("warm", "i8"),  # of which are on at the start
        ("work", "f8"),  # idle energy of all busy ticks
    ]
)
NODES = PointerType("Nodes", {**_fields(np.float64), "cluster": (CLUSTER, 0)})
LIVES = PointerType("Lives", _fields(np.int64))
Nodes = Any  # either inside compiled code
_nodes: Any = row_of(NODES)
_lives: Any = row_of(LIVES)


def lives_of(
    energies: tuple[float, float, float], free: int, width: int, prices: Ints | Floats
) -> dict[str, NDArray[Any]]:
    """The fields of `LIVES`, or of `NODES` but the last, under prices (1, cells).

    energies, of the prices' element type: of a tick idle, of switching on, of switching off, which costs nothing from
    edge `free` on.
    """
    cells = prices.shape[1]
    return {
        "grid": np.array((width,), GRID),
        "life": np.array((*energies, free), _life(prices.dtype)),
        "prices": prices,
        "came": np.zeros((2, cells + 1), np.int64),
        "path": np.zeros((2, cells), np.int64),
    }


@inlined
def _path(r: Nodes, warm: int) -> Any:
    """Least cost of one node's life: each tick on costs idle - price, switching on `on`, switching off `off` (0 from
    edge `free` on).

    warm: 1 if it is on at the start; its path is written. Dynamic programme over the cells with states off and on;
    within a cell the rate is constant, so switching at edges is best.
    """
    life, prices, came, path, width = r.life, r.prices, r.came, r.path, r.grid.width
    idle, on, off, free = life.idle, life.on, life.off, life.free
    cells = prices.shape[1]
    was_off = idle * 0
    was_on = idle * 0
    if warm == 0:
        was_on = was_off + on
        came[warm, 0] = 2
    else:
        was_off = was_on + (off if free > 0 else off * 0)
        came[warm, 0] = 1
    for cell in range(cells):
        was_on += (idle - prices[0, cell]) * width
        leave = off if cell + 1 < free else off * 0
        bits = 0
        stay_on, stay_off = was_on, was_off
        if stay_on + leave < stay_off:
            was_off = stay_on + leave
            bits += 1
        if stay_off + on < stay_on:
            was_on = stay_off + on
            bits += 2
        came[warm, cell + 1] = bits
    state = 1 if was_on < was_off else 0
    best = was_on if state == 1 else was_off
    for back in range(cells):
        cell = cells - 1 - back
        bits = came[warm, cell + 1]
        if state == 0 and bits & 1:
            state = 1
        elif state == 1 and bits & 2:
            state = 0
        path[warm, cell] = state
    return best


@lean
def least_life(table: Ints, warm: int) -> int:
    """A node's least cost in integers, and its path. table: of `LIVES`; warm: 1 if it is on at the start."""
    return _path(_lives(table, 0), warm)


@lean
def subgradient_nodes(table: Ints, more: Ints, iterations: int, target: float) -> int:
    """As `prices.subgradient`, for the prices of busy nodes (1, cells) in joules per node and tick. table: of
    `prices.CLIMBING`, more: of `NODES`."""
    p, r = climbing(table, 0), _nodes(more, 0)
    cluster, prices, prefix, use, width, cells = r.cluster, p.prices, p.prefix, p.use, p.grid.width, p.prices.shape[1]
    for iteration in range(iterations):
        bound = -cluster.work
        for cell in range(cells):
            prefix[0, cell + 1] = prefix[0, cell] + prices[0, cell] * width
            use[0, cell] = 0.0
        for job in range(p.length.size):
            value, start = cheapest(p, job, p.demand[job], prefix, prices)
            bound += value
            take(use, 0, p.demand[job, 0], start, start + p.length[job], width, cells)
        for warm in range(2):
            count = cluster.warm if warm == 1 else cluster.total - cluster.warm
            if count > 0:
                bound += count * _path(r, warm)
                for cell in range(cells):
                    use[0, cell] -= count * width * r.path[warm, cell]
        judge(p, bound, target, PATIENCE)
        if not advance(p, bound, target):
            return iteration + 1
    return iterations
