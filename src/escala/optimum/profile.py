"""Free capacity over time as a step function, and the serial schedule generation that fills it.

A profile is a row of (times, free) in a `room.Room`: `times[i]` is the first tick of segment i, `free[i]` what is free
in [times[i], times[i+1]); the last segment never ends and is wholly free, so every job finds a place. Exact in ticks at
any resolution: the cost depends on the number of jobs, never on the horizon. What is free, of all kinds of resources,
is one word (`room.pack`).
"""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.optimum.instance import Ints
from escala.optimum.room import Room, room

FAR = 1 << 41  # behind every tick


@inlined
def earliest(r: Room, row: int, release: int, length: int, word: int) -> tuple[int, int]:
    """Earliest start >= release at which `word` is free for `length` ticks in a row; and the segment of that start."""
    times, free, size, guards = r.times[row], r.free[row], r.sizes[row], r.settings.guards
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
def occupy(r: Room, here: int, there: int, start: int, first: int, end: int, word: int) -> None:
    """Write row `there`: row `here` with `word` taken in [start, end), `first` being the segment of start."""
    times, free, size, times_out, free_out = r.times[here], r.free[here], r.sizes[here], r.times[there], r.free[there]
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
    r.sizes[there] = size + shift


@inlined
def _clear(r: Room) -> None:
    """Row 0: everything is free for ever."""
    r.times[0, 0], r.free[0, 0], r.sizes[0] = 0, r.settings.capacity, 1


@lean
def serial(table: Ints) -> None:
    """Serial schedule generation: jobs of `order` one by one, each at its earliest start in what is left (Kolisch
    1996).

    Writes `starts`; rows 0 and 1 take turns. The schedules are exactly the active ones, among which an optimum of every
    regular objective lies (Sprecher, Kolisch and Drexl 1995).
    """
    r = room(table, 0)
    here = 0
    _clear(r)
    for job in r.order:
        start, first = earliest(r, here, r.release[job], r.length[job], r.words[job])
        r.starts[job] = start
        occupy(r, here, 1 - here, start, first, start + r.length[job], r.words[job])
        here = 1 - here


@lean
def leave(table: Ints, rows: Ints, starts: Ints, ends: Ints, low: int, high: int) -> int:
    """Fill row 0 with what jobs `rows`, running in [starts, ends), leave in [low, high). Behind high nothing is free
    until FAR.

    Returns its size.
    """
    r = room(table, 0)
    here = 0
    _clear(r)
    for job in rows:
        _, first = earliest(r, here, starts[job], 1, 0)
        occupy(r, here, 1 - here, starts[job], first, ends[job], r.words[job])
        here = 1 - here
    times, free, size = r.times[here], r.free[here], r.sizes[here]
    first, whole, out = 0, free[size - 1], 0
    while first + 1 < size and times[first + 1] <= low:
        first += 1
    for seg in range(first, size):
        if times[seg] >= high:
            break
        r.times[0, out], r.free[0, out] = times[seg], free[seg]
        out += 1
    r.times[0, out], r.free[0, out] = high, r.settings.guards
    r.times[0, out + 1], r.free[0, out + 1] = FAR, whole
    return out + 2
