"""What a slotted agent sees.

image: rows of the horizon; for each resource kind its chart (capacity columns, each job in its own shade) and the slots (capacity columns
each: demand x length), then the backlog, filled row by row, and one column for the time since the last submission (R1, R2).
compact: for each slot SLOT + kinds numbers, then the free share of each kind in each row, then GLOBAL numbers, PILE more where the slots
show the shortest jobs, and CLOCK more where the end of arrivals is known; all within 0..1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.state import Game
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.state import World

SLOT = 5  # taken; length / horizon; 1 / length; would start now; start / horizon (1: no place); then the demands / capacity
GLOBAL = 6  # backlog / 60; backlog / 10; since the last submission / 10; the same / 50; submissions a unit of late; slots taken
PILE = 3  # all that wait, on a scale of doublings; submissions a unit so far; submissions so far, on that scale
CLOCK = 2  # time / end of arrivals; 1: that end has passed
BACKLOG_SHOWN = 60.0
DOUBLINGS = 10.0
SINCE_SHOWN = 10.0


@inlined
def write_clock(st: Any, row: int, out: Any, at: int) -> None:
    """CLOCK numbers: how much of the time of arrivals is over, and whether all is."""
    gone = row - st.arrivals_begin
    out[at] = min(gone / st.arrivals_end, 1.0)
    out[at + 1] = 1.0 if gone >= st.arrivals_end else 0.0


@lean
def write_pile(w: World, g: Game, waiting: int, out: Any, at: int) -> None:
    """PILE numbers: how many jobs wait, how many a unit have come between the first and the last one so far, and how many in all."""
    out[at] = min(np.log2(1.0 + waiting) / DOUBLINGS, 1.0)
    first = w.job[0].submit // g.settings.unit_us
    out[at + 1] = min(g.memory.seen / (g.memory.last - first + 1.0), 1.0) if g.memory.seen > 0 else 0.0
    out[at + 2] = min(np.log2(1.0 + g.memory.seen) / DOUBLINGS, 1.0)


def begin_of_arrivals(submit_us: NDArray[np.int64], unit_us: int, arrivals_end: int) -> int:
    """Unit from which a policy counts the time of arrivals: 0, as in the environments, or where a log goes on beyond their end that of its
    first job. EscalaError where jobs come after the end even so: the policy would be told what is not true."""
    if arrivals_end == 0 or not submit_us.size:
        return 0
    first, last = int(submit_us.min()) // unit_us, int(submit_us.max()) // unit_us
    if last < arrivals_end:
        return 0
    if last - first >= arrivals_end:
        raise EscalaError(
            f"option arrivals_end={arrivals_end}: a job comes {last - first} units after the first one: schedule shorter parts of the log, "
            "or train without arrivals_end"
        )
    return first


@lean
def compact(w: World, g: Game, out: Any) -> None:
    """Write the compact observation."""
    st, m = g.settings, g.memory
    at = 0
    taken = 0
    row, ring, rows, kinds = m.row, st.ring, st.horizon, st.kinds
    horizon = 1.0 / rows
    for k in range(st.slots):
        j = np.int64(g.slots[k])
        if j == codes.NONE:
            for f in range(SLOT + kinds):
                out[at + f] = 0.0
        else:
            taken += 1
            length = length_of(w, st, j)
            start = np.int64(g.starts[k])
            out[at] = 1.0
            out[at + 1] = min(length * horizon, 1.0)
            out[at + 2] = 1.0 / length
            out[at + 3] = 1.0 if start == row else 0.0
            out[at + 4] = (start - row) * horizon if start >= 0 else 1.0
            for kind in range(kinds):
                out[at + SLOT + kind] = demand_of(w, j, kind) / g.capacity[kind]
        at += SLOT + kinds
    for kind in range(kinds):
        whole = g.capacity[kind]
        for r in range(row, row + rows):
            out[at] = (whole - g.used[kind, r & ring]) / whole
            at += 1
    backlog = w.s[0].next_job - m.entered
    since = m.row - m.last
    out[at] = min(backlog / BACKLOG_SHOWN, 1.0)
    out[at + 1] = min(backlog / 10.0, 1.0)
    out[at + 2] = min(since / SINCE_SHOWN, 1.0)
    out[at + 3] = min(since / 50.0, 1.0)
    out[at + 4] = min(m.recent * 0.05, 1.0)
    out[at + 5] = taken / st.slots
    at += GLOBAL
    if st.shortest == 1:
        write_pile(w, g, backlog + taken, out, at)
        at += PILE
    if st.arrivals_end > 0:
        write_clock(st, m.row, out, at)


@lean
def image(w: World, g: Game, out: Any) -> None:
    """Write the image, uint8, rows one behind the other."""
    st, m, width = g.settings, g.memory, g.settings.width
    out[:] = 0
    left = 0
    for kind in range(st.kinds):
        wide = g.capacity[kind]
        for r in range(st.horizon):
            at = (m.row + r) & st.ring
            for c in range(wide):
                out[r * width + left + c] = g.chart[kind, at, c]
        left += wide
        for k in range(st.slots):
            j = np.int64(g.slots[k])
            if j != codes.NONE:
                demand = demand_of(w, j, kind)
                for r in range(min(length_of(w, st, j), st.horizon)):
                    for c in range(demand):
                        out[r * width + left + c] = 255
            left += wide
    backlog = min(w.s[0].next_job - m.entered, st.backlog * st.horizon)
    for i in range(backlog):
        out[(i // st.backlog) * width + left + i % st.backlog] = 255
    since = np.uint8(255.0 * min((m.row - m.last) / SINCE_SHOWN, 1.0))
    for r in range(st.horizon):
        out[r * width + width - 1] = since


@lean
def brighten(picture: Any, out: Any) -> None:
    """uint8 0..255 as float32 0..1."""
    scale = np.float32(1.0 / 255.0)
    for i in range(out.shape[0]):
        out[i] = picture[i] * scale
