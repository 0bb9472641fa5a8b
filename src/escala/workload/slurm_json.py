"""`sacct --json`: its records as the text fields of `sacct -P`, of any of its data parsers.

Numbers are plain (Slurm 22.05) or `{set, infinite, number}` (23.02 and later), states a word or a list of words; what
is missing is empty.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import EscalaError
from escala.reading import BOM, read_head
from escala.workload.json_list import Entry, entries

FIELDS = (
    *(
        "jobid",
        "jobidraw",
        "submit",
        "eligible",
        "start",
        "end",
        "elapsedraw",
        "timelimitraw",
        "reqcpus",
        "nnodes",
        "state",
        "user",
    ),
    *(
        "partition",
        "nodelist",
        "account",
        "qos",
        "group",
        "jobname",
        "priority",
        "constraints",
        "licenses",
        "reservation",
    ),
    *("alloctres", "reqtres", "reqmem", "submitline", "arraytaskthrottle"),
)
HINT = "export with sacct --json, or sacct --parsable2"
ROWS = 5000  # jobs of a part
NAMED = re.compile(r'"job_id"\s*:\s*(\d+)')
MOST = 1e15
PER_CORE = 2**63
"""How a number of memory says that it is one of a core."""


def is_sacct_json(head: str) -> bool:
    """Do these first characters look like what sacct prints with --json?"""
    return re.search(r'"(plugin|data_parser|allocation_nodes|association|kill_request_user)"\s*:', head) is not None


def is_json(path: Path) -> bool:
    """Does a listing of sacct begin as JSON does?"""
    return read_head(path).removeprefix(BOM).lstrip().startswith(b"{")


def json_frames(path: Path) -> Iterator[pl.DataFrame]:
    """One row a job, some jobs at a time: `FIELDS` as text, and `line`, where its record names the job. EscalaError for
    JSON that is something else."""
    records, there = (_record(entry, path) for entry in entries(path, "jobs", HINT)), False
    while rows := list(itertools.islice(records, ROWS)):
        there = True
        yield pl.DataFrame(rows, schema={**dict.fromkeys(FIELDS, pl.String), "line": pl.Int64}, orient="row")
    if not there:
        raise EscalaError(f"{path}: has no jobs: export with at least one")


def _record(entry: Entry, path: Path) -> tuple[Any, ...]:
    """The fields of a job, and the line that names it."""
    if not isinstance(entry.value, Mapping):
        raise EscalaError(f"{path}: is JSON without a list of jobs: {HINT}")
    row = _row(entry.value)
    at = next((match.start() for match in NAMED.finditer(entry.text) if match[1] == row["jobidraw"]), 0)
    return *(row[name] for name in FIELDS), entry.line + entry.text.count("\n", 0, at)


def _row(job: Mapping[str, Any]) -> dict[str, str]:
    """One record. A time of 0 is none."""
    time, wanted, owner = _table(job, "time"), _table(job, "required"), _table(job, "association")
    tres, states = _table(job, "tres"), _table(job, "state").get("current", "")
    state = states[0] if isinstance(states, list) and states else states
    at = {
        name: _number(time.get(key))
        for name, key in (("submit", "submission"), ("eligible", "eligible"), ("start", "start"), ("end", "end"))
    }
    limit = time.get("limit")
    endless = isinstance(limit, Mapping) and bool(limit.get("infinite"))
    return {
        "jobid": _job_id(job),
        "jobidraw": _number(job.get("job_id")),
        **{name: "" if value == "0" else value for name, value in at.items()},
        "elapsedraw": _number(time.get("elapsed")),
        "timelimitraw": "UNLIMITED" if endless else _number(limit),
        "reqcpus": _number(wanted.get("CPUs")),
        "nnodes": _number(job.get("allocation_nodes")),
        "state": _word(state),
        "user": _word(job.get("user")) or _word(owner.get("user")),
        "partition": _word(job.get("partition")) or _word(owner.get("partition")),
        "nodelist": _word(job.get("nodes")),
        "account": _word(job.get("account")) or _word(owner.get("account")),
        "qos": _word(job.get("qos")),
        "group": _word(job.get("group")),
        "jobname": _word(job.get("name")),
        "priority": _number(job.get("priority")),
        "constraints": _word(job.get("constraints")),
        "licenses": _word(job.get("licenses")),
        "reservation": _word(_table(job, "reservation").get("name")),
        "alloctres": _tres(tres.get("allocated")),
        "reqtres": _tres(tres.get("requested")),
        "reqmem": _memory(wanted),
        "submitline": _word(job.get("submit_line")),
        "arraytaskthrottle": _throttle(_table(job, "array")),
    }


def _table(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = job.get(name)
    return value if isinstance(value, Mapping) else {}


def _word(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _number(value: Any) -> str:
    """A number as text without an exponent; "" where it is not set, not one, or beyond all that is counted."""
    if isinstance(value, Mapping):
        return "" if value.get("infinite") or not value.get("set", True) else _number(value.get("number"))
    if isinstance(value, float):
        return f"{value:f}" if abs(value) < MOST else ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _job_id(job: Mapping[str, Any]) -> str:
    """As sacct writes it: 12, 12_3 (a task of an array), 12+1 (a component of a heterogeneous job)."""
    array, parts = _table(job, "array"), _table(job, "het")
    task, whole = _number(array.get("task_id")), _number(array.get("job_id"))
    if task and whole not in ("", "0"):
        return f"{whole}_{task}"
    whole, offset = _number(parts.get("job_id")), _number(parts.get("job_offset"))
    return f"{whole}+{offset}" if offset and whole not in ("", "0") else _number(job.get("job_id"))


def _throttle(array: Mapping[str, Any]) -> str:
    """How many tasks of an array may run at one time; 0 or nothing: any number."""
    return _number(_table(_table(_table(array, "limits"), "max"), "running").get("tasks"))


def _tres(entries: Any) -> str:
    """`cpu=8,mem=400M,gres/gpu:a100=2` of a list of {type, name, count}."""
    found = []
    for one in entries if isinstance(entries, list) else ():
        count = _number(one.get("count")) if isinstance(one, Mapping) else ""
        if count:
            name = f"{_word(one.get('type'))}/{_word(one.get('name'))}".rstrip("/")
            found.append(f"{name}={count}{'M' if name == 'mem' else ''}")
    return ",".join(found)


def _memory(wanted: Mapping[str, Any]) -> str:
    """`2000Mc` or `4000Mn`."""
    core, node, both = (_number(wanted.get(name)) for name in ("memory_per_cpu", "memory_per_node", "memory"))
    if core not in ("", "0") or node not in ("", "0"):
        return f"{core}Mc" if core not in ("", "0") else f"{node}Mn"
    number = int(both.partition(".")[0] or 0)
    return f"{number - PER_CORE}Mc" if number >= PER_CORE else f"{number}Mn" if number else ""
