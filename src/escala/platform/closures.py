"""Spans in which nodes are not there for jobs: outages, drains and reservations, from a site.toml or `scontrol show reservation`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from escala.errors import EscalaError, nearest, quoted

DOWN, DRAIN, RESERVED = KINDS = ("down", "drain", "reserved")
ENTRIES = ("nodes", "from", "until", "kind", "requeue")
MOST_S = 1e11


class Closure(NamedTuple):
    """nodes: node numbers, rising. from_s, until_s: unix seconds (of logs without dates: seconds on their clock). kind: down (what runs
    there ends, or is queued again with `requeue`), drain (nothing new starts), reserved (known beforehand, nothing may run into it)."""

    nodes: tuple[int, ...]
    from_s: float
    until_s: float
    kind: str = DOWN
    requeue: bool = True


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
    begins, ends = moment(entry.get("from"), f"{where}, from"), moment(entry.get("until", "never"), f"{where}, until", MOST_S)
    if not begins < ends:
        raise EscalaError(f"{where}: ends at {ends:g} s, not after it begins at {begins:g} s")
    return Closure(listed(str(entry.get("nodes", "ALL")), where), begins, ends, str(kind), requeue)


def moment(value: Any, where: str, never: float | None = None) -> float:
    """Unix seconds of a date and time (UTC where no zone is said), or of a number; `never` for "never"."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST_S:
        return float(value)
    if never is not None and str(value).lower() in ("never", "infinite", "none"):
        return never
    try:
        found = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise EscalaError(f"{where}: {quoted(value)} is no moment; write 2026-11-03T06:00:00 (UTC), or unix seconds") from None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def entry_of(closure: Closure) -> dict[str, Any]:
    """All but the nodes, as a site.toml has it."""
    told: dict[str, Any] = {"from": _written(closure.from_s)}
    told |= {"until": _written(closure.until_s)} if closure.until_s < MOST_S else {}
    return told | {"kind": closure.kind} | ({} if closure.requeue else {"requeue": False})


def _written(seconds: float) -> Any:
    if seconds != int(seconds) or seconds < 1e8:
        return seconds
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_reservations(text: str, where: str, listed: Callable[[str, str], tuple[int, ...]], unread: list[str]) -> tuple[Closure, ...]:
    """What `scontrol show reservation` prints, as reserved nodes. Who may use a reservation is told in `unread`."""
    found = []
    for record in re.split(r"(?m)^(?=\s*ReservationName=)", text):
        told = dict(re.findall(r"(\w+)=(\S*)", record))
        if "ReservationName" not in told:
            continue
        here = f"{where}: reservation {quoted(told['ReservationName'])}"
        if told.get("Nodes", "(null)") in ("(null)", ""):
            unread.append(f"{here}: has no nodes")
            continue
        entry = {"nodes": told["Nodes"], "from": told.get("StartTime"), "until": told.get("EndTime"), "kind": RESERVED}
        found.append(closure_of(entry, listed, here))
        who = ", ".join(f"{key}={told[key]}" for key in ("Users", "Accounts") if told.get(key, "(null)") not in ("(null)", ""))
        if who and "MAINT" not in told.get("Flags", ""):
            unread.append(f"{here}: its own jobs ({who}); times are taken as UTC")
    return tuple(found)
