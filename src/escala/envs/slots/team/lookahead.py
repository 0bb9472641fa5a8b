"""Look-ahead over the game of several agents: what each choice of the agent whose turn it is would come to cost the
team, over sampled futures in which all agents then follow a rule. The multi-machine sibling of
`escala.policies.rollout`.

A future is what an agent may know and nothing else: what runs (lengths are known), the jobs in the slots, as many jobs
as the backlog holds, drawn anew, and arrivals drawn from job lists, from now on. With c a choice, b a base and f = 1..F
futures, the same for every c and b,

    cost(c) = mean_f min_b sum_j (start_j(c, b, f) - now) / length_j

over the jobs that wait or come in f. A base starts the fitting job of least length / (mean demand share)^exponent on
the machine with the least left over, as the rule `dense`; one that holds back lets at most `most` machines' worth of
long jobs run until the last arrival, unless all slots are taken and jobs wait behind them. Each future plays in plain
arrays on the grid of units: `used` as in `slots.lens`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.compile.pointer import PointerType, row_of
from escala.envs.core.random import mixed
from escala.envs.core.records import Records, settings_of
from escala.envs.slots.lens import demand_of, has_place, length_of
from escala.envs.slots.state import Game, game
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, World
from escala.kernel.world import one

AT, LENGTH, DEMAND = 0, 1, 2  # columns of a job: unit of arrival, length, then the demands


class Law(NamedTuple):
    """Job lists that futures are drawn from. jobs int64 [jobs, 2 + kinds]; list e has rows first[e] .. first[e + 1].
    long: jobs longer than this are held back."""

    jobs: NDArray[np.int64]
    first: NDArray[np.int64]
    long: int


class Bases(NamedTuple):
    """exponent float64 [bases]; most int64 [bases]: long jobs that may run while others are held back, below 0: none is
    held."""

    exponent: NDArray[np.float64]
    most: NDArray[np.int64]


SETTINGS = np.dtype(
    [
        ("futures", "i8"),  # drawn anew at each decision
        ("ahead", "i8"),  # jobs behind the slots and to come that a future holds at most
        ("long", "i8"),
    ]
)

FUTURE = PointerType(
    "TeamFuture",
    {
        "settings": (SETTINGS, 0),
        "law": (np.int64, 2),  # `Law.jobs`
        "first": (np.int64, 1),
        "exponent": (np.float64, 1),  # of `Bases`
        "most": (np.int64, 1),
        "jobs": (np.int64, 2),  # of one future
        "rank": (np.float64, 2),  # [bases, jobs]
        "slots": (np.int64, 1),  # as the game stands, then as it goes on
        "slots_on": (np.int64, 1),
        "used": (np.int64, 2),  # the charts, in the same way
        "used_on": (np.int64, 2),
        "long": (np.int64, 1),  # long jobs that run in each row
        "long_on": (np.int64, 1),
    },
)
Future = Any  # one future inside compiled code
future: Any = row_of(FUTURE)  # future(table, 0)


def futures_of(games: Records, law: Law, bases: Bases, futures: int, ahead: int) -> Records:
    """What look-ahead in these games works with: one record, whose arrays every decision overwrites."""
    (_, slots), (_, charts, rows) = games.slots.shape, games.used.shape
    most, kinds = slots + ahead, len(games.scale)
    empty = {name: np.zeros(slots, np.int64) for name in ("slots", "slots_on")}
    empty |= {name: np.zeros((charts, rows), np.int64) for name in ("used", "used_on")}
    empty |= {name: np.zeros(rows, np.int64) for name in ("long", "long_on")}
    return Records(
        FUTURE,
        1,
        settings=settings_of(SETTINGS, {"futures": futures, "ahead": ahead, "long": law.long}),
        law=law.jobs,
        first=law.first,
        exponent=bases.exponent,
        most=bases.most,
        jobs=np.zeros((most, DEMAND + kinds), np.int64),
        rank=np.zeros((len(bases.most), most)),
        **empty,
    )


@inlined
def copy(source: Any, target: Any) -> None:
    """Rows [n, columns], element by element: no array is made."""
    for p in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[p, c] = source[p, c]


@lean
def enter(f: Future, entered: int, n: int, t: int) -> int:
    """Empty slots take the oldest jobs that have come, the lowest slot first. Returns how many have entered."""
    k = 0
    while entered < n and k < f.slots_on.shape[0] and f.jobs[entered, AT] <= t:
        if f.slots_on[k] == codes.NONE:
            f.slots_on[k] = entered
            entered += 1
        k += 1
    return entered


@lean
def base_choice(g: Game, f: Future, b: int, a: int, t: int, longest: int) -> int:
    """The action of base `b` for agent `a`; jobs longer than `longest` are not considered."""
    st, jobs = g.settings, f.jobs
    best = st.machines * st.slots
    least = np.inf
    least_over = np.inf
    for k in range(st.slots):
        j = f.slots_on[k]
        if j == codes.NONE or jobs[j, LENGTH] > longest or f.rank[b, j] > least:
            continue
        for own in range(st.machines):
            n = a * st.machines + own
            over = 0.0
            room = True
            for kind in range(st.kinds):
                spare = g.capacity[n, kind] - f.used_on[n * st.kinds + kind, t & st.ring] - jobs[j, DEMAND + kind]
                room = room and spare >= 0
                over += spare / g.scale[kind]
            if room and (f.rank[b, j] < least or (over < least_over and best % st.slots == k)):
                least = f.rank[b, j]
                least_over = over
                best = own * st.slots + k
    return best


@lean
def begin_job(g: Game, f: Future, j: int, n: int, t: int) -> None:
    """Note job `j` that starts on machine `n` in row `t`."""
    st = g.settings
    for row in range(t, t + f.jobs[j, LENGTH]):
        for kind in range(st.kinds):
            f.used_on[n * st.kinds + kind, row & st.ring] += f.jobs[j, DEMAND + kind]
        if f.jobs[j, LENGTH] > f.settings.long:
            f.long_on[row & st.ring] += 1


@lean
def play_on(g: Game, f: Future, b: int, entered: int, n: int, action: int) -> float:
    """Cost of a future of n jobs after `action` of the agent whose turn it is, all agents then following base `b`."""
    st, jobs, slots, long = g.settings, f.jobs, f.slots_on, f.long_on
    most, held = f.most[b], f.settings.long
    noop = st.machines * st.slots
    left = n - entered
    for k in range(st.slots):
        left += 1 if slots[k] != codes.NONE else 0
    row = g.memory.row
    a = g.memory.agent
    t = row
    last = max(row, jobs[n - 1, AT])
    cost = 0.0
    chosen = action
    while left > 0:
        if chosen < 0:
            crowded = entered < n and jobs[entered, AT] <= t  # then all slots are taken
            holds = most >= 0 and t < last and long[t & st.ring] >= most and not crowded
            chosen = base_choice(g, f, b, a, t, held if holds else codes.NEVER_US)
        if chosen < noop:
            k = chosen % st.slots
            j = slots[k]
            begin_job(g, f, j, a * st.machines + chosen // st.slots, t)
            cost += (t - row) / jobs[j, LENGTH]
            left -= 1
            slots[k] = codes.NONE
            entered = enter(f, entered, n, t)
        passing = chosen == noop or st.until_noop == 0
        chosen = codes.NONE
        if not passing:
            continue
        a += 1
        if a < st.agents:
            continue
        a = 0
        idle = entered < n
        for k in range(st.slots):
            idle = idle and slots[k] == codes.NONE
        later = max(t + 1, jobs[entered, AT]) if idle else t + 1
        if later - t > st.ring:
            f.used_on[:, :] = 0
            long[:] = 0
        else:
            for passed in range(t, later):
                for p in range(f.used_on.shape[0]):
                    f.used_on[p, passed & st.ring] = 0
                long[passed & st.ring] = 0
        t = later
        entered = enter(f, entered, n, t)
    return cost


@inlined
def toss(rng: Any, i: int, n: int) -> int:
    """A random number of 0..n - 1."""
    rng[i] = np.uint64(rng[i]) + np.uint64(0x9E3779B97F4A7C15)
    return mixed(np.uint64(rng[i])) % n


@lean
def draw_future(w: World, g: Game, f: Future, low: int, high: int, rng: Any, i: int) -> int:
    """Jobs of one future: those of the slots, then the backlog's and those that come; from lists low .. high - 1.
    Returns how many."""
    st, m, ahead = g.settings, g.memory, f.settings.ahead
    n = 0
    for k in range(st.slots):
        f.slots[k] = codes.NONE
        j = np.int64(g.slots[k])
        if j != codes.NONE:
            f.slots[k] = n
            f.jobs[n, AT] = m.row
            f.jobs[n, LENGTH] = length_of(w, st, j)
            for kind in range(st.kinds):
                f.jobs[n, DEMAND + kind] = demand_of(w, j, kind)
            n += 1
    begin, end = f.first[low], f.first[high]
    behind = min(w.s[0].next_job - m.entered, ahead)
    for _ in range(behind):
        j = begin + toss(rng, i, end - begin)
        copy(f.law[j : j + 1], f.jobs[n : n + 1])
        f.jobs[n, AT] = m.row
        n += 1
    e = low + toss(rng, i, high - low)
    for j in range(f.first[e], f.first[e + 1]):
        if f.law[j, AT] > m.row and behind < ahead:
            copy(f.law[j : j + 1], f.jobs[n : n + 1])
            n += 1
            behind += 1
    return n


@lean
def rank_all(g: Game, f: Future, n: int) -> None:
    """Ranks of a future's jobs for every base."""
    kinds = g.settings.kinds
    for j in range(n):
        share = 0.0
        for kind in range(kinds):
            share += f.jobs[j, DEMAND + kind] / (g.scale[kind] * kinds)
        for b in range(f.most.shape[0]):
            f.rank[b, j] = f.jobs[j, LENGTH] / share ** f.exponent[b]


