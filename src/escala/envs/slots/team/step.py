"""A step of many games in compiled code: a choice of the agent whose turn it is, then on to the next turn with something to decide."""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.envs.slots.state import SKIP_EMPTY, SKIP_NOTHING
from escala.envs.slots.step import ASKED, CUT, FAILED, FINISHED
from escala.envs.slots.team import lens
from escala.envs.slots.team.observation import compact, image
from escala.envs.slots.team.state import Game, game
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.state import World
from escala.kernel.world import one


@lean
def asks(w: World, g: Game) -> bool:
    """Has the agent whose turn it is something to decide?"""
    st, slots = g.settings, g.slots
    if st.skip == SKIP_NOTHING:
        return True
    for k in range(st.slots):
        if slots[k] != codes.NONE:
            if st.skip == SKIP_EMPTY:
                return True
            for own in range(st.machines):
                if lens.fits(w, slots[k], g.memory.agent * st.machines + own):
                    return True
    return False


@lean
def next_turn(w: World, g: Game, rewards: Any) -> int:
    """The turn goes to the next agent; after the last, one unit of time passes."""
    st, m = g.settings, g.memory
    m.agent += 1
    if m.agent < st.agents:
        return ASKED
    m.agent = 0
    lens.charge(g, rewards)
    stop = advance(w, codes.NEVER_US)
    lens.catch_up(w, g)
    if stop != codes.DECISION:
        return FINISHED if stop == codes.DONE else FAILED
    crowded = st.overflow == 1 and w.s[0].next_job - m.entered > st.backlog
    return CUT if crowded or (st.limit > 0 and m.row >= st.limit) else ASKED


@lean
def go_on(w: World, g: Game, rewards: Any, passing: bool) -> int:
    """On to the next turn with something to decide; passing: the present turn is over. FINISHED, CUT, ASKED or FAILED."""
    while True:
        if passing:
            reached = next_turn(w, g, rewards)
            if reached != ASKED:
                if reached != FAILED:
                    lens.summarise(w, g)
                return reached
        if asks(w, g):
            return ASKED
        passing = True


@lean
def show(w: World, g: Game, a: int, numbers: Any, picture: Any, mask: Any) -> None:
    """Write the observation of agent `a`, and the mask: jobs that fit, and the no-op. The array that is not wanted has no elements."""
    st = g.settings
    if st.image == 1:
        image(w, g, a, picture)
    else:
        compact(w, g, a, numbers)
    for own in range(st.machines):
        for k in range(st.slots):
            mask[own * st.slots + k] = lens.fits(w, g.slots[k], a * st.machines + own)
    mask[st.machines * st.slots] = True


@lean
def look(worlds: Any, games: Any, agents: Any, turn: Any) -> None:
    """What agents [N] see now, one in each game, whosever turn it is. turn: (numbers, picture, mask)."""
    numbers, picture, mask = turn
    for i in range(agents.shape[0]):
        show(one(worlds, i), game(games, i), agents[i], numbers[i], picture[i], mask[i])


@lean
def begin(worlds: Any, games: Any, rows: Any, turn: Any) -> bool:
    """Bring games that stand at their start to the first thing to decide. turn: (numbers, picture, mask, rewards [N, agents]); what passes
    before the first decision is paid there. False where one cannot go on."""
    numbers, picture, mask, rewards = turn
    fine = True
    for q in range(rows.shape[0]):
        i = rows[q]
        w, g = one(worlds, i), game(games, i)
        if advance(w, codes.NEVER_US) == codes.DECISION:
            lens.catch_up(w, g)
            fine = fine and go_on(w, g, rewards[i], False) == ASKED
        else:
            fine = False
        show(w, g, g.memory.agent, numbers[i], picture[i], mask[i])
    return fine


@lean
def carry_out(w: World, g: Game, action: int) -> int:
    """The choice of the agent whose turn it is: 1, a job was placed; 0, the choice counts as the no-op; FAILED, the kernel refused."""
    st = g.settings
    if action >= st.machines * st.slots:
        return 0
    k = action % st.slots
    n = g.memory.agent * st.machines + action // st.slots
    if not lens.fits(w, g.slots[k], n):
        return 0
    return 1 if lens.place(w, g, k, n) else FAILED


@lean
def step(worlds: Any, games: Any, actions: Any, turn: Any) -> bool:
    """One action of the agent whose turn it is in each game, and on to the next turn; an action below 0 leaves a game as it stands. turn:
    (numbers, picture, mask, rewards, terminated, truncated). False where one cannot go on."""
    numbers, picture, mask, rewards, terminated, truncated = turn
    fine = True
    for i in range(actions.shape[0]):
        terminated[i] = False
        truncated[i] = False
        rewards[i, :] = 0.0
        if actions[i] < 0:
            continue
        w, g = one(worlds, i), game(games, i)
        m = g.memory
        reached = FINISHED
        if m.over == 0:
            m.fade = 1.0
            done = carry_out(w, g, actions[i])
            reached = go_on(w, g, rewards[i], done == 0 or g.settings.until_void == 0)
            fine = fine and done != FAILED and reached != FAILED
            m.over = 1 if reached in (FINISHED, CUT) else 0
        terminated[i] = reached == FINISHED
        truncated[i] = reached == CUT
        show(w, g, m.agent, numbers[i], picture[i], mask[i])
    return fine
