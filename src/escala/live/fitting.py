"""Jobs that could never run on a machine, were it empty: they are answered at once, and stand in nobody's way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from escala.errors import quoted
from escala.kernel import codes
from escala.live.orders import Refused
from escala.live.snapshot import Snapshot
from escala.parts import of_columns
from escala.platform import Platform


def fitting(snapshot: Snapshot, platform: Platform) -> tuple[Snapshot, tuple[Refused, ...]]:
    """The snapshot without the waiting jobs that need more than all nodes of the platform have, gone ones too, or than
    any one has where they need one; and these jobs, each with the reason."""
    if snapshot.survey.most <= platform.total_cores and not snapshot.survey.single:
        return snapshot, ()
    jobs = snapshot.jobs
    made = of_columns(jobs["cores"], jobs["single"] == 1, snapshot.demand)
    never = made.too_large(platform) & (jobs["state"] == codes.QUEUED)
    if not never.any():
        return snapshot, ()
    left = tuple(Refused(snapshot.job_ids[k], _why(snapshot, platform, k)) for k in np.flatnonzero(never).tolist())
    return _chosen(snapshot, np.flatnonzero(~never)), left


def _why(snapshot: Snapshot, platform: Platform, k: int) -> str:
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
