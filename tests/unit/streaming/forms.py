"""Logs that are drawn, in every format that is read in pieces, and the real ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"
BEGIN = 1_600_000_000
JOBS = 200


class Job(NamedTuple):
    name: str
    submit: int
    start: int
    end: int
    cores: int
    limit: int
    user: str
    partition: str


def jobs_of(seed: int = 1) -> list[Job]:
    """Jobs with equal submissions, ids that come again, unknown limits and runs of no time."""
    draw, at, jobs = random.Random(seed), BEGIN, []
    for k in range(JOBS):
        at += draw.choice((0, 0, 5, 40, 300))
        start = at + draw.randrange(500)
        ran = draw.choice((0, 7, 60, 500, 900))
        job = f"{1000 + k if draw.random() < 0.9 else 1000 + k // 2}"
        jobs.append(
            Job(
                job, at, start, start + ran, draw.randrange(1, 9), draw.choice((0, 600, 1200)), f"u{k % 7}", f"p{k % 3}"
            )
        )
    return jobs


def date_of(at: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _swf(jobs: list[Job]) -> str:
    lines = [
        f"{j.name} {j.submit} {j.start - j.submit} {j.end - j.start} {j.cores} -1 -1 {j.cores} {j.limit or -1} -1 1 "
        f"{j.user[1:]} 1 -1 {j.partition[1:]} -1 -1 -1"
        for j in jobs
    ]
    return "; Version: 2.2\n; MaxProcs: 32\n" + "\n".join(lines) + "\n"


def _csv(jobs: list[Job]) -> str:
    lines = [
        f"{j.name},{date_of(j.submit).replace('T', ' ')},{j.end - j.start},{j.limit or ''},{j.cores},"
        f'"{j.user}",{j.partition},"a, ""b""\nc"'
        for j in jobs
    ]
    return "job_id,submit_s,runtime_s,walltime_s,cores,user,queue,note\n" + "\n".join(lines) + "\n"


def _sacct(jobs: list[Job]) -> str:
    lines = []
    for j in jobs:
        limit = f"{j.limit // 60}:00" if j.limit else "UNLIMITED"
        ran, state = j.end - j.start, "PENDING" if j.cores == 8 else "COMPLETED"
        fields = [
            j.name,
            date_of(j.submit),
            date_of(j.start),
            date_of(j.end),
            str(ran),
            limit,
            str(j.cores),
            state,
            j.user,
            j.partition,
            "a",
            "x|y",
        ]
        lines += ["|".join(fields), "|".join([f"{j.name}.batch", *fields[1:]])]
        lines += ["|".join(fields)] if int(j.name) % 11 == 0 else []  # the same again
        lines += ["nothing"] if int(j.name) % 50 == 0 else []
        if int(j.name) % 13 == 0:
            lines += ["|".join([f"{j.name}+{k}", *fields[1:]]) for k in (0, 1)]  # a heterogeneous job
    header = "JobID|Submit|Start|End|ElapsedRaw|Timelimit|AllocCPUS|State|User|Partition|Account|JobName"
    return header + "\n" + "\n".join(lines) + "\n"


def _pbs(jobs: list[Job]) -> str:
    lines = []
    for j in sorted(jobs, key=lambda job: job.end):
        limit = f" Resource_List.walltime=00:{j.limit // 60}:00" if j.limit else ""
        stamp = date_of(j.end, "%m/%d/%Y %H:%M:%S")
        lines += [f"{stamp};S;{j.name}.head;user={j.user}"]
        lines += [
            f"{stamp};E;{j.name}.head;user={j.user} queue={j.partition} ctime={j.submit} qtime={j.submit} "
            f"etime={j.submit} start={j.start} Resource_List.nodes=1:ppn={j.cores}{limit} account=a{j.user} "
            f"end={j.end} Exit_status=0"
        ]
    return "\n".join(lines) + "\n"


def _oar(jobs: list[Job]) -> str:
    """A list, all in one line: ids come again."""
    records = [
        {
            "Job_Id": j.name,
            "owner": j.user,
            "queue": j.partition,
            "project": f"a{j.user}",
            "state": "Running" if j.cores == 8 else "Terminated",
            "submissionTime": j.submit,
            "startTime": j.start,
            "stopTime": j.end,
            "walltime": j.limit or None,
            "assigned_resources": list(range(j.cores)),
        }
        for j in jobs
    ]
    return json.dumps(records)


def _sacct_json(jobs: list[Job]) -> str:
    """All in one line, as Slurm writes it where it is to be compact."""
    records = []
    for j in jobs:
        ended = {
            "elapsed": j.end - j.start,
            "submission": j.submit,
            "eligible": j.submit,
            "start": j.start,
            "end": j.end,
        }
        limit = {"set": j.limit > 0, "infinite": j.limit == 0, "number": j.limit // 60}
        about: dict[str, Any] = {
            "job_id": int(j.name), "name": 'x|y "[{\u00e4',
            "user": j.user, "partition": j.partition, "account": "a", "qos": f"q{j.cores % 2}",
            "time": {**ended, "limit": limit}, "state": {"current": ["PENDING" if j.cores == 8 else "COMPLETED"]},
            "tres": {"allocated": [{"type": "cpu", "name": "", "count": j.cores},
                                   {"type": "gres", "name": "gpu", "count": j.cores % 3}]},
            "steps": [{"step": {"id": f"{j.name}.batch"}, "jobs": [1]}],
        }  # fmt: skip
        records += [about] * (2 if int(j.name) % 11 == 0 else 1)
        if int(j.name) % 13 == 0:
            records += [{**about, "het": {"job_id": int(j.name), "job_offset": k}} for k in (0, 1)]
    return json.dumps({"meta": {"plugin": {"type": "data_parser/v0.0.40"}, "jobs": []}, "jobs": records, "errors": []})


def batsim_of(jobs: list[Job], work: bool = False) -> str:
    """Profiles behind all jobs; an account that late jobs alone name. work: some give work, and not time."""
    listed, profiles = list[dict[str, Any]](), dict[str, Any]()
    profiles["both"] = {"type": "composed", "seq": ["d7", "d60"], "repeat": 2}
    for k, j in enumerate(jobs):
        ran = j.end - j.start
        profiles[f"d{ran}"] = {"type": "delay", "delay": ran}
        profiles[f"c{ran}"] = {"type": "parallel_homogeneous", "cpu": (ran + 1) * 1e9, "com": ran % 2}
        name = "both" if k % 9 == 3 else f"c{ran}" if work and k % 4 == 1 else f"d{ran}"
        listed.append({"id": int(j.name), "subtime": j.submit - BEGIN, "res": j.cores, "profile": name, "user": j.user})
        listed[-1] |= {"walltime": j.limit or -1, "queue": j.partition, **({"account": "a"} if k > 150 else {})}
    return json.dumps({"nb_res": 32, "jobs": listed, "profiles": profiles, "origin_s": BEGIN})


FORMS: dict[str, Callable[[list[Job]], str]] = {
    "log.swf": _swf,
    "log.csv": _csv,
    "sacct.txt": _sacct,
    "sacct.json": _sacct_json,
    "oar.json": _oar,
    "log.json": batsim_of,
    "accounting": _pbs,
}


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts come some kilobytes at a time."""
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 3000)
    monkeypatch.setattr("escala.workload.json_list.CHUNK_BYTES", 3000)
    monkeypatch.setattr("escala.workload.slurm_json.ROWS", 30)
    monkeypatch.setattr("escala.workload.oar.ROWS", 30)


LOGS = (
    ("pbs/IU-Mason-torque-accounting-201710.log.gz", "16x32", {}),
    ("slurm/xdmod-phillips.sacct.log.gz", "200x16", {}),
    ("slurm/NREL-Eagle-sample-1000.csv.gz", "2000x36", {}),
    ("slurm/SURF-Lisa-week-2022-10.csv.gz", "400x24", {}),
    ("gpu/alibaba-gpu-v2023-openb_pod_list_default.csv.gz", None, {}),
    ("swf/KTH-SP2-1996-2.swf.gz", "100x1", {"until": "1997-01-01"}),
    ("swf/CERIT-wagap-2013.swf.gz", "2176x1", {}),
)
