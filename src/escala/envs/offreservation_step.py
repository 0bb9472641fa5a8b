"""The compiled steps of `escala/OffReservation-v0`: over all simulations of a batch, one behind the other."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled, lean
from escala.envs import action, reward
from escala.envs.clock import FAILED, FINISHED, asks, mask_machine, observe_machine, remember, to_question
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
            if w.s[0].n_queued > 0 or st.form == action.COUNT:
                m.standing = actions[i]
            action.apply(w, settings, fractions, m.standing)
            stop = to_question(table, i, w, settings, fractions, m, history[i], users)
            m.over = 1 if stop == FINISHED else 0
        fine = fine and stop != FAILED
        total = reward.waste_j(w, watts)
        m.step_waste_j = total - m.waste_j
        m.waste_j = total
        rewards[i] = -(st.waste_scale * m.step_waste_j + st.late_scale * m.step_late + st.stretch_cost * m.step_wait)
        m.shown_late = m.step_late
        m.shown_wait = m.step_wait
        m.step_late = 0.0
        m.step_wait = 0.0
        cut = w.o[0].limited == 1 if stop == FINISHED else w.s[0].now >= st.limit_us
        terminated[i] = stop == FINISHED and not cut
        truncated[i] = cut
        observe_machine(w, settings, m, history[i], users, frontier, observation[i])
        mask_machine(w, settings, m, mask[i])
    return fine


__all__ = ["begin", "step"]


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
    if w.s[0].n_queued == 0 and settings[0].form != action.COUNT:
        return 1
    observe_machine(w, settings, m, history[0], users, frontier, observation[0])
    mask_machine(w, settings, m, mask[0])
    return 2


@lean
def put(table: Any, i: int, settings: Any, fractions: Any, memory: Any, chosen: int) -> None:
    """Put an action in force in simulation i."""
    memory[0].standing = chosen
    action.apply(one(table, i), settings, fractions, chosen)
