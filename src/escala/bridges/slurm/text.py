"""The clients' plain text: squeue with a format of ours, scontrol with one record a line; times as %s (seconds)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.seen import (
    LATEST_S,
    ON_NODES,
    Job,
    Node,
    Reservation,
    sound_job,
    sound_node,
    state_of,
    understood,
    unreadable,
)
from escala.errors import EscalaError, quoted

FORMAT = "%i|%T|%V|%S|%e|%l|%D|%C|%Q|%y|%h|%u|%P|%N|%r"
SQUEUE = ("squeue", "--noheader", "--all", "--array", "--states=all", f"--format={FORMAT}")
NODES = ("scontrol", "--oneliner", "--all", "show", "nodes")
RESERVATIONS = ("scontrol", "--oneliner", "show", "reservations")
DETAILS = ("scontrol", "--oneliner", "--details", "--all", "show", "jobs")

NOTHING = ("", "N/A", "Unknown", "None", "(null)", "0", "NONE", "INVALID")
UNLIMITED = ("UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "N/A")
WHOLE = ("NO", "EXCLUSIVE")
UNITS = {"K": 1e3, "M": 1e6, "G": 1e9}
SIGNS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN"}
SIGNS |= {"$": "MAINTENANCE", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "-": "PLANNED"}
"""What the signs behind a node's state stand for."""
_LIMIT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_NODE = re.compile(r"NodeName=(\S+).*?\bCPUAlloc=(\d+).*?\bCPUTot=(\d+).*?\bState=(\S+)")
_EFFECTIVE = re.compile(r"\bCPUEfctv=([1-9]\d*)")
_BUSY, _PARTITIONS = re.compile(r"\bLastBusyTime=(\S+)"), re.compile(r"\bPartitions=(\S+)")
_RESERVED = re.compile(r"ReservationName=(\S+) StartTime=(\S+) EndTime=(\S+).*?\bNodes=(\S+)")
_USERS = re.compile(r"\bUsers=(\S+)")
_RECORD = re.compile(r"JobId=(\d+) (?:ArrayJobId=(\d+) ArrayTaskId=(\d+) |HetJobId=(\d+) HetJobOffset=(\d+) )?")
_CPUS = re.compile(r"(?<!\S)Nodes=(\S+) CPU_IDs=(\d[\d,-]*) Mem=\d+(?: GRES=\S*)?(?!\S) *")
_DETAILS = re.compile(rf"(?:{_CPUS.pattern})+")


def lines(printed: str, what: str) -> list[str]:
    """The lines; EscalaError for an output that ends within one. Only a line feed ends one: names hold whatever else
    does elsewhere."""
    if printed and not printed.endswith("\n"):
        raise EscalaError(f"{what}: its output ends within a line: it is not used")
    return [line for line in printed.split("\n") if line.strip()]


def jobs(printed: str, left: list[str] | None = None) -> dict[str, Job]:
    """From `SQUEUE`, by id. left: gets what was left out. EscalaError where none of its lines is a job's."""
    return understood(lines(printed, "squeue"), _job, [] if left is None else left, "squeue")


def _job(line: str) -> Iterator[Job]:
    # the reason comes last, and is free text
    number, word, submit, start, end, limit, nodes, cpus, priority, nice, shared, user, partition, hosts, reason = (
        line.split("|", 14)
    )
    times = float(submit), _time(start), _time(end)
    sizes = _count(nodes), _count(cpus), int(priority), int(nice)
    told = (
        number.strip(),
        state_of(word),
        *times,
        limit_s(limit),
        *sizes,
        shared in WHOLE,
        user,
        partition,
        expand(hosts),
        reason.rstrip(),
    )
    yield sound_job(Job(*told))


def _time(text: str) -> float | None:
    return None if text in NOTHING else float(text)


def _count(text: str) -> int:
    """A number, of a range (1-4) the least; thousands may be written as 2K, and so on."""
    text = text.split("-")[0]
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1:] in UNITS else int(text)


