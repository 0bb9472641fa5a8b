"""Free capacity over time as a step function, and the serial schedule generation that fills it.

A profile is (times, free): `times[i]` is the first tick of segment i, `free[i]` what is free in [times[i], times[i+1]);
the last segment never ends and is wholly free, so every job finds a place. Exact in ticks at any resolution: the cost
depends on the number of jobs, never on the horizon.

All resource kinds share one 64-bit word, a field per kind with a guard bit above it that is 1 in `free` and 0 in a
demand. `free - demand` keeps every guard bit exactly if every kind fits, and is then the new free word: one subtraction
and one mask whatever the number of kinds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from escala.compile import inlined, lean
from escala.errors import EscalaError
from escala.optimum.instance import Ints

FAR = 1 << 41  # behind every tick


def bits(demand: Ints, capacity: Ints) -> int:
    """Bits that `pack` needs; it has 63."""
    units = (max(1, int(np.gcd.reduce(demand[:, kind]))) for kind in range(capacity.size))
    return sum((int(top) // unit).bit_length() + 1 for top, unit in zip(capacity, units, strict=True))


def pack(demand: Ints, capacity: Ints) -> tuple[Ints, int, int]:
    """Demands as words (n,), the word of the free capacities, the mask of guard bits. Units are divided by their
    greatest common divisor first.
    """
    if (needed := bits(demand, capacity)) > 63:
        raise EscalaError(
            f"instance: capacities {capacity.tolist()} need {needed} bits, of 63: count large resources in larger units"
        )
    shift, words, free, guards = 0, np.zeros(demand.shape[0], np.int64), 0, 0
    for kind in range(capacity.size):
        unit = max(1, int(np.gcd.reduce(demand[:, kind])))
        top = int(capacity[kind]) // unit
        words += (demand[:, kind] // unit) << shift
        free |= top << shift
        shift += top.bit_length()
        guards |= 1 << shift
        shift += 1
    return words, free | guards, guards


class Profile(NamedTuple):
    """Memory of one profile and of its next version. A fresh one has size 1: everything free for ever."""

    times: Ints  # (segments,)
    free: Ints
    spare_times: Ints
    spare_free: Ints


def fresh(capacity: int, jobs: int) -> Profile:
    """A fresh profile of capacity word `capacity` with room for `jobs` jobs."""
    times, free = np.zeros(2 * jobs + 4, np.int64), np.full(2 * jobs + 4, capacity, np.int64)
    return Profile(times, free, times.copy(), free.copy())


@inlined
def earliest(times: Ints, free: Ints, size: int, guards: int, release: int, length: int, word: int) -> tuple[int, int]:
    """Earliest start >= release at which `word` is free for `length` ticks; and the segment of that start."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if times[middle] <= release:
            low = middle
        else:
            high = middle
    start, first, seg = release, low, low
    while True:
        if (free[seg] - word) & guards != guards:
            seg += 1
            start, first = times[seg], seg
        elif seg + 1 == size or times[seg + 1] >= start + length:
            return start, first
        else:
            seg += 1


@inlined
def occupy(
    times: Ints, free: Ints, size: int, start: int, first: int, end: int, word: int, times_out: Ints, free_out: Ints
) -> int:
    """Copy a profile with `word` taken in [start, end), `first` being the segment of start; returns the new size."""
    for seg in range(first + 1):
        times_out[seg] = times[seg]
        free_out[seg] = free[seg]
    out, seg = first, first
    if times[first] < start:
        out += 1
        times_out[out] = start
    free_out[out] = free[first] - word
    out += 1
    while seg + 1 < size and times[seg + 1] < end:
        seg += 1
        times_out[out] = times[seg]
        free_out[out] = free[seg] - word
        out += 1
    if seg + 1 == size or times[seg + 1] > end:
        times_out[out] = end
        free_out[out] = free[seg]
        out += 1
    seg += 1
    shift = out - seg
    for rest in range(seg, size):
        times_out[rest + shift] = times[rest]
        free_out[rest + shift] = free[rest]
    return size + shift


@inlined
def take(profile: Profile, size: int, start: int, first: int, end: int, word: int) -> int:
    """`occupy` in place."""
    size = occupy(profile.times, profile.free, size, start, first, end, word, profile.spare_times, profile.spare_free)
    for seg in range(size):
        profile.times[seg], profile.free[seg] = profile.spare_times[seg], profile.spare_free[seg]
    return size


@lean
def serial(order: Ints, release: Ints, length: Ints, words: Ints, guards: int, profile: Profile, starts: Ints) -> int:
    """Serial schedule generation: jobs of `order` one by one, each at its earliest start in what is left (Kolisch
    1996).

    profile: a fresh one, filled in place. starts: written at the rows of `order`. Returns the profile's size. The
    schedules are exactly the active ones, among which an optimum of every regular objective lies (Sprecher, Kolisch and
    Drexl 1995).
    """
    times, free, size = profile.times, profile.free, 1
    for job in order:
        start, first = earliest(times, free, size, guards, release[job], length[job], words[job])
        starts[job] = start
        size = take(profile, size, start, first, start + length[job], words[job])
    return size


@lean
def leave(rows: Ints, starts: Ints, ends: Ints, words: Ints, guards: int, profile: Profile, low: int, high: int) -> int:
    """Fill a fresh profile with what jobs `rows`, running in [starts, ends), leave in [low, high). Behind high nothing
    is free until FAR.

    Returns its size.
    """
    times, free, size = profile.times, profile.free, 1
    for row in rows:
        _, first = earliest(times, free, size, guards, starts[row], 1, 0)
        size = take(profile, size, starts[row], first, ends[row], words[row])
    first, whole, out = 0, free[size - 1], 0
    while first + 1 < size and times[first + 1] <= low:
        first += 1
    for seg in range(first, size):
        if times[seg] >= high:
            break
        times[out], free[out] = times[seg], free[seg]
        out += 1
    times[out], free[out] = high, guards
    times[out + 1], free[out + 1] = FAR, whole
    return out + 2
