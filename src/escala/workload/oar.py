"""Jobs of OAR 2.5 and 3, as its own tools export them (`oar_json` says which).

A resource counts as one core: it is the smallest thing that OAR gives away, on most sites a core. Those of other types
(VLANs, disks, licences) do not count: by the list of resources in the Gantt form, else by what the job asked. A job
whose resources are not said has as many as its request names, or as OAR counted in its message (`R=16,W=12:0:0,J=B`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from escala.errors import EscalaError
from escala.workload.asked import MOST_SLOTS
from escala.workload.asked_of_oar import Request, chosen, conditions, seconds
from escala.workload.clean import AGAIN, CONTAINER, INSIDE, SHARING, record_name
from escala.workload.columns import HOSTS
from escala.workload.filters import Keep, every
from escala.workload.oar_json import DEFAULT, SUBMIT, Job, Resource, jobs_of, resources_of
from escala.workload.shapes import BEGIN, SHAPES

NOTE = "OAR jobs in JSON"
Cores = Literal["allocated", "requested"]
Submission = Literal["submit", "eligible"]

WAITING = ("Waiting", "Hold", "toLaunch", "toError", "toAckReservation", "Launching")
RUNNING = ("Running", "Suspended", "Resuming", "Finishing")
START, STOP = ("startTime", "start_time"), ("stopTime", "stop_time")
RESOURCES = ("assigned_resources", "resource_id", "resources")
ADDRESSES = ("assigned_network_address", "network_address", "nodes")
REQUESTS = ("wanted_resources", "actual_resources", "initial_request")
MESSAGE = re.compile(r"R=(\d{1,9}),W=([\d:]{1,29}),J=")
ENDED_FROM_OUTSIDE = {"BESTEFFORT_KILL", "FRAG_JOB_REQUEST"}
ROWS = 5000  # jobs of a part

TOLD = ("on_nodes", "gpus", "licences", "constraints", "reserved", "waits_for", "group", "account", "job_name")
ASKED = ("nodes", "tasks", "cores_per_task", "tasks_per_node", "gpus_per_node", "exclusive", "array_id", BEGIN)
_NUMBERS = ("submit_s", "runtime_s", "walltime_s", "cores", "wait_s")
_TEXTS = ("job_id", "user", "queue", "status", *TOLD)
RECORD: dict[str, pl.DataType] = (
    {"line": pl.Int64()} | dict.fromkeys(_NUMBERS, pl.Float64()) | dict.fromkeys(_TEXTS, pl.String())
)
RULES = ("never started", "still running", INSIDE)
NOTES = (CONTAINER, SHARING, AGAIN)


class OarLog(NamedTuple):
    """Records for `clean`, what the reader dropped or noted, and the first of each."""

    frame: pl.DataFrame
    counts: dict[str, int]
    firsts: dict[str, str]


def read_oar(
    path: Path, cores: Cores = "allocated", submission: Submission = "submit", keep: Keep = every, shapes: bool = False
) -> OarLog:
    """All jobs. `cores`: the resources that a job got, or those that it asked for, first. `submission`: when a job
    counts as submitted; "eligible": an advance reservation when it began. `keep`: takes part of them; `shapes`: with
    nodes, tasks, GPUs, begin times and hosts."""
    log = _interpret(pl.concat(_frames(path, cores, submission, shapes)), keep)
    several = {"array_id": pl.when(pl.len().over("array_id") > 1).then("array_id")} if shapes else {}
    return log._replace(frame=log.frame.with_columns(**several))


def oar_pieces(path: Path, cores: Cores, submission: Submission, keep: Keep) -> Iterator[OarLog]:
    """The same some thousand jobs at a time, in the order of the file, which is none."""
    for frame in _frames(path, cores, submission, False):
        yield _interpret(frame, keep)


def _frames(path: Path, cores: Cores, submission: Submission, shapes: bool) -> Iterator[pl.DataFrame]:
    """Jobs as `RECORD`, with `shapes` also `ASKED` and hosts, and a column for each of `RULES` and `NOTES`."""
    if cores not in ("allocated", "requested") or submission not in ("submit", "eligible"):
        raise EscalaError(
            f"cores is {cores!r}, submission {submission!r}: give 'allocated' or 'requested', 'submit' or 'eligible'"
        )
    more = {name: SHAPES[name] for name in ASKED} | {HOSTS: pl.String()} if shapes else {}
    schema = {**RECORD, **more, **dict.fromkeys((*RULES, *NOTES), pl.Boolean())}
    known = resources_of(path)
    rows = (_row(job, known, cores == "requested", submission == "eligible", shapes) for job in jobs_of(path))
    while some := list(itertools.islice(rows, ROWS)):
        yield pl.DataFrame(some, schema=schema, orient="row")


def _interpret(frame: pl.DataFrame, keep: Keep) -> OarLog:
    frame = keep(frame, 0.0)
    counts: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for rule in (*RULES, *NOTES):
        which = frame[rule]
        if which.any():
            counts[rule], firsts[rule] = int(which.sum()), record_name(frame, int(which.arg_max() or 0))
        if rule in RULES:
            frame = frame.filter(~pl.col(rule))
    return OarLog(frame.drop(*RULES, *NOTES), counts, firsts)


def _row(job: Job, known: Mapping[str, Resource], asked_first: bool, late: bool, shapes: bool) -> dict[str, Any]:
    """A job of `_frames`."""
    state, types, message = job.text("state") or "", _types(job), MESSAGE.match(job.text("message") or "")
    _check(job, state)
    submit, start, stop = job.moment(*SUBMIT), job.moment(*START), job.moment(*STOP)
    limit = _limit(job, message)
    request = chosen(job.text(*REQUESTS) or "", limit)
    limit = request.limit_s if limit is None and request else limit
    given = job.names(*RESOURCES)
    computing = None if given is None else [one for one in given if one not in known or known[one].type == DEFAULT]
    others = request.others if request and not known else 0
    cores = _cores(computing, request, message, others, asked_first)
    reserved = job.text("reservation") == "Scheduled"
    begin = start if reserved else None
    if late and begin is not None and submit is not None:
        submit = max(submit, begin)
    ran = stop - start if start is not None and stop is not None else None
    waiting = state in WAITING or start is None or given == [] or job.text("assigned_moldable_job") == "0"
    row: dict[str, Any] = {
        "line": job.line,
        "job_id": job.job_id,
        "submit_s": submit,
        "runtime_s": ran,
        "walltime_s": limit,
        "cores": cores,
        "user": job.text("owner", "user", "job_user"),
        "wait_s": start - submit if start is not None and submit is not None else None,
        "queue": job.text("queue", "queue_name"),
        "status": _status(job, state, ran, limit),
        **_told(job, request, shapes),
        "reserved": "yes" if reserved else None,
        "never started": waiting,
        "still running": not waiting and (state in RUNNING or (not state and stop is None)),
        INSIDE: "inner" in types,
        CONTAINER: "container" in types,
        SHARING: not types.isdisjoint(("timesharing", "allowed")),
        AGAIN: job.text("resubmit_job_id") not in (None, "0"),
    }
    if shapes:
        row |= _shape(request, cores) | {"array_id": job.text("array_id"), BEGIN: None if late else begin}
        row[HOSTS] = _hosts(computing or [], job.names(*ADDRESSES) or [], known)
    return row


def _check(job: Job, state: str) -> None:
    """EscalaError for a job that ended and does not say when, since it was exported in short."""
    missing = next((names[-1] for names in (SUBMIT, START, STOP) if not job.has(*names)), None)
    if missing and state not in (*WAITING, *RUNNING):
        raise job.wrong(f"has no {missing}", "export all fields, oarstat -f -J, or details of the API")


def _types(job: Job) -> set[str]:
    """`inner`, `container`, `besteffort`, ..., without what stands behind `=`."""
    told = job.names("types")
    if told is None:
        _, sign, text = (job.text("message") or "").partition(",T=")
        told = re.split(r"[|,]", text.partition(" (")[0]) if sign else []
    return {one.partition("=")[0].strip() for one in told}


def _limit(job: Job, message: re.Match[str] | None) -> float | None:
    """The walltime, s, of its field or of the message."""
    told = job.text("walltime")
    if told and ":" in told:
        limit: float | None = seconds(told)
    else:
        limit = job.number("walltime")
        limit = seconds(message[2]) if limit is None and message else limit
    return None if limit is None or math.isnan(limit) else limit


def _cores(
    computing: list[str] | None, request: Request | None, message: re.Match[str] | None, others: int, asked_first: bool
) -> float | None:
    """others: resources of other types, where the list does not say of which each is."""
    given = None if computing is None else float(max(len(set(computing)) - others, 0))
    asked = float(request.units) if request and request.in_cores and request.units else None
    if asked is None and message:
        asked = float(max(int(message[1]) - (request.others if request else 0), 0)) or None
    first, second = (asked, given) if asked_first else (given, asked)
    return second if first is None else first


def _status(job: Job, state: str, ran: float | None, limit: float | None) -> str | None:
    """OAR ends a job that reaches its walltime in the state Error."""
    if state not in ("Terminated", "Error"):
        return None
    if state == "Terminated" and job.text("exit_code") in (None, "0"):
        return "COMPLETED"
    if ran is not None and limit is not None and ran >= limit:
        return "TIMEOUT"
    return "CANCELLED" if state == "Error" and job.events() & ENDED_FROM_OUTSIDE else "FAILED"


def _told(job: Job, request: Request | None, shapes: bool) -> dict[str, str | None]:
    """Names, and what no replay looks at, or none of jobs that were read without `shapes`."""
    wanted = [conditions(job.text("properties") or ""), request.features if request else None]
    return {
        "on_nodes": str(request.hosts) if request and request.hosts and not shapes else None,
        "gpus": str(request.gpus) if request and request.gpus else None,
        "licences": str(request.licences) if request and request.licences else None,
        "constraints": next((one for one in wanted if one), None),
        "waits_for": " ".join(job.names("dependencies") or []) or None,
        "group": job.text("group", "job_group"),
        "account": job.text("project"),
        "job_name": job.text("name", "job_name"),
    }


def _shape(request: Request | None, cores: float | None) -> dict[str, int | bool | None]:
    """Nodes, where the request names hosts; its smallest things are tasks, with as many cores each as it got."""
    shape: dict[str, int | bool | None] = dict.fromkeys(ASKED)
    if request is None:
        return shape
    units, hosts = request.units, request.hosts
    shape["nodes"], shape["exclusive"] = hosts, request.whole or None
    if units and cores and math.isfinite(cores) and cores % units == 0:
        shape["tasks"], shape["cores_per_task"] = units, int(cores) // units
        shape["tasks_per_node"] = units // hosts if hosts and request.one else None
    if hosts and request.one and request.gpus:
        shape["gpus_per_node"] = -(-request.gpus // hosts)
    return shape


def _hosts(computing: list[str], addresses: list[str], known: Mapping[str, Resource]) -> str | None:
    """Where it ran: a name for each core where the resources are listed, else one for each host."""
    listed = [known[one].host for one in dict.fromkeys(computing) if one in known]
    names = [one for one in listed if one] or list(dict.fromkeys(addresses))
    if not names or not all(re.fullmatch(r"[\w.:-]+", one) for one in names):
        return None
    return ",".join(names[:MOST_SLOTS])
