"""What an agent of a slotted world sees: its own machines first, then, with global information, those of the agents
after it in the order of turns. All numbers lie within 0..1.

compact: for each slot, on a pool SLOT + kinds numbers, else TEAM_SLOT + kinds + N; for each machine seen the free share
of each kind at some rows to come (`game.points`); GLOBAL numbers; but for a pool which agent it is (one of K); then
what options ask for. In words: `COMPACT`.
image of a pool (R1, R2): rows of the horizon; for each resource kind its chart (capacity columns, each job in its own
shade) and the slots (capacity columns each: demand x length), then the backlog, filled row by row, and one column for
the time since the last submission.
image of nodes (R4): for each machine and kind a chart, filled from the left up to what is taken; for each slot and kind
demand x length; then the backlog, filled row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.envs.slots.lens import demand_of, has_place, length_of
from escala.envs.slots.state import SHOWS_SHORTEST, Game
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.state import World

# on a pool: taken; length / horizon; 1 / length; would start now; start / horizon (1: no place); then the demands /
# capacity
SLOT = 5
# taken; length / horizon; 1 / length; share of the others' machines on which it fits (0 with local information); then
# the demands / capacity, and whether it fits now on each of the agent's own machines
TEAM_SLOT = 4
# backlog / shown in full; backlog / 10; since the last submission / 10; the same / 50; submissions a unit of late;
# slots taken
GLOBAL = 6
PILE = 3  # all that wait, on a scale of doublings; submissions a unit so far; submissions so far, on that scale
CLOCK = 2  # time / end of arrivals; 1: that end has passed
COMPACT = """
- for each slot: taken, length / horizon, 1 / length, would start now, its start / horizon, demand / capacity of each
  kind
- the free share of each kind in each row
- backlog / 60, backlog / 10, time since the last submission / 10 and / 50, submissions a unit (fading average over 20
  units), share of slots taken
- with `queue="shortest"`: log2(1 + waiting jobs) / 10, the submissions a unit since the first, log2(1 + submissions so
  far) / 10
