"""Several equal machines, each job wholly on one of them: the best schedule found, and a pool that bounds every
schedule.

*The pool.* Machines added up to one pool are a relaxation: a job may then lie on two of them. Some of what that loses
comes back by dual feasible roundings (`wspt.rounded`): on each machine the rounded shares of the jobs that run at once
fit into the whole, so those of all machines fit into as many wholes. They become further kinds of capacity, the first
of which says that of jobs of more than half a machine no more run at once than there are machines.
`bound(pool(instance, machines), steps=("wspt", "lagrange"))` proves a bound of the machines.

*The search.* Annealing over permutations as in `anneal`; a job goes where it can start first (on the lowest machine of
equals). The schedules found keep every machine's capacities, so they are real ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from escala.compile import lean
from escala.errors import EscalaError
from escala.optimum.anneal import accept, begin, copy, draw, move, note
from escala.optimum.instance import MAX_TICK, Instance, Ints, check_schedule
from escala.optimum.profile import FAR, earliest, occupy
from escala.optimum.room import Room, room
from escala.optimum.search import HOTTEST
from escala.optimum.searcher import COLD, Searcher
from escala.optimum.wspt import rounded

ROUNDINGS = 3  # of each kind, the plain demand included; more add little
RUNS, STEPS = 4, 40_000


class Placed(NamedTuple):
    """A checked schedule: starts (n,), machine of each job (n,), its objective."""

    starts: Ints
    machine: Ints
    value: float


def pool(instance: Instance, machines: int) -> Instance:
    """What is bounded in place of so many machines of the instance's capacities."""
    demand, capacity = [], []
    for kind in range(instance.capacity.size):
        for k, (shares, whole) in enumerate(rounded(instance.demand[:, kind], int(instance.capacity[kind]))):
            if k < ROUNDINGS and any(shares):
                demand.append(shares)
                capacity.append(whole * machines)
    return replace(instance, demand=np.array(demand, np.int64).T, capacity=np.array(capacity, np.int64))


def on_machines(
    instance: Instance, machines: int, *, seed: int = 0, effort: float = 1.0, hints: Iterable[Ints] = ()
) -> Placed:
    """The best schedule found of a summed objective on so many machines of the instance's capacities. hints: (n,)
    starts to order by.

    Limits on iterations and the seed decide the outcome. EscalaError: no machine, or the makespan.
    """
    if machines < 1 or not instance.summed:
        raise EscalaError("machines: give at least one machine, and an objective that is a mean over jobs")
    if instance.horizon >= MAX_TICK:
        raise EscalaError("machines: the times add up to more than 2^40 ticks: choose a coarser tick")
    one = Searcher(instance, seed)
    n, steps = instance.jobs, max(1, int(effort * STEPS))
    one.rules(32)
    orders = [one.by(hint) for hint in (one.starts, *hints)]
    memory = one.room(n, machines=machines)
    best = Placed(one.starts, np.zeros(n, np.int64), np.inf)
    for run in range(RUNS + len(orders)):
        memory.order[:] = orders[run] if run < len(orders) else np.argsort(best.starts, kind="stable")
        memory.stream[:] = one.stream()
        anneal_machines(memory.table, one.unit * HOTTEST[-1], one.unit * COLD, 1 if run < len(orders) else steps)
        value = instance.value(memory.starts)
        if value < best.value:
            best = Placed(memory.starts.copy(), memory.machine.copy(), value)
    check_machines(instance, best.starts, best.machine)
    return best


def check_machines(instance: Instance, starts: Ints, machine: Ints) -> None:
    """Every machine's schedule, by `check_schedule`."""
    for k in np.unique(machine):
        rows = np.flatnonzero(machine == k)
        part = replace(
            instance, release=instance.release[rows], length=instance.length[rows], demand=instance.demand[rows]
        )
        check_schedule(part, starts[rows])


@lean
def place(r: Room, here: int, there: int, job: int) -> int:
    """Write state `there`: state `here` with a job where it can start first. Returns its start."""
    machines, length, word = r.settings.machines, r.length[job], r.words[job]
    chosen, start, seg = 0, FAR, 0
    for m in range(machines):
        if start > r.release[job]:
            other, first = earliest(r, here * machines + m, r.release[job], length, word)
            if other < start:
                chosen, start, seg = m, other, first
    for m in range(machines):
        old, new = here * machines + m, there * machines + m
        if m == chosen:
            occupy(r, old, new, start, seg, start + length, word)
        else:
            size = r.sizes[old]
            r.sizes[new] = size
            for k in range(size):
                r.times[new, k], r.free[new, k] = r.times[old, k], r.free[old, k]
    r.begun[there], r.on[there] = start, chosen
    return start


@lean
def anneal_machines(table: Ints, hot: float, cold: float, steps: int) -> float:
    """As `anneal.anneal`, on several machines: cost = sum of weight * max(0, start - ready). Returns the best cost."""
    r = room(table, 0)
    order, trial, row, partial = r.order, r.trial, r.row, r.partial
    n = order.size
    begin(r)
    current, best_cost, temperature = np.inf, np.inf, hot
    cooling = (cold / hot) ** (1.0 / max(1, steps - 1))
    for step in range(steps + 1 if n > 1 else 1):
        first, _ = move(order, trial, r.stream) if step > 0 else (0, 0)
        limit = current - temperature * np.log(1.0 - draw(r.stream)) if step > 0 else np.inf
        here, at, total = row[first], first, 0.0
        while at < n:
            there, job = row[at + 1] ^ 1, trial[at]
            start = place(r, here, there, job)
            total = partial[there] = partial[here] + r.weight[job] * max(0, start - r.ready[job])
            if total > limit:
                break
            here, at = there, at + 1
        temperature *= cooling
        if at < n:
            continue
        accept(r, first, n)
        current = total
        if current < best_cost:
            best_cost = current
            note(r)
    copy(r.best, order)
    return best_cost
