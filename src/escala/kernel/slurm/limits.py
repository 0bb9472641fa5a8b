"""Limits of QOS and associations: how much those that a job counts to have in use, and whether they may have more.

As slurmctld does it, counts of running jobs are looked at before nodes are chosen, and TRES (CPUs, MB, nodes, GPUs)
when they are, also for a planned start, against what is in use now; where a job finds no nodes in an event pass, by
what it asks for: over a limit, it holds up nobody. Submitted jobs are looked at when one comes. Nodes are those in use
by any of the jobs, each counted once.
Sources: https://slurm.schedmd.com/resource_limits.html, and acct_policy.c of slurmctld.
"""

from __future__ import annotations

from escala.compile import inlined, lean
from escala.kernel.slurm.allocate import memory_of
from escala.kernel.slurm.tables import (
    EXCLUSIVE,
    FAR,
    GPU_KIND,
    GPUS_NODE,
    GPUS_TASK,
    MEMORY_CORE,
    MEMORY_NODE,
    MIN_CORES,
    MIN_NODES,
    NONE,
    TASKS,
    USED_CPUS,
    USED_GPUS,
    USED_JOBS,
    USED_KINDS,
    USED_MEMORY,
    USED_NODES,
    USED_SUBMITTED,
    Limits,
    World,
)


@lean
def may_run(limits: Limits, record: int) -> bool:
    """Is there room for one more running job?"""
    return _one_more(limits, limits.of_record[record], USED_JOBS)


@lean
def _one_more(limits: Limits, c: int, column: int) -> bool:
    """Is every count of a class below its limit?"""
    full = 0
    for k in range(limits.first[c], limits.first[c + 1]):
        full += int(limits.used[limits.row[k], column] >= limits.most[k, column])
    return full == 0


@lean
def may_come(w: World, j: int) -> bool:
    """May job j be submitted? If so, it counts."""
    limits = w.limits
    c = limits.of_record[w.jobs.record[j]]
    if not _one_more(limits, c, USED_SUBMITTED):
        return False
    for k in range(limits.first[c], limits.first[c + 1]):
        limits.used[limits.row[k], USED_SUBMITTED] += 1
    return True


@lean
def may_take(w: World, record: int, count: int, planned: bool) -> bool:
    """Would what the record's job gets on the chosen nodes, as `distribute` has put it, stay within all limits? Of an
    exclusive job all GPUs there count, but in a plan those that it asks for; memory is counted as given away, but in a
    plan as asked for; nodes that a group uses already count no more, but in a plan they do."""
    limits, room, shape = w.limits, w.room, w.jobs.shape
    j = w.records.job[record]
    wanted = limits.wanted
    wanted[:] = 0
    wanted[USED_NODES] = count
    whole = shape[j, EXCLUSIVE] == 1 and not planned
    gpus = 0
    for i in range(count):
        n, cpus = room.node[i], room.given[i]
        wanted[USED_CPUS] += cpus
        wanted[USED_MEMORY] += _memory_held(w, j, n, cpus)
        if whole:
            _count_whole(w, n)
        gpus += shape[j, GPUS_NODE] + shape[j, GPUS_TASK] * room.tasks[i]
    if not whole:
        wanted[USED_GPUS] = gpus
    if planned:
        wanted[USED_MEMORY] = _memory_asked(w, record, count, wanted[USED_CPUS])
    if not whole and shape[j, GPU_KIND] != NONE:
        wanted[USED_KINDS + shape[j, GPU_KIND]] = wanted[USED_GPUS]
    w.jobs.found[j, 0] = wanted[USED_CPUS]
    w.jobs.found[j, 1] = gpus
    return _within(w, record, count, not planned)


@lean
def may_ask(w: World, record: int, count: int, known: bool) -> bool:
    """The same of a job that finds no nodes now, by what it asks for. count: nodes that it would get of idle ones;
    known: they stand in room.node, as those of an exclusive job do where there are any. CPUs and GPUs are those of the
    last nodes that were found for it."""
    limits, room, shape = w.limits, w.room, w.jobs.shape
    j = w.records.job[record]
    wanted = limits.wanted
    wanted[:] = 0
    wanted[USED_NODES] = count
    before = w.jobs.found[j, 0] > 0
    wanted[USED_CPUS] = w.jobs.found[j, 0] if before else shape[j, MIN_CORES]
    wanted[USED_MEMORY] = _memory_asked(w, record, count, wanted[USED_CPUS])
    if known and shape[j, EXCLUSIVE] == 1:
        for i in range(count):
            _count_whole(w, room.node[i])
    else:
        gpus = shape[j, GPUS_NODE] * shape[j, MIN_NODES] + shape[j, GPUS_TASK] * shape[j, TASKS]
        wanted[USED_GPUS] = w.jobs.found[j, 1] if before else gpus
        if shape[j, GPU_KIND] != NONE:
            wanted[USED_KINDS + shape[j, GPU_KIND]] = wanted[USED_GPUS]
    return _within(w, record, count, False)


