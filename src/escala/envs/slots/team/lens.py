"""The game of several agents as a lens on one simulation of the kernel: which jobs are visible, what fits where, what a unit costs.

The kernel has the clock, the queue, the machines and the jobs; here are the slots (job rows), and for each machine and kind the rows of the
chart still to come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.envs.slots.lens import demand_of, length_of
from escala.envs.slots.state import FADING
from escala.envs.slots.team.state import Game
from escala.kernel import codes
from escala.kernel.commands import command_start_on
from escala.kernel.placement import node_fits
from escala.kernel.state import World


@lean
def refill(w: World, g: Game) -> None:
    """Empty slots take the oldest jobs that have none, the lowest slot first."""
    st, m, slots = g.settings, g.memory, g.slots
    k = 0
    while m.entered < w.s[0].next_job and k < st.slots:
        if slots[k] == codes.NONE:
            slots[k] = m.entered
            share = 1.0 / length_of(w, st, m.entered)
            m.behind -= share
            m.waiting += share
            m.entered += 1
        k += 1
    if m.entered == w.s[0].next_job:
        m.behind = 0.0  # shed the rounding of the running sum


@lean
def catch_up(w: World, g: Game) -> None:
    """Note what has happened since the last look: rows that have passed, ends, submissions."""
    st, m, used, ends, running = g.settings, g.memory, g.used, g.ends, g.running
    row = w.s[0].now // st.unit_us
    while m.row < row:
        at = m.row & st.ring
        for p in range(used.shape[0]):
            used[p, at] = 0
        m.row += 1
        m.recent *= FADING
        at = m.row & st.ring
        for a in range(st.agents):
            running[a] -= ends[a, at]
            ends[a, at] = 0.0
    if w.s[0].n_ends == 0:
        running[:] = 0.0
    while m.seen < w.s[0].next_job:
        m.behind += 1.0 / length_of(w, st, m.seen)
        m.last = row
        m.recent += 1.0
        m.seen += 1
    refill(w, g)


@inlined
def fits(w: World, j: int, n: int) -> bool:
    """May job `j` (NONE: no job) start on machine `n` now?"""
    return j != codes.NONE and node_fits(w, j, n)


@inlined
def free_of(w: World, n: int, k: int) -> int:
    """Free units of kind `k` on machine `n`."""
    return np.int64(w.node[n].free) if k == 0 else np.int64(w.room[n, k - 1])


@lean
def place(w: World, g: Game, k: int, n: int) -> bool:
    """The job of slot `k` starts on machine `n`, where it fits, and the slot is refilled. False: the kernel refused."""
    st, m, slots = g.settings, g.memory, g.slots
    j = np.int64(slots[k])
    length = length_of(w, st, j)
    if command_start_on(w, j, n) != codes.REFUSED_NONE:
        return False
    for kind in range(st.kinds):
        need = demand_of(w, j, kind)
        for r in range(m.row, m.row + min(length, st.ring)):
            g.used[n * st.kinds + kind, r & st.ring] += need
    share = 1.0 / length
    a = n // st.machines
    g.ends[a, (m.row + length) & st.ring] += share
    g.running[a] += share
    m.waiting -= share
    slots[k] = codes.NONE
    refill(w, g)
    empty = True
    for c in range(st.slots):
        empty = empty and slots[c] == codes.NONE
    if empty:
        m.waiting = 0.0
    return True


@lean
def charge(g: Game, rewards: Any) -> None:
    """What a unit of time costs each agent, added to `rewards` [agents]."""
    st, m, running = g.settings, g.memory, g.running
    everyone = 0.0
    for a in range(st.agents):
        everyone += running[a]
    for a in range(st.agents):
        cost = st.alpha * m.waiting + st.beta * m.behind + st.gamma * (everyone if st.all_paid == 1 else running[a])
        rewards[a] += m.fade * cost
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
    m.makespan = (w.s[0].last_finish - w.job[0].submit) / st.unit_us if m.left == 0 and m.submitted == w.o[0].n_jobs else 0.0
