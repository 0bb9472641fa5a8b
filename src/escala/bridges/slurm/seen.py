"""What Slurm's clients said at one instant, in plain records: times in seconds of unix time, nodes by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from escala.bridges.slurm.commands import NAME
from escala.errors import EscalaError, one_line, quoted

TICK_S = 1.0
"""Slurm gives times in whole seconds, cut off: what happens a moment after a look may bear a time before it."""

PENDING, RUNNING, BOOTING, SUSPENDED, ENDED = "pending", "running", "booting", "suspended", "ended"
ON_NODES = (RUNNING, BOOTING, SUSPENDED)
UNREADABLE = "UNREADABLE"
"""The state of a node of which Slurm says what is not understood."""
LATEST_S, MOST_CPUS, MOST_WHOLE = 1e11, 2**31 - 1, 2**53
HELD = ("CONFIGURING", "RUNNING", "COMPLETING", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
OVER = (
    *(
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    ),
    *("SPECIAL_EXIT", "LAUNCH_FAILED", "RECONFIG_FAIL"),
)
QUEUED = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
WAITS_FOR_NODES = (
    "None",
    "Priority",
    "Resources",
    "ReqNodeNotAvail",
    "Nodes_required",
    "Nodes required",
    "NodeDown",
    "Reserved",
)
"""How the reasons begin for which a job waits that could start if nodes were free; any other holds it back whatever the
nodes do."""

NO_ACCOUNT = "InvalidAccount"
"""Slurm 23.11 and 24.05 without accounting give this reason to any job that their main pass leaves to the backfill; one
that they expect to start is not held back by it."""


class Job(NamedTuple):
    """state: pending, booting (has its nodes, which are not all on), running, suspended (has its nodes, and leaves
    their CPUs to others), ended. start, end: None where there is none yet; of a
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
        if self.state != PENDING or self.priority <= 0:
            return False
        return self.reason.startswith(WAITS_FOR_NODES) or (self.reason == NO_ACCOUNT and self.start_s is not None)


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
    """One look. took_s: how long it took. parts: job -> (host, cpus) where Slurm was asked which CPUs each node gave.
    left_out: what it said that was not understood, and does not count."""

    now_s: float
    jobs: dict[str, Job]
    nodes: dict[str, Node]
    reservations: dict[str, Reservation] = field(default_factory=dict)
    took_s: float = 0.0
    parts: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


Named = TypeVar("Named", Job, Node, Reservation)
_JOB_ID = re.compile(r"[1-9]\d{0,18}([_+][\w\[\],:%-]{1,100})?", re.ASCII)
WRONG = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError)


def understood(
    records: Iterable[Any],
    read: Callable[[Any], Iterable[Named]],
    left: list[str],
    what: str,
    instead: Callable[[Any], Iterable[Named]] | None = None,
    called: Callable[[Any], object] = lambda record: record,
) -> dict[str, Named]:
    """What the records of an output say, by name. One that cannot be read is left out, and said in `left`: it costs
    nothing but itself.
    instead: what stands for it. called: how it is named. EscalaError where none has the form that is expected."""
    found: dict[str, Named] = {}
    first, formed = "", False
    for record in records:
        try:
            for one in read(record):
                found[one[0]] = one
            formed = True
        except WRONG as error:
            formed |= isinstance(error, EscalaError)
            why = str(error) if isinstance(error, EscalaError) else "it is not understood"
            left.append(one_line(f"{what}: {quoted(called(record))}: {why}"))
            first = first or left[-1]
            found |= {one[0]: one for one in instead(record)} if instead is not None else {}
    if first and not formed:
        raise EscalaError(f"{first}, and so is none of its records: it is not used")
    return found


def _is_time(when: float | None) -> bool:
    return when is None or 0.0 <= when <= LATEST_S


def sound_job(job: Job) -> Job:
    """The same; EscalaError for one that no Slurm has."""
    times = (job.submit_s, job.start_s, job.end_s, job.limit_s)
    if not all(map(_is_time, times)):
        raise EscalaError(f"job {quoted(job.job_id)}: times are from 0 to {LATEST_S:g} s")
    if not (0 <= job.nodes <= MOST_CPUS and 0 <= job.cpus <= MOST_CPUS):
        raise EscalaError(f"job {quoted(job.job_id)}: {quoted(job.cpus)} CPUs on {quoted(job.nodes)} nodes")
    if abs(job.priority) > MOST_WHOLE or abs(job.nice) > MOST_WHOLE:
        raise EscalaError(f"job {quoted(job.job_id)}: priority {quoted(job.priority)}, nice {quoted(job.nice)}")
    if _JOB_ID.fullmatch(job.job_id) is None or not (job.user.isprintable() and job.partition.isprintable()):
        raise EscalaError(f"job {quoted(job.job_id)} of {quoted(job.user)} in {quoted(job.partition)}: no such names")
    return (
        job if job.reason.isprintable() and len(job.reason) <= 300 else job._replace(reason=one_line(job.reason, 300))
    )


def sound_node(node: Node) -> Node:
    """The same; EscalaError for one that no Slurm has."""
    if NAME.fullmatch(node.name) is None:
        raise EscalaError("its name is none of a node")
    if not (1 <= node.cpus <= MOST_CPUS and 0 <= node.allocated <= MOST_CPUS and _is_time(node.busy_s)):
        raise EscalaError(f"{quoted(node.allocated)} of {quoted(node.cpus)} CPUs, last busy at {quoted(node.busy_s)}")
    if not all(one.isprintable() for one in (*node.state, *node.partitions)):
        raise EscalaError("its state and its partitions are no words")
    return node


def unreadable(name: str, partitions: tuple[str, ...]) -> list[Node]:
    """What stands for a node that cannot be read, and is left alone; nothing where its name is none."""
    return [Node(name, 0, 0, frozenset((UNREADABLE,)), None, partitions)] if NAME.fullmatch(name) else []


def state_of(word: str) -> str:
    """Our word for Slurm's state of a job; EscalaError for one that we do not know."""
    word = word.split(" ")[0].rstrip("+")
    if word in QUEUED:
        return PENDING
    if word == "CONFIGURING":
        return BOOTING
    if word == "SUSPENDED":
        return SUSPENDED
    if word in HELD:
        return RUNNING
    if word in OVER:
        return ENDED
    raise EscalaError(f"job state {quoted(word)}: not one that this version of Escala knows")


def changes(before: Seen | None, now: Seen) -> dict[str, Any]:
    """What has changed, as plain data: all of it where nothing was seen before. Priorities and expected times, which
    change all the time, count only together with something else."""
    if before is None:
        told = {"jobs": list(map(_job_told, now.jobs.values())), "nodes": list(map(_node_told, now.nodes.values()))}
        return {"whole": True, **told, "reservations": [_told(one) for one in now.reservations.values()]}
    out: dict[str, Any] = {}
    jobs = [
        _job_told(job)
        for name, job in now.jobs.items()
        if name not in before.jobs or _lasting(before.jobs[name]) != _lasting(job)
    ]
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
            kept = {
                one[0]: Reservation(one[0], tuple(one[1]), *one[2:4], *map(tuple, one[4:]))
                for one in told["reservations"]
            }
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
