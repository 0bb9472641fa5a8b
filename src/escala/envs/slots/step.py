"""A step of many slotted simulations in compiled code: a choice, then on to the next thing to decide."""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.envs.slots import lens
from escala.envs.slots.observation import brighten, compact, image
from escala.envs.slots.state import SKIP_EMPTY, SKIP_NOTHING, Game, game
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.state import World
from escala.kernel.world import one

FAILED = -1
ASKED = 0
CUT = 1
FINISHED = 2


@lean
def asks(g: Game, some: bool) -> bool:
    """Is there something to decide now? some: a slot's job has a place."""
    skip = g.settings.skip
    if some or skip == SKIP_NOTHING:
        return True
    if skip == SKIP_EMPTY:
        for k in range(g.settings.slots):
            if g.slots[k] != codes.NONE:
                return True
    return False


@lean
def summarise(w: World, g: Game) -> None:
    """Figures of the finished run from the kernel's own starts, in units."""
    st, m = g.settings, g.memory
    jobs = w.o[0].n_jobs
    m.slowdown = 0.0
    m.turnaround = 0.0
    m.wait = 0.0
    m.longest_wait = 0.0
    for j in range(jobs):
        wait = (w.run[j].start - w.job[j].submit) / st.unit_us
        runtime = w.job[j].runtime / st.unit_us
        m.slowdown += (wait + runtime) / runtime / jobs
        m.turnaround += (wait + runtime) / jobs
        m.wait += wait / jobs
        m.longest_wait = max(m.longest_wait, wait)
    m.makespan = (w.s[0].last_finish - w.job[0].submit) / st.unit_us


@lean
def go_on(w: World, g: Game, passing: bool) -> int:
    """Run to the next thing to decide; passing: at least one unit passes first. FINISHED, CUT, ASKED or FAILED."""
    st, m = g.settings, g.memory
    while True:
        if not passing and asks(g, lens.find_starts(w, g)):
            return ASKED
        m.total += m.inverse
        stop = advance(w, codes.NEVER_US)
        if not lens.catch_up(w, g):
            return FAILED
        if stop != codes.DECISION:
            if stop != codes.DONE:
                return FAILED
            summarise(w, g)
            lens.find_starts(w, g)
            return FINISHED
        if st.limit > 0 and m.row >= st.limit:
            lens.find_starts(w, g)
            return CUT
        passing = False


@lean
def show(w: World, g: Game, numbers: Any, picture: Any, mask: Any) -> None:
    """Write the observation and the mask. Arrays that are not wanted have no elements."""
    if g.settings.image == 1:
        image(w, g, picture)
        if numbers.shape[0] > 0:
            brighten(picture, numbers)
    else:
        compact(w, g, numbers)
    mask[0] = True
    for k in range(g.settings.slots):
        mask[k + 1] = g.starts[k] != lens.NOWHERE


@lean
def forget(g: Game) -> None:
    """An empty machine and empty slots."""
    g.slots[:] = codes.NONE
    g.starts[:] = lens.NOWHERE
    g.used[:, :] = 0
    g.busy[:, :] = 0
    g.chart[:, :, :] = 0
    g.ends[:] = 0.0


@lean
def begin(worlds: Any, games: Any, rows: Any, turn: Any) -> bool:
    """Bring simulations that stand at their start, with a memory of nothing, to the first thing to decide. turn: (numbers, picture, mask),
    see `step`. False where one cannot go on."""
    numbers, picture, mask = turn
    fine = True
    for q in range(rows.shape[0]):
        i = rows[q]
        w, g = one(worlds, i), game(games, i)
        forget(g)
        ready = advance(w, codes.NEVER_US) == codes.DECISION and lens.catch_up(w, g) and go_on(w, g, False) != FAILED
        fine = fine and ready
        show(w, g, numbers[i], picture[i], mask[i])
    return fine


@lean
def step(worlds: Any, games: Any, actions: Any, turn: Any) -> bool:
    """One action of each simulation, and on to its next thing to decide. turn: what is written, (numbers, picture, mask, rewards,
    terminated, truncated), [N] each. False where one cannot go on."""
    numbers, picture, mask, rewards, terminated, truncated = turn
    fine = True
    for i in range(actions.shape[0]):
        w, g = one(worlds, i), game(games, i)
        m = g.memory
        rewards[i] = 0.0
        reached = FINISHED
        if m.over == 0:
            k = actions[i] - 1
            passing = True
            if k >= 0 and g.starts[k] != lens.NOWHERE:
                fine = lens.choose(w, g, k) and fine
                passing = False
            reached = go_on(w, g, passing)
            fine = fine and reached != FAILED
            value = m.total / max(m.seen, 1) if g.settings.per_job == 1 else m.total
            rewards[i] = m.shown - value
            m.shown = value
            m.over = 1 if reached in (FINISHED, CUT) else 0
        terminated[i] = reached == FINISHED
        truncated[i] = reached == CUT
        show(w, g, numbers[i], picture[i], mask[i])
    return fine
