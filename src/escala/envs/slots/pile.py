"""The rule hold-pile: hold-back whose two settings follow what has piled up, so that it need not know when arrivals
end.

With L = log2(1 + long jobs that wait), r = submissions a unit so far and A = log2(1 + submissions so far) - 5:

quiet = exp(q . [1, L, r, r L, A, r A])  units of silence after which long jobs may go
share = s . [1, L, r, r L, A, r A]       units that long jobs may hold before that, less `crowd` for each short job that
waits

Short jobs (at most `long` units, of hold-back) go first, in the order of length x demand^narrow; while the first of
them does not fit, another may pass it whose order is at most exp(pass) times as large. Then long jobs, in the order of
length x demand^narrow_long. Demands are the largest over the kinds, in tenths of the capacity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.core.checks import number
from escala.envs.core.records import Records
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.state import PILED, Game
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, World

PARAMETERS = (
    *(f"quiet.{name}" for name in ("one", "L", "r", "rL", "A", "rA")), *(f"share.{name}" for name in ("one", "L", "r",
                                                                                                      "rL", "A", "rA")),
    "crowd", "narrow", "pass", "narrow_long",
)  # fmt: skip
"""What `set_pile` takes, in this order."""
FROM = 5.0  # doublings of the submissions so far from which A counts


@lean
def widest(w: World, g: Game, j: int) -> float:
    """Demand of job `j`, tenths of the capacity."""
    most = 0.0
    for k in range(g.settings.kinds):
        most = max(most, demand_of(w, j, k) * 10.0 / g.capacity[0, k])
    return most


@lean
def first(w: World, g: Game, long: bool, here: bool, most: float, room: float) -> tuple[int, float]:
    """The slot of the first long or short job, and its order; here: of those that fit now, of an order of at most
    `most`, and a demand of at most `room`. NONE where there is none."""
    st, p = g.settings, g.pile
    narrow = p[15] if long else p[13]
    best, least = codes.NONE, np.inf
    for c in range(st.slots):
        j = np.int64(g.slots[c])
        if j == codes.NONE or (length_of(w, st, j) > st.long) != long or (here and g.starts[c] != g.memory.row):
            continue
        wide = widest(w, g, j)
        order = length_of(w, st, j) * wide**narrow
        if order < least and order <= most and wide <= room:
            best, least = c, order
    return best, least


@lean
def follow(p: Any, at: int, pile: float, rate: float, age: float) -> float:
    """One of the two settings before it is used."""
    return (
        p[at] + p[at + 1] * pile + p[at + 2] * rate + p[at + 3] * rate * pile + p[at + 4] * age + p[at + 5] * rate * age
    )


@lean
def piled(w: World, g: Game) -> tuple[int, int, float]:
    """Short and long jobs that wait, and what long jobs hold now. All behind the slots count as long."""
    st = g.settings
    short, long, held = 0, w.s[0].next_job - g.memory.entered, 0.0
    for c in range(st.slots):
        j = np.int64(g.slots[c])
        if j != codes.NONE:
            if length_of(w, st, j) > st.long:
                long += 1
            else:
                short += 1
    for e in range(w.s[0].n_ends):
        j = w.heaps[HEAP_ENDS, e].id
        if length_of(w, st, j) > st.long:
            held += widest(w, g, j)
    return short, long, held


@lean
def decide_pile(w: World, g: Game) -> int:
    """The action of the rule."""
    m, p = g.memory, g.pile
    best, order = first(w, g, False, False, np.inf, np.inf)
    if best != codes.NONE and g.starts[best] == m.row:
        return best + 1
    if best != codes.NONE:
        best, _ = first(w, g, False, True, order * math.exp(max(p[14], 0.0)), np.inf)
        if best != codes.NONE:
            return best + 1
    short, long, held = piled(w, g)
    pile = math.log2(1.0 + long)
    came = m.seen + m.gone
    rate = (came + 1.0) / (m.last - w.job[0].submit // g.settings.unit_us + 2.0)
    age = math.log2(1.0 + came) - FROM
    room = np.inf
    if short > 0 or m.row - m.last < math.exp(follow(p, 0, pile, rate, age)):
        room = follow(p, 6, pile, rate, age) - p[12] * short - held
    best, _ = first(w, g, True, True, np.inf, room)
    return best + 1


def set_pile(games: Records, pile: Sequence[float]) -> None:
    """Give games the PARAMETERS of the rule. EscalaError: another number of them, or one that is none."""
    if len(pile) != PILED or not all(number(value) and math.isfinite(value) for value in pile):
        raise EscalaError(
            f"pile={list(pile)!r}: give the {PILED} numbers of the rule hold-pile, see escala.envs.slots.pile"
        )
    games.pile[:] = pile
