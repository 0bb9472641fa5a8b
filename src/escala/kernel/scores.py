"""Scores of packing: how well a waiting job fits what is free now; the smallest is first. Scores that grow with the
wait are in `urgency`; fixed ones are ranks, prepared in `escala.scores` and `escala.filling`, and so are these where
`by_rank` says so."""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.forecast import length_of
from escala.kernel.parts import asks_same, cores_of, level_of, parts_of, room_on, word_for
from escala.kernel.queue import SHORT_QUEUE, index_new, next_fit, row_at
from escala.kernel.reach import NO_LIMIT, grouped, note_reach
from escala.kernel.reservation import all_held, most_free, permission, usable
from escala.kernel.state import World


@inlined
def by_rank(w: World) -> bool:
    """Is the order fixed? That of Tetris is, and that of `packer` where jobs take cores of any nodes and one may
    be given what any other may. With oracle a job that starts may let another wake nodes: all are looked at again."""
    o = w.o[0]
    if o.ordering == codes.BY_TETRIS:
        return o.order_estimate == codes.BEFOREHAND and o.shutdown != codes.ORACLE
    return o.ordering == codes.BY_RANK or (o.ordering == codes.BY_PACKER and o.plain == 1 and not _permits(w))


@inlined
def _permits(w: World) -> bool:
    """May one waiting job be given nodes that another may not?"""
    return w.o[0].shutdown == codes.HOLD or w.o[0].shutdown == codes.ORACLE


@lean
def packing_score(w: World, j: int) -> float:
    """Packer: -sum over kinds of demand x free. Tetris: -(0.5 sum of demands + 0.5 / walltime), raw numbers. inf if the
    job does not fit now.

    For a job that goes by nodes, free is what is free on the nodes that it would get, each with what it has there; else
    the cores that it may be given.
    """
    waking = w.o[0].given == 1 and permission(w, j) <= w.s[0].now
    cores = np.int64(w.job[j].cores)
    demand = float(cores)
    if w.job[j].single != 0:
        alignment = _alignment(w, j, waking)
        if alignment < 0.0:
            return np.inf
        if w.demand.shape[0] > 0:
            for k in range(w.o[0].n_kinds):
                demand += parts_of(w, j) * w.demand[j, k]
    else:
        free = usable(w, j)
        if cores > free:
            return np.inf
        alignment = float(cores) * free
    if j < w.s[0].aged:
        return -np.inf  # it has waited the guard
    if w.o[0].ordering == codes.BY_PACKER:
        return -alignment
    return -(0.5 * demand + 0.5 / (length_of(w, j) / 1e6))


@lean
def _alignment(w: World, j: int, waking: bool) -> float:
    """Sum over the nodes that job `j` would get, and over kinds, of what it has there x what is free; -1 if it does not
    fit now."""
    left = parts_of(w, j)
    taken = 0
    total = 0.0
    last = codes.SET_OFF if waking else codes.SET_ON
    level = level_of(w, j)
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                count = room_on(w, j, n, left)
                if count == 0:
                    continue
                free = 1 if w.o[0].unit == 1 else np.int64(w.node[n].free)
                total += float(cores_of(w, j, taken, count)) * free
                if w.demand.shape[0] > 0:
                    for k in range(w.o[0].n_kinds):
                        total += float(count * w.demand[j, k]) * w.room[n, k]
                taken += count
                left -= count
                if left == 0:
                    return total
    return -1.0


@lean
def best_packing(w: World) -> int:
    """Queued job of the smallest score that fits now (ties in queue order), or NONE."""
    s = w.s[0]
    searched = grouped(w) and s.n_queued > SHORT_QUEUE
    free = NO_LIMIT
    if searched:
        held = all_held(w, codes.NONE)
        index_new(w)
        note_reach(w, held, NO_LIMIT)
        free = most_free(w, held)
    best = codes.NONE
    least = np.inf
    rank = next_fit(w, 0, free, NO_LIMIT, NO_LIMIT) if searched else 0
    j = np.int64(s.first)
    while j != codes.NONE and rank < w.o[0].n_ranks:
        if searched:
            j = row_at(w, rank)
        score = packing_score(w, j)
        if score < least or (score == least and j < best):
            least = score
            best = j
        if searched:
            rank = next_fit(w, _behind_alike(w, rank), free, NO_LIMIT, NO_LIMIT)
        else:
            j = np.int64(w.run[j].next)
    return best


@lean
def _behind_alike(w: World, rank: int) -> int:
    """The rank behind those of jobs that ask for the same as the one at `rank`, of which the first in the queue is the
    first to start; the next rank where they do not stand side by side (see `filling.packing_keys`)."""
    o = w.o[0]
    if o.ordering != codes.BY_PACKER or _permits(w) or rank < o.n_ranks - o.n_jobs:
        return rank + 1
    j = row_at(w, rank)
    step = 1
    while rank + step < o.n_ranks and asks_same(w, j, row_at(w, rank + step)):
        step *= 2
    low = rank + step // 2
    high = min(rank + step, o.n_ranks)
    while high - low > 1:
        middle = (low + high) // 2
        if asks_same(w, j, row_at(w, middle)):
            low = middle
        else:
            high = middle
    return high