@lean
def _count_whole(w: World, n: int) -> None:
    """All GPUs of node n are wanted."""
    for kind in range(w.machine.gpus.shape[1]):
        w.limits.wanted[USED_GPUS] += w.machine.gpus[n, kind]
        w.limits.wanted[USED_KINDS + kind] += w.machine.gpus[n, kind]


@lean
def _memory_held(w: World, j: int, n: int, cpus: int) -> int:
    """MB that count for job j on node n: those that are given away; select/linear counts what is asked for, even if it
    gives none away."""
    asks = w.jobs.shape[j, MEMORY_CORE] > 0 or w.jobs.shape[j, MEMORY_NODE] > 0
    if asks and (w.rules.by_memory > 0 or w.rules.linear == 1):
        return memory_of(w.machine, w.jobs.shape, j, n, cpus)
    return _memory_told(w, n) if w.rules.by_memory > 0 else 0


@inlined
def _memory_told(w: World, n: int) -> int:
    """MB of node n; 1 where its size is unknown: so slurmctld has it."""
    return w.machine.memory[n] if w.machine.memory[n] < FAR else 1


@lean
def _memory_asked(w: World, record: int, count: int, cpus: int) -> int:
    """MB that the record's job asks for; where it asks for none slurmctld takes those of the first node of its
    partition for each node."""
    shape, j, part = w.jobs.shape, w.records.job[record], w.records.part[record]
    if shape[j, MEMORY_CORE] > 0:
        return shape[j, MEMORY_CORE] * cpus
    if shape[j, MEMORY_NODE] > 0:
        return shape[j, MEMORY_NODE] * count
    for n in range(w.machine.memory.size):
        if (w.machine.part[part, n >> 6] >> (n & 63)) & 1 == 1:
            return _memory_told(w, n) * count
    return 0


@lean
def _within(w: World, record: int, count: int, unique: bool) -> bool:
    """Is what is wanted within the limits of the record's class? unique: nodes on which others of a row are count no
    more."""
    limits = w.limits
    c, wanted = limits.of_record[record], limits.wanted
    for column in range(USED_NODES, wanted.size):
        if wanted[column] > limits.each[c, column]:
            return False
    for k in range(limits.first[c], limits.first[c + 1]):
        row = limits.row[k]
        for column in range(USED_NODES, wanted.size):
            more = wanted[column]
            if column == USED_NODES and unique:
                more = _new_nodes(w, row, count)
            if more > 0 and limits.used[row, column] + more > limits.most[k, column]:
                return False
    return True


@lean
def _new_nodes(w: World, row: int, count: int) -> int:
    """How many of the chosen nodes no job of this row is on."""
    place = w.limits.place[row]
    if place == NONE:
        return count
    found = 0
    for i in range(count):
        found += int(w.limits.on_node[place, w.room.node[i]] == 0)
    return found


@lean
def count_run(w: World, record: int, step: int) -> None:
    """Count what the record's job holds: step 1 as it starts, -1 as it ends."""
    limits, allocated = w.limits, w.allocated
    j, c = w.records.job[record], limits.of_record[record]
    for k in range(limits.first[c], limits.first[c + 1]):
        row = limits.row[k]
        place = limits.place[row]
        limits.used[row, USED_JOBS] += step
        for at in range(w.jobs.first[j], w.jobs.last[j]):
            n = allocated.node[at]
            limits.used[row, USED_CPUS] += step * allocated.cpus[at]
            limits.used[row, USED_MEMORY] += step * _memory_held(w, j, n, allocated.cpus[at])
            for kind in range(allocated.gpus.shape[1]):
                limits.used[row, USED_GPUS] += step * allocated.gpus[at, kind]
                limits.used[row, USED_KINDS + kind] += step * allocated.gpus[at, kind]
            if place == NONE:
                continue
            limits.on_node[place, n] += step
            if (step > 0 and limits.on_node[place, n] == 1) or (step < 0 and limits.on_node[place, n] == 0):
                limits.used[row, USED_NODES] += step


@lean
def count_end(w: World, j: int) -> None:
    """Job j, which ran, is gone: from what runs, and from what is submitted."""
    count_run(w, w.jobs.ran[j], -1)
    count_gone(w, j)


@lean
def count_gone(w: World, j: int) -> None:
    """Job j is no longer submitted."""
    limits = w.limits
    c = limits.of_record[w.jobs.record[j]]
    for k in range(limits.first[c], limits.first[c + 1]):
        limits.used[limits.row[k], USED_SUBMITTED] -= 1


@lean
def gives_no_reservation(limits: Limits, record: int) -> bool:
    """Has its QOS the flag NoReserve?"""
    return limits.no_reserve[limits.of_record[record]] == 1
