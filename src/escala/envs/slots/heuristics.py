"""Rules that choose a slot, and a machine, for the agent whose turn it is, as compiled code: the classic policies
within the M visible jobs. Ties go to the lowest slot, then to the lowest machine.

A rule starts jobs now or lets time pass; but for random it never reserves. One choice at a time, and again until none
is left. A central scheduler of several machines is the same rule in a game of one agent that owns them all.

sjf                least length among those that fit now
packer             largest sum over kinds of demand x free (alignment) among those that fit now (one kind: largest
demand) tetris             largest 0.5 sum of demands + 0.5 / length, raw numbers; on the machine of the largest
alignment tetris-normalised  largest 0.5 mean of demand / capacity + 0.5 / length; on the machine of the largest
alignment
random             any choice that has a place, evenly; on one machine or the no-op (with reservations it reserves too)

On one machine only:

sjf-strict         the least length of all; waits until it fits
fcfs               the oldest visible job; waits until it fits
easy               EASY backfilling within the visible jobs: the oldest holds a reservation, counted
hold-back          sjf, but jobs longer than `long` may together hold at most `share` units of the first kind until
                   `quiet` units have passed without a submission; not while the slots are full and jobs wait behind
                   them, nor after the end of arrivals where that is known
hold-pile          hold-back whose quiet and share follow how many jobs came and wait, see `slots.pile`

For teams:

dense              least length / (mean demand share)^(machines of all agents / 2): SJF that prefers what is hard to
                   place, the more so the more machines there are; on the machine with the least left over. The exponent
                   was tried out on lists of their own
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.core.random import drawn
from escala.envs.slots.lens import demand_of, free_of, has_place, length_of
from escala.envs.slots.pile import decide_pile
from escala.envs.slots.state import Game, game
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, World
from escala.kernel.world import one

SJF, SJF_STRICT, PACKER, TETRIS, TETRIS_NORMALISED, FCFS, EASY, HOLD_BACK, RANDOM, HOLD_PILE, DENSE = range(11)
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
"""Of one machine: names -> codes."""

PUBLISHED = ("sjf", "packer", "tetris", "tetris-normalised", "random")
"""R4's own baselines; dense is ours."""
TEAM_RULES = {name: RULES[name] for name in PUBLISHED[:-1]} | {"dense": DENSE, "random": RANDOM}
"""Of teams."""


@inlined
def alignment(w: World, g: Game, j: int, n: int) -> float:
    """Sum over kinds of demand x free."""
    total = 0.0
    for k in range(g.settings.kinds):
        total += demand_of(w, j, k) * free_of(w, g, n, k)
    return total


@lean
def score(w: World, g: Game, rule: int, j: int, n: int) -> float:
    """The job and machine of the smallest score are chosen."""
    st = g.settings
    if rule == PACKER:
        return -alignment(w, g, j, n)
    if rule in (TETRIS, TETRIS_NORMALISED, DENSE):
        total = 0.0
        for k in range(st.kinds):
            total += demand_of(w, j, k) / (1.0 if rule == TETRIS else g.scale[k] * st.of_kinds)
        length = length_of(w, st, j)
        return length / total ** (0.5 * st.agents * st.machines) if rule == DENSE else -(0.5 * total + 0.5 / length)
    if rule in (FCFS, EASY):
        return np.float64(j)
    return np.float64(length_of(w, st, j))


@lean
def second(w: World, g: Game, rule: int, j: int, n: int) -> float:
    """What decides between machines where a job has equal scores; again the smallest."""
    if rule in (TETRIS, TETRIS_NORMALISED):
        return -alignment(w, g, j, n)
    total = 0.0
    if rule == DENSE:
        for k in range(g.settings.kinds):
            total += (free_of(w, g, n, k) - demand_of(w, j, k)) / g.scale[k]
    return total


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
    """EASY while the oldest visible job (slot `head`) does not fit: the oldest other one that may pass it, as an
    action."""
    st, row = g.settings, g.memory.row
    first = np.int64(g.slots[head])
    shadow = 1
    while shadow < st.ring:
        fits = True
        for k in range(st.kinds):
            fits = fits and g.used[k, (row + shadow) & st.ring] + demand_of(w, first, k) <= g.capacity[0, k]
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
                spare = g.capacity[0, k] - g.used[k, (row + shadow) & st.ring] - demand_of(w, first, k)
                passes = passes and demand_of(w, j, k) <= spare
        if passes:
            best = c + st.first
            oldest = j
    return best


@lean
def any_place(w: World, g: Game) -> int:
    """The rule random, as a choice (NONE: the no-op, on one machine as likely as any other; of teams only where nothing
    fits)."""
    st, best = g.settings, codes.NONE
    found = st.pool
    for k in range(st.slots):
        for own in range(st.machines):
            if has_place(w, g, k, g.memory.agent * st.machines + own):
                found += 1
                if drawn(g.memory) % found == 0:
                    best = own * st.slots + k
    return best


@lean
def held_share(w: World, g: Game) -> int:
    """The rule hold-back: units that long jobs may still take now; NEVER_US while it holds none back."""
    st, m = g.settings, g.memory
    if m.row - m.last >= st.quiet:
        return codes.NEVER_US
    crowded = w.s[0].next_job > m.entered
    over = st.arrivals_end > 0 and m.row - st.arrivals_begin >= st.arrivals_end
    return codes.NEVER_US if crowded or over else st.share - long_units(w, g)


@lean
def best_choice(w: World, g: Game, rule: int, waits: bool) -> int:
    """The choice with the smallest score among those that fit now, with `waits` among all jobs in the slots; NONE:
    there is none."""
    st, row, agent = g.settings, g.memory.row, g.memory.agent
    slots, machines, pool = st.slots, st.machines, st.pool == 1
    room = held_share(w, g) if rule == HOLD_BACK else codes.NEVER_US
    best = codes.NONE
    least = np.inf
    least_second = np.inf
    for k in range(slots):
        j = np.int64(g.slots[k])
        if j == codes.NONE or (pool and not waits and g.starts[k] != row):
            continue
        if rule == HOLD_BACK and w.job[j].cores > room and length_of(w, st, j) > st.long:
            continue
        for own in range(machines):
            n = agent * machines + own
            if not pool and not has_place(w, g, k, n):
                continue
            value = score(w, g, rule, j, n)
            if value > least or (value == least and best % slots != k):
                continue  # between jobs of one score the lowest slot wins
            other = second(w, g, rule, j, n) if machines > 1 else 0.0
            if value < least or other < least_second:
                least = value
                least_second = other
                best = own * slots + k
    return best


@lean
def decide(w: World, g: Game, rule: int) -> int:
    """The action of a rule for the agent whose turn it is."""
    st, m = g.settings, g.memory
    noop = 0 if st.first == 1 else st.machines * st.slots
    if rule == HOLD_PILE:
        return decide_pile(w, g)
    waits = rule == SJF_STRICT or rule == FCFS or rule == EASY  # for the best, even if it does not fit
    best = any_place(w, g) if rule == RANDOM else best_choice(w, g, rule, waits)
    if best == codes.NONE:
        return noop
    if waits and g.starts[best] != m.row:
        return backfill(w, g, best) if rule == EASY else noop
    return best + st.first


@lean
def decide_all(worlds: Any, games: Any, rule: int, out: Any) -> None:
    """The actions of a rule in all simulations, int64 [N]."""
    for i in range(out.shape[0]):
        out[i] = decide(one(worlds, i), game(games, i), rule)
