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
from escala.live.told import Cells, Ints, cells_of, log_of, summed
from escala.naming import NAMES
from escala.parts import Parts, of_columns, parts_of
from escala.platform import Platform
from escala.platform.sharers import SHARERS
from escala.platform.site import GPU, MEMORY
from escala.unseen import unseen_in, warn

SEVERAL = 2
"""Parts that a node may hold: as many as its cores say."""


class Made(NamedTuple):
    """snapshot: its jobs as they are made, of which some that hold nodes may be divided; parts: what they are made of;
    log: the jobs as a log has them."""

    snapshot: Snapshot
    parts: Parts
    log: Any  # DataFrame


def made_of(snapshot: Snapshot, platform: Platform) -> Made | None:
    """None where all jobs go by cores, or those of one node by what they demand. An `EscalaWarning` for what they ask
    and the platform does not count; EscalaError for jobs that hold more than it has."""
    if not snapshot.held and not snapshot.shapes:
        return None
    snapshot = summed(snapshot)
    order = np.argsort(snapshot.jobs["submit"], kind="stable")
    log = log_of(snapshot, order)
    made, back = parts_of(log, platform), np.argsort(order)
    warn([unseen_in(log.jobs, platform, made)])
    asked = made or of_columns(log.jobs["cores"].to_numpy(), log.jobs["single_node"].to_numpy(), {})
    asked, jobs = asked.of(back), log.jobs[back]
    cells = cells_of(snapshot.placed)
    if not len(cells.job):
        return Made(_laid(snapshot, asked), asked, jobs)
    amounts = _amounts(snapshot, platform, asked, cells)
    _refuse_more(snapshot, platform, amounts, cells)
    uneven = Lying(cells, amounts).uneven
    if len(uneven):
        snapshot, asked, cells, amounts = _divided(snapshot, asked, cells, amounts, uneven)
    parts = Lying(cells, amounts).parts(asked)
    return Made(_laid(snapshot, parts), parts, jobs)


def _laid(snapshot: Snapshot, parts: Parts) -> Snapshot:
    """The snapshot with its jobs as they are made; of what they ask only names are left."""
    jobs, cells = snapshot.jobs.copy(), cells_of(snapshot.placed)
    away = np.unique(cells.job[snapshot.nodes["gone"][cells.node] == 1])
    jobs["single"] = parts.single
    jobs["cores"][away] = np.bincount(cells.job, cells.per, len(jobs))[away]  # of these those on the others are left
    names = {name: values for name, values in snapshot.shapes.items() if name in NAMES}
    return replace(snapshot, jobs=jobs, demand=parts.demands, shapes=names, held={})


