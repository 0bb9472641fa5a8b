"""When an agent is asked. Between two questions everything happens inside compiled code.

Off-reservation: at every multiple of the period and at every submission (in R3 these are multiples of the period, too:
its logs are rounded to minutes), after the events of the instant and before the scheduler. Instants with an empty queue
may pass without a question; the action in force stays. With `ask="periods"` the kernel pauses at multiples of the
period only, and every choice counts: it may be for a job that is submitted before the next.

Scheduling: whenever jobs wait, and again at the same instant after each valid choice; after a no-op one period later,
or, if the queue is empty, at the next submission.

What drives the kernel's loop is `compiled`, not `lean`: a driver compiled first from a lean function could not make its
arrays.
"""

from __future__ import annotations

from typing import Any

from escala.compile import compiled, inlined, lean
from escala.envs.rjms import action, observation, reward
from escala.envs.rjms.state import Game
from escala.kernel import codes
from escala.kernel.drive import drive_easy
from escala.kernel.events import next_instant
from escala.kernel.state import World
from escala.kernel.world import one

FINISHED = codes.DONE
FAILED = -1


@lean
def remember(w: World, g: Game) -> None:
    """The newest snapshot shows this instant; at a multiple of the period it enters the ring over the oldest, between
    two it replaces the last one."""
    m, day_us = g.memory, g.settings.day_us
    if w.s[0].ticked == 1:
        m.newest = (m.newest + 1) % g.history.shape[0]
    row = g.history[m.newest]
    observation.snapshot(w, day_us, row[: observation.SNAPSHOT])
    if row.shape[0] > observation.SNAPSHOT:
        observation.queued_jobs(w, day_us, g.users, row[observation.SNAPSHOT :])


@inlined
def asks(w: World) -> bool:
    """Is this decision a multiple of the period, or has a job just been submitted?"""
    return w.s[0].ticked == 1 or w.s[0].new_from < w.s[0].next_job


@lean
def pass_quiet(w: World, g: Game) -> None:
    """Pass the coming multiples of the period at which nothing happens, the queue being empty: only their snapshots are
    written.

    Exact: without an event no node changes, and before any job can be given nodes it is submitted, which is a
    question."""
    s = w.s[0]
    o = w.o[0]
    st, m, history = g.settings, g.memory, g.history
    if w.lane[0].overdue == 1 or s.next_off_us <= s.now:
        return
    tick = s.tick_us
    s.tick_us = codes.NEVER_US
    until = min(next_instant(w), st.limit_us)
    s.tick_us = tick
    if o.limited == 1:
        until = min(until, o.until_us)
    if until >= codes.NEVER_US or until <= tick:
        return
    passed = (until - tick - 1) // st.period_us + 1
    s.tick_us = tick + passed * st.period_us
    length = history.shape[0]
    for k in range(max(0, passed - length), passed):
        row = history[(m.newest + 1) % length]
        last = history[m.newest]
        for c in range(row.shape[0]):
            row[c] = last[c]
        row[observation.SNAPSHOT - 1] = ((tick + k * st.period_us) % st.day_us) / st.day_us
        m.newest = (m.newest + 1) % length


@compiled
def to_question(worlds: Any, i: int, g: Game) -> int:
    """Off-reservation: run simulation i to its next question. FINISHED at the end of the run, FAILED where nothing can
    go on."""
    w, st, m = one(worlds, i), g.settings, g.memory
    while True:
        stop = drive_easy(worlds, i, codes.NEVER_US)
        if stop != codes.BEFORE and stop != codes.DONE:
            return FAILED
        ticked = w.s[0].ticked == 1
        if ticked or (stop == codes.DONE and w.s[0].now % st.period_us == 0):
            m.step_late += reward.late_cores(w, st.tau, st.startable)
            m.step_wait += reward.waited(w, w.s[0].now - st.period_us)
        if stop == codes.DONE:
            remember(w, g)
            return stop
        if not asks(w):
            continue
        remember(w, g)
        if st.skip == 0 or w.s[0].n_queued > 0 or w.s[0].now >= st.limit_us:
            return stop
        action.apply(w, g, m.standing)
        if w.s[0].ticked == 1:
            pass_quiet(w, g)


@lean
def observe_machine(w: World, g: Game, out: Any) -> None:
    """Off-reservation: write one observation; `out` is flat."""
    st, history = g.settings, g.history
    observation.unroll(history, g.memory.newest, out)
    if st.compact == 1:
        at = history.shape[0] * history.shape[1]
        jobs = at + st.jobs * observation.JOB
        running = jobs + observation.RUNNING_SHOWN * observation.RUNNING
        observation.queued_jobs(w, st.day_us, g.users, out[at:jobs])
        observation.running_jobs(w, st.day_us, g.frontier, out[jobs:running])
        observation.summary(w, out[running:])


@lean
def mask_machine(w: World, g: Game, out: Any) -> None:
    """Off-reservation: which actions make sense. With an empty queue only the action in force, unless choices always
    count."""
    st = g.settings
    if st.form == action.COUNT:
        out[:] = True
    elif w.s[0].n_queued == 0 and st.always == 0:
        out[:] = False
        out[g.memory.standing] = True
    elif st.form == action.WAKE:
        most = action.off_nodes(w)
        for k in range(out.shape[0]):
            out[k] = k <= most
    else:
        out[:] = True
