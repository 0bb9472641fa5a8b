"""What a snapshot tells, unfolded: its jobs as a log has them, and what they hold, node by node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.kernel.clock import SECOND
from escala.live.snapshot import DEMAND, Snapshot
from escala.workload import Workload

Ints = NDArray[np.int64]


class Cells(NamedTuple):
    """int64 each: a job (its place in the snapshot), ascending; a node; its cores there; the row of `placed` that tells
    so."""

    job: Ints
    node: Ints
    per: Ints
    row: Ints


def cells_of(placed: NDArray[Any]) -> Cells:
    """Of PLACED, in its order."""
    spans = placed["high"] - placed["low"] + 1
    row = np.repeat(np.arange(len(placed)), spans)
    node = placed["low"][row] + np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans, spans)
    return Cells(placed["job"][row], node, placed["per"][row], row)


def summed(snapshot: Snapshot) -> Snapshot:
    """With all that a job holds of a node in one row of `placed`, where several tell of it."""
    cells, n = cells_of(snapshot.placed), len(snapshot.nodes)
    found, at = np.unique(cells.job * n + cells.node, return_inverse=True)
    if len(found) == len(at):
        return snapshot

    def sums(values: Ints) -> Ints:
        return np.bincount(at, values).astype(np.int64)

    placed = np.zeros(len(found), snapshot.placed.dtype)
    placed["job"], placed["low"], placed["per"] = found // n, found % n, sums(cells.per)
    placed["high"] = placed["low"]
    return replace(snapshot, placed=placed, held={name: sums(one[cells.row]) for name, one in snapshot.held.items()})


def log_of(snapshot: Snapshot, order: Ints, origin_s: float = 0.0) -> Workload:
    """The jobs as a log has them. order: their places, by submission. EscalaError for what no job can ask."""
    jobs, places = snapshot.jobs[order], order.tolist()
    walltime = jobs["walltime"] / SECOND
    columns: dict[str, Any] = {
        "job_id": [snapshot.job_ids[k] for k in places],
        "submit_s": jobs["submit"] / SECOND,
        "runtime_s": walltime,
        "walltime_s": walltime,
        "cores": jobs["cores"].astype(np.int64),
        "user": [snapshot.users[k] for k in places],
        "single_node": jobs["single"] == 1,
    }
    if snapshot.partitions is not None:
        columns["partition"] = [snapshot.partitions[k] for k in places]
    columns |= {f"{DEMAND}{kind}": values[order] for kind, values in snapshot.demand.items()}
    columns |= {name: [values[k] for k in places] for name, values in snapshot.shapes.items()}
    return Workload.from_jobs(columns, name="snapshot", origin_s=origin_s)
