"""Rules that choose a slot, as compiled code: the classic policies within the M visible jobs. Ties go to the lowest slot.

A rule starts jobs now or lets time pass; but for random it never reserves. One choice at a time, and again at the same instant until none
is left.

sjf                least length among those that fit now
sjf-strict         the least length of all; waits until it fits
packer             largest sum over kinds of demand x free among those that fit now (one kind: largest demand)
tetris             largest 0.5 sum of demands + 0.5 / length, raw numbers
tetris-normalised  largest 0.5 mean of demand / capacity + 0.5 / length
fcfs               the oldest visible job; waits until it fits
easy               EASY backfilling within the visible jobs: the oldest holds a reservation, counted
hold-back          sjf, but jobs longer than `long` may together hold at most `share` units of the first kind until `quiet` units have
                   passed without a submission; not while the slots are full and jobs wait behind them, nor after the end of arrivals
                   where that is known
hold-pile          hold-back whose quiet and share follow how many jobs came and wait, see `slots.pile`
random             any choice that has a place, or the no-op, evenly (with reservations it reserves too)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.core.random import drawn
from escala.envs.slots.lens import NOWHERE, demand_of, length_of
from escala.envs.slots.pile import decide_pile
from escala.envs.slots.state import Game, game
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, World
from escala.kernel.world import one

SJF, SJF_STRICT, PACKER, TETRIS, TETRIS_NORMALISED, FCFS, EASY, HOLD_BACK, RANDOM, HOLD_PILE = range(10)
RULES = {
    "sjf": SJF,
    "sjf-strict": SJF_STRICT,
    "packer": PACKER,
    "tetris": TETRIS,
    "tetris-normalised": TETRIS_NORMALISED,
    "fcfs": FCFS,
    "easy": EASY,
    "hold-back": HOLD_BACK,
    "hold-pile": HOLD_PILE,
    "random": RANDOM,
}


@lean
def score(w: World, g: Game, rule: int, j: int) -> float:
    """The smallest is chosen."""
    st = g.settings
    if rule == PACKER:
        total = 0.0
        for k in range(st.kinds):
            total += demand_of(w, j, k) * (g.capacity[k] - g.used[k, g.memory.row & st.ring])
        return -total
    if rule in (TETRIS, TETRIS_NORMALISED):
        total = 0.0
        for k in range(st.kinds):
            total += demand_of(w, j, k) / (g.capacity[k] * st.kinds if rule == TETRIS_NORMALISED else 1.0)
        return -(0.5 * total + 0.5 / length_of(w, st, j))
    if rule in (FCFS, EASY):
        return np.float64(j)
    return np.float64(length_of(w, st, j))


@lean
def long_units(w: World, g: Game) -> int:
    """Units of the first kind that long jobs hold now."""
    st = g.settings
    total = 0
    for e in range(w.s[0].n_ends):
        j = w.heaps[HEAP_ENDS, e].id
        if length_of(w, st, j) > st.long:
            total += w.job[j].cores
    return total


@lean
def backfill(w: World, g: Game, head: int) -> int:
    """EASY while the oldest visible job (slot `head`) does not fit: the oldest other one that may pass it, as an action."""
    st, row = g.settings, g.memory.row
    first = np.int64(g.slots[head])
    shadow = 1
    while shadow < st.ring:
        fits = True
        for k in range(st.kinds):
            fits = fits and g.used[k, (row + shadow) & st.ring] + demand_of(w, first, k) <= g.capacity[k]
        if fits:
            break
        shadow += 1
    best = 0
    oldest = codes.NEVER_US
    for c in range(st.slots):
        j = np.int64(g.slots[c])
        if j == codes.NONE or c == head or g.starts[c] != row or j >= oldest:
            continue
        passes = length_of(w, st, j) <= shadow
        if not passes:
            passes = True
            for k in range(st.kinds):
                spare = g.capacity[k] - g.used[k, (row + shadow) & st.ring] - demand_of(w, first, k)
                passes = passes and demand_of(w, j, k) <= spare
        if passes:
            best = c + 1
            oldest = j
    return best


@lean
def any_place(g: Game) -> int:
    """The rule random."""
    best = 0
    found = 1
    for c in range(g.settings.slots):
        if g.starts[c] != NOWHERE:
            found += 1
            if drawn(g.memory) % found == 0:
                best = c + 1
    return best


@lean
def decide(w: World, g: Game, rule: int) -> int:
    """The action of a rule."""
    if rule == RANDOM:
        return any_place(g)
    if rule == HOLD_PILE:
        return decide_pile(w, g)
    st, m = g.settings, g.memory
    waits = rule == SJF_STRICT or rule == FCFS or rule == EASY  # for the best, even if it does not fit
    held = False
    if rule == HOLD_BACK and m.row - m.last < st.quiet:
        crowded = w.s[0].next_job > m.entered
        over = st.arrivals_end > 0 and m.row - st.arrivals_begin >= st.arrivals_end
        held = not crowded and not over
    free_share = st.share - long_units(w, g) if held else 0
    best = codes.NONE
    least = np.inf
    for c in range(st.slots):
        j = np.int64(g.slots[c])
        if j == codes.NONE or (not waits and g.starts[c] != m.row):
            continue
        if held and length_of(w, st, j) > st.long and w.job[j].cores > free_share:
            continue
        value = score(w, g, rule, j)
        if value < least:
            least = value
            best = c
    if best == codes.NONE:
        return 0
    if g.starts[best] == m.row:
        return best + 1
    return backfill(w, g, best) if rule == EASY else 0


@lean
def decide_all(worlds: Any, games: Any, rule: int, out: Any) -> None:
    """The actions of a rule in all simulations, int64 [N]."""
    for i in range(out.shape[0]):
        out[i] = decide(one(worlds, i), game(games, i), rule)
