"""A slotted world as a lens on one simulation of the kernel: which jobs are visible, where a choice would be placed,
what a unit costs.

The kernel has the clock, the queue, the machines and the jobs; here are the slots (job rows), for each machine and kind
the rows of the chart still to come, and the reservations. Slots are refilled first come first served, a free slot of
the lowest number first, so the order of the slots is not that of arrival. Jobs are taken to run their walltime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.slots import behind
from escala.envs.slots.state import FADING, PAY_WEIGHTS, SHADES, SHOWS_OLDEST, Game
from escala.kernel import bits, codes
from escala.kernel.commands import command_start, command_start_on
from escala.kernel.placement import node_fits
from escala.kernel.slots import command_start_nodes
from escala.kernel.state import World

NOWHERE = -1
UNKNOWN = -2  # a job that has come into its slot since the last look


@inlined
def length_of(w: World, st: Any, j: int) -> int:
    """Length of job `j` in units, rounded up."""
    return np.int64(np.uint64(w.job[j].walltime + st.unit_us - 1) // np.uint64(st.unit_us))


@inlined
def demand_of(w: World, j: int, k: int) -> int:
    """Demand of job `j` for kind `k`."""
    if k == 0:
        return np.int64(w.job[j].cores)
    return np.int64(w.demand[j, k - 1])


@lean
def refill(w: World, g: Game) -> None:
    """Empty slots take jobs that have none, by `settings.shows`, the lowest slot first."""
    m = g.memory
    k = 0
    while m.entered < w.s[0].next_job and k < g.settings.slots:
        if g.slots[k] == codes.NONE:
            oldest = g.settings.shows == SHOWS_OLDEST
            if oldest and w.run[m.entered].state != codes.QUEUED:  # beside a machine: somebody else has started it
                m.entered += 1
                continue
            g.slots[k] = m.entered if oldest else behind.leave(w, g, m.seen - m.entered)
            g.starts[k] = UNKNOWN
            m.entered += 1
            if g.settings.pay == PAY_WEIGHTS:
                share = 1.0 / length_of(w, g.settings, np.int64(g.slots[k]))
                m.behind -= share
                m.waiting += share
        k += 1
    if m.entered == w.s[0].next_job:
        m.behind = 0.0  # shed the rounding of the running sum


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


@inlined
def faded(recent: float, rows: int) -> float:
    """What is left of the recent arrivals after so many rows, multiplied row by row."""
    while rows > 0 and recent > 0.0:
        recent *= FADING
        rows -= 1
    return recent


@lean
def catch_up(w: World, g: Game) -> bool:
    """Note what has happened since the last look: rows that have passed, ends, submissions, reservations due. False:
    the kernel refused a reservation."""
    st, m = g.settings, g.memory
    row = w.s[0].now // st.unit_us
    passed = 0
    while m.row < row:
        if passed > st.ring:  # all rows of the ring have passed: nothing is left in it, however long nothing happens
            m.recent = faded(m.recent, row - m.row)
            m.row = row
            break
        passed += 1
        at = m.row & st.ring
        for p in range(g.used.shape[0]):
            g.used[p, at] = 0
        for k in range(g.busy.shape[0]):
            g.busy[k, at] = 0
            if st.image == 1:
                g.chart[k, at, :] = 0
        m.row += 1
        m.recent *= FADING
        at = m.row & st.ring
        for a in range(st.agents):
            m.inverse -= g.ends[a, at]
            g.running[a] -= g.ends[a, at]
            g.ends[a, at] = 0.0
    if w.s[0].n_ends == 0:
        for a in range(st.agents):
            g.running[a] = 0.0  # shed the rounding of the running sums
    fine = True
    if m.booked > 0:
        fine = start_booked(w, g)
    while m.seen < w.s[0].next_job:
        share = 1.0 / length_of(w, st, m.seen)
        m.inverse += share
        m.behind += share
        m.last = row
        m.recent += 1.0
        if st.shows != SHOWS_OLDEST:
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
    """Last row from which on too many columns of kind `k` are taken for a job that would run from `begin` to `end`
    beside `most` others: it cannot start there or before. NOWHERE: it fits."""
    taken = 0
    for r in range(end - 1, begin - 1, -1):
        taken |= busy[k, r & ring]
        if bits.population(np.uint64(taken)) > most:
            return r
    return NOWHERE


@lean
def earliest(w: World, g: Game, j: int, length: int, begin: int) -> int:
    """First row from `begin` at which job `j` could be reserved on the pool: it ends within the horizon, and every kind
    has enough columns free for its whole length. NOWHERE if there is none."""
    st, m = g.settings, g.memory
    last = m.row + st.horizon - length
    row = begin
    while row <= last:
        blocked = NOWHERE
        for k in range(st.kinds):
            most = g.capacity[0, k] - demand_of(w, j, k)
            blocked = max(blocked, last_block(g.busy, k, st.ring, row, row + length, most))
        if blocked == NOWHERE:
            return row
        row = blocked + 1
    return NOWHERE


@inlined
def fits_pool(w: World, g: Game, j: int) -> bool:
    """Does job `j` fit on the pool now?"""
    at, fits = g.memory.row & g.settings.ring, True
    for k in range(g.settings.kinds):
        fits = fits and g.used[k, at] + demand_of(w, j, k) <= g.capacity[0, k]
    return fits


@lean
def find_starts(w: World, g: Game) -> bool:
    """Where each slot's job would start on the pool (`starts` [M], rows; NOWHERE: empty, or no place). Is there any?
    What was found at the last look (`m.looked`) for the same jobs holds unless rows in between were taken: what is
    taken stays so, no place comes nearer."""
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
        if st.reserve == 0:
            starts[k] = row if fits_pool(w, g, j) else NOWHERE
            some = some or starts[k] != NOWHERE
            continue
        length = length_of(w, st, j)
        if begin >= row and (begin >= m.taken_to or begin + length <= m.taken_from):
            some = True
            continue
        if begin == NOWHERE:
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


@inlined
def has_place(w: World, g: Game, k: int, n: int) -> bool:
    """Is there a job in slot `k`, and a place for it on machine `n`: now, or on a pool with reservations later?"""
    if g.settings.pool == 1:
        return g.starts[k] != NOWHERE
    return g.slots[k] != codes.NONE and node_fits(w, np.int64(g.slots[k]), n)


@inlined
def free_of(w: World, g: Game, n: int, k: int) -> int:
    """Units of kind `k` on machine `n` that are free now."""
    if g.settings.pool == 1:
        return g.capacity[0, k] - g.used[k, g.memory.row & g.settings.ring]
    return np.int64(w.node[n].free) if k == 0 else np.int64(w.room[n, k - 1])


@lean
def take(w: World, g: Game, j: int, n: int, row: int, length: int) -> int:
    """Job `j` takes columns of machine `n` from `row` for its `length`. On a pool these are the lowest that are free
    throughout; returns those of its first kind, as a set."""
    st, m = g.settings, g.memory
    end = row + min(length, st.ring)
    nodes = 0
    for k in range(st.kinds):
        need = demand_of(w, j, k)
        if st.pool == 0:
            for r in range(row, end):
                g.used[n * st.kinds + k, r & st.ring] += need
            continue
        taken = window(g, k, row, length) if st.reserve == 1 else np.int64(g.busy[k, row & st.ring])
        columns = lowest_columns(~taken & ((1 << g.capacity[0, k]) - 1), need)
        for r in range(row, end):
            g.used[k, r & st.ring] += need
            g.busy[k, r & st.ring] |= columns
        if st.image == 1:
            shade = np.int64(255 * (1 + (m.shade + 16 * j) % SHADES)) // (SHADES + 1)
            colour(g.chart[k], columns, row, end, shade)
        if k == 0:
            nodes = columns
    return nodes


@lean
def colour(chart: Any, columns: int, begin: int, end: int, shade: int) -> None:
    """Draw a set of columns into the chart of one kind [ring, columns]."""
    ring = chart.shape[0] - 1
    for r in range(begin, end):
        rest = columns
        c = 0
        while rest != 0:
            if rest & 1 == 1:
                chart[r & ring, c] = shade
            rest >>= 1
            c += 1


@inlined
def note_taken(m: Any, begin: int, end: int) -> None:
    """Rows of the pool are no longer as `find_starts` found them."""
    taken = m.taken_from < m.taken_to
    m.taken_from = min(m.taken_from, begin) if taken else begin
    m.taken_to = max(m.taken_to, end) if taken else end


@lean
def all_empty(g: Game) -> bool:
    """Is there no job in the slots?"""
    empty = True
    for k in range(g.settings.slots):
        empty = empty and g.slots[k] == codes.NONE
    return empty


@lean
def place(w: World, g: Game, k: int, n: int) -> bool:
    """The job of slot `k`, for which there is a place on machine `n`, starts there, or is reserved, and the slot is
    refilled. False: the kernel refused."""
    st, m = g.settings, g.memory
    j = np.int64(g.slots[k])
    row = np.int64(g.starts[k]) if st.pool == 1 else np.int64(m.row)
    length = length_of(w, st, j)
    nodes = take(w, g, j, n, row, length)
    code = codes.REFUSED_NONE
    if row > m.row:
        g.booked[m.booked].row = row
        g.booked[m.booked].job = j
        g.booked[m.booked].nodes = nodes
        m.booked += 1
    elif st.reserve == 1 and st.named == 1:
        code = command_start_nodes(w, j, nodes)
    elif w.job[j].single == 1:
        code = command_start_on(w, j, n)
    else:
        code = command_start(w, j)
    share = 1.0 / length
    a = 0 if st.pool == 1 else n // st.machines
    g.ends[a, (row + length) & st.ring] += share
    g.running[a] += share
    m.waiting -= share
    note_taken(m, row, row + length)
    g.slots[k] = codes.NONE
    g.starts[k] = NOWHERE
    refill(w, g)
    if st.pay == PAY_WEIGHTS and all_empty(g):
        m.waiting = 0.0  # shed the rounding of the running sum
    return code == codes.REFUSED_NONE


@lean
def charge(g: Game, rewards: Any, i: int) -> None:
    """A unit of time passes in game `i`. Rewards of agents [N, agents] are added up; those of slowdowns wait in
    `memory.total`."""
    st, m = g.settings, g.memory
    m.total += m.inverse
    if st.pay != PAY_WEIGHTS:
        return
    everyone = 0.0
    for a in range(st.agents):
        everyone += g.running[a]
    for a in range(st.agents):
        cost = st.alpha * m.waiting + st.beta * m.behind + st.gamma * (everyone if st.all_paid == 1 else g.running[a])
        rewards[i, a] += m.fade * cost
    m.fade *= st.discount


@lean
def summarise(w: World, g: Game) -> None:
    """Figures of the ended run from the kernel's own starts, in units; m.makespan is 0 where jobs are left."""
    st, m = g.settings, g.memory
    m.submitted = w.s[0].next_job
    m.left = 0
    m.slowdown = 0.0
    m.turnaround = 0.0
    m.wait = 0.0
    m.longest_wait = 0.0
    m.finished_slowdown = 0.0
    m.finished_runtime = 0.0
    for j in range(m.submitted):
        runtime = w.job[j].runtime / st.unit_us
        submit = w.job[j].submit
        started = w.run[j].state != codes.QUEUED
        ended = w.run[j].state == codes.COMPLETED or w.run[j].state == codes.KILLED
        wait = (w.run[j].start - submit if started else w.s[0].now - submit) / st.unit_us
        turnaround = wait + runtime
        m.wait += wait / m.submitted
        m.longest_wait = max(m.longest_wait, wait)
        m.turnaround += turnaround / m.submitted
        m.slowdown += turnaround / runtime / m.submitted
        if ended:
            m.finished_slowdown += turnaround / runtime
            m.finished_runtime += runtime
        else:
            m.left += 1
    finished = m.submitted - m.left
    if finished > 0:
        m.finished_slowdown /= finished
        m.finished_runtime /= finished
    whole = m.left == 0 and m.submitted == w.o[0].n_jobs
    m.makespan = (w.s[0].last_finish - w.job[0].submit) / st.unit_us if whole else 0.0
