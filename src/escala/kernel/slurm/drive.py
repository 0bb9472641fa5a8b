"""The clock of slurmctld: submissions, ends, steps of priorities, event passes and backfill passes, until all jobs have
ended."""

from __future__ import annotations

from escala.compile import compiled, lean
from escala.kernel.slurm.backfill import backfill_pass, lasts_us
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.event_pass import event_pass
from escala.kernel.slurm.lists import pop_end, sort_queue
from escala.kernel.slurm.preempt import BY_QOS, sort_by_preemption
from escala.kernel.slurm.priority import renew
from escala.kernel.slurm.shares import settle
from escala.kernel.slurm.start import begin, come_back, end, fail, queue_freed, submit
from escala.kernel.slurm.tables import (
    ASKED,
    BASIC,
    CALC,
    DIRTY,
    EVENTS,
    FAR,
    FIRST_LATER,
    LAST_EVENT,
    LAST_FULL,
    LAST_PASS,
    LAST_UPDATE,
    MOVED,
    N_LATER,
    N_QUEUE,
    N_RUNNING,
    NEXT_BEGIN,
    NEXT_SUBMIT,
    NEXT_TURN,
    NOW,
    PASS,
    PASS_ROW,
    PASSES,
    SECOND,
    TESTED,
    TICK,
    WORST,
    Grid,
    Ints,
    Jobs,
    Lists,
    Rules,
    World,
    one,
)

DONE, PAUSED, ENDLESS = range(3)
MOST_AGAIN = 10_000  # a job that has lost its nodes so often gets no further
STILL_S = 86400  # so long an empty machine is asked in vain before the jobs that wait are given up


@lean
def tick_due(s: Ints, rules: Rules, now_s: int) -> int:
    """0: no event pass at this tick, 1: one of the default depth, 2: of the whole queue."""
    if rules.sched_interval < 0:
        return 0
    if now_s - s[LAST_FULL] >= rules.sched_interval:
        return 2
    return 1 if s[ASKED] > 0 and now_s - s[LAST_EVENT] >= rules.batch_sched_delay else 0


@lean
def next_tick(s: Ints, rules: Rules, busy_us: int) -> None:
    """The next tick; where nothing can come of one before `busy_us`, the last tick before. Full passes go on
    beating."""
    s[TICK] += rules.tick_us
    if s[TICK] < busy_us:
        s[TICK] += (busy_us - s[TICK]) // rules.tick_us * rules.tick_us
        if rules.sched_interval > 0:
            passed_s = unix_s(rules, s[TICK] - rules.tick_us) - s[LAST_FULL]  # by the last tick that is left out
            s[LAST_FULL] += passed_s // rules.sched_interval * rules.sched_interval
            s[LAST_EVENT] = max(s[LAST_EVENT], s[LAST_FULL])


@lean
def next_pass(lists: Lists, s: Ints, rules: Rules, passed: bool, busy_us: int) -> None:
    """The next look of the backfill thread: an interval after a pass, else a second; or the next given pass."""
    if lists.passes.size > 0:
        s[PASS_ROW] += 1
        s[PASS] = lists.passes[s[PASS_ROW]] if s[PASS_ROW] < lists.passes.size else FAR
        return
    step = (rules.bf_interval if passed else 1) * SECOND + rules.drift_us
    s[PASS] += step + (lasts_us(rules, s[TESTED]) if passed else 0)
    if not passed and s[PASS] < busy_us:
        s[PASS] += (busy_us - s[PASS]) // step * step


@lean
def pass_due(lists: Lists, s: Ints, rules: Rules, now_s: int) -> bool:
    """Is there a backfill pass at this look: the interval is over, and something has changed since the last?"""
    if lists.passes.size > 0:
        return True
    return now_s - s[LAST_PASS] >= rules.bf_interval and s[LAST_UPDATE] >= s[LAST_PASS]


@lean
def _changing(jobs: Jobs, lists: Lists, s: Ints) -> int:
    """The next submission or end, us."""
    coming = jobs.submit[s[NEXT_SUBMIT]] if s[NEXT_SUBMIT] < jobs.submit.size else FAR
    return min(coming, lists.heap_us[0]) if s[N_RUNNING] > 0 else coming


