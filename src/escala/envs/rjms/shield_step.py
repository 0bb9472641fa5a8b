"""The compiled steps of a shield before off-reservation agents: whose rules are in force, the agent's or those of the
shutdown policy that is its base, under which no node is held; and what either would cost, played on by the base
(`escala.envs.rjms.shield_ahead`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, lean
from escala.envs.rjms import action
from escala.envs.rjms.reward import waste_j
from escala.envs.rjms.state import Game, shutdown_game
from escala.kernel import codes
from escala.kernel.drive import drive_easy, drive_greedy, drive_strict
from escala.kernel.events import push
from escala.kernel.reservation import note_busy
from escala.kernel.resume import resume
from escala.kernel.shutdown import next_due, reserve_off
from escala.kernel.state import HEAP_TIMERS, World
from escala.kernel.world import one

RULES = np.dtype(  # of a shutdown policy of the kernel's, as in its options
    [
        ("shutdown", "i8"),
        ("timeout_us", "i8"),
        ("spare", "i8"),
        ("fraction", "f8"),
        ("cap_us", "i8"),
        ("if_busy", "i8"),
    ]
)
PRICES = np.dtype([("late", "f8"), ("tau", "f8"), ("stretch", "f8")])  # see `_cost`
ALWAYS_US = 1 << 60


@lean
def _put_in_force(w: World, rules: Any, kept: bool) -> None:
    """From now on nodes are switched by these rules. kept: they were before, and the nodes that are held stay so."""
    o, s = w.o[0], w.s[0]
    o.shutdown = rules.shutdown
    o.timeout_us = rules.timeout_us
    o.spare = rules.spare
    o.fraction = rules.fraction
    o.cap_us = rules.cap_us
    o.if_busy = rules.if_busy
    if not kept:
        reserve_off(w, 0)
    if o.if_busy == 1:
        note_busy(w)
    w.lane[0].overdue = 1
    s.changed = 1
    s.woken = codes.NONE
    next_due(w)


@lean
def stand(worlds: Any, i: int, rules: Any, own: bool) -> None:
    """The tables of simulation i have been loaded anew: the same rules are in force as before. own: the agent's, which
    has said for itself how long jobs are held."""
    w = one(worlds, i)
    which = 0 if own else 1
    fraction = w.o[0].fraction if own else np.float64(rules[1].fraction)
    _put_in_force(w, rules[which], True)
    w.o[0].fraction = fraction


@lean
def _act(w: World, g: Game, rules: Any, own: bool, chosen: int, period_us: int) -> None:
    """One decision by the agent (own) or by the base, whose rules are in force, before the scheduler. rules: of both,
    the agent's first."""
    if own:
        action.apply(w, g, chosen)
    elif rules[1].shutdown == codes.HOLD:
        action.set_hold(w, period_us, np.float64(rules[1].fraction))


@lean
def put(worlds: Any, i: int, games: Any, rules: Any, own: bool, fresh: bool, chosen: int) -> None:
    """The same in simulation i; fresh: the other one's rules were in force. The agent takes what it has chosen for the
    action in force."""
    w, g = one(worlds, i), shutdown_game(games, 0)
    g.memory.standing = chosen
    if fresh:
        _put_in_force(w, rules[0 if own else 1], False)
    _act(w, g, rules, own, chosen, g.settings.period_us)


@lean
def _begin(w: World, k: int, live: int, drawn: Any, held: Any, until: int, now: int) -> None:
    """The tables before a future is loaded: jobs to come, the order, held nodes, and nothing measured. live: jobs of
    now."""
    _, at, walltime, runtime, cores, rank, _ = drawn
    o = w.o[0]
    n = live + at.shape[1]
    o.n_jobs = n
    o.n_ranks = n
    o.limited = 1
    o.until_us = until
    for a in range(at.shape[1]):
        job = w.job[live + a]
        job.submit = now + at[k, a]
        job.walltime = walltime[k, a]
        job.runtime = runtime[k, a]
        job.cores = cores[k, a]
        job.load = 1.0
        job.killed = 0
        job.single = 0
        job.user = codes.NONE
    if w.order.shape[1] > 0:
        for r in range(n):
            w.order[0, r] = rank[k, r]
            w.order[1, rank[k, r]] = r
    for p in range(w.ledger.shape[0]):
        for state in range(5):
            w.ledger[p].node_us[state] = 0
            w.ledger[p].carry[state] = 0
        w.ledger[p].rate = 0.0
        w.ledger[p].load_s = 0.0
    for m in range(held.shape[0]):
        w.node[m].held = held[m]


@lean
def _cost(w: World, watts: Any, prices: Any, now: int, until: int) -> float:
    """Joules of nodes that idled or switched, and what the waiting of all jobs was worth: `late` J for each core and
    second beyond `tau` of the walltime, `stretch` J for each walltime."""
    late = 0.0
    stretch = 0.0
    for j in range(w.o[0].n_jobs):
        job = w.job[j]
        end = until if w.run[j].start == codes.NONE else min(w.run[j].start, until)
        since = max(now, job.submit)
        if end > since:
            stretch += (end - since) / max(job.walltime, 1)
        begun = max(np.float64(now), job.submit + prices.tau * job.walltime)
        if end > begun:
            late += job.cores * (end - begun)
    return waste_j(w, watts) + prices.late * late * 1e-6 + prices.stretch * stretch


@compiled
def _play(table: Any, until: int) -> int:
    """Simulated on by the scheduler."""
    queueing = one(table, 0).o[0].queueing
    if queueing == codes.STRICT:
        return drive_strict(table, 0, until)
    if queueing == codes.GREEDY:
        return drive_greedy(table, 0, until)
    return drive_easy(table, 0, until)


@compiled
def look_ahead(table: Any, games: Any, live: Any, drawn: Any, choice: Any, prices: Any, out: Any) -> bool:
    """What the agent's choice costs in each future, and what the base does in its place, J, float64 out [2, K]: until
    the next decision, from which on both go by the base. False where a table was too small.

    table: of the one simulation that is used. live: of now, (jobs, nodes, placed, held, truth, now us), see `resume`;
    drawn, of each future: runtimes of the live jobs, and arrivals (us from now), walltimes, runtimes and cores of those
    that come, the order of all, and int64 [2, K] when the choice ends, and the future, us. choice: rules of the agent
    and of the base, whether the agent's are in force, and what it has chosen.
    """
    jobs, nodes, placed, held, truth, now = live
    ends = drawn[6]
    rules, own, chosen = choice
    w, g = one(table, 0), shutdown_game(games, 0)
    for k in range(ends.shape[1]):
        for j in range(truth.shape[0]):
            truth[j].runtime = drawn[0][k, j]
        for by in range(2):
            _begin(w, k, truth.shape[0], drawn, held, ends[1, k], now)
            if resume(table, 0, now, jobs, nodes, placed, truth, False) != 0:
                return False
            w.s[0].n_timers = push(w.heaps[HEAP_TIMERS], w.s[0].n_timers, ends[0, k], codes.NONE)
            _put_in_force(w, rules[by], own == (by == 0))
            _act(w, g, rules, by == 0, chosen, ALWAYS_US)
            stop = codes.NONE
            if by == 0:
                stop = _play(table, ends[0, k] - 1)
                if stop == codes.NONE:
                    _put_in_force(w, rules[1], False)
                    _act(w, g, rules, False, 0, ALWAYS_US)
            if stop == codes.NONE:
                stop = _play(table, codes.NEVER_US)
            if stop != codes.DONE:
                return False
            out[by, k] = _cost(w, g.watts, prices[0], now, ends[1, k])
    return True
