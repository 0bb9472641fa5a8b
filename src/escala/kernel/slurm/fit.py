"""Which nodes could run a job now, and with how many CPUs."""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.kernel.slurm.tables import (
    CORES_PER_TASK,
    EXCLUSIVE,
    GPU_KIND,
    GPUS_NODE,
    GPUS_TASK,
    MAX_NODES,
    MEMORY_CORE,
    MEMORY_NODE,
    MIN_NODES,
    NODE_CORES,
    TASKS,
    TASKS_PER_NODE,
    Free,
    Ints,
    Machine,
    Scratch,
)

OUTSIDE = 1 << 40
"""Of the weight of nodes outside of a flexible reservation."""


@lean
def least_cpus(shape: Ints, j: int) -> int:
    """CPUs that a node must at least offer: those of its tasks, where their number on a node is known."""
    per = shape[j, CORES_PER_TASK]
    if shape[j, TASKS_PER_NODE] > 0:
        return max(shape[j, NODE_CORES], shape[j, TASKS_PER_NODE] * per)
    if shape[j, MAX_NODES] == 1 and shape[j, TASKS] > 0:
        return max(shape[j, NODE_CORES], shape[j, TASKS] * per)
    return max(1, shape[j, NODE_CORES], per)


@lean
def free_gpus(free: Free, n: int, kind: int) -> int:
    """Free GPUs of a kind on node n; kind NONE: of any."""
    if kind >= 0:
        return free.gpus[n, kind]
    total = 0
    for k in range(free.gpus.shape[1]):
        total += free.gpus[n, k]
    return total


@inlined
def wants_gpus(shape: Ints, j: int) -> bool:
    """Does job j ask for GPUs?"""
    return shape[j, GPUS_NODE] > 0 or shape[j, GPUS_TASK] > 0


@lean
def of_tasks(shape: Ints, j: int, cpus: int, gpus: int) -> int:
    """Of a node's CPUs those of the tasks that a job with GPUs could have there: as 24.11 counts, no more than it may
    have on one node."""
    per = max(shape[j, CORES_PER_TASK], 1)
    least, most = 1, cpus // per
    if shape[j, TASKS_PER_NODE] > 0:
        least = shape[j, TASKS_PER_NODE]
    elif shape[j, MAX_NODES] == 1:
        least = shape[j, TASKS]
    elif shape[j, TASKS] != 1 and (shape[j, TASKS] != shape[j, MIN_NODES] or shape[j, TASKS] != shape[j, MAX_NODES]):
        least = 0
    if least > 0:
        most = min(most, least)
    if shape[j, GPUS_TASK] > 0:
        most = min(most, gpus // shape[j, GPUS_TASK])
    return most * per if most >= least else 0


@lean
def by_memory(machine: Machine, free: Free, shape: Ints, j: int, n: int, cpus: int) -> int:
    """How many of these CPUs the node's free memory allows."""
    room = free.memory[n]
    core = shape[j, MEMORY_CORE]
    if core > 0:
        unit = machine.unit[n]
        if core * cpus > room:
            cpus = 0 if shape[j, EXCLUSIVE] == 1 else room // core // unit * unit
        return cpus - cpus % max(shape[j, CORES_PER_TASK], 1)
    if shape[j, MEMORY_NODE] > 0:
        return cpus if shape[j, MEMORY_NODE] <= room else 0
    return cpus if room == machine.memory[n] else 0


@inlined
def on_node(machine: Machine, free: Free, shape: Ints, j: int, n: int, memory: bool, least: int) -> int:
    """CPUs that job j could have on node n, 0 for none. least: as `least_cpus` says."""
    cpus = free.cpus[n]
    if cpus < least or (shape[j, EXCLUSIVE] == 1 and free.jobs[n] > 0):
        return 0
    if machine.unit[n] > 1:
        cpus -= cpus % machine.unit[n]
    gpus = wants_gpus(shape, j)
    if shape[j, CORES_PER_TASK] > 1 and not gpus:
        cpus -= cpus % shape[j, CORES_PER_TASK]  # whole tasks only, as 24.11 counts: 22.05 may give a job too few CPUs
    most = shape[j, TASKS_PER_NODE] * shape[j, CORES_PER_TASK]
    # no more than its tasks use, as 24.11 counts: to 22.05 a node offers all it has
    if most > 0 and shape[j, EXCLUSIVE] == 0 and not gpus:
        cpus = min(cpus, (most + machine.unit[n] - 1) // machine.unit[n] * machine.unit[n])
    if memory:
        cpus = by_memory(machine, free, shape, j, n, cpus)
    if cpus < least:
        return 0
    if cpus > 0 and gpus:
        there = free_gpus(free, n, shape[j, GPU_KIND])
        if there < shape[j, GPUS_NODE] or of_tasks(shape, j, cpus, there) == 0:
            return 0
    return cpus


@inlined
def offer(machine: Machine, free: Free, shape: Ints, j: int, n: int, how: int, least: int, room: Scratch) -> int:
    """The same, and its weight and GPUs noted: nodes with more GPUs are lighter for a job that asks for some, but of
    those beyond its GPUs of each node nothing is counted, unless it takes all. how: as in `choose`."""
    cpus = on_node(machine, free, shape, j, n, how & 4 > 0, least)
    if cpus > 0:
        room.key[n] = machine.weight[n] << 8
        if how & 8 > 0 and (room.inner[n >> 6] >> (n & 63)) & 1 == 0:
            room.key[n] += OUTSIDE
        room.extra[n] = 0
        room.spare[n] = free.cpus[n]
        if wants_gpus(shape, j):
            there = free_gpus(free, n, shape[j, GPU_KIND])
            room.extra[n] = there
            if shape[j, GPUS_NODE] > 0 and shape[j, EXCLUSIVE] == 0:
                there = shape[j, GPUS_NODE]
            room.key[n] += 255 - min(there, 255)
    return cpus


@lean
def offers(machine: Machine, free: Free, shape: Ints, j: int, mask: Ints, how: int, room: Scratch) -> tuple[int, int]:
    """Fill room.base with what each node of `mask` offers job j; how many nodes offer something, and their CPUs
    together. how: as in `choose`."""
    nodes = machine.cpus.size
    least = least_cpus(shape, j)
    count = 0
    total = 0
    for w in range(mask.size):
        word = mask[w]
        low = 64 * w
        high = min(nodes, low + 64)
        if word == 0:
            room.base[low:high] = 0
            continue
        for n in range(low, high):
            cpus = 0
            if word & 1 and free.cpus[n] >= least:
                cpus = offer(machine, free, shape, j, n, how, least, room)
                if cpus > 0:
                    count += 1
                    total += cpus
            room.base[n] = cpus
            word >>= 1
    return count, total
