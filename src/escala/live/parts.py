"""What the jobs of a snapshot are made of, where some ask for more than cores, or hold more: those that wait as they
ask, the others as they lie on their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from escala.errors import EscalaError, quoted
from escala.live.shapes import MEMORY as MEMORY_MB
from escala.live.shapes import OF_KIND
from escala.live.snapshot import Snapshot
from escala.live.told import Cells, Ints, cells_of, log_of
from escala.parts import Parts, of_columns, parts_of
from escala.platform import Platform
from escala.platform.site import GPU, MEMORY
from escala.unseen import unseen_in, warn

SEVERAL = 2
"""Parts that a node may hold: as many as its cores say."""


class Made(NamedTuple):
    """parts: of the snapshot's jobs; jobs: as a log has them."""

    parts: Parts
    jobs: Any  # DataFrame


def made_of(snapshot: Snapshot, platform: Platform) -> Made | None:
    """None where all jobs go by cores, or those of one node by what they demand. An `EscalaWarning` for what they ask
    and the platform does not count; EscalaError for jobs that hold more than it has, or what the kernel's tables cannot
    say."""
    if not snapshot.held and not snapshot.shapes:
        return None
    order = np.argsort(snapshot.jobs["submit"], kind="stable")
    log = log_of(snapshot, order)
    warn([unseen_in(log.jobs, platform)])
    back = np.argsort(order)
    asked = parts_of(log, platform) or of_columns(log.jobs["cores"].to_numpy(), log.jobs["single_node"].to_numpy(), {})
    return Made(_lying(snapshot, platform, asked.of(back)), log.jobs[back])


def laid(snapshot: Snapshot, parts: Parts) -> Snapshot:
    """The snapshot with its jobs as they are made."""
    jobs, cells = snapshot.jobs.copy(), cells_of(snapshot.placed)
    away = np.unique(cells.job[snapshot.nodes["gone"][cells.node] == 1])
    jobs["single"] = parts.single
    jobs["cores"][away] = np.bincount(cells.job, cells.per, len(jobs))[away]  # of these those on the others are left
    return replace(snapshot, jobs=jobs, demand=parts.demands)


def held_of(parts: Parts, job: int, nodes: tuple[tuple[int, int, int], ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """As `Start.held`: memory and GPUs that a job, by its place, has on each of these nodes."""
    if parts.parts[job] == 0:
        return ()
    count = [1 if parts.most[job] == 1 else per // int(parts.share[job]) for _, _, per in nodes]
    each = {kind: int(values[job]) for kind, values in parts.demands.items()}
    kinds = {kind: amount for kind, amount in each.items() if kind.startswith(OF_KIND)}
    each = {MEMORY_MB: each.get(MEMORY, 0), **kinds, GPU: each.get(GPU, 0) - sum(kinds.values())}
    return tuple((name, tuple(amount * n for n in count)) for name, amount in each.items() if amount > 0)


def _lying(snapshot: Snapshot, platform: Platform, asked: Parts) -> Parts:
    """Those that hold nodes as they lie there: a part on each node, or, where what they hold goes by their cores, so
    many on each that it adds up."""
    cells = cells_of(snapshot.placed)
    if not len(cells.job):
        return asked
    amounts = _amounts(snapshot, platform, asked, cells)
    _refuse_more(snapshot, platform, amounts, cells)
    first = np.flatnonzero(np.diff(cells.job, prepend=-1))
    who, count = cells.job[first], np.diff(first, append=len(cells.job))
    unit = np.gcd.reduceat(cells.per, first)
    units = cells.per // np.repeat(unit, count)
    even, by_core, nothing = (np.ones(len(who), bool) for _ in range(3))
    for values in amounts.values():
        most = np.maximum.reduceat(values, first)
        even &= most == np.minimum.reduceat(values, first)
        alike = values * np.repeat(units[first], count) == np.repeat(values[first], count) * units
        by_core &= np.logical_and.reduceat(alike, first) & (values[first] % units[first] == 0)
        nothing &= most == 0
    _refuse_uneven(snapshot, amounts, cells, who[~(even | by_core)])
    held = np.add.reduceat(cells.per, first)
    found = {name: getattr(asked, name).copy() for name in ("parts", "most", "share", "less", "large")}
    spread = nothing & (count > 1) & (held == asked.cores[who])
    found["parts"][who] = np.where(spread, 0, np.where(even, count, held // unit))
    found["large"][who] = found["parts"][who]
    found["most"][who] = np.where(even, 1, SEVERAL)
    found["share"][who] = found["less"][who] = np.where(even, np.maximum.reduceat(cells.per, first), unit)
    demands = {kind: asked.demands.get(kind, np.zeros_like(asked.cores)).copy() for kind in amounts}
    for kind, values in amounts.items():
        demands[kind][who] = values[first] // np.where(even, 1, units[first])
    allowed = asked.allowed
    if allowed is not None:
        which = allowed.which.copy()
        which[who] = 0
        allowed = replace(allowed, which=which)
    return replace(asked, **found, demands=demands, allowed=allowed)


def _amounts(snapshot: Snapshot, platform: Platform, asked: Parts, cells: Cells) -> dict[str, Ints]:
    """By kind, what is held in each cell: as it is told, else as jobs ask."""
    job = cells.job
    parts = np.where(asked.most[job] == 1, 1, -(-cells.per // np.maximum(asked.share[job], 1)))
    found = {kind: values[job] * parts for kind, values in asked.demands.items()}
    told = dict[str, Ints]()
    for name, values in snapshot.held.items():
        kind = MEMORY if name == MEMORY_MB else name
        if kind in platform.resources:
            told[kind] = values[cells.row]
        elif values.any():
            raise EscalaError(f"snapshot: placed.{name}: platform {quoted(platform.name)} has no {kind}: leave it out")
    if gpus := [values for kind, values in told.items() if kind != MEMORY]:
        kinds = (kind for kind in platform.resources if kind.startswith(OF_KIND))
        told = {kind: np.zeros(len(job), np.int64) for kind in kinds} | told | {GPU: np.sum(gpus, axis=0)}
    return found | told


def _refuse_more(snapshot: Snapshot, platform: Platform, amounts: Mapping[str, Ints], cells: Cells) -> None:
    here = snapshot.nodes["gone"][cells.node] == 0
    for kind, values in amounts.items():
        used = np.bincount(cells.node[here], values[here], platform.n_nodes)
        over = np.flatnonzero(used > platform.resources[kind])
        if len(over):
            node = int(over[0])
            raise EscalaError(
                f"snapshot: jobs hold {used[node]:.0f} {kind} of node {node}, which has "
                f"{platform.resources[kind][node]}: tell what each holds there (placed.memory_mb, gpu, gpu:KIND)"
            )


def _refuse_uneven(snapshot: Snapshot, amounts: Mapping[str, Ints], cells: Cells, wrong: Ints) -> None:
    """Of a job the kernel knows parts that are alike."""
    if not len(wrong):
        return
    job = int(wrong[0])
    mine = cells.job == job
    told = ", ".join(f"{values[mine].tolist()} {kind}" for kind, values in amounts.items())
    raise EscalaError(
        f"snapshot: job {quoted(snapshot.job_ids[job])} holds {told} beside {cells.per[mine].tolist()} cores: all of "
        "it has to be as much on each node, or as much a core: leave it out of placed, and it is reckoned as asked"
    )