def held_of(parts: Parts, job: int, nodes: tuple[tuple[int, int, int], ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """As `Start.held`: memory and GPUs that a job, by its place, has on each of these nodes."""
    if parts.parts[job] == 0:
        return ()
    count = [1 if parts.most[job] == 1 else per // int(parts.share[job]) for _, _, per in nodes]
    each = {kind: int(values[job]) for kind, values in parts.demands.items()}
    kinds = {kind: amount for kind, amount in each.items() if kind.startswith(OF_KIND)}
    each = {MEMORY_MB: each.get(MEMORY, 0), **kinds, GPU: each.get(GPU, 0) - sum(kinds.values())}
    return tuple((name, tuple(amount * n for n in count)) for name, amount in each.items() if amount > 0)


class Lying:
    """Jobs that hold nodes, as they lie there. The kernel's parts of a job are alike: one on each node, where it holds
    as much on each; else so many on each as its cores there say, where it holds as much a core."""

    def __init__(self, cells: Cells, amounts: Mapping[str, Ints]) -> None:
        self._first = first = np.flatnonzero(np.diff(cells.job, prepend=-1))
        self._who, self._count = cells.job[first], np.diff(first, append=len(cells.job))
        self._cells, self._amounts = cells, amounts
        self._unit = np.gcd.reduceat(cells.per, first)
        units = cells.per // np.repeat(self._unit, self._count)
        self._units = units[first]
        self._even, by_core, self._bare = (np.ones(len(first), bool) for _ in range(3))
        for values in amounts.values():
            most = np.maximum.reduceat(values, first)
            self._even &= most == np.minimum.reduceat(values, first)
            self._bare &= most == 0
            alike = values * np.repeat(self._units, self._count) == np.repeat(values[first], self._count) * units
            by_core &= np.logical_and.reduceat(alike, first) & (values[first] % self._units == 0)
        self._alike = self._even | by_core

    @property
    def uneven(self) -> Ints:
        """Jobs of which neither is so."""
        return self._who[~self._alike]

    def parts(self, asked: Parts) -> Parts:
        """These in place of what they ask."""
        per, first, who, even = self._cells.per, self._first, self._who, self._even
        held = np.add.reduceat(per, first)
        found = {name: getattr(asked, name).copy() for name in ("parts", "most", "share", "less", "large")}
        spread = self._bare & (self._count > 1) & (held == asked.cores[who])
        found["parts"][who] = np.where(spread, 0, np.where(even, self._count, held // self._unit))
        found["large"][who] = found["parts"][who]
        found["most"][who] = np.where(even, 1, SEVERAL)
        found["share"][who] = found["less"][who] = np.where(even, np.maximum.reduceat(per, first), self._unit)
        demands = {kind: asked.demands.get(kind, np.zeros_like(asked.cores)).copy() for kind in self._amounts}
        for kind, values in self._amounts.items():
            demands[kind][who] = values[first] // np.where(even, 1, self._units)
        allowed = asked.allowed
        if allowed is not None:
            which = allowed.which.copy()
            which[who] = 0
            allowed = replace(allowed, which=which)
        return replace(asked, **found, demands=demands, allowed=allowed)


def _divided(
    snapshot: Snapshot, asked: Parts, cells: Cells, amounts: Mapping[str, Ints], uneven: Ints
) -> tuple[Snapshot, Parts, Cells, dict[str, Ints]]:
    """With each of these jobs as several that end together, one for each node: all but the first stand behind the other
    jobs."""
    n, mine = len(snapshot.jobs), np.isin(cells.job, uneven)
    more = np.flatnonzero(mine & (np.diff(cells.job, prepend=-1) == 0))
    rows, job = np.append(np.arange(n), cells.job[more]), cells.job.copy()
    job[more] = n + np.arange(len(more))
    order = np.argsort(job, kind="stable")
    cores = asked.cores[rows]
    cores[job[mine]] = cells.per[mine]
    cells = Cells(*(one[order] for one in cells._replace(job=job)))
    jobs, placed = snapshot.jobs[rows], np.zeros(len(job), snapshot.placed.dtype)
    jobs["row"], jobs["cores"] = np.arange(len(rows)), cores
    placed["job"], placed["low"], placed["high"], placed["per"] = cells.job, cells.node, cells.node, cells.per
    ids = [*snapshot.job_ids, *(f"{snapshot.job_ids[k]}\n{n}" for n, k in enumerate(rows[n:].tolist()))]
    users = [snapshot.users[k] for k in rows.tolist()]
    shapes = {name: [values[k] for k in rows.tolist()] for name, values in snapshot.shapes.items()}
    snapshot = replace(snapshot, job_ids=ids, users=users, jobs=jobs, placed=placed, shapes=shapes)
    return snapshot, replace(asked.of(rows), cores=cores), cells, {kind: one[order] for kind, one in amounts.items()}


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
        if kind == SHARERS:  # what runs beside a whole job runs, whoever let it
            continue
        used = np.bincount(cells.node[here], values[here], platform.n_nodes)
        over = np.flatnonzero(used > platform.resources[kind])
        if len(over):
            node = int(over[0])
            raise EscalaError(
                f"snapshot: jobs hold {used[node]:.0f} {kind} of node {node}, which has "
                f"{platform.resources[kind][node]}: tell what each holds there (placed.memory_mb, gpu, gpu:KIND)"
            )
