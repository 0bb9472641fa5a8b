"""What both descriptions of a site share: spans of time, GPUs, and the nodes and partitions made from entries under
Slurm's names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from escala.errors import EscalaError, quoted
from escala.platform import power as power_profiles
from escala.platform.hostlist import count_of, hosts_of
from escala.platform.platform import check_resources, check_size
from escala.platform.power import PowerProfile
from escala.platform.site import GPU, MEMORY, Partition, Site

MOST_LISTED = 5_000_000  # nodes in all lists of partitions and closures that differ: some 15 s
MOST_MEMBERS = 30_000_000  # nodes of all partitions and closures
ENDLESS = ("infinite", "unlimited", "-1", "none", "")
_SPAN = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")


def seconds_of(text: str, where: str) -> float | None:
    """A span as Slurm writes it (minutes, minutes:seconds, h:m:s, days-hours, days-hours:minutes[:seconds]) in s; None:
    no limit."""
    if text.strip().lower() in ENDLESS:
        return None
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise EscalaError(f"{where}: {quoted(text)} is no span of time; write minutes, h:m:s or days-h:m:s")
    days, a, b, c = (None if one is None else int(one) for one in match.groups())
    assert a is not None
    if days is not None:
        return days * 86400.0 + a * 3600 + (b or 0) * 60 + (c or 0)
    if c is not None:
        return a * 3600.0 + (b or 0) * 60 + c
    return a * 60.0 + (b or 0)


def whole(text: Any, where: str, least: int = 0) -> int:
    """A whole number; EscalaError for what is none."""
    try:
        value = int(str(text).strip())
    except ValueError:
        raise EscalaError(f"{where}: {quoted(text)} is not a whole number") from None
    if not least <= value < 2**53:
        raise EscalaError(f"{where}: {value} is out of range; give at least {least}")
    return value


def parsable(text: str, where: str) -> list[dict[str, str]]:
    """The rows of what Slurm's commands print with -P, by the names of the first line in lower case, blanks kept.
    EscalaError for a row with more or fewer fields."""
    lines = [(number, line.split("|")) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip().lower() for name in lines[0][1]] if lines else []
    for number, row in lines[1:]:
        if len(row) != len(names):
            raise EscalaError(
                f"{where}, line {number}: {len(row)} fields, the first line has {len(names)}: export it again, with -P"
            )
    return [dict(zip(names, row, strict=True)) for _, row in lines[1:]]


def gpus_of(text: str, where: str) -> dict[str, int]:
    """Kind ("" where none is named) -> GPUs, from Slurm's Gres: `gpu:a100:4(S:0-1),gpu:2,craynetwork:1`."""
    found: dict[str, int] = {}
    for one in re.sub(r"\([^()]*\)", "", text).split(","):
        parts = [part for part in one.strip().split(":") if part and part != "no_consume"]
        if not parts or parts[0].lower() != GPU:
            continue
        counted = len(parts) > 1 and parts[-1].isdigit()
        kind = "".join(parts[1 : len(parts) - counted][:1])
        found[kind] = found.get(kind, 0) + (whole(parts[-1], where) if counted else 1)
    return found


class Nodes:
    """Nodes as they are described, in groups; `site` makes the Site."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.number: dict[str, int] = {}
        self._lists: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._listed = 0  # nodes in them
        self._members = 0  # nodes of all that asked

    def add(self, hosts: Sequence[str], where: str, **told: Any) -> None:
        """A group of equal nodes: cores, memory_mb (None: not said), gpus, features, weight, threads, speed,
        power."""
        check_size("site", len(self.names) + len(hosts), 1)
        for host in hosts:
            if host in self.number:
                raise EscalaError(f"{where}: node {quoted(host)} is described twice; leave one")
            self.number[host] = len(self.names)
            self.names.append(host)
            self.rows.append(told)

    def listed(self, text: str, where: str, sets: Mapping[str, str] | None = None) -> tuple[int, ...]:
        """Numbers of the nodes that a host list names, rising; ALL: every one. To be asked once all nodes are there. A
        list is made once. EscalaError where all lists have more than `MOST_LISTED`."""
        every = text.strip().upper() == "ALL"
        key = "ALL" if every else text, sets is None
        if key not in self._lists:
            self._list(len(self.names) if every else count_of(text, where), where)
            self._lists[key] = tuple(range(len(self.names))) if every else self._numbers(text, where, sets)
        self._members += len(self._lists[key])
        if self._members > MOST_MEMBERS:
            raise EscalaError(
                f"{where}: with it partitions and closures have more than {MOST_MEMBERS:,} nodes: leave some out"
            )
        return self._lists[key]

    def _list(self, count: int, where: str) -> None:
        """Count nodes that are about to be listed."""
        self._listed += count
        if self._listed > MOST_LISTED:
            raise EscalaError(
                f"{where}: with its nodes the lists of partitions and closures have more than {MOST_LISTED:,}: "
                "leave some out"
            )

    def _numbers(self, text: str, where: str, sets: Mapping[str, str] | None) -> tuple[int, ...]:
        found: set[int] = set()
        for host in dict.fromkeys(hosts_of(text, where)):
            if sets and host in sets:
                named = self.listed(sets[host], where)
                self._list(len(named), where)
                found.update(named)
            elif host in self.number:
                found.add(self.number[host])
            else:
                raise EscalaError(f"{where}: node {quoted(host)} is not described; add it to the nodes")
        return tuple(sorted(found))

    def site(self, name: str, profiles: Mapping[str, PowerProfile], **more: Any) -> Site:
        """All of it as a Site."""
        if not self.names:
            raise EscalaError(f"site {quoted(name)} describes no node")
        rows = self.rows
        used: dict[str, int] = {}
        profile_of = [used.setdefault(row.get("power") or "none", len(used)) for row in rows]
        return Site(
            name=name,
            cores=np.array([row["cores"] for row in rows], np.int64),
            profiles=tuple(profiles[key] if key in profiles else power_profiles.by_name(key) for key in used),
            profile_of=np.array(profile_of, np.int64),
            resources=_resources(name, rows),
            names=tuple(self.names),
            node_speed=np.array([row.get("speed", 1.0) for row in rows]),
            features=tuple(tuple(row.get("features", ())) for row in rows),
            weights=np.array([row.get("weight", 1) for row in rows], np.int64),
            threads=np.array([row.get("threads", 1) for row in rows], np.int64),
            **more,
        )


def _resources(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Memory where it is known of every node, GPUs where some node has one, and those of each kind."""
    found: dict[str, Any] = {}
    kinds = dict.fromkeys(kind for row in {id(row): row for row in rows}.values() for kind in row.get("gpus") or {})
    check_resources(name, len(rows), len(kinds) + 2)
    if all(row.get("memory_mb") is not None for row in rows):
        found[MEMORY] = np.array([row["memory_mb"] for row in rows], np.int64)
    gpus = [row.get("gpus") or {} for row in rows]
    if any(gpus):
        found[GPU] = np.array([sum(one.values()) for one in gpus], np.int64)
        for kind in filter(None, kinds):
            found[f"{GPU}:{kind}"] = np.array([one.get(kind, 0) for one in gpus], np.int64)
    return found


def default_marked(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """The partitions as a tuple; of two defaults Slurm takes the last, and so is it here."""
    from dataclasses import replace

    told = list(partitions)
    last = max((k for k, one in enumerate(told) if one.default), default=-1)
    return tuple(replace(one, default=k == last) for k, one in enumerate(told))
