"""Jobs that could never run on a machine, were it empty: they are answered at once, and stand in nobody's way."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.admit import lacking
from escala.errors import quoted
from escala.kernel import codes
from escala.live.orders import Refused
from escala.live.parts import Made, made_of
from escala.live.snapshot import Snapshot
from escala.parts import Parts, of_columns
from escala.platform import Platform


class Fitting(NamedTuple):
    """snapshot: without the jobs that could never run; parts: what the others are made of, None: they go by cores, or
    by what they demand of one node; refused: those that were left out, each with the reason."""

    snapshot: Snapshot
    parts: Parts | None
    refused: tuple[Refused, ...]


def fitting(snapshot: Snapshot, platform: Platform) -> Fitting:
    """The jobs that could run, were all nodes of the platform empty, gone ones too; those that hold nodes run."""
    made = made_of(snapshot, platform)
    if made is not None:
        snapshot = made.snapshot
    elif snapshot.survey.most <= platform.total_cores and not snapshot.survey.single:
        return Fitting(snapshot, None, ())
    jobs = snapshot.jobs
    parts = of_columns(jobs["cores"], jobs["single"] == 1, snapshot.demand) if made is None else made.parts
    never = parts.too_large(platform) & (jobs["state"] == codes.QUEUED)
    left = tuple(
        Refused(snapshot.job_ids[k], _why(snapshot, platform, k, made)) for k in np.flatnonzero(never).tolist()
    )
    rows = np.flatnonzero(~never)
    return Fitting(_chosen(snapshot, rows) if left else snapshot, None if made is None else parts.of(rows), left)


def _why(snapshot: Snapshot, platform: Platform, k: int, made: Made | None) -> str:
    if made is not None:
        return f"it needs {lacking(made.log.row(k, named=True), platform, made.parts, k)[0]}"
    cores = f"{snapshot.jobs['cores'][k]} cores"
    if snapshot.jobs["single"][k] == 0:
        return f"it needs {cores}, and platform {quoted(platform.name)} has {platform.total_cores}"
    more = [f"{values[k]} {kind}" for kind, values in snapshot.demand.items() if values[k] > 0]
    return (
        f"it needs {', '.join([cores, *more])} on one node, and no node of platform {quoted(platform.name)} has as much"
    )


def _chosen(snapshot: Snapshot, rows: NDArray[np.int64]) -> Snapshot:
    """A snapshot of these jobs alone, all that hold cores among them."""
    jobs, placed = snapshot.jobs[rows], snapshot.placed.copy()
    jobs["row"] = np.arange(len(rows))
    place = np.full(len(snapshot.jobs), codes.NONE, np.int64)
    place[rows] = np.arange(len(rows))
    placed["job"] = place[placed["job"]]
    return replace(
        snapshot,
        job_ids=[snapshot.job_ids[k] for k in rows.tolist()],
        users=[snapshot.users[k] for k in rows.tolist()],
        jobs=jobs,
        placed=placed,
        demand={kind: values[rows] for kind, values in snapshot.demand.items()},
        partitions=None if snapshot.partitions is None else [snapshot.partitions[k] for k in rows.tolist()],
        shapes={name: [values[k] for k in rows.tolist()] for name, values in snapshot.shapes.items()},
    )
