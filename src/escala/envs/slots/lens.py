"""The slotted world of R1 and R2 as a lens on one simulation of the kernel: which jobs are visible, where a choice would be placed.

The kernel has the clock, the queue, the machine and the jobs; here are the slots (job rows), the rows of the chart still to come, and the
reservations. Slots are refilled first come first served, a free slot of the lowest number first, so the order of the slots is not that of
arrival. Jobs are taken to run their walltime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.slots import behind
from escala.envs.slots.state import FADING, SHADES, Game
from escala.kernel import bits, codes
from escala.kernel.commands import command_start, command_start_on
from escala.kernel.slots import command_start_nodes
from escala.kernel.state import World

NOWHERE = -1
UNKNOWN = -2  # a job that has come into its slot since the last look


@inlined
def length_of(w: World, st: Any, j: int) -> int:
    """Length of job `j` in units, rounded up."""
    return (w.job[j].walltime + st.unit_us - 1) // st.unit_us


@inlined
def demand_of(w: World, j: int, k: int) -> int:
    """Demand of job `j` for kind `k`."""
    if k == 0:
        return np.int64(w.job[j].cores)
    return np.int64(w.demand[j, k - 1])


@lean
def refill(w: World, g: Game) -> None:
    """Empty slots take the oldest jobs that have none, or the shortest, the lowest slot first."""
    m = g.memory
    k = 0
    while m.entered < w.s[0].next_job and k < g.settings.slots:
        if g.slots[k] == codes.NONE:
            g.slots[k] = behind.pop(w, g, m.seen - m.entered) if g.settings.shortest == 1 else m.entered
            g.starts[k] = UNKNOWN
            m.entered += 1
        k += 1


@lean
def start_booked(w: World, g: Game) -> bool:
    """Reservations that are due start, on the nodes that they name."""
    m, booked = g.memory, g.booked
    fine = True
    i = 0
    while i < m.booked:
        if booked[i].row <= m.row:
            j = booked[i].job
            code = command_start_nodes(w, j, booked[i].nodes) if g.settings.named == 1 else command_start(w, j)
            fine = fine and code == codes.REFUSED_NONE
            m.booked -= 1
            booked[i].row = booked[m.booked].row
            booked[i].job = booked[m.booked].job
            booked[i].nodes = booked[m.booked].nodes
        else:
            i += 1
    return fine


@lean
def catch_up(w: World, g: Game) -> bool:
    """Note what has happened since the last look: rows that have passed, ends, submissions, reservations due. False: the kernel refused a
    reservation."""
    st, m = g.settings, g.memory
    row = w.s[0].now // st.unit_us
    while m.row < row:
        at = m.row & st.ring
        for k in range(st.kinds):
            g.used[k, at] = 0
            g.busy[k, at] = 0
            if st.image == 1:
                g.chart[k, at, :] = 0
        m.row += 1
        m.recent *= FADING
        at = m.row & st.ring
        m.inverse -= g.ends[at]
        g.ends[at] = 0.0
    fine = True
    if m.booked > 0:
        fine = start_booked(w, g)
    while m.seen < w.s[0].next_job:
        m.inverse += 1.0 / length_of(w, st, m.seen)
        m.last = row
        m.recent += 1.0
        if st.shortest == 1:
            k = behind.come(w, g, m.seen)
            fine = fine and k != behind.NO_ROOM
            if k >= 0:
                g.starts[k] = UNKNOWN
        m.seen += 1
    if m.seen == w.s[0].n_ended:
        m.inverse = 0.0  # shed the rounding of the running sum
    refill(w, g)
    return fine


@lean
def window(g: Game, k: int, row: int, length: int) -> int:
    """Columns of kind `k` taken in any of `length` rows from `row`, as a set."""
    ring = g.settings.ring
    taken = 0
    for r in range(row, row + min(length, ring + 1)):
        taken |= g.busy[k, r & ring]
    return taken


@inlined
def last_block(busy: Any, k: int, ring: int, begin: int, end: int, most: int) -> int:
    """Last row from which on too many columns of kind `k` are taken for a job that would run from `begin` to `end` beside `most` others: it
    cannot start there or before. NOWHERE: it fits."""
    taken = 0
    for r in range(end - 1, begin - 1, -1):
        taken |= busy[k, r & ring]
        if bits.population(np.uint64(taken)) > most:
            return r
    return NOWHERE


@lean
def earliest(w: World, g: Game, j: int, length: int, begin: int) -> int:
    """First row from `begin` at which job `j` could start: now, or with reservations any row such that it ends within the horizon and every
    kind has enough columns free for its whole length. NOWHERE if there is none."""
    st, m = g.settings, g.memory
    if st.reserve == 0:
        for k in range(st.kinds):
            if g.used[k, begin & st.ring] + demand_of(w, j, k) > g.capacity[k]:
                return NOWHERE
        return begin if begin <= m.row else NOWHERE
    last = m.row + st.horizon - length
    row = begin
    while row <= last:
        blocked = NOWHERE
        for k in range(st.kinds):
            blocked = max(blocked, last_block(g.busy, k, st.ring, row, row + length, g.capacity[k] - demand_of(w, j, k)))
        if blocked == NOWHERE:
            return row
        row = blocked + 1
    return NOWHERE


@lean
def find_starts(w: World, g: Game) -> bool:
    """Where each slot's job would start (`starts` [M], rows; NOWHERE: empty, or no place). Is there any? What was found at the last look
    (`m.looked`) for the same jobs holds unless rows in between were taken: columns that are taken stay so, hence no place comes nearer."""
    st, m, starts = g.settings, g.memory, g.starts
    some = False
    row = m.row
    taken = m.taken_from < m.taken_to
    for k in range(st.slots):
        j = np.int64(g.slots[k])
        if j == codes.NONE:
            starts[k] = NOWHERE
            continue
        begin = np.int64(starts[k])
        if begin >= row and not taken:
            some = True
            continue
        if begin == NOWHERE and row == m.looked:
            continue
        length = length_of(w, st, j)
        if begin >= row and (begin >= m.taken_to or begin + length <= m.taken_from):
            some = True
            continue
        if begin == NOWHERE and st.reserve == 1:
            begin = m.looked + st.horizon - length + 1
        starts[k] = earliest(w, g, j, length, max(row, begin))
        some = some or starts[k] != NOWHERE
    m.looked = row
    m.taken_from = m.taken_to
    return some


@lean
def lowest_columns(free: int, n: int) -> int:
    """The n lowest members of a set."""
    chosen = 0
    for _ in range(n):
        low = free & -free
        chosen |= low
        free ^= low
    return chosen


@lean
def draw_job(w: World, g: Game, k: int, j: int, columns: int, row: int) -> None:
    """Job `j` takes these columns of kind `k` from `row` for its length."""
    st, m = g.settings, g.memory
    length = length_of(w, st, j)
    n = demand_of(w, j, k)
    shade = np.int64(255 * (1 + (m.shade + 16 * j) % SHADES)) // (SHADES + 1)
    for r in range(row, row + min(length, st.ring)):
        at = r & st.ring
        g.used[k, at] += n
        g.busy[k, at] |= columns
        if st.image == 1:
            rest = columns
            c = 0
            while rest != 0:
                if rest & 1 == 1:
                    g.chart[k, at, c] = shade
                rest >>= 1
                c += 1


@lean
def choose(w: World, g: Game, k: int) -> bool:
    """Carry out the choice of slot `k`, for whose job there is a place: it starts, or is reserved, and the slot is refilled. False: the
    kernel refused."""
    st, m = g.settings, g.memory
    j = np.int64(g.slots[k])
    row = np.int64(g.starts[k])
    length = length_of(w, st, j)
    nodes = 0
    for kind in range(st.kinds):
        taken = window(g, kind, row, length) if st.reserve == 1 else np.int64(g.busy[kind, row & st.ring])
        columns = lowest_columns(~taken & ((1 << g.capacity[kind]) - 1), demand_of(w, j, kind))
        draw_job(w, g, kind, j, columns, row)
        if kind == 0:
            nodes = columns
    code = codes.REFUSED_NONE
    if row > m.row:
        g.booked[m.booked].row = row
        g.booked[m.booked].job = j
        g.booked[m.booked].nodes = nodes
        m.booked += 1
    elif st.reserve == 1 and st.named == 1:
        code = command_start_nodes(w, j, nodes)
    elif w.job[j].single == 1:
        code = command_start_on(w, j, 0)
    else:
        code = command_start(w, j)
    g.ends[(row + length) & st.ring] += 1.0 / length
    taken = m.taken_from < m.taken_to
    m.taken_from = min(m.taken_from, row) if taken else row
    m.taken_to = max(m.taken_to, row + length) if taken else row + length
    g.slots[k] = codes.NONE
    g.starts[k] = NOWHERE
    refill(w, g)
    return code == codes.REFUSED_NONE
