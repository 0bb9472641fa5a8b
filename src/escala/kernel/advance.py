"""The loop: next instant, accrue, take in, decide. The only place where time moves."""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.energy import integrate
from escala.kernel.events import next_instant, pop, push
from escala.kernel.jobs import begin, end
from escala.kernel.lanes import lane_of, note
from escala.kernel.nodes import switch_ends
from escala.kernel.oracle import hope, plan_oracle
from escala.kernel.plans import move_outlived
from escala.kernel.queue import enqueue, note_age
from escala.kernel.renewal import renew
from escala.kernel.reservation import hold_end, note_busy, note_woken
from escala.kernel.shutdown import next_due, reserve_off, shut_down, timeout_falls_due
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS, HEAP_SWITCHES, HEAP_TIMERS, World

PHASE_BETWEEN = 0  # where a paused simulation goes on
PHASE_BEFORE = 1
PHASE_SCHEDULING = 2
PHASE_POWER = 3
PHASE_TAKEN_IN = 4


@lean
def take_in(w: World) -> bool:
    """Take in every event of this instant, in the written order; True if there was one that still means something."""
    s = w.s[0]
    o = w.o[0]
    now = s.now
    real = False
    while s.n_ends > 0 and w.heaps[HEAP_ENDS, 0].time == now:
        j = w.heaps[HEAP_ENDS, 0].id
        s.n_ends = pop(w.heaps[HEAP_ENDS], s.n_ends)
        end(w, j)
        real = True
    while s.n_switches > 0 and w.heaps[HEAP_SWITCHES, 0].time == now:
        n = w.heaps[HEAP_SWITCHES, 0].id
        s.n_switches = pop(w.heaps[HEAP_SWITCHES], s.n_switches)
        switch_ends(w, n)
        real = True
    while s.next_job < o.n_jobs and w.job[s.next_job].submit == now:
        enqueue(w, s.next_job)
        if o.shutdown == codes.ORACLE:
            hope(w, s.next_job)
        if (o.shutdown == codes.HOLD or o.shutdown == codes.ORACLE) and hold_end(w, s.next_job) > now:
            s.n_timers = push(w.heaps[HEAP_TIMERS], s.n_timers, hold_end(w, s.next_job), s.next_job)
        else:
            note_woken(w)
        s.next_job += 1
        real = True
    while s.n_starts > 0 and w.heaps[HEAP_STARTS, 0].time == now:
        j = w.heaps[HEAP_STARTS, 0].id
        s.n_starts = pop(w.heaps[HEAP_STARTS], s.n_starts)
        begin(w, j)
        real = True
    if o.moves == 1 and move_outlived(w):
        real = True
    while s.n_timers > 0 and w.heaps[HEAP_TIMERS, 0].time == now:
        j = w.heaps[HEAP_TIMERS, 0].id
        s.n_timers = pop(w.heaps[HEAP_TIMERS], s.n_timers)
        if j == codes.NONE or w.run[j].state == codes.QUEUED:
            if j != codes.NONE:
                note_woken(w)
            note(w, 0 if j == codes.NONE else lane_of(w, j))
            real = True
    if s.tick_us == now:
        s.tick_us += o.period_us
        s.ticked = 1
        note(w, 0)
        real = True
    if s.next_off_us == now:
        if timeout_falls_due(w):
            real = True
        else:
            next_due(w)
    if o.guard_us < codes.NEVER_US and note_age(w):
        real = True
    if s.next_plan_us <= now:
        s.next_plan_us = codes.NEVER_US
        real = True
    return real


@lean
def needs_space(w: World) -> int:
    """Which table might overflow at this instant: GROW_CHUNKS, GROW_LOG, GROW_TIMERS, GROW_AGENDA, or 0."""
    s = w.s[0]
    o = w.o[0]
    conservative = o.queueing == codes.CONSERVATIVE
    timed = o.shutdown == codes.HOLD or o.shutdown == codes.ORACLE
    if o.record == 1 and s.n_log + 4 * o.n_nodes > w.log.shape[0]:
        return codes.GROW_LOG
    arriving = 0
    if timed or conservative:
        j = s.next_job
        while j < o.n_jobs and w.job[j].submit == w.job[s.next_job].submit:
            arriving += 1
            j += 1
    if timed and s.n_timers + arriving + 1 > w.heaps.shape[1]:
        return codes.GROW_TIMERS
    waiting = s.n_queued + arriving
    if conservative and s.n_slices + 8 * waiting + 2 * s.n_plans + s.n_switches + 8 > w.slices.shape[1]:
        return codes.GROW_AGENDA
    if o.record == 1 or conservative:  # an instant makes at most one chunk a core, and one a node for each reservation
        reservations = (waiting + 2) * o.n_nodes if conservative else 0
        if s.next_chunk + o.n_cores + 1 + reservations > w.chunk.shape[0]:
            return codes.GROW_CHUNKS
    return 0


