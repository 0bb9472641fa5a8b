"""A step of many games in compiled code: a choice of the agent whose turn it is, then on to the next turn with something to decide."""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.envs.slots.state import SKIP_EMPTY, SKIP_NOTHING
from escala.envs.slots.step import ASKED, CUT, FAILED, FINISHED
from escala.envs.slots.team import lens
from escala.envs.slots.team.observation import compact, image
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.state import World
from escala.kernel.world import one


@lean
def asks(w: World, st: Any, m: Any, slots: Any) -> bool:
    """Has the agent whose turn it is something to decide?"""
    if st.skip == SKIP_NOTHING:
        return True
    for k in range(st.slots):
        if slots[k] != codes.NONE:
            if st.skip == SKIP_EMPTY:
                return True
            for own in range(st.machines):
                if lens.fits(w, slots[k], m.agent * st.machines + own):
                    return True
    return False


@lean
def next_turn(w: World, st: Any, m: Any, slots: Any, used: Any, ends: Any, running: Any, rewards: Any) -> int:
    """The turn goes to the next agent; after the last, one unit of time passes."""
    m.agent += 1
    if m.agent < st.agents:
        return ASKED
    m.agent = 0
    lens.charge(st, m, running, rewards)
    stop = advance(w, codes.NEVER_US)
    lens.catch_up(w, st, m, slots, used, ends, running)
    if stop != codes.DECISION:
        return FINISHED if stop == codes.DONE else FAILED
    crowded = st.overflow == 1 and w.s[0].next_job - m.entered > st.backlog
    return CUT if crowded or (st.limit > 0 and m.row >= st.limit) else ASKED


@lean
def go_on(w: World, st: Any, m: Any, slots: Any, used: Any, ends: Any, running: Any, rewards: Any, passing: bool) -> int:
    """On to the next turn with something to decide; passing: the present turn is over. FINISHED, CUT, ASKED or FAILED."""
    while True:
        if passing:
            reached = next_turn(w, st, m, slots, used, ends, running, rewards)
            if reached != ASKED:
                if reached != FAILED:
                    lens.summarise(w, st, m)
                return reached
        if asks(w, st, m, slots):
            return ASKED
        passing = True


@lean
def write_mask(w: World, st: Any, slots: Any, a: int, mask: Any) -> None:
    """Which actions make sense for agent `a`: jobs that fit, and the void."""
    for own in range(st.machines):
        for k in range(st.slots):
            mask[own * st.slots + k] = lens.fits(w, slots[k], a * st.machines + own)
    mask[st.machines * st.slots] = True


@lean
def show(
    w: World, st: Any, m: Any, scale: Any, capacity: Any, points: Any, slots: Any, used: Any, a: int, width: int, numbers: Any,
    picture: Any, mask: Any,
) -> None:  # fmt: skip
    """Write observation and mask of agent `a`. The array that is not wanted has no elements."""
    if st.image == 1:
        image(w, st, m, scale, slots, used, a, width, picture)
    else:
        compact(w, st, m, scale, capacity, points, slots, used, a, numbers)
    write_mask(w, st, slots, a, mask)


@lean
def look(
    table: Any, agents: Any, settings: Any, capacity: Any, scale: Any, points: Any, memory: Any, slots: Any, used: Any, ends: Any,
    running: Any, width: int, numbers: Any, picture: Any, mask: Any,
) -> None:  # fmt: skip
    """What agents [N] see now, one in each game, whosever turn it is."""
    for i in range(agents.shape[0]):
        show(
            one(table, i), settings[0], memory[i], scale, capacity, points, slots[i], used[i], agents[i], width, numbers[i], picture[i],
            mask[i],
        )  # fmt: skip


@lean
def begin(
    table: Any, rows: Any, settings: Any, capacity: Any, scale: Any, points: Any, memory: Any, slots: Any, used: Any, ends: Any,
    running: Any, width: int, numbers: Any, picture: Any, mask: Any, rewards: Any,
) -> bool:  # fmt: skip
    """Bring games that stand at their start to the first thing to decide. rewards [N, agents]: what passes before it costs. False where
    one cannot go on."""
    st = settings[0]
    fine = True
    for q in range(rows.shape[0]):
        i = rows[q]
        w = one(table, i)
        m = memory[i]
        if advance(w, codes.NEVER_US) == codes.DECISION:
            lens.catch_up(w, st, m, slots[i], used[i], ends[i], running[i])
            fine = fine and go_on(w, st, m, slots[i], used[i], ends[i], running[i], rewards[i], False) == ASKED
        else:
            fine = False
        show(w, st, m, scale, capacity, points, slots[i], used[i], m.agent, width, numbers[i], picture[i], mask[i])
    return fine


@lean
def step(
    table: Any, actions: Any, settings: Any, capacity: Any, scale: Any, points: Any, memory: Any, slots: Any, used: Any, ends: Any,
    running: Any, width: int, numbers: Any, picture: Any, mask: Any, rewards: Any, terminated: Any, truncated: Any,
) -> bool:  # fmt: skip
    """One action of the agent whose turn it is in each game, and on to the next turn; an action below 0 leaves a game as it stands. False
    where one cannot go on."""
    st = settings[0]
    fine = True
    void = st.machines * st.slots
    for i in range(actions.shape[0]):
        terminated[i] = False
        truncated[i] = False
        rewards[i, :] = 0.0
        if actions[i] < 0:
            continue
        w = one(table, i)
        m = memory[i]
        reached = FINISHED
        if m.over == 0:
            m.fade = 1.0
            passing = True
            if actions[i] < void:
                k = actions[i] % st.slots
                n = m.agent * st.machines + actions[i] // st.slots
                if lens.fits(w, slots[i, k], n):
                    fine = lens.place(w, st, m, slots[i], used[i], ends[i], running[i], k, n) and fine
                    passing = st.until_void == 0
            reached = go_on(w, st, m, slots[i], used[i], ends[i], running[i], rewards[i], passing)
            fine = fine and reached != FAILED
            m.over = 1 if reached in (FINISHED, CUT) else 0
        terminated[i] = reached == FINISHED
        truncated[i] = reached == CUT
        show(w, st, m, scale, capacity, points, slots[i], used[i], m.agent, width, numbers[i], picture[i], mask[i])
    return fine
