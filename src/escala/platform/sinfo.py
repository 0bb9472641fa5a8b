"""What `sinfo` says of nodes and partitions, as lines under the names of slurm.conf: its tables (`-N`, `-l`, `-o`,
`-O`), and its JSON, with that of `scontrol show nodes` and `show partitions` (22.05 to 24.11).

A table has a row a node, partition and state, or a row of nodes that are alike; a number with a + is the least of
several, which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.platform.hostlist import count_of, hosts_of
from escala.platform.site_entries import MOST_LISTED
from escala.reading import own, parse_json

OF_NODES = {
    "CPUS": "cpus",
    "MEMORY": "realmemory",
    "GRES": "gres",
    "AVAIL_FEATURES": "feature",
    "WEIGHT": "weight",
    "SOCKETS": "sockets",
    "CORES": "corespersocket",
    "THREADS": "threadspercore",
}
OF_PARTITIONS = {
    "TIMELIMIT": "maxtime",
    "DEFAULTTIME": "defaulttime",
    "PRIO_TIER": "prioritytier",
    "PRIO_JOB_FACTOR": "priorityjobfactor",
    "OVERSUBSCRIBE": "oversubscribe",
    "OVERSUBS": "oversubscribe",
    "AVAIL": "state",
    "JOB_SIZE": "job_size",
    "MAX_CPUS_PER_NODE": "maxcpuspernode",
    "PREEMPT_MODE": "preemptmode",
}
"""Columns by their heads, and the keys of slurm.conf."""
NAMES, PARTITION, STATE = ("NODELIST", "HOSTNAMES"), "PARTITION", "STATE"
BUILT = "S:C:T", ("SOCKETS", "CORES", "THREADS")
NUMBERS = ("cpus", "realmemory", "weight", "sockets", "corespersocket", "threadspercore")
NOTHING = ("", "(null)", "n/a", "none", "null")
GONE = ("down", "drain", "drng", "fail", "maint", "unk", "not_resp")
AGAIN = "sinfo -N -o '%N|%P|%T|%c|%m|%G|%f|%w|%z|%l'"
UNKNOWN = "unknown"
"""As memory: nobody says how much."""
_DATED = re.compile(r"\A\w{3} \w{3} +\d+ [\d:]+ \d{4}[ \t]*\n")
_HEAD = re.compile(r"\A[ \t]*(?=[^\n]*\b(NODELIST|HOSTNAMES)\b)[A-Z_:()/0-9|,;# \t]+(\r?\n|\Z)")
_JSON = re.compile(r'"(sinfo|nodes|partitions)"\s*:\s*\[')


def _outermost(text: str) -> bool:
    """Has the outermost object of JSON one of the lists of sinfo? (A job of OAR's has a list of nodes, too.)"""
    for found in _JSON.finditer(text):
        count = {sign: text.count(sign, 0, found.start()) for sign in "{}[]"}
        return count["{"] - count["}"] == 1 and count["["] == count["]"]
    return False


def is_sinfo(text: str) -> bool:
    """Does the text look like a table or JSON of sinfo?"""
    if text.lstrip()[:1] == "{":
        return _outermost(text) and re.search(r'"jobs"\s*:\s*[\[{]', text) is None
    return _HEAD.search(_DATED.sub("", text, count=1)) is not None


@dataclass
class Said:
    """What was read. nodes: name -> what is said of it; partitions: name -> what is said of it, with its nodes as host
    lists under "nodes"; gone: nodes that are not there at the moment -> their state."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    partitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # features are there, of which only the first letters
    _made: dict[str, list[str]] = field(default_factory=dict)
    _listed: int = 0

    def hosts(self, text: str, where: str) -> list[str]:
        """The names of a host list; each list is made once."""
        if text not in self._made:
            self._listed += count_of(text, where)
            if self._listed > MOST_LISTED:
                raise EscalaError(f"{where}: with it the lists have more than {MOST_LISTED:,} nodes: leave some out")
            self._made[text] = hosts_of(text, where)
        return self._made[text]

    def add(self, hosts: str, told: Mapping[str, str], where: str) -> None:
        """Nodes that are alike; EscalaError where one is said to be another elsewhere."""
        for key in NUMBERS:
            if told.get(key, "").endswith("+"):
                raise EscalaError(f"{where}: {key} {told[key]}: these nodes differ: export it again with {AGAIN}")
        for name in self.hosts(hosts, where):
            known = self.nodes.setdefault(name, dict(told))
            if known != told:
                key = next(key for key in (*told, *known) if told.get(key) != known.get(key))
                raise EscalaError(
                    f"{where}: node {quoted(name)} has {key} {told.get(key, 'none')} here and {known.get(key, 'none')} "
                    f"before: export it again with {AGAIN}"
                )

    def belong(self, name: str, hosts: str, told: Mapping[str, str]) -> None:
        """These nodes are in a partition."""
        entry = self.partitions.setdefault(name, {"nodes": {}})
        entry |= told
        if hosts:
            entry["nodes"][hosts] = None

    def is_gone(self, hosts: str, state: str, where: str) -> None:
        """Note nodes whose state says that they are not there."""
        if any(word in state.lower() for word in GONE) or "*" in state:
            self.gone |= dict.fromkeys(self.hosts(hosts, where), state)


def read_sinfo(text: str, path: Path) -> Said:
    """What an export says; EscalaError, one line, for rows and values that make no sense."""
    if text.lstrip()[:1] == "{":
        with own(path, "JSON of sinfo or scontrol", "export it again"):
            return _of_json(parse_json(text, path), path)
    return _of_table(text, path)


def _of_table(text: str, path: Path) -> Said:
    dated = _DATED.match(text)
    lines = text.splitlines()
    first = 1 if dated else 0
    cut = "|" if "|" in lines[first] else None
    heads = [one.strip() for one in lines[first].split(cut)]
    by_name = next(head for head in NAMES if head in heads)
    said = Said()
    for number, line in enumerate(lines[first + 1 :], first + 2):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        row = _row(line, cut, heads, where)
        hosts = row.get(by_name, "")
        if not hosts:
            raise EscalaError(f"{where}: names no node: export it again with {AGAIN}")
        said.add(hosts, {key: row[head] for head, key in OF_NODES.items() if head in row}, where)
        said.is_gone(hosts, row.get(STATE, ""), where)
        said.cut |= "AVAIL_FE" in row
        name = row.get(PARTITION, "")
        if name:
            told = {key: row[head] for head, key in OF_PARTITIONS.items() if head in row}
            told |= {"default": "yes"} if name.endswith("*") else {}
            said.belong(name.removesuffix("*"), hosts, told)
    return said


def _row(line: str, cut: str | None, heads: Sequence[str], where: str) -> dict[str, str]:
    """Head -> value, of those that say something. Between blanks a reason, which may have some, has to be last."""
    rest = cut is None and heads[-1] == "REASON"
    values = line.split(cut, len(heads) - 1) if rest else line.split(cut)
    if len(values) != len(heads):
        raise EscalaError(
            f"{where}: {len(values)} fields under {len(heads)} heads: export it again with fields between |: {AGAIN}"
        )
    told: dict[str, str] = {}
    for head, value in zip(heads, map(str.strip, values), strict=True):  # of two columns of one name the first
        if value.lower() not in NOTHING:
            told.setdefault(head, value)
    built = told.get(BUILT[0], "").split(":")
    return told | (dict(zip(BUILT[1], built, strict=True)) if len(built) == len(BUILT[1]) else {})


def _of_json(told: Any, path: Path) -> Said:
    said = Said()
    for k, one in enumerate(told.get("nodes") or [], 1):
        where = f"{path.name}, node {k}"
        name = str(one["name"])
        fields = {
            "cpus": one["cpus"], "realmemory": one.get("real_memory"), "gres": one.get("gres"),
            "feature": one.get("features"), "weight": one.get("weight"), "sockets": one.get("sockets"),
            "corespersocket": one.get("cores"), "threadspercore": one.get("threads"),
        }  # fmt: skip
        said.add(name, _told(fields), where)
        said.is_gone(name, "+".join((_text(one.get("state")), _text(one.get("state_flags")))).strip("+"), where)
        for partition in one.get("partitions") or ():
            said.belong(str(partition), name, {})
    for k, one in enumerate(told.get("sinfo") or [], 1):
        _group(said, one, f"{path.name}, group {k}")
    for one in told.get("partitions") or []:
        said.belong(str(one["name"]), _text(one["nodes"].get("configured")), _of_partition(one))
    return said


def _group(said: Said, one: Mapping[str, Any], where: str) -> None:
    """Nodes that are alike, as `sinfo --json` of 23.02 and later has them."""
    hosts = _text(one["nodes"]["nodes"])
    if not hosts:
        return
    spans = {key: one[name] for key, name in (("cpus", "cpus"), ("realmemory", "memory"), ("weight", "weight"))}
    spans |= {key: one[name] for key, name in (("sockets", "sockets"), ("corespersocket", "cores"))}
    spans["threadspercore"] = one["threads"]
    fields = {}
    for key, span in spans.items():
        low, high = (_number(span[end]) for end in ("minimum", "maximum"))
        fields[key] = low if low == high else f"{low}+"
    said.add(hosts, _told({**fields, "gres": one["gres"]["total"], "feature": one["features"]["total"]}), where)
    said.is_gone(hosts, _text(one["node"]["state"]).replace(",", "+"), where)
    name = _text(one["partition"].get("name"))
    if name:
        said.belong(name, hosts, _of_partition(one["partition"]))


def _of_partition(one: Mapping[str, Any]) -> dict[str, str]:
    """A partition's limits, as its JSON has them; times in minutes."""
    most, least, usual = (one.get(name) or {} for name in ("maximums", "minimums", "defaults"))
    lists = {
        "allowaccounts": (one.get("accounts") or {}).get("allowed"),
        "denyaccounts": (one.get("accounts") or {}).get("deny"),
        "allowqos": (one.get("qos") or {}).get("allowed"),
        "denyqos": (one.get("qos") or {}).get("deny"),
        "qos": (one.get("qos") or {}).get("assigned"),
    }
    rank = one.get("priority") or {}
    told = {
        "maxtime": most.get("time"), "maxnodes": most.get("nodes"), "maxcpuspernode": most.get("cpus_per_node"),
        "minnodes": least.get("nodes"), "defaulttime": usual.get("time"), "prioritytier": rank.get("tier"),
        "priorityjobfactor": rank.get("job_factor"), "gracetime": one.get("grace_time"),
        "state": (one.get("partition") or {}).get("state"),
    }  # fmt: skip
    return _told({**told, **lists})


def _told(fields: Mapping[str, Any]) -> dict[str, str]:
    """As texts, without what says nothing."""
    texts = {key: _text(value) for key, value in fields.items()}
    return {key: text for key, text in texts.items() if text.lower() not in NOTHING}


def _number(value: Any) -> Any:
    """A number that may be wrapped with whether it is set."""
    if not isinstance(value, Mapping):
        return value
    return "infinite" if value.get("infinite") else value["number"] if value.get("set") else ""


def _text(value: Any) -> str:
    """A value of JSON as slurm.conf would have it."""
    value = _number(value)
    return "" if value is None else ",".join(map(str, value)) if isinstance(value, list) else str(value)
