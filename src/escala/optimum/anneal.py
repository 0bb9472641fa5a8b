"""Simulated annealing over permutations: what serial schedule generation makes of an order, and better orders.

Moves: swap two positions, or take one job out and put it in elsewhere. After a move only the positions from the first
change on are generated anew: the profile in front of every position is kept. The random number of the Metropolis test
is drawn first, so that an order is given up as soon as its partial cost passes what would be accepted. Behind the last
change, the first position in front of which the profile is that of the accepted order ends the work: from there on
everything starts as it did. Every second step on slotted lists ends so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from escala.compile import inlined, lean
from escala.optimum.instance import Floats, Ints
from escala.optimum.profile import Profile, earliest, occupy

Words = npt.NDArray[np.uint64]


class Room(NamedTuple):
    """Working memory of `anneal` for n jobs: made outside, so that the loop counts no references.

    Rows 2k and 2k + 1 are two states in front of position k: the accepted order's and the trial's.
    """

    times: Ints  # (2n + 2, segments)
    free: Ints
    sizes: Ints  # (2n + 2,): segments in use
    starts: Ints  # (2n + 2,): start of the job at position k - 1
    span: Ints  # (2n + 2,): latest end so far
    partial: Floats  # (2n + 2,): cost so far
    row: Ints  # (n + 1,)
    trial: Ints  # (n,)
    best: Ints  # (n,)


def room_for(jobs: int, segments: int) -> Room:
    """Memory for `jobs` jobs around a profile of `segments` segments."""
    rows, wide = 2 * jobs + 2, segments + 2 * jobs + 2

    def whole(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return Room(
        whole(rows, wide),
        whole(rows, wide),
        whole(rows),
        whole(rows),
        whole(rows),
        np.zeros(rows),
        whole(jobs + 1),
        whole(jobs),
        whole(jobs),
    )


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
def same(times: Ints, free: Ints, size: int, row: int, other_size: int, other: int) -> bool:
    """Whether two rows hold the same profile."""
    seg = 0
    while (
        size == other_size
        and seg < size
        and times[row, seg] == times[other, seg]
        and free[row, seg] == free[other, seg]
    ):
        seg += 1
    return seg == size == other_size


@lean
def _begin(order: Ints, profile: Profile, size: int, end_of_others: int, room: Room) -> None:
    """The room, before the first order is tried: nobody is placed yet."""
    for k in range(order.size + 1):
        # row[k]: where the state in front of position k of the accepted order is kept; row[k] ^ 1 is free
        room.row[k] = 2 * k
    for k in range(order.size):
        room.trial[k] = room.best[k] = order[k]
    room.partial[0] = 0.0
    room.sizes[0], room.span[0] = size, end_of_others
    for seg in range(size):
        room.times[0, seg], room.free[0, seg] = profile.times[seg], profile.free[seg]


@lean
def _note(order: Ints, best_starts: Ints, room: Room) -> None:
    """The accepted order is the best."""
    for position in range(order.size):
        room.best[position] = order[position]
        best_starts[order[position]] = room.starts[room.row[position + 1]]


@lean
def _accept(order: Ints, first: int, at: int, room: Room) -> None:
    """The trial is the order; its snapshots behind the jobs from `first` to `at` are the ones that count."""
    for position in range(first, at):
        room.row[position + 1] ^= 1
    _copy(room.trial, order)


@lean
def _copy(found: Ints, order: Ints) -> None:
    for k in range(order.size):
        order[k] = found[k]


@lean
def anneal(
    order: Ints, release: Ints, length: Ints, words: Ints, guards: int, ready: Ints, weight: Floats, span_weight: float,
    end_of_others: int, profile: Profile, size: int, hot: float, cold: float, steps: int, state: Words,
    best_starts: Ints, room: Room,
) -> float:  # fmt: skip
    """`steps` steps of annealing of the n jobs in `order` (changed to the best) from `hot` to `cold`; the best cost.

    cost = sum of weight * max(0, start - ready) + span_weight * max end. profile, size: the profile that other jobs
    leave. best_starts: written at the rows of `order`. With a span_weight the best order is the one that ends first,
    and of those the cheapest.
    """
    n = order.size
    snap_times, snap_free, trial, best = room.times, room.free, room.trial, room.best
    sizes, starts, span, partial, row = room.sizes, room.starts, room.span, room.partial, room.row
    _begin(order, profile, size, end_of_others, room)
    current, best_cost, temperature, best_end = np.inf, np.inf, hot, np.int64(1) << 62
    cooling = (cold / hot) ** (1.0 / max(1, steps - 1))
    for step in range(steps + 1 if n > 1 else 1):
        first, last = move(order, trial, state) if step > 0 else (0, n)
        limit = current - temperature * np.log(1.0 - draw(state)) if step > 0 else np.inf
        here, at, total, meets = row[first], first, 0.0, False
        while at < n:
            there, job = row[at + 1] ^ 1, trial[at]
            start, seg = earliest(
                snap_times[here], snap_free[here], sizes[here], guards, release[job], length[job], words[job]
            )
            end = start + length[job]
            starts[there] = start
            partial[there] = partial[here] + weight[job] * max(0, start - ready[job])
            span[there] = max(span[here], end)
            total = partial[there] + span_weight * span[there]
            if total > limit:
                break
            sizes[there] = occupy(
                snap_times[here], snap_free[here], sizes[here], start, seg, end, words[job],
                snap_times[there], snap_free[there],
            )  # fmt: skip
            here, at = there, at + 1
            joins = at > last and span[here] == span[row[at]]
            if joins and same(snap_times, snap_free, sizes[here], here, sizes[row[at]], row[at]):
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
        _accept(order, first, at, room)
        current = total
        end = span[row[n]] if span_weight > 0.0 else best_end
        if end < best_end or (end == best_end and current < best_cost):
            best_cost, best_end = current, end
            _note(order, best_starts, room)
    _copy(best, order)
    return best_cost
