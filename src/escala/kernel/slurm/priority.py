"""Priorities: basic ones by the order of submission, or multifactor ones that grow with age in steps, and fall with
use.

Parts are added in the order in which slurmctld adds them, since whole numbers are cut from the sum.
"""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.shares import fair_of
from escala.kernel.slurm.tables import (
    CALC,
    DIRTY,
    EXCLUSIVE,
    LAST_UPDATE,
    LIMIT_S,
    MIN_NODES,
    MULTIFACTOR,
    N_QUEUE,
    NICE,
    NOW,
    OF_PARTITION,
    OF_QOS,
    OF_SIZE,
    OF_TRES,
    World,
)

MOST = 4294967295


@lean
def priority_of(w: World, record: int, waited_s: int) -> int:
    """Truncated, and at least 1: 0 is for jobs that are held."""
    records, rules = w.records, w.rules
    rest, j = records.rest, records.job[record]
    age = records.weight[record] * (1.0 if waited_s >= rules.max_age else waited_s / rules.max_age)
    fair = records.fair[record] * fair_of(w.shares, rules, j) if rules.fair > 0 else 0.0
    size = rest[record, OF_SIZE]
    if (
        rules.weight_size > 0
        and w.jobs.shape[j, EXCLUSIVE] == 1
        and w.jobs.found[j, 0] > 0
        and records.several[record] < 2
    ):
        size = rules.weight_size * _size(w, j, w.jobs.found[j, 0])
    total = age + fair + size
    if records.several[record] != 1:
        total += rest[record, OF_PARTITION]
    total = total + rest[record, OF_QOS] + rest[record, OF_TRES] - rest[record, NICE]
    if records.several[record] == 1:
        total = rest[record, OF_PARTITION] + total
    return int(min(max(total, 1.0), MOST))


@lean
def _size(w: World, j: int, cpus: int) -> float:
    """The factor of size of job j with the CPUs that slurmctld last found for it: all of its nodes, where it is
    exclusive."""
    nodes, all_nodes, all_cpus = w.jobs.shape[j, MIN_NODES], w.machine.cpus.size, 0
    for n in range(all_nodes):
        all_cpus += w.machine.cpus[n]
    if w.rules.by_time == 1:
        found = max(nodes * all_cpus / all_nodes, cpus) / max(w.jobs.shape[j, LIMIT_S] // 60, 1) / all_cpus
        found = 1 - found if w.rules.favor_small == 1 else found
    elif w.rules.favor_small == 1:
        found = (max(all_nodes - nodes, 0) / all_nodes + (all_cpus - cpus) / all_cpus) / 2
    else:
        found = (nodes / all_nodes + cpus / all_cpus) / 2
    return min(max(found, 0.0), 1.0)


@lean
def waited_s(w: World, j: int) -> int:
    """For how long job j has waited since nothing but room held it up, or since its submission, where the site counts
    so."""
    since = w.jobs.submit[j] if w.rules.always_ages > 0 else w.jobs.eligible[j]
    return max(unix_s(w.rules, w.s[NOW]) - unix_s(w.rules, since), 0)


@lean
def first_priority(w: World, record: int) -> None:
    """The priority of a record as it joins the queue, by the fair share of that moment."""
    w.records.priority[record] = priority_of(w, record, waited_s(w, w.records.job[record]))


@lean
def renew(w: World) -> None:
    """The priorities of all waiting jobs at this moment."""
    records, lists, s = w.records, w.lists, w.s
    changed = False
    for i in range(s[N_QUEUE] if w.rules.by_priority == MULTIFACTOR else 0):
        record = lists.queue[i]
        value = priority_of(w, record, waited_s(w, records.job[record]))
        if value != records.priority[record]:
            records.priority[record] = value
            changed = True
    if changed:
        s[DIRTY] = 1
    s[LAST_UPDATE] = unix_s(w.rules, s[NOW])
    s[CALC] += w.rules.calc_us
