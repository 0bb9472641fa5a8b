"""Limits of associations by lists: a user in an account, that account, and those above it. Slow, with no code of the
package in it.

The rules are those of https://slurm.schedmd.com/resource_limits.html, and of slurmctld 24.11: acct_policy.c,
get_node_cnts of node_scheduler.c; limits of each user are handed down as slurmdbd does it (as_mysql_assoc.c), TRES by
TRES.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.oracle.shapes import NO_END, Ask, Given, Node

ROOT = "root"
Tres = dict[str, int]


@dataclass
class Bounds:
    """Limits of one association; None: none."""

    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_tres: Tres = field(default_factory=dict)
    max_jobs: int | None = None
    max_submit: int | None = None
    max_tres: Tres = field(default_factory=dict)
    max_time_s: int | None = None


@dataclass
class Account:
    parent: str | None
    own: Bounds
    users: dict[str, Bounds]
    shares: int = 1
    user_shares: dict[str, int] = field(default_factory=dict)


Accounts = dict[str, Account]


@dataclass
class Holder:
    """A job that runs: whose it is, and what it holds."""

    user: str
    account: str
    given: list[Given]

    @property
    def nodes(self) -> set[int]:
        return {one.node for one in self.given}

    @property
    def has(self) -> Tres:
        given = self.given
        return {
            "cpu": sum(one.cpus for one in given),
            "mem": sum(one.memory for one in given),
            "gpu": sum(sum(one.gpus) for one in given),
        }


def home(accounts: Accounts, user: str, account: str | None) -> str:
    """Without an account, the first that names the user."""
    return account or next(name for name, one in accounts.items() if user in one.users)


def chain(accounts: Accounts, user: str, account: str) -> list[tuple[Bounds, str, str | None]]:
    """From the user's own association up to the root: its limits, its account, and its user."""
    found: list[tuple[Bounds, str, str | None]] = [(accounts[account].users[user], account, user)]
    above: str | None = account
    while above is not None:
        found.append((accounts[above].own, above, None))
        above = accounts[above].parent
    return found


def below(accounts: Accounts, account: str, user: str | None, holders: Iterable[Holder]) -> list[Holder]:
    """Those that count to an association."""
    if user is not None:
        return [one for one in holders if (one.account, one.user) == (account, user)]

    def is_in(name: str | None) -> bool:
        return name == account or (name is not None and is_in(accounts[name].parent))

    return [one for one in holders if is_in(one.account)]


def handed_down(accounts: Accounts, user: str, account: str) -> Bounds:
    """Of the limits of each user, and each job, the nearest."""
    own = Bounds()
    for bounds, _, _ in chain(accounts, user, account):
        own.max_jobs = bounds.max_jobs if own.max_jobs is None else own.max_jobs
        own.max_submit = bounds.max_submit if own.max_submit is None else own.max_submit
        own.max_time_s = bounds.max_time_s if own.max_time_s is None else own.max_time_s
        own.max_tres = bounds.max_tres | own.max_tres
    return own


def may_come(accounts: Accounts, user: str, account: str, submitted: list[Holder]) -> bool:
    own = handed_down(accounts, user, account)
    if own.max_submit is not None and len(below(accounts, account, user, submitted)) >= own.max_submit:
        return False
    return all(
        bounds.grp_submit is None or len(below(accounts, name, who, submitted)) < bounds.grp_submit
        for bounds, name, who in chain(accounts, user, account)
    )


def at_most_jobs(accounts: Accounts, user: str, account: str, running: list[Holder], by_qos: bool) -> bool:
    """by_qos: a QOS limits the jobs of each user, which hides the association's limit."""
    own = handed_down(accounts, user, account)
    if not by_qos and own.max_jobs is not None and len(below(accounts, account, user, running)) >= own.max_jobs:
        return True
    return any(
        bounds.grp_jobs is not None and len(below(accounts, name, who, running)) >= bounds.grp_jobs
        for bounds, name, who in chain(accounts, user, account)
    )


def over(
    accounts: Accounts,
    user: str,
    account: str,
    wants: Tres,
    nodes: set[int] | None,
    running: list[Holder],
    hidden: set[str],
) -> bool:
    """Would a limit be passed? Of known nodes those that a group has already do not count. hidden: TRES that a QOS
    limits for a group."""
    if any(wants[tres] > most for tres, most in handed_down(accounts, user, account).max_tres.items()):
        return True
    for bounds, name, who in chain(accounts, user, account):
        members = below(accounts, name, who, running)
        there = set[int]().union(*(one.nodes for one in members))
        used = {tres: sum(one.has[tres] for one in members) for tres in ("cpu", "mem", "gpu")} | {"node": len(there)}
        new = wants if nodes is None else wants | {"node": len(nodes - there)}
        for tres, most in bounds.grp_tres.items():
            if tres not in hidden and new[tres] and used[tres] + new[tres] > most:
                return True
    return False


def most_nodes(accounts: Accounts, user: str, account: str) -> int:
    """No more nodes are chosen: of the groups the first that says so counts, if it is less than the limit of each
    job."""
    most = NO_END
    for at, (bounds, _, _) in enumerate(chain(accounts, user, account)):
        group = bounds.grp_tres.get("node", NO_END)
        first = group < most
        most = min(most, group)
        if at == 0:
            most = min(most, handed_down(accounts, user, account).max_tres.get("node", NO_END))
        if first:
            break
    return most


def asked_memory(ask: Ask, cpus: int, count: int, nodes: list[Node], part: set[int]) -> int:
    """MB that a job counts with while it has none (job_get_tres_mem). Where it asks for none: those of the first node
    of its partition, for each node."""
    return ask.memory_core * cpus or (ask.memory_node or nodes[min(part)].memory) * count


def never(accounts: Accounts, user: str, account: str, ask: Ask, limit_s: int, hidden: set[str]) -> bool:
    """What it asks for is more than a limit would ever let one job have: such a job is refused."""
    nodes, own = ask.nodes or 1, handed_down(accounts, user, account)
    gpus = max(ask.gpus_node * nodes, ask.gpus_task * ask.tasks)
    asked = {"cpu": ask.cpus, "mem": ask.memory_core * ask.cpus or ask.memory_node * nodes, "gpu": gpus, "node": nodes}
    groups = [bounds.grp_tres for bounds, _, _ in chain(accounts, user, account)]
    said = [own.max_tres, *({tres: most for tres, most in one.items() if tres not in hidden} for one in groups)]
    return (own.max_time_s is not None and limit_s > own.max_time_s) or any(
        asked[tres] > most for one in said for tres, most in one.items()
    )
