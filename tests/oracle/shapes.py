"""What a job may have of nodes that several jobs share, and which of them it gets: Slurm's select/cons_tres by plain
lists.

The rules are those of https://slurm.schedmd.com/cons_tres.html and sbatch.html, and of slurmctld 24.11: first what each
node could give, then the runs of neighbours, then the tasks on the chosen nodes. A node has one socket, and a core is a
CPU. GPUs are files of no socket (gres.html; slurmctld's gres_sock_list.c, gres_select_filter.c, gres_filter.c).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

NO_END = 1 << 40


@dataclass
class Node:
    """What a node has, or what is left of it. jobs: how many are there; gpus: of each kind."""

    cores: int = 1
    memory: int = 0
    jobs: int = 0
    gpus: tuple[int, ...] = ()
    weight: int = 1


@dataclass(frozen=True)
class Ask:
    """nodes: exactly so many, None: as its tasks need. per: cores of a task. on_node: tasks of each node, 0: as they
    fit."""

    nodes: int | None = None
    tasks: int = 1
    per: int = 1
    on_node: int = 0
    memory_core: int = 0
    memory_node: int = 0
    exclusive: bool = False
    gpus_node: int = 0
    gpus_task: int = 0
    kind: int | None = None

    @property
    def gpus(self) -> bool:
        return self.gpus_node > 0 or self.gpus_task > 0

    @property
    def cpus(self) -> int:
        return max(self.tasks * self.per, self.nodes or 1)


@dataclass
class Given:
    node: int
    cpus: int
    memory: int
    gpus: tuple[int, ...] = ()


def remaining(nodes: list[Node], gone: Iterable[Given]) -> list[Node]:
    left = [replace(one) for one in nodes]
    for one in gone:
        take(left[one.node], one, 1)
    return left


def take(left: Node, one: Given, sign: int) -> None:
    left.cores -= sign * one.cpus
    left.memory -= sign * one.memory
    left.jobs += sign
    left.gpus = tuple(a - sign * b for a, b in zip(left.gpus, one.gpus, strict=True))


def free_gpus(ask: Ask, left: Node) -> int:
    return sum(left.gpus) if ask.kind is None else left.gpus[ask.kind]


def offer(ask: Ask, left: Node, whole: Node, by_memory: bool) -> int:
    """CPUs that a node could give the job, 0: none."""
    if ask.exclusive and left.jobs:
        return 0
    fit = left.cores // ask.per
    if ask.gpus:
        cpus = left.cores if fit >= (ask.on_node or (ask.tasks if ask.nodes == 1 else 1)) else 0
    else:
        cpus = (fit if ask.exclusive or not ask.on_node else min(fit, ask.on_node)) * ask.per
    if by_memory:
        cpus = with_memory(ask, left, whole, cpus)
    if ask.gpus:
        there = free_gpus(ask, left)
        return cpus if there >= ask.gpus_node and beside_gpus(ask, cpus, there) else 0
    return cpus if cpus >= (ask.on_node or (ask.tasks if ask.nodes == 1 else 1)) * ask.per else 0


def beside_gpus(ask: Ask, cpus: int, gpus: int) -> int:
    """Of these CPUs those that count for a job with GPUs: of the tasks that it must have on the node, or of as many as
    fit."""
    fit = cpus // ask.per
    if ask.gpus_task:
        fit = min(fit, gpus // ask.gpus_task)
    alone = ask.tasks == 1 or ask.tasks == ask.nodes
    must = ask.on_node or (ask.tasks if ask.nodes == 1 else 1 if alone else 0)
    return (must if fit >= must else 0) * ask.per if must else fit * ask.per


def with_memory(ask: Ask, left: Node, whole: Node, cpus: int) -> int:
    """Those of them for which there is memory. A job that asks for none takes all of a node's."""
    if ask.memory_core:
        while cpus > 0 and ask.memory_core * cpus > left.memory:
            cpus = 0 if ask.exclusive else cpus - 1
        return cpus // ask.per * ask.per
    return cpus if left.memory >= (ask.memory_node or whole.memory) else 0


