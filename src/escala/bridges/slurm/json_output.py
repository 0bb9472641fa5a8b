"""The clients' JSON: numbers are plain in 22.05, {set, infinite, number} from data_parser v0.0.39 on; states are words
or lists of words.

squeue --json lists finished jobs for MinJobAge, and arrays as one record: the text is read faster, and is the first
choice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.seen import (
    LATEST_S,
    MOST_WHOLE,
    Job,
    Node,
    Reservation,
    sound_job,
    sound_node,
    state_of,
    understood,
    unreadable,
)
from escala.errors import EscalaError, one_line, quoted

DEEPEST = 32
MOST_JOBS, MOST_TASKS = 1_000_000, 100_000


def number(told: Any) -> float | None:
    """A number in any of the forms; None: not set, math.inf: infinite, or more than a float holds."""
    if isinstance(told, dict):
        if told.get("infinite"):
            return math.inf
        told = told.get("number") if told.get("set", True) else None
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        return float(told)
    except OverflowError:
        return math.inf


def whole(told: Any) -> int | None:
    """A whole number; None: not set. EscalaError for an infinite one, or one larger than any of Slurm's."""
    found = number(told)
    if found is None:
        return None
    if not abs(found) <= MOST_WHOLE:
        raise EscalaError(f"{quoted(told)}: larger than any number of Slurm")
    return int(found)


def words(told: Any) -> list[str]:
    """A word, or a list of them, in capitals."""
    found = told if isinstance(told, list) else [told]
    if not all(isinstance(word, str) for word in found):
        raise EscalaError(f"state {quoted(told)}: no word and no list of words")
    return [word.upper() for word in found]


