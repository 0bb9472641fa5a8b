"""The compiled loops of the energy bound: a node's cheapest life under prices, and the subgradient of nodes and jobs
together."""

from __future__ import annotations

from typing import Any

from escala.compile import inlined, lean
from escala.optimum.instance import Floats, Ints
from escala.optimum.prices import cheapest, take

# steps without a better bound; more than for jobs, and no return to the best prices: all nodes live alike and jump
# together
PATIENCE = 200


@inlined
def node_path_inline(
    prices: Any, width: int, idle: Any, on: Any, off: Any, free: int, warm: int, came: Any, path: Any
) -> Any:
    """Least cost of one node's life: each tick on costs idle - price, switching on `on`, switching off `off` (0 from
    edge `free` on).

    warm: 1 if it is on at the start. path[warm, cell] = 1 where it is on. Dynamic programme over the cells with states
    off and on; within a cell the rate is constant, so switching at edges is best. came: memory (2, cells + 1), bits: 1
    off came from on, 2 on came from off.
    """
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
def node_path(prices: Any, width: int, idle: Any, on: Any, off: Any, free: int, warm: int, came: Any, path: Any) -> Any:
    """`node_path_inline`, to be called from Python."""
    return node_path_inline(prices, width, idle, on, off, free, warm, came, path)


@lean
def window_costs(
    release: Ints,
    latest: Ints,
    length: Ints,
    nodes: Ints,
    width: int,
    prices: Ints,
    prefix: Ints,
    buffer: Ints,
    least: Ints,
) -> None:
    """Write each job's exact least sum of prices over its starts in [release, latest] to `least` (n,)."""
    cells = prices.shape[1]
    for job in range(release.size):
        least[job], _ = cheapest(
            0, latest[job], release[job], latest[job], length[job], nodes[job], prefix, prices, width, cells, buffer
        )


@lean
def subgradient_nodes(
    release: Ints, latest: Ints, length: Ints, nodes: Ints, total: int, warm_nodes: int, width: int, free: int,
    idle: float, on: float,
    off: float, work: float, prices: Floats, best_prices: Floats, direction: Floats, numbers: Floats, iterations: int,
    target: float, prefix: Floats, use: Floats, buffer: Floats, came: Any, path: Any,
) -> int:  # fmt: skip
    """As `prices.subgradient`, for the prices of busy nodes (1, cells) in joules per node and tick. work: idle energy
    of all busy ticks."""
    cells = prices.shape[1]
    for iteration in range(iterations):
        bound = -work
        for cell in range(cells):
            prefix[0, cell + 1] = prefix[0, cell] + prices[0, cell] * width
            use[0, cell] = 0.0
        for job in range(release.size):
            value, start = cheapest(
                0.0,
                latest[job],
                release[job],
                latest[job],
                length[job],
                nodes[job],
                prefix,
                prices,
                width,
                cells,
                buffer,
            )
            bound += value
            take(use, 0, nodes[job, 0], start, start + length[job], width, cells)
        for warm in range(2):
            count = warm_nodes if warm == 1 else total - warm_nodes
            if count > 0:
                bound += count * node_path_inline(prices, width, idle, on, off, free, warm, came, path)
                for cell in range(cells):
                    use[0, cell] -= count * width * path[warm, cell]
        numbers[2] += 1
        if bound > numbers[0]:
            if bound > numbers[0] + 1e-6 * abs(target):
                numbers[2] = 0
            numbers[0] = bound
            for cell in range(cells):
                best_prices[0, cell] = prices[0, cell]
        elif numbers[2] >= PATIENCE:
            numbers[1] *= 0.7
            numbers[2] = 0
        norm, ascent = 0.0, 0.0
        for cell in range(cells):
            if prices[0, cell] > 0.0 or use[0, cell] > 0.0:
                ascent += use[0, cell] ** 2
            direction[0, cell] = 0.6 * use[0, cell] + 0.4 * direction[0, cell]
            if prices[0, cell] <= 0.0 and direction[0, cell] < 0.0:
                direction[0, cell] = 0.0
            norm += direction[0, cell] ** 2
        if norm == 0.0 or ascent == 0.0 or numbers[1] < 1e-3 or target - numbers[0] <= 1e-9 * abs(target):
            return iteration + 1
        step = numbers[1] * (target - bound) / max(norm, 0.3 * ascent)
        for cell in range(cells):
            prices[0, cell] = max(0.0, prices[0, cell] + step * direction[0, cell])
    return iterations