@lean
def note_running(w: World, g: Game, f: Future) -> None:
    """The charts as the game stands."""
    st = g.settings
    copy(g.used, f.used)
    f.long[:] = 0
    for e in range(w.s[0].n_ends):
        j = w.heaps[HEAP_ENDS, e].id
        if length_of(w, st, j) > f.settings.long:
            for row in range(g.memory.row, w.run[j].plan // st.unit_us):
                f.long[row & st.ring] += 1


@lean
def costs_of(w: World, g: Game, f: Future, low: int, high: int, rng: Any, i: int, out: Any) -> None:
    """Cost of each action of the agent whose turn it is, [actions]; infinite for those that make no sense."""
    st, m = g.settings, g.memory
    noop = st.machines * st.slots
    out[:] = 0.0
    for c in range(noop):
        if not has_place(w, g, c % st.slots, m.agent * st.machines + c // st.slots):
            out[c] = np.inf
    note_running(w, g, f)
    taken = 0
    for k in range(st.slots):
        taken += 1 if g.slots[k] != codes.NONE else 0
    for _ in range(f.settings.futures):
        n = draw_future(w, g, f, low, high, rng, i)
        rank_all(g, f, n)
        for c in range(noop + 1):
            if out[c] == np.inf:
                continue
            least = np.inf
            for b in range(f.most.shape[0]):
                for k in range(st.slots):
                    f.slots_on[k] = f.slots[k]
                for row in range(st.ring + 1):
                    f.long_on[row] = f.long[row]
                copy(f.used, f.used_on)
                least = min(least, play_on(g, f, b, taken, n, c))
            out[c] += least / f.settings.futures


@lean
def look_ahead(worlds: Any, games: Any, futures: Any, asked: Any, lows: Any, highs: Any, rng: Any, out: Any) -> None:
    """Costs of all actions [N, actions] in the games `asked` (bool [N]); elsewhere `out` stays as it is. lows, highs:
    which of the law's lists each game's futures are drawn from; rng uint64 [N]: its random numbers."""
    f = future(futures, 0)
    for i in range(asked.shape[0]):
        if asked[i]:
            costs_of(one(worlds, i), game(games, i), f, lows[i], highs[i], rng, i, out[i])
