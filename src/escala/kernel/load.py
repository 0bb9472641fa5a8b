"""A state from elsewhere: a simulation is loaded with it at the moment of a decision, and what the decision changed is
read back.

Nothing of what was in the tables counts, but for what the caller carries from one decision to the next: the nodes that
an off-reservation holds, clocks and terms of linear scores; after it, the head of easy-fast. Times are us. No event is
taken in: the first `advance` is the decision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled, inlined, lean
from escala.kernel import bits, codes
from escala.kernel.advance import PHASE_TAKEN_IN, needs_space
from escala.kernel.backlog import weigh
from escala.kernel.energy import ledger_state
from escala.kernel.events import push
from escala.kernel.forecast import foresee
from escala.kernel.keys import give_numbers
from escala.kernel.lanes import clear_lanes, has_lanes, join
from escala.kernel.nodes import add_free, lower_hint, set_free, set_of
from escala.kernel.parts import parts_in, use_kinds
from escala.kernel.placement import append_chunk
from escala.kernel.plans import add_plan, move_outlived, plan_end
from escala.kernel.queue import note_age
from escala.kernel.reach import EMPTY
from escala.kernel.reservation import hold_end
from escala.kernel.shutdown import next_due
from escala.kernel.state import FAN, HEAP_ENDS, HEAP_STARTS, HEAP_SWITCHES, HEAP_TIMERS, World
from escala.kernel.users import count
from escala.kernel.world import one

JOBS = np.dtype(
    [
        ("row", "i8"),  # in the tables
        ("submit", "i8"),
        ("walltime", "i8"),  # the request
        ("start", "i8"),  # of running ones
        ("cores", "i8"),
        ("user", "i8"),  # NONE: unknown
        ("state", "i8"),  # codes.QUEUED, GIVEN, RUNNING, COMPLETED
        ("single", "i8"),
        ("estimate", "i8"),  # lengths that became known at submission, NONE: not yet
        ("order", "i8"),
    ]
)
NODES = np.dtype([("since", "i8"), ("done", "i8"), ("power", "i8"), ("gone", "i8")])
PLACED = np.dtype(
    [("job", "i8"), ("low", "i8"), ("high", "i8"), ("per", "i8")]
)  # `per` cores on each of the nodes, those of a job together
NOW, TICK, GIVEN, FRONT = 0, 1, 2, 3
"""The instant and the next periodic decision, us; 1 where nodes may be given that are not on; 1 where jobs that have
waited a guard have ranks of their own."""


@lean
def load(table: Any, i: int, now: int, jobs: Any, nodes: Any, placed: Any, demand: Any, where: Any) -> tuple[int, int]:
    """Bring simulation `i` to the moment of a decision. jobs: JOBS, nodes: NODES [nodes], placed: PLACED, demand: int64
    [jobs, kinds], where: scratch, int64 [rows]. 0, or the code of the table that is too small; how many nodes have more
    cores in use than they have, or jobs while they are not on."""
    w = one(table, i)
    _begin(w, now)
    where[:] = codes.NONE
    for k in range(jobs.shape[0]):
        where[jobs[k].row] = k
    _load_nodes(w, nodes)
    _load_jobs(w, jobs, where, demand)
    _load_places(w, jobs, nodes, placed)
    wrong = _load_sets(w, nodes)
    _load_holders(w, jobs, where)
    if w.o[0].guard_us < codes.NEVER_US:
        note_age(w)
    next_due(w)
    w.s[0].grow = needs_space(w)
    return w.s[0].grow, wrong


@lean
def load_carried(
    table: Any, i: int, carried: Any, jobs: Any, nodes: Any, placed: Any, demand: Any, where: Any
) -> tuple[int, int]:
    """As `load`, of as many rows as `where` has. carried: int64 [4], by NOW, TICK, GIVEN and FRONT."""
    w = one(table, i)
    s, o = w.s[0], w.o[0]
    now, tick = carried[NOW], carried[TICK]
    o.n_jobs = where.shape[0]
    o.n_ranks = where.shape[0] * (1 + carried[FRONT])
    o.given = carried[GIVEN]
    s.n_ended = 0
    s.ticked = o.period_us > 0 and tick <= now
    s.tick_us = codes.NEVER_US
    if o.period_us > 0:
        s.tick_us = (now // o.period_us + 1) * o.period_us if tick <= now else tick
    return load(table, i, now, jobs, nodes, placed, demand, where)


@lean
def _begin(w: World, now: int) -> None:
    """All scalars, sets, heaps and the search tree as before the first job, but for what is carried."""
    s = w.s[0]
    s.now = now
    s.next_job = w.o[0].n_jobs
    s.told = w.o[0].n_jobs
    s.first = codes.NONE
    s.last = codes.NONE
    s.free_chunk = codes.NONE
    s.touched = codes.NONE
    s.head = codes.NONE
    s.next_aged_us = codes.NEVER_US
    s.next_plan_us = codes.NEVER_US
    s.n_planned = codes.NONE
    s.n_queued = 0
    s.work_s = 0
    s.work_us = 0
    s.n_hoping = 0
    s.woken = codes.NONE
    s.n_ends = 0
    s.n_starts = 0
    s.n_switches = 0
    s.n_timers = 0
    s.n_plans = 0
    s.heaped = 0
    s.n_slices = 0
    s.n_held = 0
    s.next_chunk = 0
    s.free_on = 0
    s.free_boot = 0
    s.free_off = 0
    s.low_on = w.bits.shape[1]
    s.low_boot = w.bits.shape[1]
    s.low_off = w.bits.shape[1]
    s.new_from = 0
    s.indexed = 0
    s.aged = 0
    s.in_front = 0
    s.busy = 0
    s.changed = 1
    s.instants = 1
    s.phase = PHASE_TAKEN_IN
    clear_lanes(w, 1)
    _empty(w)


@lean
def _empty(w: World) -> None:
    """No node in a set, no job in the search tree, nothing in the ledger, nobody's jobs counted."""
    s = w.s[0]
    w.bits[:, :] = bits.ZERO
    cells = w.o[0].n_ranks
    base = 0
    while cells > 1 or base == 0:
        cells = -(-cells // FAN)
        base += max(cells, 1)
    for what in range(w.tree.shape[0]):
        for cell in range(min(base, w.tree.shape[1])):
            w.tree[what, cell] = EMPTY
    for what in range(w.branch.shape[0]):
        for cell in range(min(base, w.branch.shape[1])):
            w.branch[what, cell] = EMPTY
    for p in range(w.ledger.shape[0]):
        w.ledger[p].nodes[:] = 0
    for k in range(w.terms.shape[0]):
        w.terms[k].cores = 0
    for u in range(w.user.shape[0]):
        w.user[u].queued = 0
        w.user[u].cores = 0
        w.user[u].next = s.touched  # those of whom nobody has a job now, too
        s.touched = u


@lean
def _load_nodes(w: World, nodes: Any) -> None:
    """Power states. A node that is gone is in no set, as one whose switching off never ends."""
    s = w.s[0]
    w.roomy[:, :] = bits.ZERO
    for n in range(w.o[0].n_nodes):
        node = w.node[n]
        node.free = 0
        set_free(w, n, np.int64(node.cores))
        node.limit = node.cores
        node.busy = 0
        node.released = 0
        node.since = nodes[n].since
        node.done = max(nodes[n].done, s.now + 1)
        node.power = nodes[n].power
        if nodes[n].gone == 1:
            node.power = codes.SWITCHING_OFF
            node.done = codes.NEVER_US
        elif node.power == codes.ON or node.power == codes.SWITCHING_ON:
            node.held = 0  # somebody has woken it
        if node.held == 1:
            s.n_held += 1


@lean
def _load_jobs(w: World, jobs: Any, where: Any, demand: Any) -> None:
    """Jobs by row, those that wait in the queue."""
    for j in range(w.o[0].n_jobs):
        k = where[j]
        run = w.run[j]
        run.start = codes.NONE
        run.chunk = codes.NONE
        run.plan = 0
        run.fine = 0
        if k == codes.NONE:
            run.state = codes.COMPLETED
            continue
        job = w.job[j]
        run.state = jobs[k].state
        job.submit = jobs[k].submit
        job.walltime = jobs[k].walltime
        job.runtime = jobs[k].walltime
        job.cores = jobs[k].cores
        job.load = 1.0
        job.killed = 0
        job.single = jobs[k].single
        if w.member.shape[0] > 0:
            w.member[j] = 0
        job.user = jobs[k].user
        for kind in range(demand.shape[1]):
            w.demand[j, kind] = demand[k, kind]
        if w.forecast.shape[0] > 0:
            w.forecast[j].limit = jobs[k].walltime
            w.forecast[j].order = jobs[k].walltime
            w.forecast[j].moved = 0
            if jobs[k].estimate == codes.NONE:
                foresee(w, j)
            else:
                job.walltime = jobs[k].estimate
                w.forecast[j].order = jobs[k].order
                give_numbers(w, j)
        if run.state == codes.QUEUED:
            _append(w, j)


@inlined
def _append(w: World, j: int) -> None:
    """Job `j` joins the end of the queue."""
    s = w.s[0]
    w.run[j].next = codes.NONE
    w.run[j].prev = s.last
    if s.last == codes.NONE:
        s.first = j
    else:
        w.run[s.last].next = j
    s.last = j
    s.n_queued += 1
    if has_lanes(w):
        join(w, j)
    weigh(w, j, 1)
    if w.user.shape[0] > 0:
        count(w, j, 1, 0)


@lean
def _load_places(w: World, jobs: Any, nodes: Any, placed: Any) -> None:
    """Cores that jobs hold; those on nodes that are gone are nobody's, and come back to nobody."""
    before = codes.NONE
    last = codes.NONE
    for p in range(placed.shape[0]):
        k = placed[p].job
        j = jobs[k].row
        if k != before:
            last = codes.NONE
            before = k
        per = placed[p].per
        running = jobs[k].state == codes.RUNNING
        low = placed[p].low
        for n in range(placed[p].low, placed[p].high + 1):
            set_free(w, n, np.int64(w.node[n].free) - per)
            w.node[n].busy += per if running else 0
            if nodes[n].gone == 1:
                if n > low:
                    last = append_chunk(w, j, last, low, n - 1, per)
                low = n + 1
                w.job[j].cores = max(w.job[j].cores - per, 0)
        if low <= placed[p].high:
            last = append_chunk(w, j, last, low, placed[p].high, per)
        if jobs[k].single != 0:
            parts = parts_in(w, j, per)
            for n in range(placed[p].low, placed[p].high + 1):
                use_kinds(w, j, n, parts)


@lean
def _load_sets(w: World, nodes: Any) -> int:
    """Sets of free cores, switches under way, counts of the ledger. How many nodes are used that cannot be, see
    `load`."""
    s = w.s[0]
    wrong = 0
    for n in range(w.o[0].n_nodes):
        node = w.node[n]
        wrong += node.free < 0 or (node.busy > 0 and node.power != codes.ON and nodes[n].gone == 0)
        state = ledger_state(node.power)
        if node.power == codes.ON and node.busy > 0:
            state = codes.COMPUTING
        w.ledger[node.profile].nodes[state] += 1
        if nodes[n].gone == 1:
            continue
        if node.power == codes.SWITCHING_ON or node.power == codes.SWITCHING_OFF:
            s.n_switches = push(w.heaps[HEAP_SWITCHES], s.n_switches, node.done, n)
        which = set_of(node.power)
        if which != codes.NONE and node.held == 0 and node.free > 0:
            bits.put(w.bits[which], n)
            lower_hint(w, which, n >> 6)
            add_free(w, which, np.int64(node.free))
    return wrong


@lean
def _load_holders(w: World, jobs: Any, where: Any) -> None:
    """Jobs that hold cores: when they will give them back, as far as anybody may know."""
    s = w.s[0]
    now = s.now
    for j in range(w.o[0].n_jobs):
        run = w.run[j]
        if run.state != codes.RUNNING and run.state != codes.GIVEN:
            continue
        if w.user.shape[0] > 0:
            count(w, j, 0, 1)
        limit = jobs[where[j]].walltime
        if run.state == codes.RUNNING:
            run.start = jobs[where[j]].start
            over = now + 1 - (run.start + limit + w.o[0].margin_us)
            if over > 0:  # it has outlived its request: it ends at any moment
                limit += over
                w.job[j].walltime = limit
                if w.forecast.shape[0] > 0:
                    w.forecast[j].limit = limit
            plan_end(w, j, run.start)
            s.n_ends = push(w.heaps[HEAP_ENDS], s.n_ends, max(run.start + limit, now + 1), j)
        else:
            ready = now
            c = np.int64(run.chunk)
            while c != codes.NONE:
                for n in range(w.chunk[c].low, w.chunk[c].high + 1):
                    if w.node[n].power == codes.SWITCHING_ON:
                        ready = max(ready, w.node[n].done)
                c = np.int64(w.chunk[c].next)
            plan_end(w, j, ready)
            s.n_starts = push(w.heaps[HEAP_STARTS], s.n_starts, max(ready, now + 1), j)
        if w.plans.shape[0] > 0:
            add_plan(w, j)
    if w.o[0].moves == 1 and w.plans.shape[0] > 0:
        move_outlived(w)
        s.changed = 1


@compiled
def await_holds(table: Any, i: int) -> None:
    """Simulation `i` is to run on: the ends of the holds of waiting jobs are events. The caller has made room."""
    w = one(table, i)
    s = w.s[0]
    if w.o[0].shutdown != codes.HOLD:
        return
    j = s.first
    while j != codes.NONE:
        if hold_end(w, j) > s.now:
            s.n_timers = push(w.heaps[HEAP_TIMERS], s.n_timers, hold_end(w, j), j)
        j = np.int64(w.run[j].next)