- with `arrivals_end`: time / arrivals_end, and 1 once it has passed
"""
"""The compact observation of a pool, in words."""
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
    """PILE numbers: how many jobs wait, how many a unit have come between the first and the last one so far, and how
    many in all."""
    out[at] = min(np.log2(1.0 + waiting) / DOUBLINGS, 1.0)
    first = w.job[0].submit // g.settings.unit_us
    came = g.memory.seen + g.memory.gone
    out[at + 1] = min(came / (g.memory.last - first + 1.0), 1.0) if came > 0 else 0.0
    out[at + 2] = min(np.log2(1.0 + came) / DOUBLINGS, 1.0)


def begin_of_arrivals(submit_us: NDArray[np.int64], unit_us: int, arrivals_end: int) -> int:
    """Unit from which a policy counts the time of arrivals: 0, as in the environments, or where a log goes on beyond
    their end that of its first job. EscalaError where jobs come after the end even so: the policy would be told what is
    not true."""
    if arrivals_end == 0 or not submit_us.size:
        return 0
    first, last = int(submit_us.min()) // unit_us, int(submit_us.max()) // unit_us
    if last < arrivals_end:
        return 0
    if last - first >= arrivals_end:
        raise EscalaError(
            f"option arrivals_end={arrivals_end}: a job comes {last - first} units after the first one: schedule "
            "shorter parts of the log, or train without arrivals_end"
        )
    return first


@inlined
def seen(st: Any) -> int:
    """Number of machines that an agent sees."""
    return st.machines * st.agents if st.all_seen == 1 else st.machines


@inlined
def machine_at(st: Any, a: int, place: int) -> int:
    """The machine that agent `a` sees in a place: its own first."""
    return (a * st.machines + place) % (st.agents * st.machines)


@inlined
def write_slot(w: World, g: Game, a: int, k: int, row_share: float, out: Any, at: int) -> None:
    """The numbers of slot `k`, in which there is a job. row_share: 1 / horizon."""
    st, j = g.settings, np.int64(g.slots[k])
    length = length_of(w, st, j)
    out[at] = 1.0
    out[at + 1] = min(length * row_share, 1.0)
    out[at + 2] = 1.0 / length
    demands = at + SLOT
    if st.pool == 1:
        ahead = np.int64(g.starts[k]) - g.memory.row
        out[at + 3] = 1.0 if ahead == 0 else 0.0
        out[at + 4] = ahead * row_share if g.starts[k] >= 0 else 1.0
    else:
        many, elsewhere = seen(st), 0
        for place in range(st.machines, many):
            elsewhere += 1 if has_place(w, g, k, machine_at(st, a, place)) else 0
        out[at + 3] = elsewhere / max(many - st.machines, 1)
        demands = at + TEAM_SLOT
        for own in range(st.machines):
            out[demands + st.kinds + own] = 1.0 if has_place(w, g, k, a * st.machines + own) else 0.0
    for kind in range(st.kinds):
        out[demands + kind] = min(demand_of(w, j, kind) / g.scale[kind], 1.0)


@lean
def compact(w: World, g: Game, a: int, out: Any) -> None:
    """Write the compact observation of agent `a`."""
    st, m = g.settings, g.memory
    at = 0
    taken = 0
    row_share = 1.0 / st.horizon
    width = SLOT + st.kinds if st.pool == 1 else TEAM_SLOT + st.kinds + st.machines
    for k in range(st.slots):
        if g.slots[k] == codes.NONE:
            for f in range(width):
                out[at + f] = 0.0
        else:
            taken += 1
            write_slot(w, g, a, k, row_share, out, at)
        at += width
    row, ring, points, kinds = m.row, st.ring, g.points, st.kinds
    for place in range(seen(st)):
        n = machine_at(st, a, place)
        for kind in range(kinds):
            whole, scale, used = g.capacity[n, kind], g.scale[kind], g.used[n * kinds + kind]
            for p in range(points.shape[0]):
                out[at + p] = (whole - used[np.uint64((row + points[p]) & ring)]) / scale
            at += points.shape[0]
    backlog = w.s[0].next_job - m.entered
    since = row - m.last
    out[at] = min(backlog / st.backlog, 1.0)
    out[at + 1] = min(backlog / 10.0, 1.0)
    out[at + 2] = min(since / SINCE_SHOWN, 1.0)
    out[at + 3] = min(since / 50.0, 1.0)
    out[at + 4] = min(m.recent * 0.05, 1.0)
    out[at + 5] = taken / st.slots
    at += GLOBAL
    if st.pool == 0:
        for b in range(st.agents):
            out[at + b] = 1.0 if b == a else 0.0
        at += st.agents
    if st.shows == SHOWS_SHORTEST:
        write_pile(w, g, backlog + taken, out, at)
        at += PILE
    if st.arrivals_end > 0:
        write_clock(st, row, out, at)


@inlined
def fill(out: Any, at: int, width: int, rows: int, columns: int) -> None:
    """A bright rectangle of an image, from its first cell; column by column, or LLVM calls `memset` for each short
    row."""
    for c in range(columns):
        for r in range(rows):
            out[at + r * width + c] = 255


@inlined
def fill_slot(w: World, g: Game, k: int, kind: int, out: Any, left: int) -> None:
    """The job of slot `k`, demand x length."""
    j = np.int64(g.slots[k])
    if j != codes.NONE:
        wide = np.int64(min(demand_of(w, j, kind), g.scale[kind]))
        fill(out, left, g.settings.width, min(length_of(w, g.settings, j), g.settings.horizon), wide)


@lean
def fill_backlog(g: Game, many: int, out: Any, left: int) -> None:
    """The backlog, row by row."""
    columns = g.settings.columns
    for i in range(many):
        out[(i // columns) * g.settings.width + left + i % columns] = 255


@lean
def image(w: World, g: Game, a: int, out: Any) -> None:
    """Write the image of agent `a`, uint8, rows one behind the other."""
    out[:] = 0
    backlog = w.s[0].next_job - g.memory.entered
    if g.settings.pool == 1:
        image_of_pool(w, g, backlog, out)
    else:
        image_of_nodes(w, g, a, backlog, out)


@lean
def image_of_pool(w: World, g: Game, backlog: int, out: Any) -> None:
    """Each kind's chart with its slots beside it."""
    st, m, width = g.settings, g.memory, g.settings.width
    left = 0
    for kind in range(st.kinds):
        wide = g.capacity[0, kind]
        for r in range(st.horizon):
            at = (m.row + r) & st.ring
            for c in range(wide):
                out[r * width + left + c] = g.chart[kind, at, c]
        left += wide
        for k in range(st.slots):
            fill_slot(w, g, k, kind, out, left)
            left += wide
    fill_backlog(g, min(backlog, st.columns * st.horizon), out, left)
    since = np.uint8(255.0 * min((m.row - m.last) / SINCE_SHOWN, 1.0))
    for r in range(st.horizon):
        out[r * width + width - 1] = since


@lean
def image_of_nodes(w: World, g: Game, a: int, backlog: int, out: Any) -> None:
    """The charts of the machines, then the slots."""
    st = g.settings
    left = 0
    for place in range(seen(st)):
        n = machine_at(st, a, place)
        for kind in range(st.kinds):
            for r in range(st.horizon):
                fill(out, r * st.width + left, st.width, 1, g.used[n * st.kinds + kind, (g.memory.row + r) & st.ring])
            left += np.int64(g.scale[kind])
    for k in range(st.slots):
        for kind in range(st.kinds):
            fill_slot(w, g, k, kind, out, left)
            left += np.int64(g.scale[kind])
    fill_backlog(g, min(backlog, st.backlog), out, left)


@lean
def brighten(picture: Any, out: Any) -> None:
    """uint8 0..255 as float32 0..1."""
    scale = np.float32(1.0 / 255.0)
    for i in range(out.shape[0]):
        out[i] = picture[i] * scale
