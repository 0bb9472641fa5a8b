"""A hash of jobs that come in pieces, however they are cut."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from escala.workload.shapes import OF_NODES

SEEN = ("submit_s", "runtime_s", "walltime_s", "cores")
USUAL = {"load": 1.0, "single_node": False, "limited": True}
"""Column -> what a job has there that says nothing else."""


class JobsDigest:
    """SHA-256 of what a replay in pieces sees of the jobs: the columns `SEEN`, of those of `USUAL`, of demands and of
    what jobs ask of nodes the other values, with the numbers of their jobs, and the date at which the clock begins. It
    is not `Workload.digest`, which takes one column behind the other. more: further columns of names."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self.origin_s = 0.0  # as of a workload
        self._names = (*OF_NODES, *more)
        self._columns: dict[str, Any] = {name: hashlib.sha256() for name in SEEN}
        self._jobs = 0

    def add(self, jobs: pl.DataFrame) -> None:
        """The jobs behind those before."""
        for name in SEEN:
            self._columns[name].update(np.ascontiguousarray(jobs[name].to_numpy()).data)
        for name in (name for name in self._names if name in jobs.columns):
            others = jobs[name].is_not_null().arg_true()
            if len(others):
                told = zip((others + self._jobs).to_list(), jobs[name].gather(others).to_list(), strict=True)
                self._columns.setdefault(name, hashlib.sha256()).update(repr(list(told)).encode())
        for name in jobs.columns:
            if name not in USUAL and not name.startswith("demand_"):
                continue
            others = (jobs[name] != USUAL.get(name, 0)).arg_true()
            if len(others):
                rows = np.column_stack(
                    (others.to_numpy() + float(self._jobs), jobs[name].gather(others).cast(pl.Float64).to_numpy())
                )
                self._columns.setdefault(name, hashlib.sha256()).update(rows.data)
        self._jobs += jobs.height

    def hexdigest(self) -> str:
        """Of all until now."""
        told = "\n".join(f"{name} {found.hexdigest()}" for name, found in sorted(self._columns.items()))
        told += f"\norigin_s {self.origin_s}"
        return hashlib.sha256(told.encode()).hexdigest()
