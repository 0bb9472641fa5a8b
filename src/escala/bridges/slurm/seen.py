"""What Slurm's clients said at one instant, in plain records: times in seconds of unix time, nodes by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from escala.errors import EscalaError, quoted

TICK_S = 1.0
"""Slurm gives times in whole seconds, cut off: what happens a moment after a look may bear a time before it."""

PENDING, RUNNING, BOOTING, ENDED = "pending", "running", "booting", "ended"
HELD = ("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
OVER = (
    *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"),
    *("SPECIAL_EXIT", "LAUNCH_FAILED", "RECONFIG_FAIL"),
)
QUEUED = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
WAITS_FOR_NODES = ("None", "Priority", "Resources", "ReqNodeNotAvail", "Nodes_required", "Nodes required", "NodeDown", "Reserved")
"""How the reasons begin for which a job waits that could start if nodes were free; any other holds it back whatever the nodes do."""


class Job(NamedTuple):
    """state: pending, booting (has its nodes, which are not all on), running, ended. start, end: None where there is none yet; of a
    pending job, when Slurm expects it. cpus: of all nodes together. whole: gets whole nodes. limit_s: None: none."""

    job_id: str
    state: str
    submit_s: float
    start_s: float | None
    end_s: float | None
    limit_s: float | None
    nodes: int
    cpus: int
    priority: int
    nice: int
    whole: bool
    user: str
    partition: str
    hosts: tuple[str, ...]
    reason: str

    @property
    def free(self) -> bool:
        """Does it wait for nothing but nodes?"""
        return self.state == PENDING and self.priority > 0 and self.reason.startswith(WAITS_FOR_NODES)


class Node(NamedTuple):
    """state: the base state and the flags. busy_s: when it was last busy; None: Slurm does not say."""

    name: str
    cpus: int
    allocated: int
    state: frozenset[str]
    busy_s: float | None
    partitions: tuple[str, ...]


class Reservation(NamedTuple):
    """A reservation of whole nodes. users: who may use it; (): Slurm names none."""

    name: str
    hosts: tuple[str, ...]
    start_s: float
    end_s: float
    users: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """One look. took_s: how long it took. parts: job -> (host, cpus) where Slurm was asked which CPUs each node gave."""

    now_s: float
    jobs: dict[str, Job]
    nodes: dict[str, Node]
    reservations: dict[str, Reservation] = field(default_factory=dict)
    took_s: float = 0.0
    parts: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)


def state_of(word: str) -> str:
    """Our word for Slurm's state of a job; EscalaError for one that we do not know."""
    word = word.split(" ")[0].rstrip("+")
    if word in QUEUED:
        return PENDING
    if word == "CONFIGURING":
        return BOOTING
    if word in HELD:
        return RUNNING
    if word in OVER:
        return ENDED
    raise EscalaError(f"job state {quoted(word)}: not one that this version of Escala knows")


def changes(before: Seen | None, now: Seen) -> dict[str, Any]:
    """What has changed, as plain data: all of it where nothing was seen before. Priorities and expected times, which change all the time,
    count only together with something else."""
    if before is None:
        told = {"jobs": list(map(_job_told, now.jobs.values())), "nodes": list(map(_node_told, now.nodes.values()))}
        return {"whole": True, **told, "reservations": [_told(one) for one in now.reservations.values()]}
    out: dict[str, Any] = {}
    jobs = [_job_told(job) for name, job in now.jobs.items() if name not in before.jobs or _lasting(before.jobs[name]) != _lasting(job)]
    left = [name for name in before.jobs if name not in now.jobs]
    nodes = [_node_told(node) for name, node in now.nodes.items() if before.nodes.get(name) != node]
    gone = [name for name in before.nodes if name not in now.nodes]
    out |= {key: found for key, found in (("jobs", jobs), ("left", left), ("nodes", nodes), ("gone", gone)) if found}
    if before.reservations != now.reservations:
        out["reservations"] = [_told(one) for one in now.reservations.values()]
    return out


def applied(before: Seen | None, told: dict[str, Any], now_s: float) -> Seen:
    """What was seen, from what had changed; EscalaError for what is damaged."""
    try:
        if told.get("whole"):
            before = None
        elif before is None:
            raise EscalaError("its first record tells what changed, and not how all was")
        jobs = dict(before.jobs) if before else {}
        nodes = dict(before.nodes) if before else {}
        for row in told.get("jobs", ()):
            jobs[row[0]] = Job._make([*row[:-2], tuple(row[-2]), row[-1]])
        for name in told.get("left", ()):
            jobs.pop(name, None)
        for name, cpus, allocated, state, busy, partitions in told.get("nodes", ()):
            nodes[name] = Node(name, cpus, allocated, frozenset(state), busy, tuple(partitions))
        for name in told.get("gone", ()):
            nodes.pop(name, None)
        kept = before.reservations if before else {}
        if "reservations" in told:
            kept = {one[0]: Reservation(one[0], tuple(one[1]), *one[2:4], *map(tuple, one[4:])) for one in told["reservations"]}
    except (TypeError, ValueError, KeyError, IndexError):
        raise EscalaError("a record that tells what changed is damaged") from None
    return Seen(now_s, jobs, nodes, kept)


def _lasting(job: Job) -> tuple[Any, ...]:
    """What of a job does not change by itself."""
    if job.state == PENDING:
        return (*job[:3], *job[5:8], job.nice, job.whole, job.user, job.partition, job.free)
    return (*job[:3], job.start_s, job.end_s if job.state == ENDED else None, *job[5:8], job.hosts)


def _job_told(job: Job) -> list[Any]:
    return [*job[:-2], list(job.hosts), job.reason]


def _node_told(node: Node) -> list[Any]:
    return [node.name, node.cpus, node.allocated, sorted(node.state), node.busy_s, list(node.partitions)]


def _told(one: Reservation) -> list[Any]:
    return [one.name, list(one.hosts), one.start_s, one.end_s, list(one.users)]
