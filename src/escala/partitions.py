"""Which partitions of a site take which jobs: those that a job names and that may run it, else the default one.

Slurm's rules (`escala.slurm`) ask each of them in turn. For every other scheduler a job may lie on the nodes of all of
them together (`escala.allowed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted, said_of
from escala.platform import Platform
from escala.platform.site import SELECT, WHOLE, Partition, Site
from escala.workload.tasks import MOST, Tasks, tasks_of

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
PARTITION, QUEUE = "partition", "queue"
WHO = ("account", "qos")
BY = (PARTITION, *WHO)
"""Columns by which a partition takes a job, beside the queue and what jobs ask for."""
LARGEST = ("max_s", "max_nodes")
NO_LIMIT = -1
FEW = 1 << 16


@dataclass(frozen=True)
class Parted:
    """kind: int64 [jobs], jobs of one kind are taken by the same partitions: `taken[kind]`, of the nodes `masks[kind]`
    (bool [nodes]); by none where `why[kind]` says why. one: bool [jobs], who asks for no number of nodes and gets one,
    as no partition that takes it allows more. across: some job may lie across several partitions; beyond: some may take
    more nodes than its partition allows; strange: queues that are no partitions, of jobs in the default; site: whose
    partitions they are."""

    kind: Ints
    taken: list[list[Partition]]
    masks: list[Mask]
    why: list[str]
    one: Mask
    across: bool
    beyond: bool
    strange: list[str]
    site: Site

    def of(self, rows: Ints) -> Parted:
        """Of these jobs alone."""
        return replace(self, kind=self.kind[rows], one=self.one[rows])

    @cached_property
    def lanes(self) -> Lanes:
        """In which queue each job stands."""
        return _lanes_of(self)

    @property
    def exclusive(self) -> NDArray[np.bool_]:
        """Which jobs get whole nodes, as their first partition has it, bool [jobs]."""
        return np.array([any(gives_whole(self.site, one) for one in some[:1]) for some in self.taken], bool)[self.kind]

    def refusal(self, row: int) -> str:
        """Why no partition takes a job; "" where one does."""
        return self.why[self.kind[row]]

    def told(self, row: int) -> str:
        """The partitions that take a job, in words; "" for none."""
        some = self.taken[self.kind[row]]
        return f"partition{'s' if len(some) > 1 else ''} {', '.join(quoted(one.name) for one in some)}" if some else ""


@dataclass(frozen=True)
class Lanes:
    """Queues of their own: groups of nodes, where no job may lie on nodes of two. of_node: int64 [nodes], of_job: int64
    [jobs], from 1 on; nodes of no partition that is up are one group more. n: how many there are, 0: all jobs are in
    one queue. joined: partitions that share no node, and that a job makes one queue of, in words; "" for none."""

    of_node: Ints
    of_job: Ints
    n: int
    joined: str


def _lanes_of(parted: Parted) -> Lanes:
    """By the partitions that are up: those that share nodes are of one queue, and those that one job may lie on."""
    site, joined = parted.site, ""
    lists: list[Any] = [one.nodes for one in site.partitions if one.up]
    label = _connected(lists, site.n_nodes)
    several = {tuple(one.name for one in some): some for some in parted.taken if len(some) > 1}
    across = [some for some in several.values() if len({int(label[one.nodes[0]]) for one in some if one.nodes}) > 1]
    if across:
        joined = ", ".join(quoted(one.name) for one in across[0])
        label = _connected([*lists, *(list(_union(some)) for some in across)], site.n_nodes)
    found, of_node = np.unique(label, return_inverse=True)
    n = len(found) if (found >= 0).sum() > 1 else 0
    first = np.array([mask.argmax() for mask in parted.masks], np.int64)
    return Lanes(of_node + 1, of_node[first][parted.kind] + 1, n, joined)


def _connected(lists: list[Any], n_nodes: int) -> Ints:
    """A number for each node, the same for those of one of these lists, and of lists that share some; -1 for those of
    none, int64 [nodes]."""
    lists = [np.array(one, np.int64) for one in lists if len(one)]
    label = np.full(n_nodes, -1, np.int64)
    if not lists:
        return label
    nodes, sizes = np.concatenate(lists), [len(one) for one in lists]
    label[nodes] = nodes
    while True:
        least = np.minimum.reduceat(label[nodes], np.cumsum([0, *sizes[:-1]]))
        before = label.copy()
        np.minimum.at(label, nodes, np.repeat(least, sizes))
        if (label == before).all():
            return label


def pooled(platform: Platform) -> Platform:
    """The platform as one partition of all nodes, which jobs share."""
    if not isinstance(platform, Site) or not (described(platform) or platform.whole_nodes):
        return platform
    settings = {name: value for name, value in platform.settings.items() if name != SELECT}
    return replace(platform, partitions=(), settings=settings)


def apart(platform: Platform) -> bool:
    """Has it a partition that lacks some of its nodes?"""
    return isinstance(platform, Site) and any(len(one.nodes) < platform.n_nodes for one in platform.partitions)


def gives_whole_nodes(platform: Platform) -> bool:
    """Does a job that names no partition get whole nodes?"""
    if not isinstance(platform, Site):
        return False
    usual = platform.default_partition
    return any(gives_whole(platform, one) for one in ([usual] if usual else platform.partitions))


def gives_whole(site: Site, one: Partition) -> bool:
    """Do jobs of a partition get whole nodes?"""
    return one.exclusive or site.whole_nodes


def described(platform: Platform) -> bool:
    """Is it a site that describes partitions?"""
    whole = Partition(WHOLE, tuple(range(platform.n_nodes)), default=True)
    return isinstance(platform, Site) and platform.partitions != (whole,)


def describes(spec: Mapping[str, Any] | None) -> bool:
    """Is a platform a site that describes partitions, by its `spec()` as manifests keep it?"""
    return "site" in (spec or {}) and described(Platform.from_spec(dict(spec or {})))


def named_in(jobs: pl.DataFrame, site: Site) -> pl.Series:
    """By what each job names partitions: the column `partition`; without, its queue if that is the name of one, or of
    several joined by commas."""
    own = pl.col(PARTITION) if PARTITION in jobs.columns else pl.lit(None, pl.String)
    queue = pl.col(QUEUE) if QUEUE in jobs.columns else pl.lit(None, pl.String)
    names, queues = {one.name for one in site.partitions}, _queues(jobs)
    known = queue.is_in([text for text in queues if names.issuperset(one.strip() for one in text.split(","))])
    return jobs.select("job_id", pl.coalesce(own, pl.when(known).then(queue)).alias(PARTITION))[PARTITION]


def _queues(jobs: pl.DataFrame) -> list[str]:
    """Those that jobs have, the first first."""
    return [one for one in jobs[QUEUE].unique(maintain_order=True) if one] if QUEUE in jobs.columns else []


def taking(jobs: pl.DataFrame, platform: Platform) -> list[str]:
    """The columns of some jobs by which a site that describes partitions takes them."""
    if not isinstance(platform, Site) or not described(platform):
        return []
    who = {PARTITION: True, QUEUE: True}
    who["account"] = any(one.accounts or one.denied_accounts for one in platform.partitions)
    who["qos"] = any(one.qos or one.denied_qos for one in platform.partitions)
    return [name for name, asks in who.items() if asks and name in jobs and jobs[name].null_count() < len(jobs)]


def partitions_of(site: Site, named: str | None, queue: str | None = None) -> list[Partition]:
    """Those that a job names by this text, the default for None; EscalaError for one that is not there. queue: its
    own."""
    if named is not None:
        return [site.partition(one.strip()) for one in named.split(",")]
    usual = site.default_partition
    if usual is None:
        names = f"its queue {quoted(queue)} is no partition" if queue else "names no partition"
        raise EscalaError(
            f"{names}, and site {quoted(site.name)} has no default: mark one (Default=YES, default = true), "
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
    if not described(platform):
        jobs = jobs.drop(PARTITION, QUEUE, strict=False)  # names of partitions that nobody knows
    parts, asks, cores = platform.partitions, tasks_of(jobs), jobs["cores"].to_numpy()
    named, limit, nodes = named_in(jobs, platform), limits_of(jobs), _least_nodes(asks)
    room = {one.name: _room(one, asks, platform) for one in parts if one.max_nodes is not None}
    edges = [np.unique([getattr(one, name) for one in parts if getattr(one, name) is not None]) for name in LARGEST]
    told = [np.searchsorted(some, values) for some, values in zip(edges, (limit, nodes), strict=True)]
    told += [codes_of(named), *((most < cores).astype(np.int64) for most in room.values())]
    bound = [name for name in taking(jobs, platform) if name in WHO]
    first, kind = alike(len(jobs), told + [codes_of(jobs[name]) for name in bound])
    taken, why = list[list[Partition]](), list[str]()
    for row in first.tolist():
        with said_of(f"job {quoted(jobs['job_id'][row])}"):
            asked = partitions_of(platform, named[row], jobs[QUEUE][row] if QUEUE in jobs.columns else None)
        own = [jobs[name][row] if name in bound else None for name in WHO]
        said = [
            barred(one, int(limit[row]), int(nodes[row]), *own)
            or (_cramped(one, int(room[one.name][row]), int(cores[row])) if one.name in room else "")
            for one in asked
        ]
        taken.append([one for one, no in zip(asked, said, strict=True) if not no])
        why.append("" if taken[-1] else f"partition {quoted(asked[0].name)} {said[0]}")
    masks = _masks(taken, platform.n_nodes)
    single = _of_kinds(taken, lambda some: all(one.max_nodes == 1 for one in some))[kind] & (asks.nodes < 0)
    many = (asks.nodes != 1) & (cores > 1) & ~single
    beyond = many & (asks.nodes < 0) & (_most_nodes(asks, cores, masks, kind) > _allowed_nodes(taken)[kind])
    shared = all(mask.all() and not gives_whole(platform, some[0]) for mask, some in zip(masks, taken, strict=True))
    if shared and not (single.any() or beyond.any()):
        return None
    across = many & _of_kinds(taken, lambda some: len(_union(some)) > max(len(one.nodes) for one in some))[kind]
    strange = _queues(jobs.filter(named.is_null()))
    return Parted(kind, taken, masks, why, single, bool(across.any()), bool(beyond.any()), strange, platform)


def strange_queues(jobs: pl.DataFrame, site: Site) -> list[str]:
    """Those that are no partition of a site of several, of jobs that go to its default."""
    return _queues(jobs.filter(named_in(jobs, site).is_null())) if len(site.partitions) > 1 else []


def _of_kinds(taken: Iterable[list[Partition]], so: Callable[[list[Partition]], bool]) -> Mask:
    """Of which of these lists something is so, of none that is empty, bool [lists]."""
    return np.array([bool(some) and so(some) for some in taken], bool)


def _union(some: Iterable[Partition]) -> set[int]:
    return {node for one in some for node in one.nodes}


def _least_nodes(asks: Tasks) -> Ints:
    """Of how many nodes each job is at least, int64 [jobs]."""
    few = np.where(asks.tasks_per_node > 0, -(-asks.tasks // np.maximum(asks.tasks_per_node, 1)), 1)
    return np.where(asks.nodes > 0, asks.nodes, few)


def _most_nodes(asks: Tasks, cores: Ints, masks: list[Mask], kind: Ints) -> Ints:
    """On how many nodes each job may lie that says no number, int64 [jobs]."""
    size = np.array([mask.sum() for mask in masks], np.int64)[kind]
    few = np.array([not mask.all() for mask in masks], bool)[kind]
    packs = (asks.cores_per_task > 1) | (asks.tasks_per_node > 0) | few
    return np.minimum(np.where(packs, asks.tasks, cores), size)


def _allowed_nodes(taken: Iterable[list[Partition]]) -> Ints:
    """How many nodes all of these partitions allow, int64 [lists]."""
    most = [[one.max_nodes for one in some if one.max_nodes is not None] for some in taken]
    return np.array([min(some, default=MOST) for some in most], np.int64)


def _room(part: Partition, asks: Tasks, site: Site) -> Ints:
    """Cores of the largest nodes of a partition, as many as it allows, in whole tasks, int64 [jobs]; no end of them for
    a job that says its number of nodes."""
    cores, room = np.asarray(site.cores)[list(part.nodes)], np.full(len(asks.nodes), np.iinfo(np.int64).max)
    for per in np.unique(asks.cores_per_task):
        largest = np.sort(cores - cores % per)[::-1][: part.max_nodes]
        room[(asks.nodes < 0) & (asks.cores_per_task == per)] = largest.sum()
    return room


def _cramped(part: Partition, room: int, cores: int) -> str:
    """Why so many nodes as a partition allows cannot hold a job, as Slurm's rules say it; "" where they may."""
    if cores <= room:
        return ""
    none = "has 0 nodes that could run it, and it needs 1"
    return none if part.max_nodes == 1 else f"could give it {room} cores, and it needs {cores}"


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
        return not site.whole_nodes
    longest = cast(float | None, jobs["walltime_s"].max()) or 0.0
    at_most = 60 * math.ceil(longest / 60 - 1e-9) if math.isfinite(longest) else math.inf
    free = PARTITION not in jobs.columns and site.default_partition is not None
    return free and all(
        len(one.nodes) == site.n_nodes
        and one.up
        and not (gives_whole(site, one) or one.accounts or one.denied_accounts or one.qos or one.denied_qos)
        and one.max_nodes is None
        and (one.max_s is None or at_most <= one.max_s)
        for one in site.partitions
    )
