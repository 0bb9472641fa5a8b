"""Which partitions of a site take which jobs: those that a job names and that may run it, else the default one.

Slurm's rules (`escala.slurm`) ask each of them in turn. For every other scheduler a job may lie on the nodes of all of
them together (`escala.allowed`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted, said_of
from escala.platform import Platform
from escala.platform.site import WHOLE, Partition, Site
from escala.workload.tasks import tasks_of

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
PARTITION, QUEUE = "partition", "queue"
BY = (PARTITION, "account", "qos")
"""Columns by which a partition takes a job, beside the queue and what jobs ask for."""
LARGEST = ("max_s", "max_nodes")
NO_LIMIT = -1
FEW = 1 << 16


@dataclass(frozen=True)
class Parted:
    """kind: int64 [jobs], jobs of one kind are taken by the same partitions: `taken[kind]`, of the nodes `masks[kind]`
    (bool [nodes]); by none where `why[kind]` says why. columns: of the jobs by which that is so. across: some job may
    lie across several partitions."""

    kind: Ints
    taken: list[list[Partition]]
    masks: list[Mask]
    why: list[str]
    columns: list[str]
    across: bool

    def of(self, rows: Ints) -> Parted:
        """Of these jobs alone."""
        return replace(self, kind=self.kind[rows])

    @property
    def exclusive(self) -> NDArray[np.bool_]:
        """Which jobs get whole nodes, as their first partition has it, bool [jobs]."""
        return np.array([any(one.exclusive for one in some[:1]) for some in self.taken], bool)[self.kind]

    def refusal(self, row: int) -> str:
        """Why no partition takes a job; "" where one does."""
        return self.why[self.kind[row]]

    def told(self, row: int) -> str:
        """The partitions that take a job, in words; "" for none."""
        some = self.taken[self.kind[row]]
        return f"partition{'s' if len(some) > 1 else ''} {', '.join(quoted(one.name) for one in some)}" if some else ""


def pooled(platform: Platform) -> Platform:
    """The platform as one partition of all nodes."""
    return replace(platform, partitions=()) if isinstance(platform, Site) and described(platform) else platform


def apart(platform: Platform) -> bool:
    """Has it a partition that lacks some of its nodes?"""
    return isinstance(platform, Site) and any(len(one.nodes) < platform.n_nodes for one in platform.partitions)


def described(platform: Platform) -> bool:
    """Is it a site that describes partitions?"""
    whole = Partition(WHOLE, tuple(range(platform.n_nodes)), default=True)
    return isinstance(platform, Site) and platform.partitions != (whole,)


def named_in(jobs: pl.DataFrame, site: Site) -> pl.Series:
    """By what each job names partitions: the column `partition`; without, its queue if that is the name of one."""
    own = pl.col(PARTITION) if PARTITION in jobs.columns else pl.lit(None, pl.String)
    queue = pl.col(QUEUE) if QUEUE in jobs.columns else pl.lit(None, pl.String)
    known = pl.when(queue.is_in([one.name for one in site.partitions])).then(queue)
    return jobs.select("job_id", pl.coalesce(own, known).alias(PARTITION))[PARTITION]


def partitions_of(site: Site, named: str | None) -> list[Partition]:
    """Those that a job names by this text, the default for None; EscalaError for one that is not there."""
    if named is not None:
        return [site.partition(one.strip()) for one in named.split(",")]
    usual = site.default_partition
    if usual is None:
        raise EscalaError(
            f"names no partition, and site {quoted(site.name)} has no default: mark one (Default=YES, default = true), "
            "or give the column partition"
        )
    return [usual]


def limits_of(jobs: pl.DataFrame) -> Ints:
    """The time limit of each job in whole minutes, as Slurm has it, s; NO_LIMIT where none is known."""
    walltime = jobs["walltime_s"].to_numpy()
    limited = np.isfinite(walltime)
    if "limited" in jobs.columns:
        limited = limited & jobs["limited"].to_numpy()
    return np.where(limited, np.ceil(np.where(limited, walltime, 0.0) / 60 - 1e-9) * 60, NO_LIMIT).astype(np.int64)


def barred(part: Partition, limit_s: int, nodes: int, account: str | None, qos: str | None) -> str:
    """Why a partition takes no job with this limit (s) of so many nodes, at least 1; "" where it does."""
    if not part.up:
        return "is down"
    if part.max_s is not None and limit_s > part.max_s:
        return f"allows {part.max_s:g} s, not {limit_s}"
    if part.max_nodes is not None and nodes > part.max_nodes:
        return f"allows {part.max_nodes} nodes, not {nodes}"
    for what, mine, may, not_ in (
        ("account", account, part.accounts, part.denied_accounts),
        ("qos", qos, part.qos, part.denied_qos),
    ):
        if mine is not None and ((may and mine not in may) or mine in not_):
            return f"does not admit {what} {quoted(mine)}"
    return ""


def codes_of(texts: pl.Series) -> Ints:
    """A number for each text, and one for null."""
    return texts.fill_null("\0").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)


def alike(rows: int, codes: Iterable[Ints]) -> tuple[Ints, Ints]:
    """(the first of each kind of rows that have the same codes, the kind of each row)."""
    kind, most = np.zeros(rows, np.int64), 1
    for own in codes:
        several = int(own.max(initial=0)) + 1
        kind, most = (kind * several + own, most * several) if several > 1 else (kind, most)
        if most > FEW:
            kind = np.unique(kind, return_inverse=True)[1]
            most = int(kind.max(initial=0)) + 1
    first = np.full(most, rows, np.int64)
    np.minimum.at(first, kind, np.arange(rows))
    there = first < rows
    return first[there], (np.cumsum(there) - 1)[kind]


def parted_of(jobs: pl.DataFrame, platform: Platform) -> Parted | None:
    """Which partitions take the jobs of a table; None where all may lie on all nodes, and share them. EscalaError for a
    partition that is not there, and a job that names none of a site without a default."""
    if not isinstance(platform, Site) or _open(platform, jobs):
        return None
    parts, asked_nodes = platform.partitions, tasks_of(jobs).nodes
    named, limit, nodes = named_in(jobs, platform), limits_of(jobs), np.maximum(asked_nodes, 1)
    edges = [np.unique([getattr(one, name) for one in parts if getattr(one, name) is not None]) for name in LARGEST]
    told = [np.searchsorted(some, values) for some, values in zip(edges, (limit, nodes), strict=True)]
    told.append(codes_of(named))
    who = {"account": [(*one.accounts, *one.denied_accounts) for one in parts]}
    who["qos"] = [(*one.qos, *one.denied_qos) for one in parts]
    bound = [name for name, lists in who.items() if any(lists) and name in jobs.columns]
    told += [codes_of(jobs[name]) for name in bound]
    first, kind = alike(len(jobs), told)
    taken, why = list[list[Partition]](), list[str]()
    for row in first.tolist():
        with said_of(f"job {quoted(jobs['job_id'][row])}"):
            asked = partitions_of(platform, named[row])
        own = [jobs[name][row] if name in bound else None for name in who]
        said = [barred(one, int(limit[row]), int(nodes[row]), *own) for one in asked]
        taken.append([one for one, no in zip(asked, said, strict=True) if not no])
        why.append("" if taken[-1] else f"partition {quoted(asked[0].name)} {said[0]}")
    masks = _masks(taken, platform.n_nodes)
    if all(mask.all() and not some[0].exclusive for mask, some in zip(masks, taken, strict=True)):
        return None
    mixed = [all(len(one.nodes) < mask.sum() for one in some) for mask, some in zip(masks, taken, strict=True)]
    wide = (asked_nodes != 1) & (jobs["cores"].to_numpy() > 1)
    by = [name for name in (PARTITION, QUEUE, *bound) if name in jobs.columns and jobs[name].null_count() < len(jobs)]
    return Parted(kind, taken, masks, why, by, bool((np.array(mixed, bool)[kind] & wide).any()))


def _masks(taken: Iterable[Iterable[Partition]], n_nodes: int) -> list[Mask]:
    """The nodes of each of these sets of partitions; of equal ones the same array."""
    known, masks = dict[tuple[str, ...], Mask](), list[Mask]()
    for some in taken:
        names = tuple(one.name for one in some)
        if names not in known:
            known[names] = np.zeros(n_nodes, bool)
            for one in some:
                known[names][list(one.nodes)] = True
        masks.append(known[names])
    return masks


def _open(site: Site, jobs: pl.DataFrame) -> bool:
    """Do no partitions bind these jobs, as can be said without looking at each: all are of all nodes, take everybody,
    and no job can name one that is not there?"""
    if not described(site):
        return True
    longest = cast(float | None, jobs["walltime_s"].max()) or 0.0
    at_most = 60 * math.ceil(longest / 60 - 1e-9) if math.isfinite(longest) else math.inf
    free = PARTITION not in jobs.columns and site.default_partition is not None
    return free and all(
        len(one.nodes) == site.n_nodes
        and one.up
        and not (one.exclusive or one.accounts or one.denied_accounts or one.qos or one.denied_qos)
        and one.max_nodes is None
        and (one.max_s is None or at_most <= one.max_s)
        for one in site.partitions
    )
