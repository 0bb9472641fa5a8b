"""Priorities: basic ones by the order of submission, or multifactor ones that grow with age in steps, and fall with use."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.shares import fair_of
from escala.kernel.slurm.tables import CALC, DIRTY, LAST_UPDATE, N_QUEUE, NOW, World, unix_s

MOST = 4294967295


@lean
def priority_of(base: float, weight: float, waited_s: int, max_age: int) -> int:
    """Truncated, and at least 1: 0 is for jobs that are held."""
    age = 1.0 if waited_s >= max_age else waited_s / max_age
    return int(min(max(base + weight * age, 1.0), MOST))


@lean
def waited_s(w: World, j: int) -> int:
    """For how long job j has waited since nothing but room held it up, or since its submission, where the site counts so."""
    since = w.jobs.submit[j] if w.rules.always_ages > 0 else w.jobs.eligible[j]
    return max(unix_s(w.rules, w.s[NOW]) - unix_s(w.rules, since), 0)


@lean
def first_priority(w: World, record: int) -> None:
    """The priority of a record as it joins the queue, by the fair share of that moment."""
    records, rules = w.records, w.rules
    base = records.base[record]
    if rules.fair > 0:
        base += records.fair[record] * fair_of(w.shares, w.jobs, records.job[record])
    records.priority[record] = priority_of(base, records.weight[record], waited_s(w, records.job[record]), rules.max_age)


@lean
def renew(w: World) -> None:
    """The priorities of all waiting jobs at this moment."""
    jobs, records, lists, s, rules = w.jobs, w.records, w.lists, w.s, w.rules
    now_s = unix_s(rules, s[NOW])
    changed = False
    for i in range(s[N_QUEUE]):
        record = lists.queue[i]
        base = records.base[record]
        if rules.fair > 0:
            base += records.fair[record] * fair_of(w.shares, jobs, records.job[record])
        value = priority_of(base, records.weight[record], waited_s(w, records.job[record]), rules.max_age)
        if value != records.priority[record]:
            records.priority[record] = value
            changed = True
    if changed:
        s[DIRTY] = 1
    s[LAST_UPDATE] = now_s
    s[CALC] += rules.calc_us
