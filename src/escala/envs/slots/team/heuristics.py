"""Rules that choose a slot and a machine for the agent whose turn it is, as compiled code. Ties go to the lowest slot, then the lowest
machine.

Only jobs that fit now are considered, and the no-op is chosen only where none does. A central scheduler is the same rule in a game of one
agent that owns all machines.

sjf                least length
packer             largest sum over kinds of demand x free (alignment) over jobs and machines
tetris             largest 0.5 sum of demands + 0.5 / length, raw numbers; on the machine of the largest alignment
tetris-normalised  largest 0.5 mean of demand / capacity + 0.5 / length; on the machine of the largest alignment
dense              least length / (mean demand share)^(machines of all agents / 2): SJF that prefers what is hard to place, the more so the
                   more machines there are; on the machine with the least left over. The exponent was tried out on lists of their own
random             any job and machine that fit, evenly
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import lean
from escala.envs.core.random import drawn
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.team.lens import fits, free_of
from escala.envs.slots.team.state import Game, game
from escala.kernel import codes
from escala.kernel.state import World
from escala.kernel.world import one

SJF, PACKER, TETRIS, TETRIS_NORMALISED, DENSE, RANDOM = range(6)
RULES = {"sjf": SJF, "packer": PACKER, "tetris": TETRIS, "tetris-normalised": TETRIS_NORMALISED, "dense": DENSE, "random": RANDOM}
"""Names -> codes."""

PUBLISHED = ("sjf", "packer", "tetris", "tetris-normalised", "random")
"""R4's own baselines; dense is ours."""


@lean
def score(w: World, g: Game, rule: int, j: int, n: int) -> float:
    """The job and machine of the smallest score are chosen."""
    st = g.settings
    if rule == SJF:
        return np.float64(length_of(w, st, j))
    total = 0.0
    if rule == PACKER:
        for k in range(st.kinds):
            total -= demand_of(w, j, k) * free_of(w, n, k)
        return total
    for k in range(st.kinds):
        total += demand_of(w, j, k) / (1.0 if rule == TETRIS else g.scale[k] * st.kinds)
    length = length_of(w, st, j)
    if rule == DENSE:
        return length / total ** (0.5 * st.agents * st.machines)
    return -(0.5 * total + 0.5 / length)


@lean
def second(w: World, g: Game, rule: int, j: int, n: int) -> float:
    """What decides between equal scores; again the smallest."""
    kinds = g.settings.kinds
    total = 0.0
    if rule in (TETRIS, TETRIS_NORMALISED):
        for k in range(kinds):
            total -= demand_of(w, j, k) * free_of(w, n, k)
    elif rule == DENSE:
        for k in range(kinds):
            total += (free_of(w, n, k) - demand_of(w, j, k)) / g.scale[k]
    return total


@lean
def decide(w: World, g: Game, rule: int) -> int:
    """The action of a rule for the agent whose turn it is."""
    st, m = g.settings, g.memory
    best = st.machines * st.slots  # the no-op
    least = np.inf
    least_second = np.inf
    found = 0
    for k in range(st.slots):
        j = np.int64(g.slots[k])
        if j == codes.NONE:
            continue
        for own in range(st.machines):
            n = m.agent * st.machines + own
            if not fits(w, j, n):
                continue
            action = own * st.slots + k
            found += 1
            if rule == RANDOM:
                if drawn(m) % found == 0:
                    best = action
                continue
            value = score(w, g, rule, j, n)
            if value > least:
                continue
            other = second(w, g, rule, j, n)
            if value < least or other < least_second:
                # between jobs of one score the lowest slot wins; between machines the second number decides
                if value == least and best % st.slots != k:
                    continue
                least = value
                least_second = other
                best = action
    return best


@lean
def decide_all(worlds: Any, games: Any, rule: int, out: Any) -> None:
    """The actions of a rule in all games, int64 [N]."""
    for i in range(out.shape[0]):
        out[i] = decide(one(worlds, i), game(games, i), rule)
