"""The compiled steps of `escala/Scheduling-v0`: choices, time, what is seen, and the reward; over all simulations of a batch, one behind
the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.envs.rjms import reward
from escala.envs.rjms.observation import SNAPSHOT, crowd, root
from escala.envs.rjms.user_confidence import note_jobs, note_placed, place_of
from escala.kernel import codes
from escala.kernel.commands import command_start, command_timer
from escala.kernel.drive import drive_outside
from escala.kernel.fit import fits_now
from escala.kernel.plans import following
from escala.kernel.state import HEAP_STARTS, World
from escala.kernel.world import one

QUEUED = 3  # cores, walltime, confidence
RUNNING = 3  # cores, remaining walltime, remaining by confidence
WIDTH = QUEUED + RUNNING + SNAPSHOT
FAILED = -1


@compiled
def to_question(table: Any, i: int, w: World, settings: Any, memory: Any, live: Any, ratios: Any, entered: Any, confidence: Any) -> int:
    """Run simulation i to its next question: jobs wait and the last void choice has passed. DONE at the end of the run, FAILED where
    nothing can go on."""
    while True:
        stop = drive_outside(table, i, codes.NEVER_US)
        if stop == codes.DONE:
            return stop
        if stop != codes.DECISION:
            return FAILED
        note_jobs(w, settings, memory, live, ratios, entered, confidence)
        if w.s[0].now >= settings[0].limit_us or asks(w, memory):
            return stop


@lean
def asks(w: World, memory: Any) -> bool:
    """Is the agent asked at this decision?"""
    return w.s[0].n_queued > 0 and w.s[0].now >= memory.due_us


@lean
def row_of(w: World, slot: int) -> int:
    """The waiting job at place `slot` (from 0) of the queue, NONE if there is none."""
    j = w.s[0].first
    while j != codes.NONE and slot > 0:
        j = np.int64(w.run[j].next)
        slot -= 1
    return j


@lean
def choose(w: World, settings: Any, memory: Any, live: Any, action: int) -> bool:
    """Carry out a choice; True where the agent may choose again at this instant. A void or invalid one asks for a question one period
    later."""
    j = row_of(w, action - 1) if action > 0 else codes.NONE
    if j != codes.NONE and command_start(w, j) == codes.REFUSED_NONE:
        note_placed(w, memory, live, j)
        memory.due_us = 0
        return w.s[0].n_queued > 0
    if w.s[0].n_queued > 0:
        memory.due_us = w.s[0].now + settings[0].period_us
        command_timer(w, memory.due_us)
    return False


@lean
def remember(w: World, memory: Any, history: Any, settings: Any) -> None:
    """The newest snapshot shows this instant; where time has moved it enters the ring over the oldest."""
    s = w.s[0]
    o = w.o[0]
    if s.now > memory.shown_us:
        memory.newest = (memory.newest + 1) % history.shape[0]
        memory.shown_us = s.now
    out = history[memory.newest]
    given = 0
    for k in range(s.n_starts):
        given += w.job[w.heaps[HEAP_STARTS, k].id].cores
    out[0] = given / o.n_cores
    out[1] = crowd(s.n_queued)
    out[2] = (s.now % settings[0].day_us) / settings[0].day_us
    for k in range(5):
        nodes = 0
        for p in range(w.ledger.shape[0]):
            nodes += w.ledger[p].nodes[k]
        out[3 + k] = nodes / o.n_nodes


@lean
def show_jobs(w: World, settings: Any, memory: Any, confidence: Any, frontier: Any, out: Any, mask: Any) -> None:
    """Write the part of an observation, [places, WIDTH], that shows waiting and running jobs, and the mask."""
    s = w.s[0]
    day = settings[0].day_us
    places = out.shape[0]
    users = confidence.shape[0]
    out[:, : QUEUED + RUNNING] = 0.0
    waits = out.shape[1] > WIDTH
    if waits:
        out[:, WIDTH] = 0.0
    mask[:] = False
    mask[0] = True
    j = s.first
    for k in range(min(places, s.n_queued)):
        out[k, 0] = w.job[j].cores / w.o[0].n_cores
        out[k, 1] = root(w.job[j].walltime, day)
        out[k, 2] = confidence[place_of(w, j, users)]
        if waits:
            out[k, WIDTH] = root(s.now - w.job[j].submit, day)
        mask[1 + k] = memory.over == 0 and fits_now(w, j)
        j = np.int64(w.run[j].next)
    size = 0
    if s.n_plans > 0:
        frontier[0] = 0
        size = 1
    k = 0
    while size > 0 and k < places:
        position, size = following(w, frontier, size)
        j = np.int64(w.plans[position])
        began = w.run[j].plan - w.job[j].walltime
        out[k, 3] = w.job[j].cores / w.o[0].n_cores
        out[k, 4] = root(w.run[j].plan - s.now, day)
        out[k, 5] = root(began + np.int64(confidence[place_of(w, j, users)] * w.job[j].walltime) - s.now, day)
        k += 1


@lean
def observe(w: World, settings: Any, memory: Any, history: Any, confidence: Any, frontier: Any, out: Any, mask: Any) -> None:
    """Write one observation, [places, WIDTH], and its mask."""
    remember(w, memory, history, settings)
    show_jobs(w, settings, memory, confidence, frontier, out, mask)
    places = out.shape[0]
    for k in range(places):
        row = history[(memory.newest + 1 + k) % places]
        for c in range(SNAPSHOT):
            out[k, QUEUED + RUNNING + c] = row[c]


@lean
def settle(w: World, settings: Any, watts: Any, memory: Any) -> float:
    """The reward since the last settlement: -rho idle - sigma waited + mu computing."""
    st = settings[0]
    idle = reward.node_us_of(w, codes.IDLE)
    computing = reward.node_us_of(w, codes.COMPUTING)
    waste = reward.waste_j(w, watts)
    whole = 1.0 * w.o[0].n_nodes * st.period_us
    value = (st.mu * (computing - memory.computing_us) - st.rho * (idle - memory.idle_us)) / whole
    value -= st.sigma * reward.waited(w, memory.seen_us)
    memory.step_waste_j = waste - memory.waste_j
    memory.waste_j = waste
    memory.idle_us = idle
    memory.computing_us = computing
    memory.seen_us = w.s[0].now
    return value


@compiled
def begin(
    table: Any,
    rows: Any,
    settings: Any,
    memory: Any,
    history: Any,
    live: Any,
    ratios: Any,
    entered: Any,
    confidence: Any,
    frontier: Any,
    observation: Any,
    mask: Any,
) -> bool:
    """Bring simulations that stand at the start of their day to their first question; False where one cannot go on."""
    fine = True
    for k in range(rows.shape[0]):
        i = rows[k]
        w = one(table, i)
        m = memory[i]
        stop = to_question(table, i, w, settings, m, live[i], ratios[i], entered[i], confidence[i])
        m.over = 1 if stop == codes.DONE else 0
        fine = fine and stop != FAILED
        observe(w, settings, m, history[i], confidence[i], frontier, observation[i], mask[i])
    return fine


@compiled
def step(
    table: Any,
    actions: Any,
    settings: Any,
    watts: Any,
    memory: Any,
    history: Any,
    live: Any,
    ratios: Any,
    entered: Any,
    confidence: Any,
    frontier: Any,
    observation: Any,
    mask: Any,
    rewards: Any,
    terminated: Any,
    truncated: Any,
) -> bool:
    """One choice of each simulation, and on to its next question."""
    fine = True
    for i in range(actions.shape[0]):
        w = one(table, i)
        m = memory[i]
        stop = codes.DONE
        if m.over == 0:
            stop = codes.DECISION
            if not choose(w, settings, m, live[i], actions[i]):
                stop = to_question(table, i, w, settings, m, live[i], ratios[i], entered[i], confidence[i])
            m.over = 1 if stop == codes.DONE else 0
        fine = fine and stop != FAILED
        moved = w.s[0].now > m.seen_us or stop == codes.DONE
        m.step_waste_j = 0.0
        rewards[i] = settle(w, settings, watts, m) if moved else 0.0
        cut = w.o[0].limited == 1 if stop == codes.DONE else w.s[0].now >= settings[0].limit_us
        terminated[i] = stop == codes.DONE and not cut
        truncated[i] = cut
        observe(w, settings, m, history[i], confidence[i], frontier, observation[i], mask[i])
    return fine


@lean
def look(
    table: Any,
    i: int,
    settings: Any,
    memory: Any,
    history: Any,
    live: Any,
    ratios: Any,
    entered: Any,
    confidence: Any,
    frontier: Any,
    observation: Any,
    mask: Any,
) -> bool:
    """A run of simulation i, driven from outside, pauses for the scheduler: is this a question? Arrays as in `step`, of one row."""
    w = one(table, i)
    m = memory[0]
    note_jobs(w, settings, m, live[0], ratios[0], entered[0], confidence[0])
    if not asks(w, m):
        return False
    observe(w, settings, m, history[0], confidence[0], frontier, observation[0], mask[0])
    return True


@lean
def put(table: Any, i: int, settings: Any, memory: Any, live: Any, chosen: int) -> None:
    """Carry out a choice in simulation i."""
    choose(one(table, i), settings, memory[0], live[0], chosen)
