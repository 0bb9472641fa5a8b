"""Simulated annealing over permutations: what serial schedule generation makes of an order, and better orders.

Moves: swap two positions, or take one job out and put it in elsewhere. After a move only the positions from the first
change on are generated anew: the profile in front of every position is kept. The random number of the Metropolis test
is drawn first, so that an order is given up as soon as its partial cost passes what would be accepted. Behind the last
change, the first position in front of which the profile is that of the accepted order ends the work: from there on
everything starts as it did. Every second step on slotted lists ends so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from escala.compile import inlined, lean
from escala.optimum.instance import Ints
from escala.optimum.profile import earliest, occupy
from escala.optimum.room import Room, room

Words = npt.NDArray[np.uint64]


@inlined
def draw(state: Words) -> float:
    """Next uniform in [0, 1) of xorshift64* (Vigna 2016); `state` is (1,) uint64, not 0. Own generator: Numba's is a
    global one."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.float64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def move(order: Ints, trial: Ints, state: Words) -> tuple[int, int]:
    """Copy `order` to `trial` with one random swap or insertion; returns the first and the last position that may
    differ."""
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
    return low, high


@inlined
def same(r: Room, one: int, other: int) -> bool:
    """Whether two rows hold the same profile."""
    size, seg = r.sizes[one], 0
    while (
        size == r.sizes[other]
        and seg < size
        and r.times[one, seg] == r.times[other, seg]
        and r.free[one, seg] == r.free[other, seg]
    ):
        seg += 1
    return seg == size == r.sizes[other]


@lean
def begin(r: Room) -> None:
    """Before the first order is tried: nobody is placed yet."""
    for k in range(r.order.size + 1):
        r.row[k] = 2 * k  # row[k] ^ 1 is free
    copy(r.order, r.trial)
    copy(r.order, r.best)
    r.partial[0] = 0.0


@lean
def note(r: Room) -> None:
    """The accepted order is the best."""
    for position in range(r.order.size):
        job, state = r.order[position], r.row[position + 1]
        r.best[position], r.starts[job], r.machine[job] = job, r.begun[state], r.on[state]


@lean
def accept(r: Room, first: int, at: int) -> None:
    """The trial is the order; its states behind the jobs from `first` to `at` are the ones that count."""
    for position in range(first, at):
        r.row[position + 1] ^= 1
    copy(r.trial, r.order)


@lean
def copy(found: Ints, order: Ints) -> None:
    for k in range(order.size):
        order[k] = found[k]


@lean
def anneal(table: Ints, hot: float, cold: float, steps: int) -> float:
    """`steps` steps of annealing of the n jobs in `order` (changed to the best) from `hot` to `cold`; the best cost.

    cost = sum of weight * max(0, start - ready) + span_weight * max end. Row 0: the profile that other jobs leave, and
    span[0] their latest end. With a span_weight the best order is the one that ends first, and of those the cheapest.
    """
    r = room(table, 0)
    order, trial, row, begun, span, partial = r.order, r.trial, r.row, r.begun, r.span, r.partial
    n, span_weight = order.size, r.settings.span_weight
    begin(r)
    current, best_cost, temperature, best_end = np.inf, np.inf, hot, np.int64(1) << 62
    cooling = (cold / hot) ** (1.0 / max(1, steps - 1))
    for step in range(steps + 1 if n > 1 else 1):
        first, last = move(order, trial, r.stream) if step > 0 else (0, n)
        limit = current - temperature * np.log(1.0 - draw(r.stream)) if step > 0 else np.inf
        here, at, total, meets = row[first], first, 0.0, False
        while at < n:
            there, job = row[at + 1] ^ 1, trial[at]
            start, seg = earliest(r, here, r.release[job], r.length[job], r.words[job])
            end = start + r.length[job]
            begun[there] = start
            partial[there] = partial[here] + r.weight[job] * max(0, start - r.ready[job])
            span[there] = max(span[here], end)
            total = partial[there] + span_weight * span[there]
            if total > limit:
                break
            occupy(r, here, there, start, seg, end, r.words[job])
            here, at = there, at + 1
            if at > last and span[here] == span[row[at]] and same(r, here, row[at]):
                meets = True
                break
        temperature *= cooling
        if meets:
            shift = partial[here] - partial[row[at]]
            total = partial[row[n]] + shift + span_weight * span[row[n]]
            if total > limit:
                continue
            for k in range(at + 1, n + 1):
                partial[row[k]] += shift
        elif at < n:
            continue
        accept(r, first, at)
        current = total
        end = span[row[n]] if span_weight > 0.0 else best_end
        if end < best_end or (end == best_end and current < best_cost):
            best_cost, best_end = current, end
            note(r)
    copy(r.best, order)
    return best_cost
