"""From what was seen to a `Snapshot` for a desk: the nodes of one partition, and the jobs that wait for it or hold its
nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from escala.bridges.slurm.seen import (
    BOOTING,
    ENDED,
    MOST_CPUS,
    RUNNING,
    SUSPENDED,
    UNREADABLE,
    Job,
    Node,
    Reservation,
    Seen,
)
from escala.errors import EscalaError, quoted
from escala.live.snapshot import Snapshot
from escala.platform import Platform, PowerProfile
from escala.platform.power_spec import read_power

ON, WAKING, OFF, SINKING = "on", "switching_on", "off", "switching_off"
HARMLESS = frozenset(
    (
        *("IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "RESERVED", "CLOUD", "DYNAMIC_NORM", "NOT_RESPONDING"),
        *("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"),
    )
)
"""States and flags of a node that anybody may use or switch; one with any other, known or not, is left alone."""
CHANGED, OVERFULL, OF_SUSPENDED = "changed", "overfull", "suspended"
"""Why nothing certain is known of a node: Slurm counts other CPUs in use than its jobs have, they have more than there
are, or one of them is suspended."""
SAID = {OVERFULL: "jobs have more CPUs than it has", OF_SUSPENDED: "a job is suspended on it"}
ENDLESS_S = 366 * 86400.0
PREFIX = "escala_"
"""How the names of leases begin: the node's name follows."""
MARK = "escala_acts_"
"""How the name of what says that somebody acts on a partition begins: the partition's follows."""

Power = Callable[[Node], tuple[str, float | None, float | None]]
"""A node -> its power state, since when it is idle, when its switch ends (None: unknown)."""


@dataclass(frozen=True)
class Layout:
    """The nodes that a desk knows, in its order."""

    partition: str
    names: tuple[str, ...]
    platform: Platform
    index: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index.update({name: k for k, name in enumerate(self.names)})

    @property
    def switches(self) -> bool:
        """Is it known what switching a node takes? Else no policy switches one, and those that Slurm has put to sleep
        are as good as on."""
        return any(profile.can_switch for profile in self.platform.profiles)


def partition_of(seen: Seen, wanted: str | None) -> str:
    """The partition to look at; EscalaError where none is named and there are several, or none of the name."""
    known = sorted({name for node in seen.nodes.values() for name in node.partitions})
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted is None or wanted not in known:
        said = "there are several partitions" if wanted is None else f"there is no partition {quoted(wanted)}"
        raise EscalaError(f"{said}: give --partition, one of {', '.join(known[:20])}")
    return wanted


def layout(seen: Seen, partition: str, power: str | None) -> Layout:
    """The nodes of a partition as a platform. power: watts of a node, or a preset; None: nothing is known, and nodes
    stay on."""
    nodes = [node for node in seen.nodes.values() if partition in node.partitions and UNREADABLE not in node.state]
    if not nodes:
        raise EscalaError(f"partition {partition}: it has no node that can be read")
    cores = np.array([node.cpus for node in nodes])
    names = tuple(node.name for node in nodes)
    plain = Platform.uniform(1)
    profiles: tuple[PowerProfile, ...] = plain.profiles
    which = np.zeros(len(nodes), np.int64)
    if power is not None:
        profile, per_core = read_power(power)
        if profile.gpu_idle_w:
            raise EscalaError(
                "power: beside Slurm GPUs are not counted one by one: give idle as a node with all its GPUs draws"
            )
        sizes = sorted(set(cores.tolist())) if per_core else [1]
        profiles = tuple(profile.per_core(size) for size in sizes) if per_core else (profile,)
        which = np.searchsorted(sizes, cores) if per_core else which
    return Layout(partition, names, Platform(f"Slurm partition {partition}", cores, profiles, which, names=names))


def power_of(node: Node) -> str:
    """The power state that Slurm's flags tell."""
    state = node.state
    if "POWERING_DOWN" in state or ("POWER_DOWN" in state and not node.allocated):
        return SINKING
    if "POWERING_UP" in state or "POWER_UP" in state:
        return WAKING
    return OFF if "POWERED_DOWN" in state else ON