def limit_s(text: str) -> float | None:
    """A time limit such as 1-02:00:00 or 10:00, s; None: unlimited, or of thousands of years."""
    if text in UNLIMITED:
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise EscalaError(f"squeue: time limit {quoted(text)}: not one such as 1-02:00:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    limit = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return float(limit) if limit <= LATEST_S else None


def nodes(printed: str, left: list[str] | None = None) -> dict[str, Node]:
    """From `NODES`, by name, in Slurm's order. left: gets what was left out; a node of that is there, and may not be
    used."""
    what = "scontrol show nodes"
    return understood(lines(printed, what), _node, [] if left is None else left, what, _left_alone)


def _node(line: str) -> Iterator[Node]:
    match = _NODE.match(line)
    if match is None:
        raise KeyError("NodeName")
    name, allocated, cpus, state = match.groups()
    busy, effective = _BUSY.search(line), _EFFECTIVE.search(line)
    usable = min(int(cpus), int(effective[1])) if effective else int(cpus)  # without those that are kept for the system
    yield sound_node(Node(name, usable, int(allocated), flags(state), _time(busy[1]) if busy else None, _among(line)))


def _among(line: str) -> tuple[str, ...]:
    partitions = _PARTITIONS.search(line)
    return tuple(partitions[1].split(",")) if partitions else ()


def _left_alone(line: str) -> list[Node]:
    words = line.split(maxsplit=1)
    return unreadable(words[0].removeprefix("NodeName="), _among(line)) if line.startswith("NodeName=") else []


def flags(state: str) -> frozenset[str]:
    """The parts of a state; a sign behind it becomes one of them."""
    words = frozenset(part.rstrip("".join(SIGNS)) for part in state.upper().split("+"))
    return words | {flag for sign, flag in SIGNS.items() if sign in state}


def reservations(printed: str, left: list[str] | None = None) -> dict[str, Reservation]:
    """From `RESERVATIONS`, those of whole nodes or of parts alike. left: gets what was left out; a reservation of that
    counts always. EscalaError for one whose nodes cannot be read."""
    what = "scontrol show reservations"
    found = [line for line in lines(printed, what) if not line.startswith("No reservations")]
    return understood(found, _reservation, [] if left is None else left, what, _always)


def _reservation(line: str) -> Iterator[Reservation]:
    match = _RESERVED.match(line)
    if match is None:
        raise KeyError("ReservationName")
    start, end = float(match[2]), float(match[3])
    if not (abs(start) <= LATEST_S and abs(end) <= LATEST_S):
        raise EscalaError(f"it is from {start:g} to {end:g} s")
    yield Reservation(match[1], _hosts(match), start, end, _users(line))


def _hosts(match: re.Match[str]) -> tuple[str, ...]:
    return () if match[4] in NOTHING else expand(match[4])


def _users(line: str) -> tuple[str, ...]:
    users = _USERS.search(line)
    return () if users is None or users[1] in NOTHING else tuple(users[1].split(","))


def _always(line: str) -> list[Reservation]:
    match = _RESERVED.match(line)
    if match is not None:
        return [Reservation(match[1], _hosts(match), 0.0, math.inf, _users(line))]
    if line.startswith("ReservationName="):
        raise EscalaError(f"scontrol show reservations: {quoted(line)} is no reservation: it is not used")
    return []


def parts(printed: str, jobs: Mapping[str, Job]) -> dict[str, tuple[tuple[str, int], ...]]:
    """From `DETAILS`: job -> the CPUs on each of its hosts, of jobs that are known, on the hosts that they are known to
    have.

    Names, comments and commands are free text of the jobs' owners, in the same line, and may look like anything: what
    does not fit is dropped, and so is what could be one thing or another.
    """
    told: dict[str, set[tuple[tuple[str, int], ...]]] = {}
    for record in re.split(r"(?:\A|\n)(?=JobId=\d+ )", printed):
        head = _RECORD.match(record)
        if head is None:
            continue
        number, array, task, together, offset = head.groups()
        name = f"{array}_{task}" if task else f"{together}+{offset}" if offset else number
        job = jobs.get(name)
        if job is not None and job.state in ON_NODES and job.hosts:
            told.setdefault(name, set()).update(filter(None, (_held(run[0], job) for run in _DETAILS.finditer(record))))
    found = {name: _one_of(ways, jobs[name].cpus) for name, ways in told.items()}
    return {name: held for name, held in found.items() if held}


def _one_of(ways: set[tuple[tuple[str, int], ...]], cpus: int) -> tuple[tuple[str, int], ...]:
    """The way in which a job's CPUs lie: of several, the one with as many as the job has; () where that does not
    tell."""
    likely = [way for way in ways if sum(count for _, count in way) == cpus] if len(ways) > 1 else list(ways)
    return likely[0] if len(likely) == 1 else ()


def _held(run: str, job: Job) -> tuple[tuple[str, int], ...]:
    """The CPUs on each host of a job, as a run of details tells them; () where these are not its hosts."""
    found: dict[str, int] = {}
    try:
        for hosts, ids in _CPUS.findall(run):
            names = expand(hosts, len(job.hosts))
            if not found.keys().isdisjoint(names):
                return ()
            found |= dict.fromkeys(names, _cpus(ids))
    except ValueError:  # no list of hosts, or of numbers
        return ()
    return tuple((host, found[host]) for host in job.hosts) if found.keys() == set(job.hosts) else ()


def _cpus(ids: str) -> int:
    """How many are in a list such as 0-3,8; ValueError for what is none."""
    total = 0
    for piece in ids.split(","):
        low, _, high = piece.partition("-")
        count = int(high or low) - int(low) + 1
        if count < 1:
            raise ValueError(ids)
        total += count
    return total