def choose(
    ask: Ask,
    nodes: list[Node],
    left: list[Node],
    wanted: set[int],
    by_memory: bool,
    loaded: bool = False,
    most: int = NO_END,
    inner: set[int] | None = None,
) -> list[Given]:
    """What the job gets of these nodes, at most so many; nothing where they do not suffice. loaded: of the least loaded
    ones. inner: these before all others."""
    cpus = {n: offer(ask, left[n], nodes[n], by_memory) for n in sorted(wanted)}
    cpus = {n: one for n, one in cpus.items() if one > 0}
    gpus = {n: free_gpus(ask, left[n]) if ask.gpus else 0 for n in cpus}
    near = {n: min(one, ask.gpus_node) if ask.gpus_node and not ask.exclusive else one for n, one in gpus.items()}
    weight = {n: (nodes[n].weight + NO_END * (inner is not None and n not in inner), -near[n]) for n in cpus}
    least = ask.nodes or 1
    if len(cpus) < least:
        return []

    def take(most: int) -> dict[int, int]:
        if not loaded:
            return of_runs(ask, cpus, gpus, weight, least, most)
        return of_least_loaded(
            ask, cpus, gpus, weight, {n: (left[n].cores, nodes[n].cores) for n in cpus}, min(most, ask.tasks)
        )

    usual = min(ask.nodes or NO_END, most)
    found = take(min(usual, max(ask.tasks, least)))
    small, largest = 1, max(cpus[n] + gpus[n] for n in cpus)
    while not found and len(cpus) > least and small < largest:
        few = [n for n, one in cpus.items() if one + gpus[n] <= small][: len(cpus) - least]
        cpus = {n: one for n, one in cpus.items() if n not in few}
        if few or small == 1:
            found = take(usual)
        small += 1
    return spread(ask, nodes, left, found, by_memory)


def of_least_loaded(
    ask: Ask,
    cpus: dict[int, int],
    gpus: dict[int, int],
    weight: dict[int, tuple[int, int]],
    free: dict[int, tuple[int, int]],
    most: int,
) -> dict[int, int]:
    """One node after the other, of the lightest the one of whose CPUs (free, all) most are free: slurmctld's
    _eval_nodes_lln.

    Each node that is looked at is noted in `cpus` with no more than the job may still take there. One with as many free
    CPUs as the node that was taken before, if it is the best up to there, is taken at once. Whether the last node
    suffices is not asked."""
    chosen, before = dict[int, int](), -1
    need, need_nodes = ask.cpus, ask.nodes or 1
    least = max(ask.on_node, 1) * ask.per

    def look(n: int) -> int:
        can = beside_gpus(ask, cpus[n], gpus[n]) if ask.gpus else cpus[n]
        rest = need - max(need_nodes - len(chosen) - 1, 0)
        if not ask.exclusive and can > rest:
            can = cpus[n] = max(rest, least)
        return can

    for heavy in sorted({weight[n] for n in cpus}):
        before = -1
        while len(chosen) < most and (need > 0 or len(chosen) < need_nodes):
            best, offered = -1, 0
            for n in sorted(n for n in cpus if weight[n] == heavy and n not in chosen):
                can = look(n)
                if can > 0 and (best < 0 or free[best][0] * free[n][1] < free[n][0] * free[best][1]):
                    best, offered = n, can
                    if free[n][0] == before:
                        break
            if best < 0:
                break
            before = free[best][0]
            chosen[best] = offered
            need -= offered
    return {n: chosen[n] for n in sorted(chosen)} if need <= 0 and len(chosen) >= need_nodes else {}


