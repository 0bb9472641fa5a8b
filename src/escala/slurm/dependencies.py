"""Which jobs wait for which others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.start import ANYHOW, BADLY, WELL
from escala.slurm.columns import Columns
from escala.workload import Workload

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Edge = tuple[int, int, int, int, int]
"""The other, who waits, at its start or end, how it must have gone, s behind its start."""
SINGLETON = "singleton"
_PART = re.compile(r"(after|afterany|afterok|afternotok|aftercorr)((?::[^:,?+]+(?:\+\d{1,9})?)+)")


@dataclass(frozen=True)
class _Jobs:
    """row: of a job's number. tasks: of an array's number, rows by the number of the task. well: see `went_well`."""

    row: dict[str, int]
    tasks: dict[str, dict[str, int]]
    array: list[str | None]
    well: list[bool]

    @classmethod
    def of(cls, workload: Workload, well: list[bool]) -> _Jobs:
        ids, array = workload.jobs["job_id"].to_list(), Columns(workload.jobs).texts("array_id")
        tasks: dict[str, dict[str, int]] = {}
        for j, name in enumerate(array):
            if name is not None:
                there = tasks.setdefault(name, {})
                there[_number(ids[j]) or str(len(there))] = j
        return cls({ident: j for j, ident in enumerate(ids)}, tasks, array, well)


def _number(job: str) -> str:
    """Of task 12_3 the 3."""
    return job.rpartition("_")[2] if "_" in job else ""


def dependencies(workload: Workload, well: list[bool]) -> tuple[Ints, Ints, Ints]:
    """(how much each waits for, where its followers begin, followers: job, at its start or end, how the other must have
    gone, s that are waited behind its start, none of them due). To be without namesakes is one thing more that a
    singleton waits for."""
    texts = Columns(workload.jobs).texts("dependency")
    n = len(workload)
    if not any(texts):
        return np.zeros(n, np.int64), np.zeros(n + 1, np.int64), np.zeros((0, 5), np.int64)
    jobs = _Jobs.of(workload, well)
    edges: list[Edge] = []
    chains: list[Edge] = []
    last = dict[tuple[str | None, str | None], int]()
    for j, (text, named) in enumerate(zip(texts, _names(workload), strict=True)):
        for part in _parts(text):
            if part == SINGLETON:
                chains += [(last[named], j, 1, ANYHOW, 0)] if named in last else []
            else:
                edges += _edges(part, j, jobs, workload.jobs["job_id"][j])
        last[named] = j
    _refuse_circles(edges + chains, n, workload.jobs["job_id"])
    left = np.bincount([one[1] for one in edges], minlength=n).astype(np.int64)
    edges.sort(key=lambda one: one[0])
    after = np.searchsorted([one[0] for one in edges], np.arange(n + 1)).astype(np.int64)
    return left + _single(texts), after, np.array([(*one[1:], t.NONE) for one in edges], np.int64).reshape(-1, 5)


def names_of(workload: Workload, refused: Iterable[int]) -> t.Names:
    """Who has the name of a singleton."""
    single = _single(Columns(workload.jobs).texts("dependency"))
    if not single.any():
        return t.Names(*(np.zeros(0, np.int64) for _ in t.Names._fields))
    names = _names(workload)
    numbers = {name: k for k, name in enumerate(dict.fromkeys(names[j] for j in np.flatnonzero(single).tolist()))}
    of_job = np.array([numbers.get(name, t.NONE) for name in names], np.int64)
    member = np.argsort(of_job, kind="stable")[int((of_job == t.NONE).sum()) :]
    first = np.searchsorted(of_job[member], np.arange(len(numbers) + 1)).astype(np.int64)
    over = np.zeros(len(names), np.int64)
    over[list(refused)] = 1
    return t.Names(of_job, first, member, first[:-1].copy(), np.zeros(len(numbers), np.int64), over, single)


def _names(workload: Workload) -> list[tuple[str | None, str | None]]:
    """User and name of each job."""
    return list(zip(workload.jobs["user"].to_list(), Columns(workload.jobs).texts("job_name"), strict=True))


def _parts(text: str | None) -> list[str]:
    return text.replace(" ", "").split(",") if text else []


def _single(texts: list[str | None]) -> Ints:
    """1 for singletons."""
    return np.array([int(SINGLETON in _parts(text)) for text in texts], np.int64)


def _edges(part: str, j: int, jobs: _Jobs, job: str) -> list[Edge]:
    match = _PART.fullmatch(part)
    if match is None:
        known = "after, afterok, afterany, afternotok, aftercorr:ID, or singleton"
        raise EscalaError(f"job {quoted(job)}: dependency {quoted(part)} is none of {known}")
    kind = match[1]
    when, how = (
        (0 if kind == "after" else 1),
        {"afterok": WELL, "aftercorr": WELL, "afternotok": BADLY}.get(kind, ANYHOW),
    )
    found = []
    for ident, plus, minutes in (one.partition("+") for one in match[2].split(":")[1:]):
        if plus and int(minutes) == 0:
            raise EscalaError(f"job {quoted(job)}: dependency {quoted(part)}: minutes behind a + are at least 1")
        delay = 60 * int(minutes) if plus and kind == "after" else 0
        if ident in jobs.row:
            found.append((jobs.row[ident], j, when, how, delay))
        elif ident in jobs.tasks:  # what is not there at all was before the log, and is over
            others = _tasks(jobs, ident, j, job) if kind == "aftercorr" else list(jobs.tasks[ident].values())
            failed = how == BADLY and not all(jobs.well[one] for one in others)  # one that fails is enough
            found += [(one, j, when, ANYHOW if failed else how, delay) for one in others]
    return found


def _tasks(jobs: _Jobs, array: str, j: int, job: str) -> list[int]:
    """Of another array the task with the number of job j in its own."""
    own = jobs.array[j]
    number = next((name for name, row in jobs.tasks[own].items() if row == j), "") if own is not None else _number(job)
    return [jobs.tasks[array][number]] if number in jobs.tasks[array] else []


def went_well(workload: Workload, killed: Bools, cut: Bools) -> list[bool]:
    """Does the log say of a job that it completed? Where it says nothing: does it keep within its limit? One that the
    replay itself cuts at its limit does not complete."""
    said = workload.jobs["status"].to_list()
    lasted = zip(said, killed.tolist(), cut.tolist(), strict=True)
    return [not cut and (one == "COMPLETED" or (one is None and not killed)) for one, killed, cut in lasted]


def _refuse_circles(edges: list[Edge], n: int, ids: pl.Series) -> None:
    """EscalaError for jobs that wait for each other."""
    waits = np.zeros(n, np.int64)
    following: dict[int, list[int]] = {}
    for a, b, *_ in edges:
        following.setdefault(a, []).append(b)
        waits[b] += 1
    ready = [j for j in range(n) if waits[j] == 0]
    while ready:
        for b in following.get(ready.pop(), ()):
            waits[b] -= 1
            if waits[b] == 0:
                ready.append(b)
    stuck = np.flatnonzero(waits)
    if len(stuck):
        raise EscalaError(
            f"job {quoted(ids[int(stuck[0])])} depends on itself by way of others: break the circle of dependencies"
        )