def gone(node: Node, foreign: frozenset[str]) -> bool:
    """May it not be used, or be switched, by anybody like us? foreign: nodes in reservations of others."""
    if node.state - HARMLESS or node.name in foreign:
        return True
    return "NOT_RESPONDING" in node.state and power_of(node) == ON


def is_lease(one: Reservation) -> bool:
    """Has it the form of a lease: one node, and that node's name behind the prefix?"""
    return len(one.hosts) == 1 and one.name == PREFIX + one.hosts[0]


def added(seen: Seen, at: Layout) -> list[str]:
    """Nodes of the partition that the layout does not know."""
    return [name for name, node in seen.nodes.items() if name not in at.index and at.partition in node.partitions]


def foreign(seen: Seen) -> frozenset[str]:
    """Nodes in reservations that are no leases and have begun."""
    kept = seen.reservations.values()
    return frozenset(
        host for one in kept if not is_lease(one) and one.start_s <= seen.now_s < one.end_s for host in one.hosts
    )


def as_it_is(node: Node) -> tuple[str, float | None, float | None]:
    """The power state as Slurm tells it."""
    return power_of(node), node.busy_s, None


def places(seen: Seen, job: Job, at: Layout) -> list[tuple[int, int]]:
    """The nodes of the layout that a job holds, with the CPUs on each."""
    told = seen.parts.get(job.job_id)
    if told is None or {host for host, _ in told} != set(job.hosts):
        each, more = divmod(job.cpus, max(len(job.hosts), 1))
        told = tuple((host, each + (k < more)) for k, host in enumerate(job.hosts))
    return [(at.index[host], cpus) for host, cpus in told if host in at.index and cpus > 0]


def uncertain(seen: Seen, at: Layout, held: Mapping[int, int]) -> dict[int, str]:
    """Nodes of which nothing certain is known, and why. Those that changed between two commands wait for the next look;
    where jobs share CPUs, or are suspended, cores cannot be counted. held: CPUs of the jobs on each."""
    out = {}
    for k, name in enumerate(at.names):
        node = seen.nodes[name]
        if held.get(k, 0) > at.platform.cores[k]:
            out[k] = OVERFULL
        elif node.allocated != held.get(k, 0) and "COMPLETING" not in node.state:
            out[k] = CHANGED
    asleep = {host for job in seen.jobs.values() if job.state == SUSPENDED for host in job.hosts}
    return out | {at.index[host]: OF_SUSPENDED for host in asleep if host in at.index}


def snapshot(
    seen: Seen,
    at: Layout,
    power: Power = as_it_is,
    ended: Mapping[str, Job] | None = None,
    put_back: Set[str] = frozenset(),
    aside: Set[str] = frozenset(),
) -> tuple[Snapshot, dict[int, str]]:
    """What a desk is asked, and the nodes of which it may be told nothing certain, each with the reason. ended: jobs
    that have ended since the last one. put_back: jobs that have just started, told as if they still waited. aside:
    nodes that nobody shall count on."""
    missing = [name for name in at.names if not _is_there(seen.nodes.get(name), at)]
    if missing:
        raise EscalaError(
            f"node {quoted(missing[0])} is gone from partition {at.partition}: begin anew with the nodes that there are"
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("job_id", "submit_s", "walltime_s", "cores", "state", "start_s", "user")
    }
    placed: dict[str, list[int]] = {name: [] for name in ("job", "first", "last", "cores")}
    held: dict[int, int] = {}
    busy = set()
    usual = int(np.median(at.platform.cores))
    for job in sorted(seen.jobs.values(), key=_queue_order):
        mine = _fitting(places(seen, job, at) if job.state in (RUNNING, BOOTING) else [], at, held)
        if not mine and not waits(job, at):
            continue
        cores = sum(cpus for _, cpus in mine) or min(
            max(job.cpus, _of_nodes(job, at, usual) if job.whole else 1), MOST_CPUS
        )
        mine = [] if job.job_id in put_back else mine
        busy |= {k for k, _ in mine} if job.state == RUNNING else set()
        _add(columns, placed, job, cores, mine, seen.now_s)
    unsure = uncertain(seen, at, held)
    nodes = _nodes(seen, at, power, busy, unsure.keys() | {at.index[name] for name in aside})
    told = Snapshot.of(seen.now_s, columns, nodes, placed, _ended(ended or {}, seen.now_s))
    return told, unsure


