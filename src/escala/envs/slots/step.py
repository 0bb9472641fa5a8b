"""A step of many slotted simulations in compiled code: a choice, then on to the next thing to decide."""

from __future__ import annotations

from typing import Any

from escala.compile import lean
from escala.envs.slots import lens
from escala.envs.slots.observation import brighten, compact, image
from escala.envs.slots.state import SKIP_EMPTY, SKIP_NOTHING
from escala.kernel import codes
from escala.kernel.advance import advance
from escala.kernel.state import World
from escala.kernel.world import one

FAILED = -1
ASKED = 0
CUT = 1
FINISHED = 2


@lean
def asks(st: Any, slots: Any, some: bool) -> bool:
    """Is there something to decide now? some: a slot's job has a place."""
    if some or st.skip == SKIP_NOTHING:
        return True
    if st.skip == SKIP_EMPTY:
        for k in range(st.slots):
            if slots[k] != codes.NONE:
                return True
    return False


@lean
def summarise(w: World, st: Any, m: Any) -> None:
    """Figures of the finished run from the kernel's own starts, in units."""
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
def go_on(
    w: World,
    st: Any,
    m: Any,
    capacity: Any,
    slots: Any,
    starts: Any,
    used: Any,
    busy: Any,
    chart: Any,
    ends: Any,
    booked: Any,
    passing: bool,
) -> int:
    """Run to the next thing to decide; passing: at least one unit passes first. FINISHED, CUT, ASKED or FAILED."""
    while True:
        if not passing and asks(st, slots, lens.find_starts(w, st, m, capacity, slots, starts, used, busy)):
            return ASKED
        m.total += m.inverse
        stop = advance(w, codes.NEVER_US)
        if not lens.catch_up(w, st, m, slots, starts, used, busy, chart, ends, booked):
            return FAILED
        if stop != codes.DECISION:
            if stop != codes.DONE:
                return FAILED
            summarise(w, st, m)
            lens.find_starts(w, st, m, capacity, slots, starts, used, busy)
            return FINISHED
        if st.limit > 0 and m.row >= st.limit:
            lens.find_starts(w, st, m, capacity, slots, starts, used, busy)
            return CUT
        passing = False


@lean
def show(
    w: World,
    st: Any,
    m: Any,
    capacity: Any,
    slots: Any,
    starts: Any,
    used: Any,
    chart: Any,
    width: int,
    observation: Any,
    picture: Any,
    mask: Any,
) -> None:
    """Write the observation and the mask. Arrays that are not wanted have no elements."""
    if st.image == 1:
        image(w, st, m, capacity, slots, chart, width, picture)
        if observation.shape[0] > 0:
            brighten(picture, observation)
    else:
        compact(w, st, m, capacity, slots, starts, used, observation)
    mask[0] = True
    for k in range(st.slots):
        mask[k + 1] = starts[k] != lens.NOWHERE


@lean
def forget(slots: Any, starts: Any, used: Any, busy: Any, chart: Any, ends: Any) -> None:
    """An empty machine and empty slots."""
    slots[:] = codes.NONE
    starts[:] = lens.NOWHERE
    used[:] = 0
    busy[:] = 0
    chart[:] = 0
    ends[:] = 0.0


@lean
def begin(
    table: Any,
    rows: Any,
    shades: Any,
    empty: Any,
    settings: Any,
    capacity: Any,
    memory: Any,
    slots: Any,
    starts: Any,
    used: Any,
    busy: Any,
    chart: Any,
    ends: Any,
    booked: Any,
    width: int,
    observation: Any,
    picture: Any,
    mask: Any,
) -> bool:
    """Bring simulations that stand at their start to the first thing to decide. shades: the first colour of each row; empty [1]: memory of
    nothing. False where one cannot go on."""
    st = settings[0]
    fine = True
    for q in range(rows.shape[0]):
        i = rows[q]
        w = one(table, i)
        memory[i] = empty[0]
        m = memory[i]
        m.shade = shades[q]
        forget(slots[i], starts[i], used[i], busy[i], chart[i], ends[i])
        stop = advance(w, codes.NEVER_US)
        if stop == codes.DECISION:
            fine = lens.catch_up(w, st, m, slots[i], starts[i], used[i], busy[i], chart[i], ends[i], booked[i]) and fine
            reached = go_on(w, st, m, capacity, slots[i], starts[i], used[i], busy[i], chart[i], ends[i], booked[i], False)
            fine = fine and reached != FAILED
        else:
            fine = False
        show(w, st, m, capacity, slots[i], starts[i], used[i], chart[i], width, observation[i], picture[i], mask[i])
    return fine


@lean
def step(
    table: Any,
    actions: Any,
    settings: Any,
    capacity: Any,
    memory: Any,
    slots: Any,
    starts: Any,
    used: Any,
    busy: Any,
    chart: Any,
    ends: Any,
    booked: Any,
    width: int,
    observation: Any,
    picture: Any,
    mask: Any,
    rewards: Any,
    terminated: Any,
    truncated: Any,
) -> bool:
    """One action of each simulation, and on to its next thing to decide. False where one cannot go on."""
    st = settings[0]
    fine = True
    for i in range(actions.shape[0]):
        w = one(table, i)
        m = memory[i]
        rewards[i] = 0.0
        reached = FINISHED
        if m.over == 0:
            k = actions[i] - 1
            passing = True
            if k >= 0 and starts[i, k] != lens.NOWHERE:
                fine = lens.choose(w, st, m, capacity, slots[i], starts[i], used[i], busy[i], chart[i], ends[i], booked[i], k) and fine
                passing = False
            reached = go_on(w, st, m, capacity, slots[i], starts[i], used[i], busy[i], chart[i], ends[i], booked[i], passing)
            fine = fine and reached != FAILED
            value = m.total / max(m.seen, 1) if st.per_job == 1 else m.total
            rewards[i] = m.shown - value
            m.shown = value
            m.over = 1 if reached in (FINISHED, CUT) else 0
        terminated[i] = reached == FINISHED
        truncated[i] = reached == CUT
        show(w, st, m, capacity, slots[i], starts[i], used[i], chart[i], width, observation[i], picture[i], mask[i])
    return fine
