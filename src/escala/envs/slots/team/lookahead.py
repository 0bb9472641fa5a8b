"""Look-ahead over the game of several agents: what each choice of the agent whose turn it is would come to cost the team, over sampled
futures in which all agents then follow a rule. The multi-machine sibling of `escala.policies.rollout`.

A future is what an agent may know and nothing else: what runs (lengths are known), the jobs in the slots, as many jobs as the backlog
holds, drawn anew, and arrivals drawn from job lists, from now on. With c a choice, b a base and f = 1..F futures, the same for every c
and b,

    cost(c) = mean_f min_b sum_j (start_j(c, b, f) - now) / length_j

over the jobs that wait or come in f. A base starts the fitting job of least length / (mean demand share)^exponent on the machine with the
least left over, as the rule `dense`; one that holds back lets at most `most` machines' worth of long jobs run until the last arrival,
unless all slots are taken and jobs wait behind them. Each future plays in plain arrays on the grid of units: `used` as in
`slots.team.lens`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean
from escala.envs.core.random import mixed
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.team.lens import fits
from escala.kernel import codes
from escala.kernel.state import HEAP_ENDS, World
from escala.kernel.world import one

AT, LENGTH, DEMAND = 0, 1, 2  # columns of a job: unit of arrival, length, then the demands


class Law(NamedTuple):
    """Job lists that futures are drawn from. jobs int64 [jobs, 2 + kinds]; list e has rows first[e] .. first[e + 1]. long: jobs longer
    than this are held back."""

    jobs: NDArray[np.int64]
    first: NDArray[np.int64]
    long: int


class Bases(NamedTuple):
    """exponent float64 [bases]; most int64 [bases]: long jobs that may run while others are held back, below 0: none is held."""

    exponent: NDArray[np.float64]
    most: NDArray[np.int64]


class Room(NamedTuple):
    """Scratch arrays of one future: its jobs, their ranks for each base [bases, jobs], slots, and charts as the game stands and as it goes
    on; long: long jobs that run in each row."""

    jobs: NDArray[np.int64]
    rank: NDArray[np.float64]
    slots: NDArray[np.int64]
    slots_on: NDArray[np.int64]
    used: NDArray[np.int64]
    used_on: NDArray[np.int64]
    long: NDArray[np.int64]
    long_on: NDArray[np.int64]


@inlined
def copy(source: Any, target: Any) -> None:
    """Rows [n, columns], element by element: no array is made."""
    for p in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[p, c] = source[p, c]


@lean
def enter(st: Any, jobs: Any, slots: Any, entered: int, n: int, t: int) -> int:
    """Empty slots take the oldest jobs that have come, the lowest slot first. Returns how many have entered."""
    k = 0
    while entered < n and k < st.slots and jobs[entered, AT] <= t:
        if slots[k] == codes.NONE:
            slots[k] = entered
            entered += 1
        k += 1
    return entered


@lean
def base_choice(st: Any, capacity: Any, scale: Any, jobs: Any, rank: Any, slots: Any, used: Any, a: int, t: int, longest: int) -> int:
    """The action of a base for agent `a`; jobs longer than `longest` are not considered."""
    best = st.machines * st.slots
    least = np.inf
    least_over = np.inf
    for k in range(st.slots):
        j = slots[k]
        if j == codes.NONE or jobs[j, LENGTH] > longest or rank[j] > least:
            continue
        for own in range(st.machines):
            n = a * st.machines + own
            over = 0.0
            room = True
            for kind in range(st.kinds):
                spare = capacity[n, kind] - used[n * st.kinds + kind, t & st.ring] - jobs[j, DEMAND + kind]
                room = room and spare >= 0
                over += spare / scale[kind]
            if room and (rank[j] < least or (over < least_over and best % st.slots == k)):
                least = rank[j]
                least_over = over
                best = own * st.slots + k
    return best


@lean
def begin_job(st: Any, job: Any, used: Any, long: Any, n: int, t: int, held: int) -> None:
    """Note a job that starts on machine `n` in row `t`. held: length above which it counts as long."""
    for row in range(t, t + job[LENGTH]):
        for kind in range(st.kinds):
            used[n * st.kinds + kind, row & st.ring] += job[DEMAND + kind]
        if job[LENGTH] > held:
            long[row & st.ring] += 1


@lean
def play_on(
    st: Any, capacity: Any, scale: Any, jobs: Any, rank: Any, slots: Any, used: Any, long: Any, entered: int, n: int, row: int, a: int,
    action: int, most: int, held: int,
) -> float:  # fmt: skip
    """Cost of a future after `action` of agent `a`, all agents then following a base. Writes over slots, used and long."""
    void = st.machines * st.slots
    left = n - entered
    for k in range(st.slots):
        left += 1 if slots[k] != codes.NONE else 0
    t = row
    last = max(row, jobs[n - 1, AT])
    cost = 0.0
    chosen = action
    while left > 0:
        if chosen < 0:
            crowded = entered < n and jobs[entered, AT] <= t  # then all slots are taken
            holds = most >= 0 and t < last and long[t & st.ring] >= most and not crowded
            chosen = base_choice(st, capacity, scale, jobs, rank, slots, used, a, t, held if holds else codes.NEVER_US)
        if chosen < void:
            k = chosen % st.slots
            j = slots[k]
            begin_job(st, jobs[j], used, long, a * st.machines + chosen // st.slots, t, held)
            cost += (t - row) / jobs[j, LENGTH]
            left -= 1
            slots[k] = codes.NONE
            entered = enter(st, jobs, slots, entered, n, t)
        passing = chosen == void or st.until_void == 0
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
            used[:, :] = 0
            long[:] = 0
        else:
            for passed in range(t, later):
                for p in range(used.shape[0]):
                    used[p, passed & st.ring] = 0
                long[passed & st.ring] = 0
        t = later
        entered = enter(st, jobs, slots, entered, n, t)
    return cost


@inlined
def toss(luck: Any, i: int, n: int) -> int:
    """A random number of 0..n - 1."""
    luck[i] = np.uint64(luck[i]) + np.uint64(0x9E3779B97F4A7C15)
    return mixed(np.uint64(luck[i])) % n


@lean
def draw_future(w: World, st: Any, m: Any, slots: Any, law: Law, low: int, high: int, ahead: int, room: Room, luck: Any, i: int) -> int:
    """Jobs of one future: those of the slots, then the backlog's and those that come, `ahead` at most; from lists low .. high - 1. Returns
    how many."""
    n = 0
    for k in range(st.slots):
        room.slots[k] = codes.NONE
        j = np.int64(slots[k])
        if j != codes.NONE:
            room.slots[k] = n
            room.jobs[n, AT] = m.row
            room.jobs[n, LENGTH] = length_of(w, st, j)
            for kind in range(st.kinds):
                room.jobs[n, DEMAND + kind] = demand_of(w, j, kind)
            n += 1
    begin, end = law.first[low], law.first[high]
    behind = min(w.s[0].next_job - m.entered, ahead)
    for _ in range(behind):
        j = begin + toss(luck, i, end - begin)
        copy(law.jobs[j : j + 1], room.jobs[n : n + 1])
        room.jobs[n, AT] = m.row
        n += 1
    e = low + toss(luck, i, high - low)
    for j in range(law.first[e], law.first[e + 1]):
        if law.jobs[j, AT] > m.row and behind < ahead:
            copy(law.jobs[j : j + 1], room.jobs[n : n + 1])
            n += 1
            behind += 1
    return n


@lean
def rank_all(st: Any, scale: Any, room: Room, bases: Bases, n: int) -> None:
    """Ranks of a future's jobs for every base."""
    for j in range(n):
        share = 0.0
        for kind in range(st.kinds):
            share += room.jobs[j, DEMAND + kind] / (scale[kind] * st.kinds)
        for b in range(bases.most.shape[0]):
            room.rank[b, j] = room.jobs[j, LENGTH] / share ** bases.exponent[b]


