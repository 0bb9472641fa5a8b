"""What an agent of the game sees.

compact: for each slot SLOT + kinds + N numbers, for each machine seen the free share of each kind at some rows to come, GLOBAL numbers,
then which agent it is (one of K), and CLOCK (of `slots.observation`) more where the end of arrivals is known; all within 0..1. image: rows
of the horizon; for each machine and kind a chart, filled from the left up to what is taken; for each slot and kind demand x length; then
the backlog, filled row by row. An agent's own machines come first, then, with global information, those of the agents after it in the order
of turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.observation import SINCE_SHOWN, write_clock
from escala.envs.slots.team.lens import fits
from escala.envs.slots.team.state import Game
from escala.kernel import codes
from escala.kernel.state import World

SLOT = 4  # taken; length / horizon; 1 / length; share of the others' machines on which it fits (0 with local information); then the
# demands / capacity, and whether it fits now on each of the agent's own machines
GLOBAL = 6  # backlog / shown; backlog / 10; since the last submission / 10; the same / 50; submissions a unit of late; slots taken


@inlined
def seen(st: Any) -> int:
    """Number of machines that an agent sees."""
    return st.machines * st.agents if st.all_seen == 1 else st.machines


@inlined
def machine_at(st: Any, a: int, place: int) -> int:
    """The machine that agent `a` sees in a place: its own first."""
    return (a * st.machines + place) % (st.agents * st.machines)


@lean
def compact(w: World, g: Game, a: int, out: Any) -> None:
    """Write the compact observation of agent `a`."""
    st, m, scale, points = g.settings, g.memory, g.scale, g.points
    at = 0
    taken = 0
    many = seen(st)
    horizon = 1.0 / st.horizon
    width = SLOT + st.kinds + st.machines
    for k in range(st.slots):
        j = np.int64(g.slots[k])
        if j == codes.NONE:
            for f in range(width):
                out[at + f] = 0.0
        else:
            taken += 1
            length = length_of(w, st, j)
            out[at] = 1.0
            out[at + 1] = min(length * horizon, 1.0)
            out[at + 2] = 1.0 / length
            elsewhere = 0
            for place in range(st.machines, many):
                elsewhere += 1 if fits(w, j, machine_at(st, a, place)) else 0
            out[at + 3] = elsewhere / max(many - st.machines, 1)
            for kind in range(st.kinds):
                out[at + SLOT + kind] = min(demand_of(w, j, kind) / scale[kind], 1.0)
            for n in range(st.machines):
                out[at + SLOT + st.kinds + n] = 1.0 if fits(w, j, a * st.machines + n) else 0.0
        at += width
    for place in range(many):
        n = machine_at(st, a, place)
        for kind in range(st.kinds):
            for p in range(points.shape[0]):
                out[at] = (g.capacity[n, kind] - g.used[n * st.kinds + kind, (m.row + points[p]) & st.ring]) / scale[kind]
                at += 1
    backlog = w.s[0].next_job - m.entered
    since = m.row - m.last
    out[at] = min(backlog / st.backlog, 1.0)
    out[at + 1] = min(backlog / 10.0, 1.0)
    out[at + 2] = min(since / SINCE_SHOWN, 1.0)
    out[at + 3] = min(since / 50.0, 1.0)
    out[at + 4] = min(m.recent * 0.05, 1.0)
    out[at + 5] = taken / st.slots
    for b in range(st.agents):
        out[at + GLOBAL + b] = 1.0 if b == a else 0.0
    if st.arrivals_end > 0:
        write_clock(st, m.row, out, at + GLOBAL + st.agents)


@lean
def image(w: World, g: Game, a: int, out: Any) -> None:
    """Write the image of agent `a`, uint8, rows one behind the other."""
    st, m, scale, width = g.settings, g.memory, g.scale, g.settings.width
    out[:] = 0
    left = 0
    for place in range(seen(st)):
        n = machine_at(st, a, place)
        for kind in range(st.kinds):
            for r in range(st.horizon):
                for c in range(g.used[n * st.kinds + kind, (m.row + r) & st.ring]):
                    out[r * width + left + c] = 255
            left += np.int64(scale[kind])
    for k in range(st.slots):
        j = np.int64(g.slots[k])
        for kind in range(st.kinds):
            if j != codes.NONE:
                for r in range(min(length_of(w, st, j), st.horizon)):
                    for c in range(np.int64(min(demand_of(w, j, kind), scale[kind]))):
                        out[r * width + left + c] = 255
            left += np.int64(scale[kind])
    columns = width - left
    shown = np.int64(min(w.s[0].next_job - m.entered, st.backlog))
    for i in range(shown):
        out[(i // columns) * width + left + i % columns] = 255
