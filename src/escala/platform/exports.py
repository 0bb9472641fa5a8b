"""A site from what Slurm's own commands print: slurm.conf, `scontrol show node`, `show partition`, `show config`,
`sinfo`, `sacctmgr show qos` and `show assoc`, `sshare`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.platform.accounts import Accounts, read_associations, with_shares
from escala.platform.closures import Closure, read_reservations
from escala.platform.hostlist import hosts_of
from escala.platform.limits import QOS, Bounds, bounds_of_row
from escala.platform.read_site import is_conf, read_site, site_of_lines
from escala.platform.sinfo import AGAIN, UNKNOWN, is_sinfo, read_sinfo
from escala.platform.site import Site
from escala.platform.site_entries import Nodes, parsable, whole
from escala.platform.slurm_conf import Conf, read_conf, read_gres
from escala.reading import guarded, read_text

KINDS = {
    "nodes": re.compile(r"(?m)^[ \t]*NodeName=.*(\n[^\n]*){0,4}\bCPUTot="),
    "partitions": re.compile(r"(?m)^[ \t]*PartitionName=.*(\n[^\n]*){0,12}\bTotalNodes="),
    "config": re.compile(r"^\s*Configuration data as of"),
    "gres": re.compile(r"(?mi)^[ \t]*(NodeName=\S+\s+)?Name=\w+|^[ \t]*AutoDetect="),
    "associations": re.compile(r"^(Cluster\|)?Account\|(?>.*?\bUser\|).*\bShare\b"),
    "shares": re.compile(r"^Account\|User\|RawShares\|(.*\|)?RawUsage\b"),
    "qos": re.compile(r"^Name\|(.*\|)?Priority(\||\n)"),
    "reservations": re.compile(r"(?m)^[ \t]*ReservationName="),
}
"""Kind of export -> what tells it."""
NAMES = {"cputot": "cpus", "availablefeatures": "feature", "features": "feature"}
NOTHING = ("(null)", "n/a", "")
ENFORCE = "accountingstorageenforce"
GONE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "MAINT")
KEPT = re.compile(
    r"^(scheduler|select|priority|fairshare|preempt|jobrequeue|messagetimeout|topology|"
    r"accountingstorage(type|tres|enforce)|killwait|overtimelimit|resvoverrun|completewait|minjobage|defmem|maxmem|"
    r"slurm_version|"
    r"enforcepartlimits|maxarraysize|maxjobcount|batchstarttimeout|grestypes|launchparameters|reconfigflags)"
)
"""Settings that have to do with who runs when; addresses, paths and users of a slurm.conf have not, and do not go into
a site.toml."""
_ENTRY = re.compile(r"\b(\w+)=((?:\S|\s(?!\w+=)(?!\s))*)")


def kind_of(path: Path) -> str | None:
    """One of `KINDS`, sinfo, conf (slurm.conf), toml (a site.toml), or None for none of these."""
    with guarded(path, "an export of a site"):
        text = read_text(path)
    if is_sinfo(text):
        return "sinfo"
    for kind, mark in KINDS.items():
        if mark.search(text):
            return kind
    if is_conf(text):
        return "conf"
    return "toml" if re.search(r"(?m)^[ \t]*\[\[nodes\]\]", text) else None


def read_exports(paths: Sequence[Path]) -> Site:
    """The site of these exports together, with the settings that have to do with who runs when. A slurm.conf says what
    the others do not.

    EscalaError where no node is described, and for a file that is none of these.
    """
    kinds = {path: kind_of(path) for path in paths}
    strange = [path for path, kind in kinds.items() if kind is None]
    if strange:
        raise EscalaError(
            f"{strange[0]}: neither a slurm.conf nor what scontrol show node, partition, config or reservation, "
            "sinfo -N, sacctmgr show qos or assoc -P, or sshare -a -P print"
        )
    if list(kinds.values()) == ["toml"]:
        return read_site(paths[0])
    conf, gres, qos, qos_limits = Conf(), dict[str, str](), dict[str, int](), dict[str, Bounds]()
    accounts: Accounts = {}
    for path, kind in sorted(kinds.items(), key=lambda item: item[1] != "conf"):
        if kind == "conf":
            _add_conf(conf, path)
            beside = path.with_name("gres.conf")
            gres |= read_gres(beside) if beside.is_file() else {}
        elif kind == "gres":
            gres |= read_gres(path)
        elif kind == "qos":
            _qos(path, qos, qos_limits, conf.unread)
        elif kind == "associations":
            accounts |= read_associations(read_text(path), str(path), conf.unread)
        elif kind in ("reservations", "shares", "sinfo"):
            continue
        elif kind == "toml":
            raise EscalaError(f"{path}: is a site.toml already: give it alone")
        else:
            _add(conf, path, str(kind))
    for path in (path for path, kind in kinds.items() if kind == "shares"):
        accounts = with_shares(accounts, read_text(path), str(path))
    for path in (path for path, kind in kinds.items() if kind == "sinfo"):
        _add_sinfo(conf, path)
    site = site_of_lines(conf, paths[0], gres)
    settings = {key: value for key, value in site.settings.items() if KEPT.match(key)}
    limited = qos_limits or any("limits" in told or "user_limits" in told for told in accounts.values())
    if limited and any(kind in ("conf", "config") for kind in kinds.values()):
        settings.setdefault(ENFORCE, "none")  # as Slurm has it where the file says nothing
    closed, unread = _reservations(site, [path for path, kind in kinds.items() if kind == "reservations"])
    site = replace(site, settings=settings, qos=qos or site.qos, qos_limits=qos_limits, accounts=accounts)
    return replace(site, closed=closed, unread=(*site.unread, *unread))


def _reservations(site: Site, paths: Sequence[Path]) -> tuple[tuple[Closure, ...], list[str]]:
    """The reservations of these exports on the nodes of a site, and what of them is not modelled."""
    nodes, unread = Nodes(), list[str]()
    nodes.number = {name: k for k, name in enumerate(site.names)}
    nodes.names = list(site.names)
    return tuple(
        one for path in paths for one in read_reservations(read_text(path), path.name, nodes.listed, unread)
    ), unread


def _add_conf(conf: Conf, path: Path) -> None:
    read = read_conf(path)
    conf.settings.update(read.settings)
    conf.nodes += read.nodes
    conf.partitions += read.partitions
    conf.sets.update(read.sets)
    conf.unread += read.unread


def _add(conf: Conf, path: Path, kind: str) -> None:
    """Nodes and partitions as they are now go before those of slurm.conf."""
    text = read_text(path)
    if kind == "config":
        pairs = re.findall(r"(?m)^(\w+)[ \t]+=[ \t](.*)", text)
        conf.settings.update(
            {key.lower(): value.strip() for key, value in pairs if value.strip().lower() not in NOTHING}
        )
        return
    first = "NodeName" if kind == "nodes" else "PartitionName"
    found = []
    for k, record in enumerate(re.findall(rf"(?ms)^[ \t]*{first}=.*?(?=^[ \t]*{first}=|\Z)", text), start=1):
        told = {NAMES.get(key.lower(), key.lower()): value.strip() for key, value in _ENTRY.findall(record)}
        told = {key: value for key, value in told.items() if value.lower() not in NOTHING}
        state = told.pop("state", "") if kind == "nodes" else told.get("state", "")
        if kind == "nodes" and any(word in state.upper() for word in GONE):
            conf.unread.append(
                f"{path.name}: node {told.get('nodename')} is {state} at the moment: kept; take it out if it is gone "
                "for good"
            )
        if kind == "partitions" and "nodes" not in told:
            conf.unread.append(f"{path.name}: partition {told.get('partitionname')} has no node: left out")
            continue
        found.append({"where": f"record {k}", **told})
    if kind == "nodes":
        conf.nodes = found
    else:
        conf.partitions = found


def _add_sinfo(conf: Conf, path: Path) -> None:
    """Nodes and partitions that the others do not describe, in front of theirs, and which nodes are not there now."""
    said = read_sinfo(read_text(path), path)
    known = {host for line in conf.nodes for host in hosts_of(line["nodename"], f"{path}, beside")}
    conf.unread += [
        f"{path.name}: node {name} is {state} at the moment: kept; take it out if it is gone for good"
        for name, state in said.gone.items()
    ]
    new = {name: told for name, told in said.nodes.items() if name not in known}
    for name, told in new.items():
        if "cpus" not in told:
            raise EscalaError(f"{path.name}: node {quoted(name)} has no CPUS: export it again with {AGAIN}")
        told.setdefault("realmemory", UNKNOWN)
    if any(told["realmemory"] == UNKNOWN for told in new.values()):
        conf.unread.append(f"{path.name}: says no memory of nodes, so none is counted: {AGAIN} does")
    if said.cut:
        conf.unread.append(f"{path.name}: features are cut to eight letters, and left out: {AGAIN} has them whole")
    conf.nodes = [{"where": path.name, "nodename": name, **told} for name, told in new.items()] + conf.nodes
    named = {line["partitionname"]: line for line in conf.partitions}
    if not any("default" in line for line in conf.partitions):
        for name in named.keys() & {name for name, told in said.partitions.items() if "default" in told}:
            named[name]["default"] = "yes"
    front = [
        _as_line(name, told, path) for name, told in said.partitions.items() if name not in named and told["nodes"]
    ]
    if front and not any("default" in line for line in (*front, *conf.partitions)):
        conf.unread.append(f"{path.name}: says no partition that is the default: write default = true below one")
    conf.partitions = front + conf.partitions


def _as_line(name: str, told: dict[str, Any], path: Path) -> dict[str, str]:
    """A partition of sinfo as a line of slurm.conf."""
    line = {"where": path.name, "partitionname": name, **told, "nodes": ",".join(told["nodes"])}
    low, _, high = line.pop("job_size", "").partition("-")
    if low:
        line |= {"minnodes": low, "maxnodes": high or low}
    if line.get("oversubscribe", "").lower().startswith("exclusiv"):  # it has room for eight letters
        line["oversubscribe"] = "exclusive"
    return line


def _qos(path: Path, priority: dict[str, int], limits: dict[str, Bounds], unread: list[str]) -> None:
    """QOS -> priority and limits, of `sacctmgr show qos -P`."""
    for row in parsable(read_text(path), str(path)):
        name = row["name"]
        priority[name] = whole(row["priority"] or 0, f"{path}: qos {quoted(name)}")
        bounds = bounds_of_row(row, QOS, f"{path.name}: qos {quoted(name)}", unread)
        limits |= {name: bounds} if bounds else {}
