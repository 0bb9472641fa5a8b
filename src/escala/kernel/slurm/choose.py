"""Which nodes a job gets: select/cons_tres.

Neighbouring nodes with something to offer make runs. While the job needs more, the run that suffices with the fewest
CPUs is taken, the first on a tie; else the one with the most CPUs. Light nodes come first. A job that one node can
finish gets the node with the fewest CPUs that suffice. Where this fails, nodes with little to offer are left out, step
by step, and it is tried again.

Nodes are taken one by one for CR_LLN (the one of whose CPUs most are free, whatever the job asks for), bf_busy_nodes
and pack_serial_at_end. Then nobody asks whether the last node suffices.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.fit import of_tasks, offers, wants_gpus
from escala.kernel.slurm.tables import (
    EXCLUSIVE,
    MAX_NODES,
    MIN_CORES,
    MIN_NODES,
    MOST_NODES,
    NODE_CORES,
    REQ_NODES,
    TASKS,
    TASKS_PER_NODE,
    Free,
    Ints,
    Machine,
    Scratch,
)

CPUS, NODES, START, END, WEIGHT = range(5)


@lean
def choose(machine: Machine, free: Free, shape: Ints, j: int, mask: Ints, how: int, room: Scratch) -> int:
    """Choose nodes of `mask` for job j. how: 0 best runs, 1 least loaded first, 2 busy first, 3 from the end; memory
    counts if 4 is added, and with 8 nodes of room.inner stand before others. The number of nodes, their numbers in
    room.node and the CPUs that each may use in room.given; 0 for none."""
    count, total = offers(machine, free, shape, j, mask, how, room)
    return pick(machine, shape, j, count, total, how, room)


@lean
def pick(machine: Machine, shape: Ints, j: int, count: int, total: int, how: int, room: Scratch) -> int:
    """The same from what the nodes offer, in room.base: so many nodes, and so many CPUs together."""
    least = shape[j, MIN_NODES]
    if shape[j, TASKS_PER_NODE] > 0 and shape[j, TASKS] > 0:
        least = max(least, (shape[j, TASKS] + shape[j, TASKS_PER_NODE] - 1) // shape[j, TASKS_PER_NODE])
    most = min(shape[j, MAX_NODES], shape[j, MOST_NODES])
    if shape[j, TASKS] > 0 and most > shape[j, TASKS]:
        most = max(shape[j, TASKS], least)
    if count < least or total < shape[j, MIN_CORES] or not _enough(shape, j, most, count, room):
        return 0
    for n in range(room.base.size):
        room.cpus[n] = room.base[n]
        room.more[n] = room.base[n] + room.extra[n]
    found = _take(machine, shape, j, least, most, how, room)
    if found == 0 and count > least:
        found = _without_small(machine, shape, j, least, most, how, count, room)
    return found


@lean
def _enough(shape: Ints, j: int, most: int, count: int, room: Scratch) -> bool:
    """Could the best `most` nodes have the CPUs together? If not, no order of them will."""
    if most >= count:
        return True
    largest = 0
    for n in range(room.base.size):
        largest = max(largest, room.base[n])
    if largest * most < shape[j, MIN_CORES]:
        return False
    if most == 1 or largest >= room.tasks.size:
        return True
    counts = room.tasks
    counts[: largest + 1] = 0
    for n in range(room.base.size):
        counts[room.base[n]] += 1
    left, have = most, 0
    for size in range(largest, 0, -1):
        here = min(left, counts[size])
        have += here * size
        left -= here
    return have >= shape[j, MIN_CORES]


@lean
def _without_small(
    machine: Machine, shape: Ints, j: int, least: int, most: int, how: int, count: int, room: Scratch
) -> int:
    """Tries again without the nodes of at most 1, 2, 3, ... CPUs and GPUs, while enough nodes are left."""
    largest = 0
    for n in range(room.cpus.size):
        if room.cpus[n] > 0:
            largest = max(largest, room.more[n])
    for small in range(1, largest):
        changed = False
        for n in range(room.cpus.size):
            if room.cpus[n] > 0 and room.more[n] <= small:
                room.cpus[n] = 0
                changed = True
                count -= 1
                if count <= least:
                    break
        if changed or small == 1:
            found = _take(machine, shape, j, least, most, how, room)
            if found > 0:
                return found
            if count <= least:
                return 0
    return 0


@lean
def _cpus_to_use(machine: Machine, shape: Ints, j: int, n: int, left: int, nodes_left: int, room: Scratch) -> int:
    """CPUs that the job takes of node n: what is left of its request, less one unit for each further node that it
    needs."""
    cpus = room.cpus[n]
    if shape[j, EXCLUSIVE] == 1:
        return cpus
    left -= max(nodes_left - 1, 0) * machine.unit[n]
    if cpus > left:
        cpus = max(left, shape[j, NODE_CORES], 1)
        room.cpus[n] = cpus
        room.more[n] = cpus + room.extra[n]
    return cpus


@lean
def _runs(room: Scratch) -> int:
    """The runs of neighbouring nodes of one weight; how many."""
    found = 0
    open_ = False
    for n in range(room.cpus.size):
        if room.cpus[n] <= 0:
            open_ = False
            continue
        if open_ and room.runs[found - 1, WEIGHT] != room.key[n]:
            open_ = False
        if not open_:
            room.runs[found, CPUS] = 0
            room.runs[found, NODES] = 0
            room.runs[found, START] = n
            room.runs[found, WEIGHT] = room.key[n]
            found += 1
            open_ = True
        room.runs[found - 1, CPUS] += room.cpus[n]
        room.runs[found - 1, NODES] += 1
        room.runs[found - 1, END] = n
    return found


@lean
def _best_run(room: Scratch, runs: int, cores: int, nodes: int) -> int:
    """The run to take next; -1 where all are taken. nodes: how many it must have to suffice."""
    best = -1
    suffices = False
    for i in range(runs):
        if room.runs[i, NODES] == 0:
            continue
        enough = room.runs[i, CPUS] >= cores and room.runs[i, NODES] >= nodes
        better = best < 0 or room.runs[i, WEIGHT] < room.runs[best, WEIGHT]
        if not better and room.runs[i, WEIGHT] == room.runs[best, WEIGHT]:
            if enough:
                better = not suffices or room.runs[i, CPUS] < room.runs[best, CPUS]
            else:
                better = room.runs[i, CPUS] > room.runs[best, CPUS]
        if better:
            best = i
            suffices = enough
    return best


@lean
def _single(room: Scratch, first: int, last: int, cores: int) -> int:
    """The node of a run with the fewest CPUs that suffice alone; -1 for none."""
    best = -1
    for n in range(first, last + 1):
        if room.taken[n] == 0 and room.cpus[n] >= cores and (best < 0 or room.cpus[n] < room.cpus[best]):
            best = n
            if room.cpus[n] == cores:
                break
    return best


@lean
def _last_single(room: Scratch) -> int:
    """The last of the lightest nodes that are left; -1 for none."""
    best = -1
    for n in range(room.cpus.size):
        if room.taken[n] == 0 and room.cpus[n] > 0 and (best < 0 or room.key[n] <= room.key[best]):
            best = n
    return best


@lean
def _busy_first(machine: Machine, shape: Ints, j: int, state: tuple[int, int, int, int], room: Scratch) -> int:
    """Nodes of one weight after the other, those in use now before the idle ones, in their order; how many, 0 where
    they do not suffice.

    As _eval_nodes_busy of 22.05 to 24.11 does it: that enough has been found, or as many as are allowed, ends only the
    run over nodes in use (or the one over idle nodes), so that at least one idle node is taken too where there is
    one."""
    cores, nodes, least, most = state
    all_cores = cores
    done, well = most == 0, False
    while not done:
        lightest = -1
        for n in range(room.cpus.size):
            if room.taken[n] == 0 and room.cpus[n] > 0 and (lightest < 0 or room.key[n] < room.key[lightest]):
                lightest = n
        if lightest < 0:
            break
        for busy in (1, 0):
            for n in range(room.cpus.size):
                if room.taken[n] != 0 or room.cpus[n] <= 0 or room.key[n] != room.key[lightest] or room.busy[n] != busy:
                    continue
                cpus = _cpus_to_use(machine, shape, j, n, all_cores, least, room)
                room.taken[n] = 1
                cores, all_cores, nodes, least, most = cores - cpus, all_cores - cpus, nodes - 1, least - 1, most - 1
                well = cores <= 0 and nodes <= 0
                if well or most == 0:
                    done = True
                    break
    return _listed(room) if well or (cores <= 0 and least <= 0) else 0


@lean
def _least_loaded(
    machine: Machine, shape: Ints, j: int, before: int, state: tuple[int, int, int, int], room: Scratch
) -> int:
    """Of the lightest nodes the one with the largest part of its CPUs free, as _eval_nodes_lln of 24.11 finds it; -1
    for none.

    before: the node that was taken last. Once one with as many free CPUs is the best so far, no other is looked at.
    What is looked at offers no more from then on than the job may still take there."""
    lightest = -1
    for n in range(room.cpus.size):
        if room.taken[n] == 0 and room.cpus[n] > 0 and (lightest < 0 or room.key[n] < room.key[lightest]):
            lightest = n
    best = -1
    for n in range(room.cpus.size):
        if room.taken[n] != 0 or room.cpus[n] <= 0 or room.key[n] != room.key[lightest]:
            continue
        if wants_gpus(shape, j):
            room.cpus[n] = of_tasks(shape, j, room.cpus[n], room.extra[n])
        if room.cpus[n] <= 0:
            continue
        _cpus_to_use(machine, shape, j, n, state[0], state[2], room)
        if best < 0 or room.spare[best] * machine.cpus[n] < room.spare[n] * machine.cpus[best]:
            best = n
            if before >= 0 and room.key[before] == room.key[n] and room.spare[before] == room.spare[n]:
                break
    return best


@lean
def _take(machine: Machine, shape: Ints, j: int, least: int, most: int, how: int, room: Scratch) -> int:
    """Nodes for job j among those that offer something; how many, 0 where they do not suffice."""
    room.taken[:] = 0
    if wants_gpus(shape, j):
        for n in range(room.cpus.size):
            if room.cpus[n] > 0:
                room.cpus[n] = of_tasks(shape, j, room.more[n] - room.extra[n], room.extra[n])
    wanted = max(least, shape[j, REQ_NODES])
    state = (shape[j, MIN_CORES], wanted, least, most)
    if how & 3 == 2:
        return _busy_first(machine, shape, j, state, room)
    runs = _runs(room) if how & 3 == 0 else 0
    first = -1
    while state[3] > 0:
        cores, nodes, _, _ = state
        if how & 3 > 0:
            first = last = _least_loaded(machine, shape, j, first, state, room) if how & 3 == 1 else _last_single(room)
            if first < 0:
                break
        else:
            need = nodes + least - shape[j, REQ_NODES] if shape[j, REQ_NODES] > least else nodes
            run = _best_run(room, runs, cores, need)
            if run < 0:
                break
            first, last = room.runs[run, START], room.runs[run, END]
            room.runs[run, NODES] = 0
            if nodes <= 1:
                alone = _single(room, first, last, cores)
                if alone >= 0:
                    first = last = alone
        state = _from_run(machine, shape, j, first, last, state, how & 3 == 0, room)
        if state[0] <= 0 and state[1] <= 0:
            return _listed(room)
    spare = state[1] + least - shape[j, REQ_NODES] if shape[j, REQ_NODES] > least else state[1]
    return _listed(room) if state[0] <= 0 and spare <= 0 else 0


@lean
def _from_run(
    machine: Machine,
    shape: Ints,
    j: int,
    first: int,
    last: int,
    state: tuple[int, int, int, int],
    whole: bool,
    room: Scratch,
) -> tuple[int, int, int, int]:
    """Take nodes of a run from its first on until the job has enough; (CPUs, nodes, least nodes, most nodes) still to
    be found. whole: the last node must suffice."""
    cores, nodes, least, most = state
    all_cores = cores
    for n in range(first, last + 1):
        if most == 0 or (cores <= 0 and nodes <= 0):
            break
        cpus = room.cpus[n]
        if room.taken[n] != 0 or cpus <= 0 or (whole and most == 1 and cpus < cores):
            continue
        cpus = _cpus_to_use(machine, shape, j, n, all_cores, least, room)
        room.taken[n] = 1
        cores -= cpus
        all_cores -= cpus
        nodes -= 1
        least -= 1
        most -= 1
    return cores, nodes, least, most


@lean
def _listed(room: Scratch) -> int:
    """The chosen nodes, rising, into room.node and room.given; how many."""
    found = 0
    for n in range(room.cpus.size):
        if room.taken[n] == 1:
            room.node[found] = n
            room.given[found] = room.cpus[n]
            found += 1
    return found
