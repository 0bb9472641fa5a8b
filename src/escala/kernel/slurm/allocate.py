"""Giving nodes to a job, and taking them back."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import (
    CORES_PER_TASK,
    EXCLUSIVE,
    GPU_KIND,
    GPUS_NODE,
    GPUS_TASK,
    MEMORY_CORE,
    MEMORY_NODE,
    MIN_CORES,
    NODE_CORES,
    TASKS_PER_NODE,
    Allocated,
    Free,
    Ints,
    Jobs,
    Machine,
    Scratch,
    Words,
    World,
)


@lean
def copy_free(free: Free, to: Free) -> None:
    """What is free now, to be played with."""
    for n in range(free.cpus.size):
        to.cpus[n] = free.cpus[n]
        to.memory[n] = free.memory[n]
        to.jobs[n] = free.jobs[n]
        for k in range(free.gpus.shape[1]):
            to.gpus[n, k] = free.gpus[n, k]


@lean
def all_free(machine: Machine, to: Free) -> None:
    """The machine as if nothing ran."""
    for n in range(machine.cpus.size):
        to.cpus[n] = machine.cpus[n]
        to.memory[n] = machine.memory[n]
        to.jobs[n] = 0
        for k in range(machine.gpus.shape[1]):
            to.gpus[n, k] = machine.gpus[n, k]


@lean
def is_on(jobs: Jobs, allocated: Allocated, j: int, nodes: Words) -> bool:
    """Has job j a node of this set?"""
    for at in range(jobs.first[j], jobs.last[j]):
        n = allocated.node[at]
        if (nodes[n >> 6] >> (n & 63)) & 1 == 1:
            return True
    return False


@lean
def distribute(machine: Machine, shape: Ints, j: int, count: int, room: Scratch) -> None:
    """CPUs and tasks on each of the chosen nodes: a task a node, then one more on each in turn while there is room.

    room.given: CPUs that may be used, becomes those that are. An exclusive job takes all CPUs of its nodes.
    """
    per = shape[j, CORES_PER_TASK]
    limit = shape[j, TASKS_PER_NODE]
    wanted = max(shape[j, MIN_CORES], count * shape[j, NODE_CORES], count * limit)
    tasks = limit * count if limit > 0 and per > 1 else max(1, wanted // per)
    exclusive = shape[j, EXCLUSIVE] == 1
    for i in range(count):
        room.tasks[i] = 0
    left = tasks
    going = True
    while left > 0 and going:
        going = False
        for i in range(count):
            if left == 0:
                break
            full = (room.tasks[i] + 1) * per > room.given[i] and room.tasks[i] > 0
            if full or (limit > 0 and room.tasks[i] >= limit):
                continue
            room.tasks[i] += 1
            left -= 1
            going = True
    for i in range(count):
        n = room.node[i]
        unit = machine.unit[n]
        cpus = min(room.given[i], max(room.tasks[i], 1) * per)
        # whole cores, whatever was counted for it
        room.given[i] = machine.cpus[n] if exclusive else (cpus + unit - 1) // unit * unit


@lean
def memory_of(machine: Machine, shape: Ints, j: int, n: int, cpus: int) -> int:
    """MB that job j takes on node n with so many CPUs."""
    if shape[j, MEMORY_CORE] > 0:
        return shape[j, MEMORY_CORE] * cpus
    if shape[j, MEMORY_NODE] > 0:
        return shape[j, MEMORY_NODE]
    return machine.memory[n]


@lean
def enough_memory(w: World, free: Free, j: int, count: int) -> bool:
    """Have the chosen nodes the memory, with CPUs as `distribute` put them?"""
    if w.rules.by_memory > 0:
        for i in range(count):
            if memory_of(w.machine, w.jobs.shape, j, w.room.node[i], w.room.given[i]) > free.memory[w.room.node[i]]:
                return False
    return True


@lean
def give(w: World, j: int, count: int) -> bool:
    """Give job j the chosen nodes, with CPUs and tasks as `distribute` put them; False where their memory does not
    suffice after all."""
    machine, free, jobs, allocated, room = w.machine, w.free, w.jobs, w.allocated, w.room
    shape, memory = jobs.shape, w.rules.by_memory > 0
    if not enough_memory(w, free, j, count):
        return False
    at = jobs.first[j]
    for i in range(count):
        n = room.node[i]
        allocated.node[at] = n
        allocated.cpus[at] = room.given[i]
        taken = memory_of(machine, shape, j, n, room.given[i]) if memory else 0
        allocated.memory[at] = taken
        free.cpus[n] -= room.given[i]
        free.memory[n] -= taken
        free.jobs[n] += 1
        _give_gpus(free, allocated, shape, j, n, at, shape[j, GPUS_NODE] + shape[j, GPUS_TASK] * room.tasks[i])
        at += 1
    jobs.last[j] = at
    return True


@lean
def _give_gpus(free: Free, allocated: Allocated, shape: Ints, j: int, n: int, at: int, wanted: int) -> None:
    """GPUs of the kind that is asked for, or of the first kinds that are free; an exclusive job has all."""
    kind, whole = shape[j, GPU_KIND], shape[j, EXCLUSIVE] == 1
    for k in range(free.gpus.shape[1]):
        taken = free.gpus[n, k] if whole else 0
        if not whole and wanted > 0 and (kind < 0 or kind == k):
            taken = min(wanted, free.gpus[n, k])
            wanted -= taken
        allocated.gpus[at, k] = taken
        free.gpus[n, k] -= taken


@lean
def release(free: Free, jobs: Jobs, allocated: Allocated, j: int) -> None:
    """Take back what job j holds."""
    for at in range(jobs.first[j], jobs.last[j]):
        n = allocated.node[at]
        free.cpus[n] += allocated.cpus[at]
        free.memory[n] += allocated.memory[at]
        free.jobs[n] -= 1
        for k in range(free.gpus.shape[1]):
            free.gpus[n, k] += allocated.gpus[at, k]