def neighbours(cpus: dict[int, int], weight: dict[int, tuple[int, int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for n in sorted(cpus):
        if found and found[-1][-1] == n - 1 and weight[n] == weight[n - 1]:
            found[-1].append(n)
        else:
            found.append([n])
    return found


def best_run(runs: list[list[int]], sizes: dict[int, int], need: int, nodes: int) -> list[int]:
    """The first that suffices with the fewest CPUs; but one that does not, with more CPUs than the best so far, stands
    before it."""
    best, suffices = list[int](), False
    for run in runs:
        size, enough = sizes[run[0]], sizes[run[0]] >= need and len(run) >= nodes
        if not best or (enough and (not suffices or size < sizes[best[0]])) or (not enough and size > sizes[best[0]]):
            best, suffices = run, enough
    return best


def of_runs(
    ask: Ask, cpus: dict[int, int], gpus: dict[int, int], weight: dict[int, tuple[int, int]], least: int, most: int
) -> dict[int, int]:
    """Nodes of one run of neighbours after the other, with the CPUs that may be used. Where that is less than all it is
    noted in `cpus`.

    Light neighbours stand before all others, then those with more GPUs at hand. Of GPUs that a job which shares its
    nodes asks for of each node no more count."""
    can = {n: beside_gpus(ask, one, gpus[n]) for n, one in cpus.items()} if ask.gpus else dict(cpus)
    every, chosen = neighbours(can, weight), list[int]()
    sizes = {run[0]: sum(can[n] for n in run) for run in every}
    need, need_nodes = ask.cpus, ask.nodes or 1
    while every and len(chosen) < most and (need > 0 or len(chosen) < need_nodes):
        runs = [one for one in every if weight[one[0]] == min(weight[other[0]] for other in every)]
        run = best_run(runs, sizes, need, need_nodes - len(chosen))
        every.remove(run)
        alone = [n for n in run if can[n] >= need] if need_nodes - len(chosen) <= 1 else []
        for n in [min(alone, key=lambda n: can[n])] if alone else run:
            if len(chosen) == most or (need <= 0 and len(chosen) >= need_nodes):
                break
            if most - len(chosen) == 1 and can[n] < need:
                continue
            rest = need - max(least - len(chosen) - 1, 0)  # a CPU is kept for each further node
            if not ask.exclusive and can[n] > rest:
                can[n] = cpus[n] = max(rest, max(ask.on_node, 1) * ask.per)
            need -= can[n]
            chosen.append(n)
    return {n: can[n] for n in sorted(chosen)} if need <= 0 and len(chosen) >= need_nodes else {}


def spread(ask: Ask, nodes: list[Node], left: list[Node], cpus: dict[int, int], by_memory: bool) -> list[Given]:
    """A task on each of the chosen nodes, then one more on each in turn while there is room."""
    tasks, on = ask.tasks, dict.fromkeys(cpus, 0)
    while cpus and tasks > 0:
        able = [n for n in cpus if on[n] == 0 or (on[n] != ask.on_node and (on[n] + 1) * ask.per <= cpus[n])][:tasks]
        assert able, (ask, cpus)
        for n in able:
            on[n] += 1
        tasks -= len(able)
    found = []
    for n in cpus:
        used = nodes[n].cores if ask.exclusive else min(cpus[n], max(on[n], 1) * ask.per)
        memory = ask.memory_core * used or ask.memory_node or nodes[n].memory
        gpus = nodes[n].gpus if ask.exclusive else of_kinds(ask, left[n].gpus, ask.gpus_node + ask.gpus_task * on[n])
        found.append(Given(n, used, memory if by_memory else 0, gpus))
    return found


def of_kinds(ask: Ask, free: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """So many GPUs of the kind asked for, or of the first that are free. An exclusive job has all that there are."""
    found = []
    for kind, there in enumerate(free):
        found.append(min(wanted, there) if ask.kind in (None, kind) else 0)
        wanted -= found[-1]
    assert wanted == 0, (ask, free)
    return tuple(found)
