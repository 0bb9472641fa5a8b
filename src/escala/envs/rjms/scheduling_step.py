"""The compiled steps of `escala/Scheduling-v0`: choices, time, what is seen, and the reward; over all simulations of a
batch, one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.envs.rjms import reward
from escala.envs.rjms.guard import act_as, first_of, may_start, serve
from escala.envs.rjms.observation import SNAPSHOT, crowd, root
from escala.envs.rjms.state import Game, scheduling_game
from escala.envs.rjms.user_confidence import note_jobs, note_placed, place_of
from escala.kernel import codes
from escala.kernel.commands import command_start, command_timer
from escala.kernel.drive import drive_outside
from escala.kernel.plans import following
from escala.kernel.state import HEAP_STARTS, World
from escala.kernel.world import one

QUEUED = 3  # cores, walltime, confidence
RUNNING = 3  # cores, remaining walltime, remaining by confidence
WIDTH = QUEUED + RUNNING + SNAPSHOT
FAILED = -1


@compiled
def to_question(worlds: Any, i: int, g: Game) -> int:
    """Run simulation i to its next question: jobs wait and the last no-op has passed. DONE at the end of the run,
    FAILED where nothing can go on."""
    w = one(worlds, i)
    while True:
        stop = drive_outside(worlds, i, codes.NEVER_US)
        if stop == codes.DONE:
            return stop
        if stop != codes.DECISION:
            return FAILED
        note_jobs(w, g)
        serve(w, g)
        if w.s[0].now >= g.settings.limit_us or asks(w, g):
            return stop


@lean
def asks(w: World, g: Game) -> bool:
    """Is the agent asked at this decision?"""
    return w.s[0].n_queued > 0 and w.s[0].now >= g.memory.due_us


@lean
def row_of(w: World, slot: int) -> int:
    """The waiting job at place `slot` (from 0) of the queue, NONE if there is none."""
    j = w.s[0].first
    while j != codes.NONE and slot > 0:
        j = np.int64(w.run[j].next)
        slot -= 1
    return j


@lean
def choose(w: World, g: Game, action: int) -> bool:
    """Carry out a choice; True where the agent may choose again at this instant. A no-op or an invalid one asks for a
    question one period later."""
    m = g.memory
    j = row_of(w, action - 1) if action > 0 else codes.NONE
    if j != codes.NONE and may_start(w, g, j) and command_start(w, j) == codes.REFUSED_NONE:
        note_placed(g, j)
        serve(w, g)
        m.due_us = 0
        return w.s[0].n_queued > 0
    if w.s[0].n_queued > 0:
        m.due_us = w.s[0].now + g.settings.period_us
        command_timer(w, m.due_us)
    return False


@lean
def remember(w: World, g: Game) -> None:
    """The newest snapshot shows this instant; where time has moved it enters the ring over the oldest."""
    m, day_us = g.memory, g.settings.day_us
    s = w.s[0]
    o = w.o[0]
    if s.now > m.shown_us:
        m.newest = (m.newest + 1) % g.history.shape[0]
        m.shown_us = s.now
    out = g.history[m.newest]
    given = 0
    for k in range(s.n_starts):
        given += w.job[w.heaps[HEAP_STARTS, k].id].cores
    out[0] = given / o.n_cores
    out[1] = crowd(s.n_queued)
    out[2] = (s.now % day_us) / day_us
    for k in range(5):
        nodes = 0
        for p in range(w.ledger.shape[0]):
            nodes += w.ledger[p].nodes[k]
        out[3 + k] = nodes / o.n_nodes


@lean
def show_jobs(w: World, g: Game, out: Any, mask: Any) -> None:
    """Write the part of an observation, [places, WIDTH], that shows waiting and running jobs, and the mask."""
    s = w.s[0]
    m, confidence, frontier, day = g.memory, g.confidence, g.frontier, g.settings.day_us
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
        mask[1 + k] = m.over == 0 and may_start(w, g, j)
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
def observe(w: World, g: Game, out: Any, mask: Any) -> None:
    """Write one observation, [places, WIDTH], and its mask."""
    remember(w, g)
    show_jobs(w, g, out, mask)
    places = out.shape[0]
    for k in range(places):
        row = g.history[(g.memory.newest + 1 + k) % places]
        for c in range(SNAPSHOT):
            out[k, QUEUED + RUNNING + c] = row[c]


@lean
def settle(w: World, g: Game) -> float:
    """The reward since the last settlement: -rho idle - sigma waited + tau computing."""
    st, m = g.settings, g.memory
    idle = reward.node_us_of(w, codes.IDLE)
    computing = reward.node_us_of(w, codes.COMPUTING)
    waste = reward.waste_j(w, g.watts)
    whole = 1.0 * w.o[0].n_nodes * st.period_us
    value = (st.tau * (computing - m.computing_us) - st.rho * (idle - m.idle_us)) / whole
    value -= st.sigma * reward.waited(w, m.seen_us, st.cost)
    m.step_waste_j = waste - m.waste_j
    m.waste_j = waste
    m.idle_us = idle
    m.computing_us = computing
    m.seen_us = w.s[0].now
    return value


@compiled
def begin(worlds: Any, games: Any, rows: Any, turn: Any) -> bool:
    """Bring simulations that stand at the start of their episode to their first question. turn: (observation [N,
    places, WIDTH], mask). False where one cannot go on."""
    observation, mask = turn
    fine = True
    for k in range(rows.shape[0]):
        i = rows[k]
        w, g = one(worlds, i), scheduling_game(games, i)
        for j in range(w.s[0].next_job):  # of those who were there before
            if w.run[j].state == codes.GIVEN or w.run[j].state == codes.RUNNING:
                note_placed(g, j)
        stop = to_question(worlds, i, g)
        g.memory.over = 1 if stop == codes.DONE else 0
        fine = fine and stop != FAILED
        observe(w, g, observation[i], mask[i])
    return fine


@compiled
def step(worlds: Any, games: Any, actions: Any, turn: Any) -> bool:
    """One choice of each simulation, and on to its next question. turn: (observation, mask, rewards, terminated,
    truncated)."""
    observation, mask, rewards, terminated, truncated = turn
    fine = True
    for i in range(actions.shape[0]):
        w, g = one(worlds, i), scheduling_game(games, i)
        m = g.memory
        stop = codes.DONE
        if m.over == 0:
            stop = codes.DECISION
            if not choose(w, g, actions[i]):
                stop = to_question(worlds, i, g)
            m.over = 1 if stop == codes.DONE else 0
        fine = fine and stop != FAILED
        moved = w.s[0].now > m.seen_us or stop == codes.DONE
        m.step_waste_j = 0.0
        rewards[i] = settle(w, g) if moved else 0.0
        cut = w.o[0].limited == 1 if stop == codes.DONE else w.s[0].now >= g.settings.limit_us
        terminated[i] = stop == codes.DONE and not cut
        truncated[i] = cut
        observe(w, g, observation[i], mask[i])
    return fine


@lean
def look(worlds: Any, i: int, games: Any, observation: Any, mask: Any) -> bool:
    """A run of simulation i, driven from outside, pauses for the scheduler: is this a question?"""
    w, g = one(worlds, i), scheduling_game(games, 0)
    note_jobs(w, g)
    serve(w, g)
    if not asks(w, g):
        return False
    observe(w, g, observation, mask)
    return True


@lean
def put(worlds: Any, i: int, games: Any, chosen: int) -> None:
    """Carry out a choice in simulation i."""
    choose(one(worlds, i), scheduling_game(games, 0), chosen)


@lean
def waiting(worlds: Any, i: int, out: Any) -> None:
    """The rows of the waiting jobs of simulation i, in order of submission."""
    w = one(worlds, i)
    j = np.int64(w.s[0].first)
    for k in range(out.shape[0]):
        out[k] = j
        j = np.int64(w.run[j].next)


@lean
def rows(worlds: Any, i: int, games: Any, chosen: int, order: Any, queueing: int) -> tuple[int, int]:
    """The row of the job behind a choice in simulation i, and of the one that a base would start first (`first_of`);
    NONE for waiting."""
    w = one(worlds, i)
    return (row_of(w, chosen - 1) if chosen > 0 else codes.NONE), first_of(
        w, scheduling_game(games, 0), order, queueing
    )


@lean
def put_base(worlds: Any, i: int, games: Any, order: Any, queueing: int) -> None:
    """What a base starts now, and a no-op behind it."""
    w, g = one(worlds, i), scheduling_game(games, 0)
    act_as(w, g, order, queueing)
    choose(w, g, 0)
