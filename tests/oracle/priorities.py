"""Multifactor priorities by sums as slurmctld makes them, and the fair tree by recursion: slow, with no code of the
package in it.

The rules are those of https://slurm.schedmd.com/priority_multifactor.html and fair_tree.html, and of 24.11:
priority_multifactor.c, fair_tree.c, assoc_mgr.c. Every sum is made in the order in which it is made there, since whole
numbers are cut from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.oracle.accounts import ROOT, Accounts

Key = tuple[str, str | None]


@dataclass
class Weights:
    """What a site says. Spans in s; half_life_s 0: use is never forgotten."""

    age: int = 0
    size: int = 0
    part: int = 0
    qos: int = 0
    fair: int = 0
    max_age_s: int = 600
    half_life_s: int = 0
    favor_small: bool = False
    by_time: bool = False
    factors: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)


@dataclass
class Asked:
    """What counts of a job. since_s: its age begins, None: it cannot run yet."""

    user: str
    account: str
    qos: str
    nice: int
    nodes: int
    cpus: int
    limit_s: int
    several: bool


class Priorities:
    PERIOD_S = 60

    def __init__(self, weights: Weights, accounts: Accounts, nodes: int, cpus: int, start_s: int) -> None:
        self.weights, self.accounts, self.nodes, self.cpus = weights, accounts, nodes, cpus
        self.charged_s = start_s
        self.users: list[Key] = [(name, user) for name, one in accounts.items() for user in one.users]
        self.usage: dict[Key, float] = dict.fromkeys([*self.users, *((name, None) for name in accounts)], 0.0)
        self.fair: dict[Key, float] = {}
        self.keep = 1 - 0.693 / weights.half_life_s if weights.half_life_s else 1.0
        self.rank_users()

    def charge(self, user: str, account: str, cpus: int, begun_s: int, until_s: int) -> None:
        """What a job has run since the last period, to its user and all accounts above."""
        ran = max(until_s - max(begun_s, self.charged_s), 0)
        use = ran * self.keep**ran * cpus
        self.usage[account, user] += use
        above: str | None = account
        while above is not None:
            self.usage[above, None] += use
            above = self.accounts[above].parent

    def period(self, now_s: int, running: list[tuple[str, str, int, int]]) -> None:
        """A period is over: use fades, what runs (user, account, CPUs, begin) is charged, and users are ranked anew."""
        kept = self.keep ** (now_s - self.charged_s)
        self.usage = {key: use * kept for key, use in self.usage.items()}
        for user, account, cpus, begun_s in running:
            self.charge(user, account, cpus, begun_s, now_s)
        self.charged_s = now_s
        self.rank_users()

    def level(self, key: Key, above: str) -> float:
        """Of siblings the larger goes first."""
        every = sum(self.shares(one) for one in self.children(above))
        shares = self.shares(key) / every if every else 0.0
        total = self.usage[above, None]
        part = self.usage[key] / total if total else 0.0
        return 0.0 if shares == 0 else math.inf if part == 0 else shares / part

    def shares(self, key: Key) -> int:
        account, user = key
        return self.accounts[account].shares if user is None else self.accounts[account].user_shares[user]

    def children(self, account: str) -> list[Key]:
        below: list[Key] = [(name, None) for name, one in self.accounts.items() if one.parent == account]
        return below + [key for key in self.users if key[0] == account]

    def rank_users(self) -> None:
        """A user that ties with the one before has the same rank; of an account that ties with what stands before it,
        the first user has. Children of accounts that tie are not merged: _count_tied_accounts stops at an account."""
        self.rank = self.next = len(self.users)
        self._rank_below(ROOT, False)

    def _rank_below(self, above: str, tied_before: bool) -> None:
        children = self.children(above)
        levels = {key: self.level(key, above) for key in children}
        before = None
        for k, key in enumerate(sorted(children, key=lambda key: (-levels[key], key[1] is None))):
            tied = tied_before if k == 0 else before == levels[key]
            if key[1] is not None:
                self.rank = self.rank if tied else self.next
                self.fair[key] = self.rank / len(self.users)
                self.next -= 1
            else:
                self._rank_below(key[0], tied)
            before = levels[key]

    def of(self, job: Asked, part: str, waited_s: int) -> int:
        w = self.weights
        age = (waited_s / w.max_age_s if waited_s < w.max_age_s else 1.0) * w.age
        fair = self.fair[job.account, job.user] * w.fair
        size = self.size(job) * w.size
        of_part = w.factors[part] / max(w.factors.values()) * w.part
        of_qos = w.ranks[job.qos] / max(w.ranks.values()) * w.qos
        total = age + fair + size + of_part + of_qos - job.nice
        if job.several:
            total = of_part + (age + fair + size + of_qos - job.nice)
        return int(max(total, 1))

    def size(self, job: Asked) -> float:
        if self.weights.by_time:
            found = max(job.nodes * self.cpus / self.nodes, job.cpus) / (job.limit_s // 60) / self.cpus
            found = 1 - found if self.weights.favor_small else found
        elif self.weights.favor_small:
            few = (self.nodes - job.nodes) / self.nodes if self.nodes > job.nodes else 0.0
            found = (few + (self.cpus - job.cpus) / self.cpus) / 2
        else:
            found = (job.nodes / self.nodes + job.cpus / self.cpus) / 2
        return min(max(found, 0.0), 1.0)
