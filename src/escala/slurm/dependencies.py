"""Which jobs wait for which others."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.start import ANYHOW, BADLY, WELL
from escala.slurm.columns import Columns
from escala.workload import Workload

Ints = NDArray[np.int64]
SINGLETON = "singleton"
_PART = re.compile(r"(after|afterany|afterok|afternotok)((?::[^:,?+]+(?:\+\d+)?)+)")


def dependencies(workload: Workload) -> tuple[Ints, Ints, Ints]:
    """(how much each waits for, where its followers begin, followers: job, at its start or end, how the other must have gone). To be
    without namesakes is one thing more that a singleton waits for."""
    texts = Columns(workload.jobs).texts("dependency")
    n = len(workload)
    if not any(texts):
        return np.zeros(n, np.int64), np.zeros(n + 1, np.int64), np.zeros((0, 3), np.int64)
    row_of = {ident: j for j, ident in enumerate(workload.jobs["job_id"])}
    edges: list[tuple[int, int, int, int]] = []
    chains: list[tuple[int, int, int, int]] = []
    last = dict[tuple[str | None, str | None], int]()
    for j, (text, named) in enumerate(zip(texts, _names(workload), strict=True)):
        for part in _parts(text):
            if part == SINGLETON:
                chains += [(last[named], j, 1, ANYHOW)] if named in last else []
            else:
                edges += _edges(part, j, row_of, workload.jobs["job_id"][j])
        last[named] = j
    _refuse_circles(edges + chains, n, workload.jobs["job_id"])
    left = np.bincount([one[1] for one in edges], minlength=n).astype(np.int64)
    edges.sort(key=lambda one: one[0])
    after = np.searchsorted([one[0] for one in edges], np.arange(n + 1)).astype(np.int64)
    return left + _single(texts), after, np.array([one[1:] for one in edges], np.int64).reshape(-1, 3)


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


def _edges(part: str, j: int, row_of: dict[str, int], job: str) -> list[tuple[int, int, int, int]]:
    match = _PART.fullmatch(part)
    if match is None:
        raise EscalaError(f"job {quoted(job)}: dependency {quoted(part)} is none of after, afterok, afterany, afternotok:ID, or singleton")
    found = []
    for ident in match[2].split(":")[1:]:
        other = row_of.get(ident.partition("+")[0])
        if other is None:
            continue  # before the log, and over
        kind = match[1]
        found.append((other, j, 0 if kind == "after" else 1, {"afterok": WELL, "afternotok": BADLY}.get(kind, ANYHOW)))
    return found


def went_well(workload: Workload) -> list[bool]:
    """Does the log say of a job that it completed, or nothing?"""
    return [one is None or one == "COMPLETED" for one in workload.jobs["status"]]


def _refuse_circles(edges: list[tuple[int, int, int, int]], n: int, ids: pl.Series) -> None:
    """EscalaError for jobs that wait for each other."""
    waits = np.zeros(n, np.int64)
    following: dict[int, list[int]] = {}
    for a, b, _, _ in edges:
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
        raise EscalaError(f"job {quoted(ids[int(stuck[0])])} depends on itself by way of others: break the circle of dependencies")
