"""site.toml: a site as a person writes it.

name = "mycluster"

[[nodes]]                       # one group a kind of node
names = "n[001-100]"
cores = 64
memory_mb = 256000              # optional: without it memory is not counted
gpus = {a100 = 4}               # optional; or a number, where the kind does not matter
features = ["avx512"]           # optional
weight = 1                      # optional; light nodes are taken first
threads_per_core = 1            # optional; more: cores are given away whole
speed = 0.8                     # optional; 1 where run times are as in the log, here a job runs 1.25 times as long
power = "blade"                 # optional; a preset, or a table [power.blade]

[power.blade]                   # optional, watts of one node
computing_w = 400
idle_w = 150
can_switch = false
gpu_computing_w = 400           # optional, beside these, of each GPU; or by kind: {a100 = 400}
gpu_idle_w = 55

[[partitions]]                  # optional: without any, all nodes are one
name = "batch"
nodes = "n[001-100]"            # needed: a host list, or "ALL"; partitions may overlap
default = true
max_time = "1-00:00:00"         # as Slurm writes spans; default_time, max_nodes, min_nodes, max_cores_per_node, tier,
factor, exclusive,
                                # up, memory_mb_per_core, memory_mb_per_node, least_loaded, accounts, denied_accounts,
                                qos, denied_qos,
                                # own_qos, tres_billing_weights, preempt_mode, grace_time (s)
[slurm]                         # optional: settings under their names in slurm.conf
SchedulerParameters = "bf_interval=30,bf_window=2880"
PriorityType = "priority/multifactor"

[qos]                           # optional: priority of each, or a table with its limits (`escala.platform.limits`)
high = 100
low = {max_jobs_per_user = 10, grp_tres = {cpu = 640, gpu = 8}}
urgent = {priority = 50, preempt = ["low"]}  # with preempt_mode, grace_time (s), exempt_time (s)

[accounts]                      # optional: shares and limits of each; users that stand nowhere have 1 share
physics = {shares = 30, grp_tres = {cpu = 640}, max_jobs = 20}
theory = {parent = "physics", shares = 2, users = {ann = 3, bob = 1}}

[[closed]]                      # optional: nodes that are not there for a while
nodes = "n[001-008]"
from = "2026-11-03T06:00:00"    # UTC, or unix seconds; until: left out for ever
until = "2026-11-03T18:00:00"
kind = "down"                   # or "drain", "reserved"; requeue = false: what ran there is over
                                # of a reservation: name, by which jobs ask for it; users, accounts: lists of those who
                                may
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.platform import limits
from escala.platform.accounts import accounts_of
from escala.platform.closures import closure_of
from escala.platform.hostlist import hosts_of, hosts_text
from escala.platform.platform import check_speed
from escala.platform.site import PARTITION_FIELDS, Partition, Site
from escala.platform.site_entries import Nodes, default_marked, seconds_of, whole
from escala.platform.spec import profile_from
from escala.platform.tres_weights import weights_of
from escala.reading import read_toml

TOP = ("name", "nodes", "power", "partitions", "slurm", "qos", "accounts", "closed")
NODE = ("names", "cores", "memory_mb", "gpus", "features", "weight", "threads_per_core", "speed", "power")
SPANS = {"max_time": "max_s", "default_time": "default_s"}
GRACE = "grace_s"
PARTITION = (
    "name",
    "nodes",
    *SPANS,
    limits.GRACE,
    *(one for one in PARTITION_FIELDS if one not in (*SPANS.values(), GRACE)),
)
TEXTS = ("own_qos", "tres_billing_weights")
LISTS = ("accounts", "denied_accounts", "qos", "denied_qos")
SWITCHES = ("default", "exclusive", "up", "least_loaded")


def site_of_toml(path: Path) -> Site:
    """The site of a site.toml; EscalaError in one line, with the group, for an entry that is missing, unknown or
    ill-typed."""
    told = read_toml(path)
    _known(told, TOP, str(path))
    nodes = Nodes()
    for number, group in enumerate(_list(told.get("nodes"), f"{path}: nodes"), start=1):
        _add(nodes, group, f"{path}: node group {number}")
    profiles = {
        name: profile_from(name, entry) for name, entry in _table(told.get("power", {}), f"{path}: [power]").items()
    }
    partitions = [
        _partition(one, nodes, f"{path}: partition {k}") for k, one in enumerate(told.get("partitions") or [], start=1)
    ]
    settings = {
        key.lower(): _setting(value) for key, value in _table(told.get("slurm", {}), f"{path}: [slurm]").items()
    }
    qos, qos_limits = _qos(_table(told.get("qos", {}), f"{path}: [qos]"), str(path))
    name = str(told.get("name", path.stem))
    accounts = accounts_of(told.get("accounts", {}), f"{path}: [accounts]")
    marked = default_marked(partitions)
    closed = tuple(
        closure_of(one, nodes.listed, f"{path}: closed {k}") for k, one in enumerate(told.get("closed") or [], start=1)
    )
    rules = {"settings": settings, "qos": qos, "qos_limits": qos_limits, "accounts": accounts}
    return nodes.site(name, profiles, partitions=marked, closed=closed, **rules)


def _qos(table: Mapping[str, Any], where: str) -> tuple[dict[str, int], dict[str, limits.Bounds]]:
    """(priority of each, limits of those that have some)."""
    priority: dict[str, int] = {}
    bounds: dict[str, limits.Bounds] = {}
    for name, value in table.items():
        here = f"{where}: qos {quoted(name)}"
        told = dict(value) if isinstance(value, Mapping) else {limits.PRIORITY: value}
        priority[name] = whole(told.pop(limits.PRIORITY, 0), here)
        found = limits.bounds_of(told, limits.QOS, here)
        bounds |= {name: found} if found else {}
    return priority, bounds


def _add(nodes: Nodes, group: Any, where: str) -> None:
    _known(_table(group, where), NODE, where)
    for key in ("names", "cores"):
        if key not in group:
            raise EscalaError(f"{where}: `{key}` is missing; add it")
    gpus = group.get("gpus", {})
    kinds = gpus if isinstance(gpus, Mapping) else {"": gpus}
    nodes.add(
        hosts_of(hosts_text(group["names"], f"{where}, names", "n[01-16]"), where),
        where,
        cores=whole(group["cores"], f"{where}, cores", 1),
        memory_mb=whole(group["memory_mb"], f"{where}, memory_mb") if "memory_mb" in group else None,
        gpus={kind: whole(count, f"{where}, gpus") for kind, count in kinds.items()},
        features=tuple(str(one) for one in group.get("features", ())),
        weight=whole(group.get("weight", 1), f"{where}, weight"),
        threads=whole(group.get("threads_per_core", 1), f"{where}, threads_per_core", 1),
        speed=check_speed(group.get("speed", 1.0), where),
        power=group.get("power"),
    )


def _partition(entry: Any, nodes: Nodes, where: str) -> Partition:
    _known(_table(entry, where), PARTITION, where)
    if "name" not in entry:
        raise EscalaError(f"{where}: `name` is missing; add it")
    where = f"{where} ({entry['name']})"
    listed = nodes.listed(hosts_text(entry["nodes"], f"{where}, nodes"), where) if "nodes" in entry else ()
    if not listed:
        raise EscalaError(f'{where} has no node: say nodes = "ALL" or a host list, or leave the partition out')
    fields: dict[str, Any] = {}
    for key, value in entry.items():
        if key in SPANS:
            fields[SPANS[key]] = seconds_of(str(value), f"{where}, {key}")
        elif key in LISTS:
            fields[key] = tuple(str(one) for one in _list(value, f"{where}, {key}"))
        elif key in SWITCHES:
            if not isinstance(value, bool):
                raise EscalaError(f"{where}, {key}: {quoted(value)} is neither true nor false")
            fields[key] = value
        elif key in TEXTS:
            fields[key] = str(value)
        elif key == limits.MODE:
            fields[key] = limits.mode_of(value, f"{where}, {key}")
        elif key == limits.GRACE:
            fields[GRACE] = float(whole(value, f"{where}, {key}"))
        elif key not in ("name", "nodes"):
            fields[key] = whole(value, f"{where}, {key}")
    if "default_s" not in fields:
        fields["default_s"] = fields.get("max_s")
    if "tres_billing_weights" in fields:
        # as Slurm may have them: Settings.unread
        weights_of(fields["tres_billing_weights"], f"{where}, tres_billing_weights", [])
    return Partition(name=str(entry["name"]), nodes=listed, **fields)


def _setting(value: Any) -> str:
    """A setting as slurm.conf would have it: tables (of SchedulerParameters) as KEY=VALUE,..., switches as yes or
    no."""
    if isinstance(value, Mapping):
        return ",".join(key if held is True else f"{key}={held}" for key, held in value.items() if held is not False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _known(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in entry:
        if key not in known:
            raise EscalaError(f"{where}: unknown entry `{key}`; {nearest(key, known)}known: {', '.join(known)}")


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise EscalaError(f"{where} must be a table of entries, not {quoted(value)}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise EscalaError(f"{where} must be a list with something in it")
    return value
