"""What a journal tells of one job, and of how things stand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.replay import looks
from escala.bridges.slurm.seen import PENDING, Job
from escala.bridges.slurm.shape import BEGIN, LOOK, MISS
from escala.errors import EscalaError


def status(path: Path) -> dict[str, Any]:
    """How things stood at the last look."""
    begun: dict[str, Any] = {}
    last: dict[str, Any] = {}
    missed: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for record in records(path):
        counts[record["kind"]] += 1
        if record["kind"] == BEGIN:
            begun = record
        elif record["kind"] == LOOK:
            last = record
        else:
            missed = record
    seen = None
    for seen in looks(path):  # noqa: B007  # the last one
        pass
    waiting = [] if seen is None else [job for job in seen.jobs.values() if job.state == PENDING]
    return {
        "mode": begun.get("mode"),
        "policies": begun.get("policies"),
        "slurm": begun.get("slurm"),
        "partition": begun.get("partition"),
        "nodes": len(begun.get("names", ())),
        "begun": counts[BEGIN],
        "looks": int(last.get("seq", 0)),
        "last_look_s": last.get("t"),
        "missed": counts[MISS],
        "last_miss": missed.get("why"),
        "waiting_jobs": len(waiting),
        "would_switch_off": last.get("offs", []),
        "would_wake": last.get("wakes", []),
        "would_start": last.get("starts", []),
        "leases": last.get("leases", []),
        "changed_jobs": last.get("changed", []),
    }


def explain(path: Path, job_id: str) -> list[str]:
    """What happened to a job, in sentences; EscalaError for one that the journal does not know."""
    first: Job | None = None
    last: Job | None = None
    at = 0.0
    for seen in looks(path):
        found = seen.jobs.get(job_id)
        first = first or found
        last, at = (found, seen.now_s) if found is not None else (last, at)
    if first is None or last is None:
        raise EscalaError(f"{path}: job {job_id} was never seen: give its number as squeue shows it (12, or 12_3 of an array)")
    out = [f"job {job_id} of {last.user}: {last.cpus} CPUs on {last.nodes} nodes, submitted at {last.submit_s:.0f} (unix time, s)"]
    advised = row = None
    delay = 0.0
    for record in records(path):
        if record["kind"] != LOOK:
            continue
        if job_id in record.get("starts", ()) and advised is None:
            advised = record["t"]
        row = next((row for row in record.get("started", ()) if row[0] == job_id), row)
        delay += sum(later for name, _, later in record.get("lived", {}).get("delays", ()) if name == job_id)
    if last.state == PENDING:
        held = "" if last.free else f", for {last.reason}, whatever the nodes do"
        out.append(f"it waits since {at - last.submit_s:.0f} s{held}")
    if advised is not None:
        out.append(f"the policy would have started it at {advised:.0f}, {advised - last.submit_s:.0f} s after its submission")
    elif last.state == PENDING and last.free:
        out.append("the policy would not start it yet")
    if row is not None:
        out.append(f"Slurm started it at {row[3]:.0f}, {row[3] - row[2]:.0f} s after its submission: for the policy {WORDS[row[4]]}")
        told = [f"{who} expected {when - row[2]:.0f} s" for who, when in (("the policy", row[6]), ("Slurm", row[7])) if when is not None]
        out += [f"of its wait, {' and '.join(told)}"] if told else []
    if delay:
        out.append(f"its nodes would have been off: it would have waited {delay:.0f} s more")
    return out


WORDS = {
    "same": "the same",
    "earlier": "late: it would have started it before",
    "later": "early: it would not have started it yet",
    "unasked": "unknown: nobody was asked in time",
}
"""How the policy took a start."""
