"""The clients' JSON: numbers are plain in 22.05, {set, infinite, number} from data_parser v0.0.39 on; states are words or lists of words.

squeue --json lists finished jobs for MinJobAge, and arrays as one record: the text is read faster, and is the first choice.
"""

from __future__ import annotations

import json
import math
from typing import Any

from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.seen import Job, Node, Reservation, state_of
from escala.errors import EscalaError, quoted

DEEPEST = 32
MOST_JOBS, MOST_TASKS = 1_000_000, 100_000


def number(told: Any) -> float | None:
    """A number in any of the forms; None: not set, math.inf: infinite."""
    if isinstance(told, dict):
        if told.get("infinite"):
            return math.inf
        told = told.get("number") if told.get("set", True) else None
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told)


def words(told: Any) -> list[str]:
    """A word, or a list of them, in capitals."""
    found = told if isinstance(told, list) else [told]
    if not all(isinstance(word, str) for word in found):
        raise EscalaError(f"state {quoted(told)}: no word and no list of words")
    return [word.upper() for word in found]


def parsed(printed: str, what: str, key: str) -> list[dict[str, Any]]:
    """The records under a key; EscalaError for another document."""
    try:
        told = json.loads(printed)
    except (ValueError, RecursionError):
        raise EscalaError(f"{what}: its output is no JSON: it is not used") from None
    records = told.get(key) if isinstance(told, dict) else None
    if not isinstance(records, list) or len(records) > MOST_JOBS or not all(isinstance(record, dict) for record in records):
        raise EscalaError(f"{what}: its JSON has no list of {key}: use --read text")
    return records


def jobs(printed: str, what: str = "squeue --json") -> tuple[dict[str, Job], dict[str, tuple[tuple[str, int], ...]]]:
    """From squeue --json, or slurmrestd: jobs by id, and the CPUs of each on its hosts where they are told."""
    found: dict[str, Job] = {}
    parts: dict[str, tuple[tuple[str, int], ...]] = {}
    for record in parsed(printed, what, "jobs"):
        try:
            for job in _jobs(record):
                found[job.job_id] = job
                if held := _parts(record):
                    parts[job.job_id] = held
        except EscalaError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError):
            raise EscalaError(f"{what}: job {quoted(record.get('job_id'))} is told in a way that is not known: use --read text") from None
    return found, parts


def _jobs(record: dict[str, Any]) -> list[Job]:
    """A job; a waiting array's tasks one by one."""
    base, task, tasks = number(record.get("array_job_id")), number(record.get("array_task_id")), record.get("array_task_string") or ""
    own = str(int(_needed(record, "job_id")))
    if base and task is not None:
        names = [f"{base:.0f}_{task:.0f}"]
    elif base and tasks:
        names = [f"{base:.0f}_{k}" for k in _tasks(tasks)]
    else:
        names = [own]
    state = next((state for word in words(record["job_state"]) if (state := _known(word)) is not None), None)
    if state is None:
        raise EscalaError(f"job state {quoted(record['job_state'])}: not one that this version of Escala knows")
    limit, nice, shared = number(record.get("time_limit")), number(record.get("nice")), record.get("shared")
    job = Job(
        own,
        state,
        _needed(record, "submit_time"),
        _time(record.get("start_time")),
        _time(record.get("end_time")),
        None if not limit or limit == math.inf else limit * 60.0,
        int(number(record.get("node_count")) or 1),
        int(_needed(record, "cpus")),
        0 if record.get("hold") is True else int(number(record.get("priority")) or 0),
        int(nice or 0),
        shared in ("none", "exclusive") or bool({"NONE", "EXCLUSIVE"} & set(words(shared or []))),
        str(record.get("user_name") or record.get("user_id") or ""),
        str(record.get("partition") or ""),
        expand(str(record.get("nodes") or "")) if state != "pending" else (),
        str(record.get("state_reason") or "None"),
    )
    return [job._replace(job_id=name) for name in names]


def _known(word: str) -> str | None:
    try:
        return state_of(word)
    except EscalaError:
        return None


def _needed(record: dict[str, Any], key: str) -> float:
    found = number(record.get(key))
    if found is None or found == math.inf:
        raise EscalaError(f"jobs as JSON: {key} of job {quoted(record.get('job_id'))} is {quoted(record.get(key))}: use --read text")
    return found


def _time(told: Any) -> float | None:
    found = number(told)
    return None if not found or found == math.inf else found


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
    return tuple((str(one["name"]), int(number((one.get("cpus") or {}).get("count")) or 0)) for one in told or ())


def _cores(sockets: Any) -> int:
    listed = sockets.values() if isinstance(sockets, dict) else sockets or ()
    return sum(len(socket.get("cores") or ()) for socket in listed)


def nodes(printed: str, what: str = "nodes as JSON") -> dict[str, Node]:
    """From scontrol show nodes --json (23.02 and later), sinfo --json (22.05), or slurmrestd."""
    found = {}
    for record in parsed(printed, what, "nodes"):
        try:
            state = frozenset(words(record["state"]) + words(record.get("state_flags") or []))
            busy = number(record.get("last_busy"))
            name, cpus = str(record["name"]), int(number(record["cpus"]) or 0)
            allocated = int(number(record.get("alloc_cpus")) or 0)
            found[name] = Node(name, cpus, allocated, state, busy or None, tuple(map(str, record.get("partitions") or ())))
        except EscalaError:
            raise
        except (TypeError, ValueError, KeyError):
            name = quoted(record.get("name"))
            raise EscalaError(f"{what}: {name} is told in a way that is not known: use --read text") from None
    return found


def reservations(printed: str, what: str = "reservations as JSON") -> dict[str, Reservation]:
    """From slurmrestd."""
    found = {}
    for record in parsed(printed, what, "reservations"):
        try:
            name, hosts = str(record["name"]), expand(str(record.get("node_list") or ""))
            start, end = number(record["start_time"]), number(record["end_time"])
        except KeyError as error:
            raise EscalaError(f"{what}: {quoted(record.get('name'))} has no {error.args[0]}: use --read text") from None
        users = tuple(filter(None, str(record.get("users") or "").split(",")))
        found[name] = Reservation(name, hosts, start or 0.0, math.inf if end is None else end, users)
    return found
