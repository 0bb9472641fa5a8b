"""What a job may have of nodes that several jobs share, and which of them it gets: Slurm's select/cons_tres by plain lists.

The rules are those of https://slurm.schedmd.com/cons_tres.html and sbatch.html, and of slurmctld 24.11: first what each node could give,
then the runs of neighbours, then the tasks on the chosen nodes. A node has one socket, and a core is a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

NO_END = 1 << 40


@dataclass
class Node:
    """What a node has, or what is left of it. jobs: how many are there."""

    cores: int = 1
    memory: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class Ask:
    """nodes: exactly so many, None: as its tasks need. per: cores of a task. on_node: tasks of each node, 0: as they fit."""

    nodes: int | None = None
    tasks: int = 1
    per: int = 1
    on_node: int = 0
    memory_core: int = 0
    memory_node: int = 0
    exclusive: bool = False

    @property
    def cpus(self) -> int:
        return max(self.tasks * self.per, self.nodes or 1)


@dataclass
class Given:
    node: int
    cpus: int
    memory: int


def remaining(nodes: list[Node], gone: Iterable[Given]) -> list[Node]:
    left = [replace(one) for one in nodes]
    for one in gone:
        take(left[one.node], one, 1)
    return left


def take(left: Node, one: Given, sign: int) -> None:
    left.cores -= sign * one.cpus
    left.memory -= sign * one.memory
    left.jobs += sign


def offer(ask: Ask, left: Node, whole: Node, by_memory: bool) -> int:
    """CPUs that a node could give the job, 0: none."""
    if ask.exclusive and left.jobs:
        return 0
    fit = left.cores // ask.per
    cpus = (fit if ask.exclusive or not ask.on_node else min(fit, ask.on_node)) * ask.per
    if by_memory:
        cpus = with_memory(ask, left, whole, cpus)
    return cpus if cpus >= (ask.on_node or (ask.tasks if ask.nodes == 1 else 1)) * ask.per else 0


def with_memory(ask: Ask, left: Node, whole: Node, cpus: int) -> int:
    """Those of them for which there is memory. A job that asks for none takes all of a node's."""
    if ask.memory_core:
        while cpus > 0 and ask.memory_core * cpus > left.memory:
            cpus = 0 if ask.exclusive else cpus - 1
        return cpus // ask.per * ask.per
    return cpus if left.memory >= (ask.memory_node or whole.memory) else 0


def choose(ask: Ask, nodes: list[Node], left: list[Node], wanted: set[int], by_memory: bool) -> list[Given]:
    """What the job gets of these nodes; nothing where they do not suffice."""
    cpus = {n: offer(ask, left[n], nodes[n], by_memory) for n in sorted(wanted)}
    cpus = {n: one for n, one in cpus.items() if one > 0}
    least = ask.nodes or 1
    if len(cpus) < least:
        return []
    usual = ask.nodes or NO_END
    found = of_runs(ask, cpus, least, min(usual, max(ask.tasks, least)))
    small, largest = 1, max(cpus.values())
    while not found and len(cpus) > least and small < largest:
        few = [n for n, one in cpus.items() if one <= small][: len(cpus) - least]
        cpus = {n: one for n, one in cpus.items() if n not in few}
        if few or small == 1:
            found = of_runs(ask, cpus, least, usual)
        small += 1
    return spread(ask, nodes, sorted(found), cpus, by_memory)


def neighbours(cpus: dict[int, int]) -> list[list[int]]:
    found: list[list[int]] = []
    for n in sorted(cpus):
        if found and found[-1][-1] == n - 1:
            found[-1].append(n)
        else:
            found.append([n])
    return found


def best_run(runs: list[list[int]], sizes: dict[int, int], need: int, nodes: int) -> list[int]:
    """The first that suffices with the fewest CPUs; but one that does not, with more CPUs than the best so far, stands before it."""
    best, suffices = list[int](), False
    for run in runs:
        size, enough = sizes[run[0]], sizes[run[0]] >= need and len(run) >= nodes
        if not best or (enough and (not suffices or size < sizes[best[0]])) or (not enough and size > sizes[best[0]]):
            best, suffices = run, enough
    return best


def of_runs(ask: Ask, cpus: dict[int, int], least: int, most: int) -> list[int]:
    """Nodes of one run of neighbours after the other. What is taken of a node is noted in `cpus`."""
    runs, chosen = neighbours(cpus), list[int]()
    sizes = {run[0]: sum(cpus[n] for n in run) for run in runs}
    need, need_nodes = ask.cpus, ask.nodes or 1
    while runs and len(chosen) < most and (need > 0 or len(chosen) < need_nodes):
        run = best_run(runs, sizes, need, need_nodes - len(chosen))
        runs.remove(run)
        alone = [n for n in run if cpus[n] >= need] if need_nodes - len(chosen) <= 1 else []
        for n in [min(alone, key=lambda n: cpus[n])] if alone else run:
            if len(chosen) == most or (need <= 0 and len(chosen) >= need_nodes):
                break
            if most - len(chosen) == 1 and cpus[n] < need:
                continue
            if not ask.exclusive:
                rest = need - max(least - len(chosen) - 1, 0)  # a CPU is kept for each further node
                cpus[n] = min(cpus[n], max(rest, max(ask.on_node, 1) * ask.per))
            need -= cpus[n]
            chosen.append(n)
    return chosen if need <= 0 and len(chosen) >= need_nodes else []


def spread(ask: Ask, nodes: list[Node], chosen: list[int], cpus: dict[int, int], by_memory: bool) -> list[Given]:
    """A task on each node, then one more on each in turn while there is room."""
    tasks, on = ask.tasks, dict.fromkeys(chosen, 0)
    while chosen and tasks > 0:
        able = [n for n in chosen if on[n] == 0 or (on[n] != ask.on_node and (on[n] + 1) * ask.per <= cpus[n])][:tasks]
        assert able, (ask, cpus)
        for n in able:
            on[n] += 1
        tasks -= len(able)
    found = []
    for n in chosen:
        used = nodes[n].cores if ask.exclusive else min(cpus[n], max(on[n], 1) * ask.per)
        memory = ask.memory_core * used or ask.memory_node or nodes[n].memory
        found.append(Given(n, used, memory if by_memory else 0))
    return found
