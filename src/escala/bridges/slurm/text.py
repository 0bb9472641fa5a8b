"""The clients' plain text: squeue with a format of ours, scontrol with one record a line; times as %s (seconds)."""

from __future__ import annotations

import re

from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.seen import Job, Node, Reservation, state_of
from escala.errors import EscalaError, quoted

FORMAT = "%i|%T|%V|%S|%e|%l|%D|%C|%Q|%y|%h|%u|%P|%N|%r"
SQUEUE = ("squeue", "--noheader", "--all", "--array", "--states=all", f"--format={FORMAT}")
NODES = ("scontrol", "--oneliner", "--all", "show", "nodes")
RESERVATIONS = ("scontrol", "--oneliner", "show", "reservations")
DETAILS = ("scontrol", "--oneliner", "--details", "--all", "show", "jobs")

NOTHING = ("", "N/A", "Unknown", "None", "(null)", "0", "NONE", "INVALID")
UNLIMITED = ("UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "N/A")
WHOLE = ("NO", "EXCLUSIVE")
_LIMIT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_NODE = re.compile(r"\bNodeName=(\S+).*?\bCPUAlloc=(\d+).*?\bCPUTot=(\d+).*?\bState=(\S+)")
_BUSY, _PARTITIONS = re.compile(r"\bLastBusyTime=(\S+)"), re.compile(r"\bPartitions=(\S+)")
_RESERVED = re.compile(r"\bReservationName=(\S+) StartTime=(\S+) EndTime=(\S+).*?\bNodes=(\S+)")
_USERS = re.compile(r"\bUsers=(\S+)")
_NUMBER, _TASK = re.compile(r"\bJobId=(\d+)"), re.compile(r"\bArrayJobId=(\d+) ArrayTaskId=(\d+)\b")
_CPUS = re.compile(r"\bNodes=(\S+) CPU_IDs=([\d,-]+)")


def lines(printed: str, what: str) -> list[str]:
    """The lines; EscalaError for an output that ends within one."""
    if printed and not printed.endswith("\n"):
        raise EscalaError(f"{what}: its output ends within a line: it is not used")
    return [line for line in printed.splitlines() if line.strip()]


def jobs(printed: str) -> dict[str, Job]:
    """From `SQUEUE`, by id; EscalaError for a line that is none of its."""
    found = {}
    for line in lines(printed, "squeue"):
        job = _job(line)
        found[job.job_id] = job
    return found


def _job(line: str) -> Job:
    fields = line.split("|")
    if len(fields) != 15:
        raise EscalaError(f"squeue: {quoted(line)} has {len(fields)} fields instead of 15: it is not used")
    number, word, submit, start, end, limit, nodes, cpus, priority, nice, shared, user, partition, hosts, reason = fields
    try:
        return Job(
            number.strip(),
            state_of(word),
            float(submit),
            _time(start),
            _time(end),
            limit_s(limit),
            _count(nodes),
            _count(cpus),
            int(priority),
            int(nice),
            shared in WHOLE,
            user,
            partition,
            expand(hosts),
            reason,
        )
    except ValueError as error:
        if isinstance(error, EscalaError):
            raise
        raise EscalaError(f"squeue: {quoted(line)} is no job: it is not used") from None


def _time(text: str) -> float | None:
    return None if text in NOTHING else float(text)


def _count(text: str) -> int:
    """A number, of a range (1-4) the least; thousands may be written as 2K."""
    text = text.split("-")[0]
    return int(float(text[:-1]) * 1000) if text.endswith("K") else int(text)


def limit_s(text: str) -> float | None:
    """A time limit such as 1-02:00:00 or 10:00, s; None: unlimited."""
    if text in UNLIMITED:
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise EscalaError(f"squeue: time limit {quoted(text)}: not one such as 1-02:00:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def nodes(printed: str) -> dict[str, Node]:
    """From `NODES`, by name, in Slurm's order."""
    found = {}
    for line in lines(printed, "scontrol show nodes"):
        match = _NODE.search(line)
        if match is None:
            raise EscalaError(f"scontrol show nodes: {quoted(line)} is no node: it is not used")
        name, allocated, cpus, state = match.groups()
        busy, partitions = _BUSY.search(line), _PARTITIONS.search(line)
        try:
            since = _time(busy[1]) if busy else None
        except ValueError:
            raise EscalaError(f"scontrol show nodes: LastBusyTime of {quoted(name)} is not in seconds: it is not used") from None
        among = tuple(partitions[1].split(",")) if partitions else ()
        found[name] = Node(name, int(cpus), int(allocated), flags(state), since, among)
    return found


def flags(state: str) -> frozenset[str]:
    """The parts of a state; the sign for a node that does not answer becomes one of them."""
    words = frozenset(part.rstrip("*~#%$@!^-") for part in state.upper().split("+"))
    return words | {"NOT_RESPONDING"} if "*" in state else words


def reservations(printed: str) -> dict[str, Reservation]:
    """From `RESERVATIONS`, those of whole nodes or of parts alike."""
    found = {}
    for line in lines(printed, "scontrol show reservations"):
        if line.startswith("No reservations"):
            continue
        match = _RESERVED.search(line)
        if match is None:
            raise EscalaError(f"scontrol show reservations: {quoted(line)} is no reservation: it is not used")
        try:
            hosts = () if match[4] in NOTHING else expand(match[4])
            users = _USERS.search(line)
            among = () if users is None or users[1] in NOTHING else tuple(users[1].split(","))
            found[match[1]] = Reservation(match[1], hosts, float(match[2]), float(match[3]), among)
        except EscalaError:
            raise
        except ValueError:
            raise EscalaError(f"scontrol show reservations: {quoted(line)} has no times in seconds: it is not used") from None
    return found


def parts(printed: str) -> dict[str, tuple[tuple[str, int], ...]]:
    """From `DETAILS`: job -> the CPUs on each of its hosts."""
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for line in lines(printed, "scontrol show jobs"):
        number, task = _NUMBER.search(line), _TASK.search(line)
        held = tuple((host, _cpus(ids)) for hosts, ids in _CPUS.findall(line) for host in expand(hosts))
        if number is not None and held:
            found[f"{task[1]}_{task[2]}" if task else number[1]] = held
    return found


def _cpus(ids: str) -> int:
    """How many are in a list such as 0-3,8."""
    total = 0
    for piece in ids.split(","):
        low, _, high = piece.partition("-")
        total += int(high or low) - int(low) + 1
    return total
