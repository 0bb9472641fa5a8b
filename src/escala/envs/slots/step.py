"""A step of many slotted worlds in compiled code: a choice of the agent whose turn it is, then on to the next turn that
asks."""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.envs.slots import lens
from escala.envs.slots.observation import brighten, compact, image
from escala.envs.slots.state import PAY_MEAN, PAY_WEIGHTS, SKIP_EMPTY, SKIP_NOTHING, Game, game
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.state import World
from escala.kernel.world import one

FAILED = -1
ASKED = 0
CUT = 1
FINISHED = 2


@lean
def asks(w: World, g: Game) -> bool:
    """Has the agent whose turn it is something to decide?"""
    st = g.settings
    some = st.pool == 1 and lens.find_starts(w, g)
    if some or st.skip == SKIP_NOTHING:
        return True
    for k in range(st.slots):
        if g.slots[k] == codes.NONE:
            continue
        if st.skip == SKIP_EMPTY:
            return True
        if st.pool == 0:
            for own in range(st.machines):
                if lens.has_place(w, g, k, g.memory.agent * st.machines + own):
                    return True
    return False


@lean
def next_turn(w: World, g: Game, rewards: Any, i: int) -> int:
    """The turn goes to the next agent; after the last, one unit of time passes."""
    st, m = g.settings, g.memory
    m.agent += 1
    if m.agent < st.agents:
        return ASKED
    m.agent = 0
    lens.charge(g, rewards, i)
    stop = advance(w, codes.NEVER_US)
    if not lens.catch_up(w, g):
        return FAILED
    if stop != codes.DECISION:
        return FINISHED if stop == codes.DONE else FAILED
    crowded = st.overflow == 1 and w.s[0].next_job - m.entered > st.backlog
    return CUT if crowded or (st.limit > 0 and m.row >= st.limit) else ASKED


@lean
def go_on(w: World, g: Game, rewards: Any, i: int, passing: bool) -> int:
    """On to the next turn with something to decide; passing: the present turn is over. FINISHED, CUT, ASKED or
    FAILED."""
    while True:
        if passing:
            reached = next_turn(w, g, rewards, i)
            if reached == FINISHED or (reached == CUT and g.settings.pay == PAY_WEIGHTS):
                lens.summarise(w, g)
            if reached != ASKED:
                if g.settings.pool == 1 and reached != FAILED:
                    lens.find_starts(w, g)
                return reached
        if asks(w, g):
            return ASKED
        passing = True


@lean
def show(w: World, g: Game, a: int, numbers: Any, picture: Any, mask: Any) -> None:
    """Write the observation of agent `a`, and the mask: choices that have a place, and the no-op. Arrays that are not
    wanted have no elements."""
    st = g.settings
    if st.image == 1:
        image(w, g, a, picture)
        if numbers.shape[0] > 0:
            brighten(picture, numbers)
    else:
        compact(w, g, a, numbers)
    first, slots, machines = st.first, st.slots, st.machines
    mask[0 if first == 1 else machines * slots] = True
    if st.pool == 1:
        starts = g.starts
        for k in range(slots):
            mask[first + k] = starts[k] != lens.NOWHERE
        return
    for own in range(machines):
        for k in range(slots):
            mask[first + own * slots + k] = lens.has_place(w, g, k, a * machines + own)


@lean
def look(worlds: Any, games: Any, agents: Any, turn: Any) -> None:
    """What agents [N] see now, one in each game, whosever turn it is. turn: (numbers, picture, mask)."""
    numbers, picture, mask = turn
    for i in range(agents.shape[0]):
        show(one(worlds, i), game(games, i), agents[i], numbers[i], picture[i], mask[i])


@lean
def forget(g: Game) -> None:
    """Empty machines and empty slots."""
    g.slots[:] = codes.NONE
    g.starts[:] = lens.NOWHERE
    g.used[:, :] = 0
    g.busy[:, :] = 0
    g.chart[:, :, :] = 0
    g.ends[:, :] = 0.0
    g.running[:] = 0.0


@lean
def begin(worlds: Any, games: Any, rows: Any, turn: Any) -> bool:
    """Bring games that stand at their start, with a memory of nothing, to the first thing to decide. turn: (numbers,
    picture, mask, rewards [N, agents]); what passes before the first decision is paid there. False where one cannot go
    on."""
    numbers, picture, mask, rewards = turn
    fine = True
    for q in range(rows.shape[0]):
        i = rows[q]
        w, g = one(worlds, i), game(games, i)
        forget(g)
        ready = (
            advance(w, codes.NEVER_US) == codes.DECISION
            and lens.catch_up(w, g)
            and go_on(w, g, rewards, i, False) != FAILED
        )
        fine = fine and ready
        show(w, g, g.memory.agent, numbers[i], picture[i], mask[i])
    return fine


@lean
def carry_out(w: World, g: Game, action: int) -> int:
    """The choice of the agent whose turn it is: 1, a job was placed; 0, the choice counts as the no-op; FAILED, the
    kernel refused."""
    st = g.settings
    chosen = action - st.first
    if chosen < 0 or chosen >= st.machines * st.slots:
        return 0
    k, n = chosen, 0
    if st.pool == 0:
        k = chosen % st.slots
        n = g.memory.agent * st.machines + chosen // st.slots
    if not lens.has_place(w, g, k, n):
        return 0
    return 1 if lens.place(w, g, k, n) else FAILED


@lean
def pay(g: Game, rewards: Any, i: int) -> None:
    """The reward of a step of game `i` where slowdowns are paid."""
    m = g.memory
    value = m.total / max(m.seen, 1) if g.settings.pay == PAY_MEAN else m.total
    rewards[i, 0] = m.shown - value
    m.shown = value


@lean
def step(worlds: Any, games: Any, actions: Any, turn: Any) -> bool:
    """One action of the agent whose turn it is in each game, and on to the next turn; an action below 0 leaves a game
    as it stands. turn: what is written, (numbers, picture, mask, rewards [N, agents], terminated, truncated). False
    where one cannot go on."""
    numbers, picture, mask, rewards, terminated, truncated = turn
    fine = True
    for i in range(actions.shape[0]):
        terminated[i] = False
        truncated[i] = False
        for a in range(rewards.shape[1]):
            rewards[i, a] = 0.0
        if actions[i] < 0:
            continue
        w, g = one(worlds, i), game(games, i)
        m = g.memory
        reached = FINISHED
        if m.over == 0:
            m.fade = 1.0
            done = carry_out(w, g, actions[i])
            reached = go_on(w, g, rewards, i, done == 0 or g.settings.until_noop == 0)
            fine = fine and done != FAILED and reached != FAILED
            if g.settings.pay != PAY_WEIGHTS:
                pay(g, rewards, i)
            m.over = 1 if reached in (FINISHED, CUT) else 0
        terminated[i] = reached == FINISHED
        truncated[i] = reached == CUT
        show(w, g, m.agent, numbers[i], picture[i], mask[i])
    return fine
