"""Priorities: basic ones by the order of submission, or multifactor ones that grow with age in steps."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.start import unix_s
from escala.kernel.slurm.tables import CALC, DIRTY, LAST_UPDATE, N_QUEUE, NOW, Ints, Jobs, Lists, Records, Rules

MOST = 4294967295


@lean
def priority_of(base: float, weight: float, waited_s: int, max_age: int) -> int:
    """Truncated, and at least 1: 0 is for jobs that are held."""
    age = 1.0 if waited_s >= max_age else waited_s / max_age
    return int(min(max(base + weight * age, 1.0), MOST))


@lean
def renew(jobs: Jobs, records: Records, lists: Lists, s: Ints, rules: Rules) -> None:
    """The priorities of all waiting jobs at this moment."""
    now_s = unix_s(rules, s[NOW])
    changed = False
    for i in range(s[N_QUEUE]):
        record = lists.queue[i]
        waited = max(now_s - unix_s(rules, jobs.submit[records.job[record]]), 0)
        value = priority_of(records.base[record], records.weight[record], waited, rules.max_age)
        if value != records.priority[record]:
            records.priority[record] = value
            changed = True
    if changed:
        s[DIRTY] = 1
    s[LAST_UPDATE] = now_s
    s[CALC] += rules.calc_us
