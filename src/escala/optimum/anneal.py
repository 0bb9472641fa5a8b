"""Simulated annealing over permutations: what serial schedule generation makes of an order, and better orders.

Moves: swap two positions, or take one job out and put it in elsewhere. After a move only the positions from the first change on are
generated anew: the profile in front of every position is kept. The random number of the Metropolis test is drawn first, so that an order is
given up as soon as its partial cost passes what would be accepted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from escala.compile import compiled, inlined
from escala.optimum.instance import Floats, Ints
from escala.optimum.profile import earliest, occupy

Words = npt.NDArray[np.uint64]


@inlined
def draw(state: Words) -> float:
    """Next uniform in [0, 1) of xorshift64* (Vigna 2016); `state` is (1,) uint64, not 0. Own generator: Numba's is a global one."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.float64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def move(order: Ints, trial: Ints, state: Words) -> int:
    """Copy `order` to `trial` with one random swap or insertion; returns the first position that differs."""
    n = order.size
    a, b = int(draw(state) * n), int(draw(state) * (n - 1))
    if b >= a:
        b += 1
    low, high = min(a, b), max(a, b)
    for at in range(n):
        trial[at] = order[at]
    kind = draw(state)
    if kind < 0.5:
        trial[low], trial[high] = order[high], order[low]
    elif kind < 0.75:
        trial[low] = order[high]
        for at in range(low, high):
            trial[at + 1] = order[at]
    else:
        trial[high] = order[low]
        for at in range(low, high):
            trial[at] = order[at + 1]
    return low


@compiled
def anneal(
    order: Ints, release: Ints, length: Ints, words: Ints, guards: int, ready: Ints, weight: Floats, span_weight: float, end_of_others: int,
    times: Ints, free: Ints, size: int, hot: float, cold: float, steps: int, state: Words, best_starts: Ints,
) -> float:  # fmt: skip
    """`steps` steps of annealing of the n jobs in `order` (changed to the best order) from temperature `hot` down to `cold`; returns the
    best cost.

    cost = sum of weight * max(0, start - ready) + span_weight * max end. times, free, size: the profile that other jobs leave. best_starts:
    written at the rows of `order`.
    """
    n, room = order.size, size + 2 * order.size + 2
    snap_times, snap_free = np.empty((2 * n + 2, room), np.int64), np.empty((2 * n + 2, room), np.int64)
    sizes, starts, span, partial = (
        np.zeros(2 * n + 2, np.int64),
        np.zeros(2 * n + 2, np.int64),
        np.zeros(2 * n + 2, np.int64),
        np.zeros(2 * n + 2),
    )
    row = np.arange(0, 2 * n + 2, 2)  # row[k]: where the state in front of position k of the accepted order is kept; row[k] ^ 1 is free
    sizes[0], span[0] = size, end_of_others
    snap_times[0, :size] = times[:size]
    snap_free[0, :size] = free[:size]
    trial, best = order.copy(), order.copy()
    current, best_cost, temperature = np.inf, np.inf, hot
    cooling = (cold / hot) ** (1.0 / max(1, steps - 1))
    for step in range(steps + 1 if n > 1 else 1):
        first = move(order, trial, state) if step > 0 else 0
        limit = current - temperature * np.log(1.0 - draw(state)) if step > 0 else np.inf
        here, at, total = row[first], first, 0.0
        while at < n:
            there, job = row[at + 1] ^ 1, trial[at]
            start, seg = earliest(snap_times[here], snap_free[here], sizes[here], guards, release[job], length[job], words[job])
            end = start + length[job]
            starts[there] = start
            partial[there] = partial[here] + weight[job] * max(0, start - ready[job])
            span[there] = max(span[here], end)
            total = partial[there] + span_weight * span[there]
            if total > limit:
                break
            sizes[there] = occupy(
                snap_times[here], snap_free[here], sizes[here], start, seg, end, words[job], snap_times[there], snap_free[there]
            )
            here, at = there, at + 1
        temperature *= cooling
        if at < n:
            continue
        for position in range(first, n):
            row[position + 1] ^= 1
        order[:] = trial
        current = total
        if current < best_cost:
            best_cost = current
            best[:] = order
            for position in range(n):
                best_starts[order[position]] = starts[row[position + 1]]
    order[:] = best
    return best_cost
