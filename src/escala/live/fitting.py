"""Jobs that could never run on a machine, were it empty, or that name what it has not: they are answered at once, and
stand in nobody's way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.admit import lacking
from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.live.orders import Refused
from escala.live.parts import Made, made_of
from escala.live.snapshot import Snapshot
from escala.parts import Parts, of_columns
from escala.platform import Platform
from escala.platform.constraints import (
    features_mask,
    has_features,
    has_names,
    named_mask,
    places_of,
    refuse_others,
)
from escala.workload.shapes import EXCLUDED, EXCLUSIVE, FEATURES, PLACES, REQUIRED


class Fitting(NamedTuple):
    """snapshot: without the jobs that could never run; parts: what the others are made of, None: they go by cores, or
    by what they demand of one node; refused: those that were left out, each with the reason."""

    snapshot: Snapshot
    parts: Parts | None
    refused: tuple[Refused, ...]


def fitting(snapshot: Snapshot, platform: Platform) -> Fitting:
    """The jobs that could run, were all nodes of the platform empty, gone ones too; those that hold nodes run."""
    columns = ([FEATURES] if has_features(platform) else []) + ([REQUIRED, EXCLUDED] if has_names(platform) else [])
    snapshot, wrong = understood(snapshot, platform, columns)
    made = made_of(snapshot, platform)
    if made is not None:
        snapshot = made.snapshot
    elif snapshot.survey.most <= platform.total_cores and not snapshot.survey.single:
        return Fitting(snapshot, None, wrong)
    jobs = snapshot.jobs
    parts = of_columns(jobs["cores"], jobs["single"] == 1, snapshot.demand) if made is None else made.parts
    never = parts.too_large(platform) & (jobs["state"] == codes.QUEUED)
    left = tuple(
        Refused(snapshot.job_ids[k], _why(snapshot, platform, k, made)) for k in np.flatnonzero(never).tolist()
    )
    rows = np.flatnonzero(~never)
    fit = _chosen(snapshot, rows) if left else snapshot
    return Fitting(fit, None if made is None else parts.of(rows), (*wrong, *left))


def understood(
    snapshot: Snapshot, platform: Platform, columns: Iterable[str] = PLACES
) -> tuple[Snapshot, tuple[Refused, ...]]:
    """Without the waiting jobs of which one of these columns names what a platform has not, or is no such text; they
    are refused. Those that hold nodes lie where they lie, and ask for none of this."""
    told = [name for name in columns if name in snapshot.shapes]
    if not told:
        return snapshot, ()
    places, n = places_of(platform), len(snapshot.jobs)
    asked = [snapshot.shapes.get(name, [None] * n) if name in told else [None] * n for name in PLACES]
    keys = list(zip(*asked, snapshot.shapes.get("nodes", [None] * n), strict=True))
    said = {key: _strange(platform, places, *key) for key in dict.fromkeys(keys)}
    why = [said[key] for key in keys]
    waiting = snapshot.jobs["state"] == codes.QUEUED
    free = {k for k in np.flatnonzero(~waiting).tolist() if why[k]}
    if free:
        shapes = {name: [None if k in free else one for k, one in enumerate(snapshot.shapes[name])] for name in told}
        snapshot = replace(snapshot, shapes=snapshot.shapes | shapes)
    bad = [k for k in np.flatnonzero(waiting).tolist() if why[k]]
    if not bad:
        return snapshot, ()
    left = tuple(Refused(snapshot.job_ids[k], why[k]) for k in bad)
    return _chosen(snapshot, np.delete(np.arange(n), bad)), left


def _strange(
    platform: Platform,
    places: dict[str, int],
    features: str | None,
    required: str | None,
    excluded: str | None,
    nodes: int | None,
) -> str:
    """Why these cannot be asked for; "" where they can."""
    try:
        features_mask(platform, features)
        named_mask(platform, places, excluded)
        if required:
            refuse_others(int(named_mask(platform, places, required).sum()), 1 if nodes is None else nodes)
    except EscalaError as error:
        return str(error)
    return ""


def with_whole_nodes(snapshot: Snapshot) -> Snapshot:
    """Every waiting job asks for whole nodes."""
    waiting = (snapshot.jobs["state"] == codes.QUEUED).tolist()
    asked = snapshot.shapes.get(EXCLUSIVE, [None] * len(waiting))
    whole = [True if waits else one for waits, one in zip(waiting, asked, strict=True)]
    return replace(snapshot, shapes=snapshot.shapes | {EXCLUSIVE: whole})


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
