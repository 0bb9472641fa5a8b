"""What a real Batsim 4.2 said, and what its scheduler replied, message by message (`messages.csv.gz` of the golden
runs)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.golden.runs import numbers, rows_of, text_of

Decisions = tuple[dict[str, list[int]], dict[int, str]]
"""Job -> hosts; host -> state."""


@dataclass
class Exchange:
    """A message of Batsim, and what was decided."""

    now_s: float
    told: list[dict[str, Any]] = field(default_factory=list)
    starts: dict[str, list[int]] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)


def begins(folder: Path) -> dict[str, Any]:
    """SIMULATION_BEGINS of a golden run, made from its platform file: the recording names it only."""
    root = ElementTree.fromstring(text_of(folder / "platform.xml.gz").strip())
    hosts = sorted(
        (host for host in root.iter("host") if host.get("id") != "master_host"), key=lambda host: host.get("id", "")
    )
    resources = [
        {
            "id": number,
            "name": host.get("id"),
            "state": "idle",
            "properties": {prop.get("id"): prop.get("value") for prop in host.iter("prop")},
            "zone_properties": {},
        }
        for number, host in enumerate(hosts)
    ]
    data = {"nb_compute_resources": len(resources), "compute_resources": resources, "config": {"redis-enabled": False}}
    return {"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": data}


def exchanges(folder: Path) -> Iterator[Exchange]:
    """The recorded messages, with all that they held."""
    jobs = {str(job["id"]): job for job in json.loads(text_of(folder / "workload.json.gz"))["jobs"]}
    current, number = Exchange(0.0), "0"
    for row in rows_of(folder / "messages.csv.gz"):
        if row["message"] != number:
            yield current
            current, number = Exchange(float(row["now"])), row["message"]
        kind, subject, detail = row["event"], row["subject"], row["detail"]
        if row["direction"] == "B":
            current.told.append(
                {"timestamp": float(row["now"]), "type": kind, "data": _data(kind, subject, detail, jobs)}
            )
            if kind == "SIMULATION_BEGINS":
                current.told[-1] = begins(folder)
        elif kind == "EXECUTE_JOB":
            current.starts[subject] = numbers(detail)
        elif kind == "SET_RESOURCE_STATE":
            current.states |= dict.fromkeys(numbers(subject), detail)
    yield current


def _data(kind: str, subject: str, detail: str, jobs: dict[str, Any]) -> dict[str, Any]:
    if kind == "JOB_SUBMITTED":
        job = jobs[subject]
        told = {
            "id": f"w0!{subject}",
            "subtime": job["subtime"],
            "res": job["res"],
            "walltime": job["walltime"],
            "profile": job["profile"],
        }
        return {"job_id": f"w0!{subject}", "job": told}
    if kind == "JOB_COMPLETED":
        return {"job_id": f"w0!{subject}", "job_state": detail, "return_code": 0, "alloc": ""}
    if kind == "RESOURCE_STATE_CHANGED":
        return {"resources": subject, "state": detail}
    return {"type": subject or detail} if kind == "NOTIFY" else {}


def decided(reply: bytes) -> Decisions:
    """What a reply of ours decides."""
    starts, states = dict[str, list[int]](), dict[int, str]()
    for event in json.loads(reply)["events"]:
        if event["type"] == "EXECUTE_JOB":
            starts[event["data"]["job_id"].removeprefix("w0!")] = numbers(event["data"]["alloc"])
        elif event["type"] == "SET_RESOURCE_STATE":
            states |= dict.fromkeys(numbers(event["data"]["resources"]), event["data"]["state"])
    return starts, states