@lean
def before_scheduler(w: World) -> int:
    """First part of a decision: the off-reservation. Always ends in a pause: BEFORE for somebody outside, else DECISION
    for the scheduler."""
    s = w.s[0]
    o = w.o[0]
    if s.phase == PHASE_BETWEEN:
        if w.terms.shape[0] > 0:
            renew(w)
        if o.shutdown == codes.OFF_RESERVATION:
            reserve_off(w, o.target)
        elif o.shutdown == codes.ORACLE:
            plan_oracle(w, codes.NEVER_US, codes.NONE)
        elif o.if_busy == 1:
            note_busy(w)
        s.phase = PHASE_BEFORE
        if o.pause_before == 1 or (o.pause_before == 2 and s.ticked == 1):
            return codes.BEFORE
    s.phase = PHASE_SCHEDULING
    return codes.DECISION


@lean
def after_scheduler(w: World) -> int:
    """Last part of a decision: the shutdown policy. AFTER for somebody outside, else NONE."""
    s = w.s[0]
    o = w.o[0]
    if s.phase == PHASE_SCHEDULING:
        s.new_from = s.next_job
        s.changed = 0
        shut_down(w)
        s.phase = PHASE_POWER
        if o.shutdown == codes.POWER_EXTERNAL and o.pause_before == 0:
            return codes.AFTER
    s.phase = PHASE_BETWEEN
    s.ticked = 0
    return codes.NONE


@lean
def advance(w: World, until: int) -> int:
    """Run one simulation to its next pause; returns a stop code.

    DECISION: the scheduler's turn. Whoever calls, a compiled scheduler in `drive` or somebody outside, gives its
    commands and calls again. DONE: every job has ended, or the time limit is reached. NONE: everything up to and
    including `until` (us) has happened and been decided on.
    """
    s = w.s[0]
    o = w.o[0]
    limit = o.until_us if o.limited == 1 else codes.NEVER_US
    if s.instants == 0:
        s.grow = needs_space(w)
        if s.grow != 0:
            return codes.GROW
        s.instants = 1  # the decision at the very start
        take_in(w)
        return codes.DONE if _over(w, limit) else _decide(w)
    if s.phase == PHASE_TAKEN_IN:
        s.phase = PHASE_BETWEEN
        return before_scheduler(w)
    if s.phase == PHASE_BEFORE:
        return before_scheduler(w)
    if s.phase != PHASE_BETWEEN:
        stop = after_scheduler(w)
        if stop != codes.NONE:
            return stop
    while True:
        if o.limited == 0 and s.n_ended == o.n_jobs:
            return codes.DONE
        t = next_instant(w)
        if t > limit and until >= limit:
            integrate(w, limit)
            return codes.DONE
        if t > until:
            return codes.NONE
        if t == codes.NEVER_US:
            return codes.IDLE_FOREVER
        s.grow = needs_space(w)
        if s.grow != 0:
            return codes.GROW
        s.instants += 1
        if s.instants > o.max_instants:
            return codes.GUARD
        integrate(w, t)
        real = take_in(w)
        if _over(w, limit):
            return codes.DONE
        if real:
            return _decide(w)


@lean
def _decide(w: World) -> int:
    """After the events of an instant: ESTIMATE for somebody who says how long the new jobs will run, else the decision
    begins."""
    s = w.s[0]
    o = w.o[0]
    if s.told < s.next_job and (o.estimate == codes.ASKED or o.order_estimate == codes.ASKED):
        s.phase = PHASE_TAKEN_IN
        return codes.ESTIMATE
    return before_scheduler(w)


@inlined
def _over(w: World, limit: int) -> bool:
    """Is the run over at this instant, after its events and without a decision?"""
    return w.s[0].now >= limit or (w.o[0].limited == 0 and w.s[0].n_ended == w.o[0].n_jobs)
