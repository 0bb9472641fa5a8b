"""Spans in which nodes are not there for jobs: outages, drains and reservations, from a site.toml or `scontrol show
reservation`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from escala.errors import EscalaError, nearest, quoted
from escala.platform.hostlist import hosts_text

DOWN, DRAIN, RESERVED = KINDS = ("down", "drain", "reserved")
ENTRIES = ("nodes", "from", "until", "kind", "requeue", "name", "users", "accounts", "flags")
OWN = ENTRIES[5:]
FLEX, MAGNETIC = FLAGS = ("flex", "magnetic")
MOST_S = 1e11
NOT_MODELLED = ("TIME_FLOAT", "REPLACE", "REPLACE_DOWN", "ANY_NODES", "PART_NODES", "NO_HOLD_JOBS_AFTER_END")
"""Flags of reservations by which jobs would run elsewhere or at other times."""


class Closure(NamedTuple):
    """nodes: node numbers, rising. from_s, until_s: unix seconds (of logs without dates: seconds on their clock). kind:
    down (what runs there ends, or is queued again with `requeue`), drain (nothing new starts), reserved (known
    beforehand, nothing may run into it).
    name: of a reservation, by which jobs ask for it; several spans may have one. users, accounts: whose jobs may,
    empty: everybody's; those with a - before their names may not. flags: flex (its jobs may start before it, end behind
    it, and have other nodes too), magnetic (jobs that may run in it do so without asking for it)."""

    nodes: tuple[int, ...]
    from_s: float
    until_s: float
    kind: str = DOWN
    requeue: bool = True
    name: str | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def draws(self, user: str | None, accounts: Sequence[str]) -> bool:
        """Is it magnetic, and are this user and account known to be among those whose jobs may?"""
        known = not (self.users and user is None) and not (self.accounts and not accounts)
        return MAGNETIC in self.flags and known and self.admits(user, accounts)

    def admits(self, user: str | None, accounts: Sequence[str]) -> bool:
        """May a job of this user, in an account below the others, ask for it? What is not known of a job is no
        hindrance."""
        return _admits(self.users, [] if user is None else [user]) and _admits(self.accounts, accounts)


def counts(one: Closure) -> bool:
    """Do schedulers other than slurm look at it? Not at what is for the jobs of some."""
    return one.name is None


def _admits(listed: tuple[str, ...], mine: Sequence[str]) -> bool:
    if not listed or not mine:
        return True
    denied = {one.removeprefix("-") for one in listed if one.startswith("-")}
    return not denied & set(mine) and (len(denied) == len(listed) or bool(set(listed) & set(mine)))


def closure_of(entry: Any, listed: Callable[[str, str], tuple[int, ...]], where: str) -> Closure:
    """A closure of a site.toml; EscalaError for a bad one."""
    if not isinstance(entry, Mapping):
        raise EscalaError(f"{where}: write a table with {', '.join(ENTRIES)}")
    for key in entry:
        if key not in ENTRIES:
            raise EscalaError(f"{where}: unknown entry `{key}`; {nearest(key, ENTRIES)}known: {', '.join(ENTRIES)}")
    kind, requeue = entry.get("kind", DOWN), entry.get("requeue", True)
    if kind not in KINDS:
        raise EscalaError(f"{where}: unknown kind {quoted(kind)}; known: {', '.join(KINDS)}")
    if not isinstance(requeue, bool):
        raise EscalaError(f"{where}, requeue: {quoted(requeue)} is neither true nor false")
    begins, ends = (
        moment(entry.get("from"), f"{where}, from"),
        moment(entry.get("until", "never"), f"{where}, until", MOST_S),
    )
    if not begins < ends:
        raise EscalaError(f"{where}: ends at {ends:g} s, not after it begins at {begins:g} s")
    if kind != RESERVED and any(key in entry for key in OWN):
        raise EscalaError(
            f"{where}: name, users, accounts and flags are those of a reservation: give kind = {quoted(RESERVED)}, or "
            "leave them out"
        )
    name, users, accounts, flags = (
        entry.get("name"),
        *(_names(entry.get(key, ()), f"{where}, {key}") for key in OWN[1:]),
    )
    if name is None and (users or accounts or flags):
        raise EscalaError(
            f"{where}: users, accounts and flags need a name, by which their jobs ask for the reservation"
        )
    flags = tuple(one.lower() for one in flags)
    for one in flags:
        if one not in FLAGS:
            raise EscalaError(f"{where}: unknown flag {quoted(one)}; {nearest(one, FLAGS)}known: {', '.join(FLAGS)}")
    if name is not None and (not isinstance(name, str) or not name):
        raise EscalaError(f"{where}, name: {quoted(name)} is no name")
    return Closure(
        listed(hosts_text(entry.get("nodes", "ALL"), f"{where}, nodes"), where),
        begins,
        ends,
        str(kind),
        requeue,
        name,
        users,
        accounts,
        flags,
    )


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise EscalaError(f"{where}: {quoted(value)} is no list of names")
    return tuple(value)


def moment(value: Any, where: str, never: float | None = None) -> float:
    """Unix seconds of a date and time (UTC where no zone is said), or of a number; `never` for "never"."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST_S:
        return float(value)
    if never is not None and str(value).lower() in ("never", "infinite", "none"):
        return never
    try:
        found = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise EscalaError(
            f"{where}: {quoted(value)} is no moment; write 2026-11-03T06:00:00 (UTC), or unix seconds"
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def entry_of(closure: Closure) -> dict[str, Any]:
    """All but the nodes, as a site.toml has it."""
    told: dict[str, Any] = {"from": _written(closure.from_s)}
    told |= {"until": _written(closure.until_s)} if closure.until_s < MOST_S else {}
    told |= (
        {"kind": closure.kind}
        | ({} if closure.requeue else {"requeue": False})
        | ({"name": closure.name} if closure.name else {})
    )
    return told | {key: list(getattr(closure, key)) for key in OWN[1:] if getattr(closure, key)}


def _written(seconds: float) -> Any:
    if seconds != int(seconds) or seconds < 1e8:
        return seconds
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_reservations(
    text: str, where: str, listed: Callable[[str, str], tuple[int, ...]], unread: list[str]
) -> tuple[Closure, ...]:
    """What `scontrol show reservation` prints, as reserved nodes for the jobs of some."""
    found = []
    for record in re.split(r"(?m)^(?=[ \t]*ReservationName=)", text):
        told = dict(re.findall(r"\b(\w+)=(\S*)", record))
        if "ReservationName" not in told:
            continue
        here = f"{where}: reservation {quoted(told['ReservationName'])}"
        if told.get("Nodes", "(null)") in ("(null)", ""):
            unread.append(f"{here}: has no nodes")
            continue
        entry: dict[str, Any] = {
            "nodes": told["Nodes"],
            "from": told.get("StartTime"),
            "until": told.get("EndTime"),
            "kind": RESERVED,
        }
        entry["name"] = told["ReservationName"]
        entry |= {
            key.lower(): told[key].split(",")
            for key in ("Users", "Accounts")
            if told.get(key, "(null)") not in ("(null)", "")
        }
        listed_flags = told.get("Flags", "").split(",")
        entry["flags"] = [one.lower() for one in listed_flags if one.lower() in FLAGS]
        found.append(closure_of(entry, listed, here))
        odd = [one for one in listed_flags if one in NOT_MODELLED]
        odd += [f"Groups={told['Groups']}"] if told.get("Groups", "(null)") not in ("(null)", "") else []
        if odd:
            unread.append(f"{here}: {', '.join(odd)}; times are taken as UTC")
    return tuple(found)
