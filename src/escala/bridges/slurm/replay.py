"""What a journal saw, look by look: other policies can be asked about the same days."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.bridges.slurm.journal import damaged, numbered, records
from escala.bridges.slurm.seen import ENDED, Job, Seen, applied
from escala.bridges.slurm.shape import BEGIN, LOOK
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload


class Recorded:
    """The looks of a journal, in the place of a reader."""

    def __init__(self, path: Path) -> None:
        self.about = about(path)
        self._looks = looks(path)
        self._first: Seen | None = next(self._looks, None)
        if self._first is None:
            raise EscalaError(f"{path}: holds no look at a Slurm: let escala beside slurm go round first")
        self.first = self._first

    def read(self) -> Seen:
        """The next look; EOFError after the last."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        found = next(self._looks, None)
        if found is None:
            raise EOFError
        return found


def log_of(path: Path) -> tuple[Workload, Platform]:
    """The jobs that were seen to end on the nodes of a journal, as a log, and these nodes. EscalaError for a journal
    without any."""
    told = about(path)
    names, machine = set(told["names"]), Platform.from_spec(told["platform"])
    ended: dict[str, Job] = {}
    for seen in looks(path):
        ended |= {
            name: job for name, job in seen.jobs.items() if job.state == ENDED and not names.isdisjoint(job.hosts)
        }
    jobs = [
        job for job in ended.values() if job.start_s is not None and job.end_s is not None and job.end_s > job.start_s
    ]
    if not jobs:
        raise EscalaError(f"{path}: no job was seen to end: let escala beside slurm go round first")
    jobs.sort(key=lambda job: job.submit_s)
    node = int(np.median(machine.cores))
    columns = {
        "job_id": [job.job_id for job in jobs],
        "submit_s": [job.submit_s for job in jobs],
        "runtime_s": [(job.end_s or 0.0) - (job.start_s or 0.0) for job in jobs],
        "walltime_s": [job.limit_s for job in jobs],
        "cores": [max(job.cpus, node * job.nodes if job.whole else 1) for job in jobs],
        "user": [job.user for job in jobs],
        "queue": [job.partition for job in jobs],
    }
    return Workload.from_jobs(pl.DataFrame(columns, strict=False), name=str(path)), machine


def about(path: Path) -> dict[str, Any]:
    """The last record of who began; EscalaError for a journal without one."""
    found = None
    for record in records(path):
        if record["kind"] == BEGIN:
            found = record
    if found is None:
        raise EscalaError(f"{path}: does not say who wrote it: give the journal.jsonl of escala beside slurm")
    return found


def looks(path: Path) -> Iterator[Seen]:
    """What was seen, in the order of time; looks that were written twice come once."""
    return (seen for _, seen in told(path) if seen is not None)


def told(path: Path) -> Iterator[tuple[dict[str, Any], Seen | None]]:
    """The records of a journal, each look with what was seen; None with the others, and with a look that was written
    before."""
    seen: Seen | None = None
    for number, record in numbered(path):
        if record["kind"] == BEGIN:
            seen = None
        changes = record.get("seen") if record["kind"] == LOOK else None
        if not isinstance(changes, dict) or (seen is None and not changes.get("whole")):
            yield record, None
            continue
        after = seen is None or record["t"] > seen.now_s
        try:
            seen = applied(seen, changes, float(record["t"]))
        except EscalaError as error:
            raise damaged(path, number, str(error)) from None
        yield record, seen if after else None