@lean
def note_running(w: World, st: Any, m: Any, used: Any, room: Room, held: int) -> None:
    """The charts as the game stands."""
    copy(used, room.used)
    room.long[:] = 0
    for e in range(w.s[0].n_ends):
        j = w.heaps[HEAP_ENDS, e].id
        if length_of(w, st, j) > held:
            for row in range(m.row, w.run[j].plan // st.unit_us):
                room.long[row & st.ring] += 1


@lean
def costs_of(
    w: World, st: Any, m: Any, capacity: Any, scale: Any, slots: Any, used: Any, law: Law, low: int, high: int, bases: Bases, futures: int,
    ahead: int, room: Room, luck: Any, i: int, out: Any,
) -> None:  # fmt: skip
    """Cost of each action of the agent whose turn it is, [actions]; infinite for those that make no sense."""
    void = st.machines * st.slots
    out[:] = 0.0
    for c in range(void):
        if not fits(w, slots[c % st.slots], m.agent * st.machines + c // st.slots):
            out[c] = np.inf
    note_running(w, st, m, used, room, law.long)
    taken = 0
    for k in range(st.slots):
        taken += 1 if slots[k] != codes.NONE else 0
    for _ in range(futures):
        n = draw_future(w, st, m, slots, law, low, high, ahead, room, luck, i)
        rank_all(st, scale, room, bases, n)
        for c in range(void + 1):
            if out[c] == np.inf:
                continue
            least = np.inf
            for b in range(bases.most.shape[0]):
                for k in range(st.slots):
                    room.slots_on[k] = room.slots[k]
                for row in range(st.ring + 1):
                    room.long_on[row] = room.long[row]
                copy(room.used, room.used_on)
                cost = play_on(
                    st, capacity, scale, room.jobs, room.rank[b], room.slots_on, room.used_on, room.long_on, taken, n, m.row, m.agent, c,
                    bases.most[b], law.long,
                )  # fmt: skip
                least = min(least, cost)
            out[c] += least / futures


@lean
def look_ahead(
    table: Any, asked: Any, settings: Any, capacity: Any, scale: Any, memory: Any, slots: Any, used: Any, law: Law, lows: Any, highs: Any,
    bases: Bases, futures: int, ahead: int, room: Room, luck: Any, out: Any,
) -> None:  # fmt: skip
    """Costs of all actions [N, actions] in the games `asked` (bool [N]); elsewhere `out` stays as it is. lows, highs: which of the law's
    lists each game's futures are drawn from; luck uint64 [N]: its random numbers."""
    for i in range(asked.shape[0]):
        if asked[i]:
            costs_of(
                one(table, i), settings[0], memory[i], capacity, scale, slots[i], used[i], law, lows[i], highs[i], bases, futures, ahead,
                room, luck, i, out[i],
            )  # fmt: skip