def first_error(told: Any) -> str:
    """What the first of an answer's errors says; empty where it has none."""
    errors = told.get("errors") if isinstance(told, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else errors
    named = (first.get("description") or first.get("error")) if isinstance(first, dict) else None
    return one_line(str(named or first))[:200] if first else ""


def parsed(printed: str, what: str, key: str) -> list[dict[str, Any]]:
    """The records under a key; EscalaError for another document."""
    try:
        told = json.loads(printed)
    except (ValueError, RecursionError):
        raise EscalaError(f"{what}: its output is no JSON: it is not used") from None
    if wrong := first_error(told):  # 23.02 without slurmdbd lists one job, and ends well
        raise EscalaError(f"{what}: Slurm says that its answer is not whole: {wrong}: use --read text")
    records = told.get(key) if isinstance(told, dict) else None
    if (
        not isinstance(records, list)
        or len(records) > MOST_JOBS
        or not all(isinstance(record, dict) for record in records)
    ):
        raise EscalaError(f"{what}: its JSON has no list of {key}: use --read text")
    return records


def jobs(
    printed: str, what: str = "squeue --json", left: list[str] | None = None
) -> tuple[dict[str, Job], dict[str, tuple[tuple[str, int], ...]]]:
    """From squeue --json, or slurmrestd: jobs by id, and the CPUs of each on its hosts where they are told. left: gets
    what was left out."""
    parts: dict[str, tuple[tuple[str, int], ...]] = {}

    def read(record: dict[str, Any]) -> Iterator[Job]:
        held = _parts(record)
        for job in _jobs(record):
            yield job
            if held:
                parts[job.job_id] = held

    records = parsed(printed, what, "jobs")
    found = understood(records, read, [] if left is None else left, what, called=lambda record: record.get("job_id"))
    return found, {name: held for name, held in parts.items() if name in found}


def _jobs(record: dict[str, Any]) -> list[Job]:
    """A job; a waiting array's tasks one by one."""
    state = next((state for word in words(record["job_state"]) if (state := _known(word)) is not None), None)
    if state is None:
        raise EscalaError(f"job state {quoted(record['job_state'])}: not one that this version of Escala knows")
    limit, shared = number(record.get("time_limit")), record.get("shared")
    job = Job(
        str(int(_needed(record, "job_id"))),
        state,
        _needed(record, "submit_time"),
        _time(record.get("start_time")),
        _time(record.get("end_time")),
        None if not limit or limit * 60.0 > LATEST_S else limit * 60.0,
        whole(record.get("node_count")) or 1,
        int(_needed(record, "cpus")),
        0 if record.get("hold") is True else whole(record.get("priority")) or 0,
        whole(record.get("nice")) or 0,
        shared in ("none", "exclusive") or bool({"NONE", "EXCLUSIVE"} & set(words(shared or []))),
        str(record.get("user_name") or record.get("user_id") or ""),
        str(record.get("partition") or ""),
        expand(str(record.get("nodes") or "")) if state != "pending" else (),
        str(record.get("state_reason") or "None"),
    )
    return [sound_job(job._replace(job_id=name)) for name in _names(record, job.job_id)]


def _names(record: dict[str, Any], own: str) -> list[str]:
    """As squeue shows them: a job's own, an array's tasks', a component's."""
    base, task, tasks = (
        whole(record.get("array_job_id")),
        whole(record.get("array_task_id")),
        record.get("array_task_string") or "",
    )
    if base and task is not None:
        return [f"{base}_{task}"]
    if base and tasks:
        return [f"{base}_{k}" for k in _tasks(tasks)]
    together = whole(record.get("het_job_id"))
    return [f"{together}+{whole(record.get('het_job_offset')) or 0}"] if together else [own]


def _known(word: str) -> str | None:
    try:
        return state_of(word)
    except EscalaError:
        return None


def _needed(record: dict[str, Any], key: str) -> float:
    found = number(record.get(key))
    if found is None or not math.isfinite(found):
        raise EscalaError(f"{key} is {quoted(record.get(key))}")
    return found


def _time(told: Any) -> float | None:
    found = number(told)
    return None if not found or found == math.inf else found  # 0: there is none


def _tasks(text: str) -> list[int]:
    """Of an array, such as 1-3,7 or 1-9%2; a list that Slurm has cut short (...) is refused."""
    out: list[int] = []
    for piece in text.partition("%")[0].split(","):
        low, _, rest = piece.partition("-")
        high, _, step = rest.partition(":")
        out += range(int(low), int(high or low) + 1, int(step or 1))
        if len(out) > MOST_TASKS:
            raise EscalaError(f"array of tasks {quoted(text)}: more than {MOST_TASKS}")
    return out


def _parts(record: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    resources = record.get("job_resources") or {}
    told = resources.get("allocated_nodes")  # 22.05
    if isinstance(told, list):
        return tuple((str(one["nodename"]), _cores(one.get("sockets"))) for one in told)
    nodes = resources.get("nodes")
    told = nodes.get("allocation") if isinstance(nodes, dict) else None
    return tuple((str(one["name"]), whole((one.get("cpus") or {}).get("count")) or 0) for one in told or ())


def _cores(sockets: Any) -> int:
    listed = sockets.values() if isinstance(sockets, dict) else sockets or ()
    return sum(len(socket.get("cores") or ()) for socket in listed)


def nodes(printed: str, what: str = "nodes as JSON", left: list[str] | None = None) -> dict[str, Node]:
    """From scontrol show nodes --json (23.02 and later), sinfo --json (22.05), or slurmrestd. left: gets what was left
    out; a node of that is there, and may not be used."""
    records = parsed(printed, what, "nodes")
    return understood(
        records, _node, [] if left is None else left, what, _left_alone, lambda record: record.get("name")
    )


def _node(record: dict[str, Any]) -> Iterator[Node]:
    state = frozenset(words(record["state"]) + words(record.get("state_flags") or []))
    busy, allocated = number(record.get("last_busy")), whole(record.get("alloc_cpus")) or 0
    yield sound_node(Node(str(record["name"]), _usable(record), allocated, state, busy or None, _among(record)))


def _usable(record: dict[str, Any]) -> int:
    """A node's CPUs, without those that are kept for the system; 22.05 says these among what may be counted only
    (cpu=4,mem=...)."""
    cpus, effective = whole(record["cpus"]) or 0, whole(record.get("effective_cpus"))
    counted = re.match(r"cpu=(\d{1,9})\b", str(record.get("tres") or ""))
    return min(cpus, effective or (int(counted[1]) if counted else 0) or cpus)


def _among(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, record.get("partitions") or ()))


def _left_alone(record: dict[str, Any]) -> list[Node]:
    partitions = record.get("partitions")
    return unreadable(str(record.get("name")), _among(record) if isinstance(partitions, list) else ())


def reservations(printed: str, what: str = "reservations as JSON") -> dict[str, Reservation]:
    """From slurmrestd. EscalaError for one that cannot be read: its nodes would seem to be free."""
    found = {}
    for record in parsed(printed, what, "reservations"):
        try:
            name, hosts = str(record["name"]), expand(str(record.get("node_list") or ""))
            start, end = number(record["start_time"]), number(record["end_time"])
        except KeyError as error:
            raise EscalaError(f"{what}: {quoted(record.get('name'))} has no {error.args[0]}: use --read text") from None
        users = tuple(filter(None, str(record.get("users") or "").split(",")))
        start = start if start is not None and 0.0 <= start <= LATEST_S else 0.0
        found[name] = Reservation(
            name, hosts, start, end if end is not None and abs(end) <= LATEST_S else math.inf, users
        )
    return found