@lean
def _coming(jobs: Jobs, lists: Lists, s: Ints) -> int:
    """The next submission, begin time, end, or return to the queue, us."""
    coming = _changing(jobs, lists, s)
    if s[NEXT_BEGIN] < lists.begin_us.size:
        coming = min(coming, lists.begin_us[s[NEXT_BEGIN]])
    return min(coming, lists.later_us[s[FIRST_LATER]]) if s[N_LATER] > 0 else coming


@lean
def _take_in(w: World, now: int) -> None:
    """Everything that ends, then everything that is submitted, or may be looked at again, at this moment."""
    jobs, lists, s = w.jobs, w.lists, w.s
    while s[N_RUNNING] > 0 and lists.heap_us[0] <= now:
        end(w, pop_end(lists, s[N_RUNNING]))
    while s[NEXT_SUBMIT] < jobs.submit.size and jobs.submit[s[NEXT_SUBMIT]] <= now:
        submit(w, s[NEXT_SUBMIT])
        s[NEXT_SUBMIT] += 1
    while s[NEXT_BEGIN] < lists.begin_us.size and lists.begin_us[s[NEXT_BEGIN]] <= now:
        begin(w, lists.begin_job[s[NEXT_BEGIN]])
        s[NEXT_BEGIN] += 1
    while s[N_LATER] > 0 and lists.later_us[s[FIRST_LATER]] <= now:
        come_back(w)
    queue_freed(w)


@lean
def _note_event_pass(s: Ints, full: bool, now_s: int) -> None:
    s[ASKED] = 0
    s[LAST_EVENT] = now_s
    if full:
        s[LAST_FULL] = now_s
    s[EVENTS] += 1


@compiled
def drive(table: Grid, until_us: int) -> int:
    """Run on to `until_us`, or until every job that can start has ended: DONE or PAUSED; ENDLESS: a job loses its nodes
    over and over. table: of `table_of`."""
    w = one(table, 0)
    jobs, lists, s, rules = w.jobs, w.lists, w.s, w.rules
    while True:
        coming = _coming(jobs, lists, s)
        if s[N_QUEUE] == 0 and coming == FAR:
            return DONE
        if s[WORST] > MOST_AGAIN:
            return ENDLESS
        tick, bf = s[TICK], s[PASS] if rules.backfill > 0 else FAR
        calc = s[CALC] if rules.by_priority != BASIC else FAR
        turns = w.closed.moment[s[NEXT_TURN], 0] if s[NEXT_TURN] < w.closed.moment.shape[0] else FAR
        busy = min(coming, turns)
        now = min(min(busy, tick), min(bf, calc))
        if now > until_us:
            return PAUSED
        if s[N_RUNNING] == 0 and coming == FAR and turns == FAR and now > s[MOVED] + STILL_S * SECOND:
            return DONE
        s[NOW] = now
        if coming == now:
            _take_in(w, now)
            continue
        if turns == now:
            fail(w)
            continue
        now_s = unix_s(rules, now)
        if calc == now:
            if rules.fair > 0:
                settle(w)
            renew(w)
            if s[DIRTY]:
                sort_queue(w)
            if s[N_QUEUE] == 0 and s[CALC] < busy and rules.fair == 0:
                s[CALC] += (busy - s[CALC]) // rules.calc_us * rules.calc_us
        elif tick == now:
            due = tick_due(s, rules, now_s) if s[N_QUEUE] > 0 or s[ASKED] > 0 else 0
            if due > 0:
                _note_event_pass(s, due == 2, now_s)
                if rules.preempt == BY_QOS:
                    sort_by_preemption(w)
                event_pass(w, due == 2)
                queue_freed(w)
            idle = s[N_QUEUE] == 0 and s[ASKED] == 0
            # a job that has just begun may end first
            next_tick(s, rules, min(_coming(jobs, lists, s), turns) if idle else now)
        else:
            passed = pass_due(lists, s, rules, now_s)
            if passed:
                s[LAST_PASS] = now_s
                s[PASSES] += 1
                s[TESTED] = 0
                if s[N_QUEUE] > 0:
                    if rules.preempt == BY_QOS:
                        sort_by_preemption(w)
                    backfill_pass(w, min(_changing(jobs, lists, s), min(turns, calc)))
                    queue_freed(w)
            next_pass(lists, s, rules, passed, busy if s[N_QUEUE] == 0 else now)