def _of_nodes(job: Job, at: Layout, usual: int) -> int:
    """CPUs of a job that wants whole nodes, of which nobody knows yet which: no more than all have, if there are so
    many nodes."""
    wanted = job.nodes * usual
    return min(wanted, at.platform.total_cores) if job.nodes <= len(at.names) else wanted


def _is_there(node: Node | None, at: Layout) -> bool:
    return node is not None and (at.partition in node.partitions or UNREADABLE in node.state)


def _fitting(mine: list[tuple[int, int]], at: Layout, held: dict[int, int]) -> list[tuple[int, int]]:
    """Of the places of a job those that fit on the nodes beside the jobs before it. held: gets all of them."""
    out = []
    for k, cpus in mine:
        room = int(at.platform.cores[k]) - held.get(k, 0)
        held[k] = held.get(k, 0) + cpus
        if room > 0:
            out.append((k, min(cpus, room)))
    return out


def waits(job: Job, at: Layout) -> bool:
    """Does it wait for nodes of the layout, and for nothing else?"""
    return at.partition in job.partition.split(",") and job.free


def _queue_order(job: Job) -> tuple[float, int, str]:
    return job.submit_s, -job.priority, job.job_id.rjust(24)


def _add(
    columns: dict[str, list[Any]],
    placed: dict[str, list[int]],
    job: Job,
    cores: int,
    mine: list[tuple[int, int]],
    now: float,
) -> None:
    """A job, with where it lies."""
    place = len(columns["job_id"])
    start = min(job.start_s if job.start_s is not None else now, now)
    state = "queued" if not mine else "running" if job.state == RUNNING else "given"
    told = (
        job.job_id,
        min(job.submit_s, now),
        job.limit_s or ENDLESS_S,
        cores,
        state,
        start if state == "running" else None,
        job.user,
    )
    for column, value in zip(columns.values(), told, strict=True):
        column.append(value)
    for k, cpus in sorted(mine):
        same = (
            placed["job"] and placed["job"][-1] == place and placed["last"][-1] == k - 1 and placed["cores"][-1] == cpus
        )
        if same:
            placed["last"][-1] = k
            continue
        for column, number in zip(placed.values(), (place, k, k, cpus), strict=True):
            column.append(number)


def _nodes(seen: Seen, at: Layout, power: Power, busy: set[int], left: set[int]) -> dict[str, list[Any]]:
    """The columns of the nodes. left: those that are left alone. A node on which a job runs is on, whatever its flags
    said just before; so is each where nobody but Slurm switches, which wakes them for jobs."""
    others = foreign(seen)
    out: dict[str, list[Any]] = {name: [] for name in ("power", "idle_since_s", "switch_end_s", "gone")}
    for k, name in enumerate(at.names):
        node = seen.nodes[name]
        state, since, end = power(node)
        state = ON if k in busy or not at.switches else state
        out["power"].append(state)
        out["idle_since_s"].append(
            min(since, seen.now_s) if since is not None and state == ON else seen.now_s if state == ON else None
        )
        out["switch_end_s"].append(max(end, seen.now_s) if end is not None and state in (WAKING, SINKING) else None)
        out["gone"].append(gone(node, others) or k in left)
    return out


def _ended(jobs: Mapping[str, Job], now: float) -> dict[str, list[Any]]:
    known = [
        job
        for job in jobs.values()
        if job.state == ENDED and job.start_s is not None and job.end_s is not None and job.hosts
    ]
    return {
        "job_id": [job.job_id for job in known],
        "start_s": [min(job.start_s or 0.0, now) for job in known],
        "end_s": [min(max(job.end_s or 0.0, job.start_s or 0.0), now) for job in known],
    }
