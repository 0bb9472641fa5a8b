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
from escala.optimum.anneal import Words, draw, move
from escala.optimum.instance import MAX_TICK, Floats, Instance, Ints, check_schedule
from escala.optimum.profile import FAR, earliest, occupy
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


class Work(NamedTuple):
    """Working memory of `anneal_machines`; rows as in `anneal.Room`: two states in front of every position."""

    times: Ints  # (2n + 2, machines, segments)
    free: Ints
    sizes: Ints  # (2n + 2, machines)
    starts: Ints  # (2n + 2,): of the job at position k - 1
    where: Ints  # (2n + 2,): its machine
    partial: Floats  # (2n + 2,)
    row: Ints  # (n + 1,)
    trial: Ints  # (n,)
    best: Ints  # (n,)


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
    work = _work(n, machines)
    best = Placed(one.starts, np.zeros(n, np.int64), np.inf)
    for run in range(RUNS + len(orders)):
        order = orders[run].copy() if run < len(orders) else np.argsort(best.starts, kind="stable")
        starts, machine = np.zeros(n, np.int64), np.zeros(n, np.int64)
        work.times[0], work.free[0], work.sizes[0] = 0, one.capacity, 1
        anneal_machines(
            order, instance.release, instance.length, one.words, one.guards, instance.ready, one.weight, machines,
            one.unit * HOTTEST[-1],
            one.unit * COLD, 1 if run < len(orders) else steps, one.stream(), starts, machine, work,
        )  # fmt: skip
        value = instance.value(starts)
        if value < best.value:
            best = Placed(starts, machine, value)
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


def _work(n: int, machines: int) -> Work:
    rows, wide = 2 * n + 2, 2 * n + 4

    def whole(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    times, free = whole(rows, machines, wide), whole(rows, machines, wide)
    return Work(
        times, free, whole(rows, machines), whole(rows), whole(rows), np.zeros(rows), whole(n + 1), whole(n), whole(n)
    )


@lean
def place(work: Work, here: int, there: int, guards: int, machines: int, release: int, length: int, word: int) -> int:
    """Write state `there`: state `here` with a job where it can start first. Returns its start."""
    chosen, start, seg = 0, FAR, 0
    for m in range(machines):
        if start > release:
            other, first = earliest(
                work.times[here, m], work.free[here, m], work.sizes[here, m], guards, release, length, word
            )
            if other < start:
                chosen, start, seg = m, other, first
    for m in range(machines):
        size = work.sizes[here, m]
        if m == chosen:
            work.sizes[there, m] = occupy(
                work.times[here, m],
                work.free[here, m],
                size,
                start,
                seg,
                start + length,
                word,
                work.times[there, m],
                work.free[there, m],
            )
        else:
            work.sizes[there, m] = size
            for k in range(size):
                work.times[there, m, k], work.free[there, m, k] = work.times[here, m, k], work.free[here, m, k]
    work.starts[there], work.where[there] = start, chosen
    return start


@lean
def anneal_machines(
    order: Ints, release: Ints, length: Ints, words: Ints, guards: int, ready: Ints, weight: Floats, machines: int,
    hot: float, cold: float, steps: int, state: Words, best_starts: Ints, best_machine: Ints, work: Work,
) -> float:  # fmt: skip
    """As `anneal.anneal`, on several machines: cost = sum of weight * max(0, start - ready). Returns the best cost."""
    n = order.size
    trial, best, row, partial = work.trial, work.best, work.row, work.partial
    for k in range(n + 1):
        row[k] = 2 * k
    for k in range(n):
        trial[k] = best[k] = order[k]
    partial[0] = 0.0
    current, best_cost, temperature = np.inf, np.inf, hot
    cooling = (cold / hot) ** (1.0 / max(1, steps - 1))
    for step in range(steps + 1 if n > 1 else 1):
        first, _ = move(order, trial, state) if step > 0 else (0, 0)
        limit = current - temperature * np.log(1.0 - draw(state)) if step > 0 else np.inf
        here, at, total = row[first], first, 0.0
        while at < n:
            there, job = row[at + 1] ^ 1, trial[at]
            start = place(work, here, there, guards, machines, release[job], length[job], words[job])
            total = partial[there] = partial[here] + weight[job] * max(0, start - ready[job])
            if total > limit:
                break
            here, at = there, at + 1
        temperature *= cooling
        if at < n:
            continue
        for position in range(first, n):
            row[position + 1] ^= 1
        for k in range(n):
            order[k] = trial[k]
        current = total
        if current < best_cost:
            best_cost = current
            for position in range(n):
                job = order[position]
                best[position] = job
                best_starts[job], best_machine[job] = work.starts[row[position + 1]], work.where[row[position + 1]]
    for k in range(n):
        order[k] = best[k]
    return best_cost
