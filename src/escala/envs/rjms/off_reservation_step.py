"""The compiled steps of `escala/OffReservation-v0`: over all simulations of a batch, one behind the other."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled, lean
from escala.envs.rjms import action, reward
from escala.envs.rjms.decision_times import FAILED, FINISHED, asks, mask_machine, observe_machine, remember, to_question
from escala.envs.rjms.state import Game, shutdown_game
from escala.kernel.state import World
from escala.kernel.world import one


@compiled
def begin(worlds: Any, games: Any, rows: Any, turn: Any) -> bool:
    """Bring simulations that stand at the start of their day to their first question. turn: (observation [N, numbers],
    mask). False where one cannot go on."""
    observation, mask = turn
    fine = True
    for k in range(rows.shape[0]):
        i = rows[k]
        w, g = one(worlds, i), shutdown_game(games, i)
        stop = to_question(worlds, i, g)
        g.memory.over = 1 if stop == FINISHED else 0
        fine = fine and stop != FAILED
        observe_machine(w, g, observation[i])
        mask_machine(w, g, mask[i])
    return fine


@compiled
def go_on(worlds: Any, i: int, g: Game, chosen: int) -> int:
    """Put an action in force in simulation i, and on to its next question; FINISHED at the end of the run, FAILED where
    nothing can go on."""
    w, m = one(worlds, i), g.memory
    if w.s[0].n_queued > 0 or g.settings.always == 1:
        m.standing = chosen
    action.apply(w, g, m.standing)
    stop = to_question(worlds, i, g)
    m.over = 1 if stop == FINISHED else 0
    return stop


@lean
def settle(w: World, g: Game) -> float:
    """The reward since the last settlement."""
    st, m = g.settings, g.memory
    total = reward.waste_j(w, g.watts)
    m.step_waste_j = total - m.waste_j
    m.waste_j = total
    value = -(st.waste_scale * m.step_waste_j + st.late_scale * m.step_late + st.stretch_cost * m.step_wait)
    m.shown_late = m.step_late
    m.shown_wait = m.step_wait
    m.step_late = 0.0
    m.step_wait = 0.0
    return value


@compiled
def step(worlds: Any, games: Any, actions: Any, turn: Any) -> bool:
    """One action of each simulation, and on to its next question. turn: (observation, mask, rewards, terminated,
    truncated)."""
    observation, mask, rewards, terminated, truncated = turn
    fine = True
    for i in range(actions.shape[0]):
        w, g = one(worlds, i), shutdown_game(games, i)
        stop = FINISHED
        if g.memory.over == 0:
            stop = go_on(worlds, i, g, actions[i])
        fine = fine and stop != FAILED
        rewards[i] = settle(w, g)
        cut = w.o[0].limited == 1 if stop == FINISHED else w.s[0].now >= g.settings.limit_us
        terminated[i] = stop == FINISHED and not cut
        truncated[i] = cut
        observe_machine(w, g, observation[i])
        mask_machine(w, g, mask[i])
    return fine


@lean
def look(worlds: Any, i: int, games: Any, observation: Any, mask: Any) -> int:
    """A run of simulation i, driven from outside, pauses before the scheduler: 0, nothing to do; 1, the action in force
    is to be renewed; 2, a question."""
    w, g = one(worlds, i), shutdown_game(games, 0)
    if not asks(w):
        return 0
    remember(w, g)
    if w.s[0].n_queued == 0 and g.settings.always == 0:
        return 1
    observe_machine(w, g, observation)
    mask_machine(w, g, mask)
    return 2


@lean
def put(worlds: Any, i: int, games: Any, chosen: int) -> None:
    """Put an action in force in simulation i."""
    g = shutdown_game(games, 0)
    g.memory.standing = chosen
    action.apply(one(worlds, i), g, chosen)
