"""The compiled steps of `escala/OffReservation-v0`: over all simulations of a batch, one behind the other."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled, lean
from escala.envs.rjms import action, reward
from escala.envs.rjms.decision_times import FAILED, FINISHED, asks, mask_machine, observe_machine, remember, to_question
from escala.kernel.state import World
from escala.kernel.world import one


@compiled
def begin(
    table: Any,
    rows: Any,
    settings: Any,
    fractions: Any,
    memory: Any,
    history: Any,
    users: Any,
    frontier: Any,
    observation: Any,
    mask: Any,
) -> bool:
    """Bring simulations that stand at the start of their day to their first question. `observation` [N, numbers]; False where one cannot
    go on."""
    fine = True
    for k in range(rows.shape[0]):
        i = rows[k]
        w = one(table, i)
        m = memory[i]
        stop = to_question(table, i, w, settings, fractions, m, history[i], users)
        m.over = 1 if stop == FINISHED else 0
        fine = fine and stop != FAILED
        observe_machine(w, settings, m, history[i], users, frontier, observation[i])
        mask_machine(w, settings, m, mask[i])
    return fine


@compiled
def go_on(table: Any, i: int, w: World, settings: Any, fractions: Any, memory: Any, history: Any, users: Any, chosen: int) -> int:
    """Put an action in force in simulation i, and on to its next question; FINISHED at the end of the run, FAILED where nothing can go
    on."""
    if w.s[0].n_queued > 0 or settings[0].always == 1:
        memory.standing = chosen
    action.apply(w, settings, fractions, memory.standing)
    stop = to_question(table, i, w, settings, fractions, memory, history, users)
    memory.over = 1 if stop == FINISHED else 0
    return stop


@lean
def settle(w: World, settings: Any, watts: Any, memory: Any) -> float:
    """The reward since the last settlement."""
    st = settings[0]
    total = reward.waste_j(w, watts)
    memory.step_waste_j = total - memory.waste_j
    memory.waste_j = total
    value = -(st.waste_scale * memory.step_waste_j + st.late_scale * memory.step_late + st.stretch_cost * memory.step_wait)
    memory.shown_late = memory.step_late
    memory.shown_wait = memory.step_wait
    memory.step_late = 0.0
    memory.step_wait = 0.0
    return value


@compiled
def step(
    table: Any,
    actions: Any,
    settings: Any,
    fractions: Any,
    watts: Any,
    memory: Any,
    history: Any,
    users: Any,
    frontier: Any,
    observation: Any,
    mask: Any,
    rewards: Any,
    terminated: Any,
    truncated: Any,
) -> bool:
    """One action of each simulation, and on to its next question."""
    fine = True
    st = settings[0]
    for i in range(actions.shape[0]):
        w = one(table, i)
        m = memory[i]
        stop = FINISHED
        if m.over == 0:
            stop = go_on(table, i, w, settings, fractions, m, history[i], users, actions[i])
        fine = fine and stop != FAILED
        rewards[i] = settle(w, settings, watts, m)
        cut = w.o[0].limited == 1 if stop == FINISHED else w.s[0].now >= st.limit_us
        terminated[i] = stop == FINISHED and not cut
        truncated[i] = cut
        observe_machine(w, settings, m, history[i], users, frontier, observation[i])
        mask_machine(w, settings, m, mask[i])
    return fine


@lean
def look(table: Any, i: int, settings: Any, memory: Any, history: Any, users: Any, frontier: Any, observation: Any, mask: Any) -> int:
    """A run of simulation i, driven from outside, pauses before the scheduler: 0, nothing to do; 1, the action in force is to be
    renewed; 2, a question.

    Arrays as in `step`, of one row.
    """
    w = one(table, i)
    if not asks(w):
        return 0
    m = memory[0]
    remember(w, settings, m, history[0], users)
    if w.s[0].n_queued == 0 and settings[0].always == 0:
        return 1
    observe_machine(w, settings, m, history[0], users, frontier, observation[0])
    mask_machine(w, settings, m, mask[0])
    return 2


@lean
def put(table: Any, i: int, settings: Any, fractions: Any, memory: Any, chosen: int) -> None:
    """Put an action in force in simulation i."""
    memory[0].standing = chosen
    action.apply(one(table, i), settings, fractions, chosen)
