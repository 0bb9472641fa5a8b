"""What jobs are made of on a platform: cores of any nodes, or parts that lie on one node each.

A job of n nodes has n parts, each on a node of its own, and a single-node job one. Its cores are spread evenly over
them, by whole tasks; of memory by the core and GPUs by the task each node gives what its largest part needs. Without
`nodes`, a job that asks for something of each node, or for whole ones, has the fewest that could hold it; other tasks
pack as they fit: each is a part, and a node may hold several. On which nodes parts may lie: `escala.allowed`; who has
them to itself: `escala.whole`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.allowed import Allowed, allowed_of, by_nodes
from escala.errors import EscalaError, number_of, quoted, said_of
from escala.kernel.state import World
from escala.partitions import Parted, parted_of
from escala.platform import Platform
from escala.platform.constraints import has_features, has_names
from escala.platform.sharers import SHARERS
from escala.platform.site import GPU, MEMORY
from escala.whole import asking_whole, one_size, sharers_in
from escala.workload import Workload
from escala.workload.shapes import EXCLUSIVE, FEATURES, KIND, OF_GPUS, OF_MEMORY, OF_TASKS, PLACES
from escala.workload.tasks import MOST, ints_of, tasks_of

Ints = NDArray[np.int64]
MOST_CELLS = 1_000_000  # of a table of jobs x shapes of nodes
MOST_GROUPS = 24
"""See `Parts.groups`."""


@dataclass(frozen=True)
class Parts:
    """int64 [jobs] each: cores that they ask for; how many parts they have (0: cores of any nodes), how many of them a
    node may hold, cores of a large part, of the others, and how many are large; demand of each part by kind; which ask
    for what no node has; on which nodes each may lie, and which partitions take them."""

    cores: Ints
    parts: Ints
    most: Ints
    share: Ints
    less: Ints
    large: Ints
    demands: dict[str, Ints] = field(default_factory=dict)
    never: NDArray[np.bool_] | None = None
    allowed: Allowed | None = None  # nodes on which each may lie; None: all
    uneven: bool = False  # do some share nodes that ask for whole ones, but can be dealt out evenly on none?
    parted: Parted | None = None  # None: partitions leave none of them out

    @property
    def held(self) -> Ints:
        """The cores that each job takes of the machine, int64 [jobs]: more than it asks for, where it takes whole nodes
        or whole tasks."""
        return np.where(self.parts > 0, self.large * self.share + (self.parts - self.large) * self.less, self.cores)

    @property
    def single(self) -> Ints:
        """As in the kernel's JOB: 0: cores of any nodes, 1: one node, 2: as these tables say."""
        plain = (self.held == self.cores) & (self.which == 0) & ~(self.anywhere & (self.parts > 0))
        return np.where(self.parts > 1, 2, np.where(plain, self.parts, 2))

    @property
    def anywhere(self) -> NDArray[np.bool_]:
        """Which jobs ask for cores of any nodes. Where some jobs have nodes to themselves, these have a part for each
        core, and a node may hold one more than there are."""
        return (self.parts == 0) | (self.most > self.parts)

    @property
    def sizes(self) -> Ints:
        """Cores of the largest part of each, or all: as `kernel.reach` sorts them."""
        return np.where(self.single == 2, self.share, self.cores)

    @property
    def which(self) -> Ints:
        """The set of nodes on which each job may lie, a row of `allowed.sets`, int64 [jobs]; 0: all nodes."""
        return np.zeros(len(self.cores), np.int64) if self.allowed is None else self.allowed.which

    @property
    def sets(self) -> NDArray[np.uint64]:
        """As `World.allowed`: uint64 [sets or 0, words]."""
        if self.allowed is None or len(self.allowed.sets) == 1:
            return np.zeros((0, 0), np.uint64)
        return self.allowed.sets

    def groups(self, rows: Ints, kinds: list[str]) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Jobs that may lie on the same nodes and demand the same of these kinds, or take cores of any nodes, the
        commonest MOST_GROUPS - 1 of them: the group of each of these rows, 0: another, int8 [rows]; and what each asks
        for, as `World.group`, int32 [groups, 3 + kinds]."""
        wanted = [self.demands[kind][rows] if kind in self.demands else np.zeros(len(rows), np.int64) for kind in kinds]
        key = self.which[rows] * 2 + (self.single[rows] == 0)
        for one in wanted:
            key = key * 2 + (one > 0)
        found, first, of, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        chosen = np.argsort(-counts, kind="stable")[: MOST_GROUPS - 1]
        numbers = np.zeros(len(found), np.int8)
        numbers[chosen] = 1 + np.arange(len(chosen))
        mine = numbers[of]
        asks = np.zeros((1 + len(chosen), 3 + len(kinds)), np.int32)
        asks[1:, 0] = self.single[rows][first[chosen]] == 0
        asks[1:, 1] = self.which[rows][first[chosen]]
        if self.parted is not None and self.parted.lanes.n > 0:
            asks[1:, 2] = self.parted.lanes.of_job[rows][first[chosen]]
        for k, one in enumerate(wanted):
            asks[1:, 3 + k] = [int(one[mine == g].min()) for g in range(1, len(asks))]
        return mine, asks

    def told(self, row: int) -> str:
        """What a job needs, in words."""
        parts, most = int(self.parts[row]), int(self.most[row])
        each = [number_of(int(self.share[row]), "core")]
        asked = {kind: int(values[row]) for kind, values in self.demands.items() if values[row] > 0 and kind != SHARERS}
        kinds = any(kind.startswith(f"{GPU}:") for kind in asked)
        each += [_amount(kind, count) for kind, count in asked.items() if not (kinds and kind == GPU)]
        what = "node" if parts == 1 else "nodes" if most == 1 else f"tasks (at most {most} on a node)"
        count = parts if parts < MOST else f"more than {MOST - 1:,}"
        return f"{count} {what} with {', '.join(each)}{' each' if parts > 1 else ''}"

    def too_large(self, platform: Platform) -> NDArray[np.bool_]:
        """Which jobs could never run, were the platform empty."""
        found: NDArray[np.bool_] = (self.parts == 0) & (self.cores > platform.total_cores)
        at = np.flatnonzero(self.parts > 0)
        if len(at):
            wanted = np.stack([self.share, *self.demands.values()], axis=1)
            for shapes, counts, rows in by_nodes(self.allowed, at, platform, list(self.demands)):
                room = np.zeros(len(rows), np.int64)
                for shape, count in zip(shapes, counts, strict=True):
                    room += count * np.minimum(_times(shape, wanted[rows]), self.most[rows])
                found[rows] = room < self.parts[rows]
        return found if self.never is None else found | self.never

    def fill(self, w: World, i: int, rows: Ints, kinds: list[str]) -> None:
        """Into the kernel's tables of simulation i, whose rows are these of the workload, and filled in but for this;
        the load is of the cores that jobs ask for. kinds: the further ones, as the kernel has them."""
        job, n = w.job[i, : len(rows)], len(rows)
        job["single"], held = self.single[rows], self.held[rows]
        job["load"] = np.where(held == job["cores"], job["load"], job["load"] * job["cores"] / held)
        for k, kind in enumerate(kinds):
            if kind in self.demands:
                w.demand[i, :n, k] = self.demands[kind][rows]
        if w.shape.shape[1] > 0:
            self.lay_out(w, i, np.arange(n), rows)

    def lay_out(self, w: World, i: int, at: Ints, rows: Ints) -> None:
        """The shapes of these of the workload's rows into those of the kernel's tables, which have room for them, and
        the sets of nodes on which they may lie."""
        for name in ("parts", "most", "large", "share", "less"):
            w.shape[name][i, at] = getattr(self, name)[rows]
        w.shape["allowed"][i, at] = self.which[rows]
        if len(self.sets):
            w.allowed[i, : len(self.sets)] = self.sets

    def held_on_nodes(self, kinds: Iterable[str], rows: Ints, cores: Ints) -> dict[str, Ints]:
        """Of these further kinds what these jobs hold on nodes where they have so many cores of each, int64 [rows]; as
        `kernel.parts.parts_in`."""
        count = np.where(self.most[rows] > 1, cores // np.maximum(self.share[rows], 1), 1)
        return {kind: self.demands[kind][rows] * count for kind in kinds if kind in self.demands}

    def of(self, rows: Ints) -> Parts:
        """Of these jobs alone."""
        named = {name: getattr(self, name)[rows] for name in ("cores", "parts", "most", "share", "less", "large")}
        never = None if self.never is None else self.never[rows]
        allowed = None if self.allowed is None else self.allowed.of(rows)
        parted = None if self.parted is None else self.parted.of(rows)
        demands = {kind: one[rows] for kind, one in self.demands.items()}
        return Parts(**named, demands=demands, never=never, allowed=allowed, uneven=self.uneven, parted=parted)


def _amount(kind: str, count: int) -> str:
    """So much of a further kind, in words."""
    if kind == MEMORY:
        return f"{count:,} MB of memory"
    gpu, _, own = kind.partition(":")
    if gpu != GPU:
        return f"{count:,} {kind}"
    return number_of(count, "GPU") + (f" of kind {quoted(own)}" if own else "")


def most_single(made: Iterable[Parts | None]) -> int:
    """The largest `Parts.single` of all jobs, 0 without any."""
    return max((int(one.single.max(initial=0)) for one in made if one is not None), default=0)


def of_columns(cores: Ints, single: NDArray[np.bool_], demands: dict[str, Ints]) -> Parts:
    """Jobs that ask for one node (`single`), or for cores of any nodes."""
    parts = single.astype(np.int64)
    return Parts(cores, parts, np.ones_like(parts), cores, cores, parts, demands)


def counting(jobs: Any, platform: Platform) -> dict[str, str]:
    """The columns by which some jobs of a table ask for more than cores of any nodes: "" where they count on a
    platform, else why they do not."""
    why = dict.fromkeys(OF_TASKS, "")
    why |= dict.fromkeys(OF_MEMORY, "" if MEMORY in platform.resources else "counts no memory")
    why |= dict.fromkeys(OF_GPUS, "" if GPU in platform.resources else "has no GPUs")
    why[KIND] = "" if _kinds(platform) else "has no kinds of GPUs"
    why |= dict.fromkeys(PLACES, "" if has_names(platform) else "has no names of nodes")
    why[FEATURES] = "" if has_features(platform) else "has no features of nodes"
    why[EXCLUSIVE] = ""
    return {one: why[one] for one in why if one in jobs.columns and jobs[one].null_count() < len(jobs)}


def beside_cores(workloads: Iterable[Workload], platform: Platform) -> list[str]:
    """The columns by which some jobs ask for more than cores of any nodes, and which count on a platform."""
    found = list[str]()
    for one in workloads:
        found += [name for name, why in counting(one.jobs, platform).items() if not why]
        found += ["single_node"] if one.jobs["single_node"].any() else []
        found += [f"demand_{kind}" for kind in demands_of(one, platform)]
    return list(dict.fromkeys(found))


def _kinds(platform: Platform) -> list[str]:
    return [kind for kind in platform.resources if kind.startswith(f"{GPU}:")]


def _times(have: Ints, wanted: Ints) -> Ints:
    """How many times each of `wanted` [jobs, kinds] fits into `have` [kinds]."""
    return (have // np.maximum(wanted, 1) + np.where(wanted > 0, 0, 1 << 40)).min(axis=1)


def parts_of(workload: Workload, platform: Platform) -> Parts | None:
    """What the jobs of a workload are made of; None where all take cores of any nodes, of which no other kind is
    counted."""
    jobs = workload.jobs
    cores, single, demands = jobs["cores"].to_numpy(), jobs["single_node"].to_numpy(), demands_of(workload, platform)
    with said_of(f"workload {quoted(workload.name)}"):
        parted = parted_of(jobs, platform)
        columns = [name for name, why in counting(jobs, platform).items() if not why]
        if columns or parted is not None:
            return _Asked(jobs, platform, columns, demands, parted).parts()
    return of_columns(cores, single, demands) if single.any() or demands else None


class _Asked:
    """The jobs of a table by these of its columns; demands: those that it names; parted: the partitions that take
    them."""

    def __init__(
        self, jobs: Any, platform: Platform, columns: list[str], demands: dict[str, Ints], parted: Parted | None
    ) -> None:
        self.jobs, self.platform, self.columns, self.parted = jobs, platform, columns, parted
        self.named, self.cores = demands, jobs["cores"].to_numpy()
        self.nodes, self.tasks, self.per, self.per_node = tasks_of(jobs)
        self.memory_core, self.memory_node, self.gpus_node, self.gpus_task = (
            self._ints(name) for name in (*OF_MEMORY, *OF_GPUS)
        )
        self.allowed = allowed_of(jobs, platform, columns, parted)
        self.asking = asking_whole(jobs, parted)
        self.whole = one_size(self.asking, self.allowed, platform)
        if parted is not None:
            self.nodes = np.where(parted.one, 1, self.nodes)
        if self.allowed is not None:
            self.nodes = np.where((self.nodes < 0) & (self.allowed.required > 0), 1, self.nodes)

    def _ints(self, name: str) -> Ints:
        asked = ints_of(self.jobs, name, 0) if name in self.columns else np.zeros(len(self.jobs), np.int64)
        return np.minimum(asked, MOST)

    def parts(self) -> Parts:
        """All of it."""
        each = (self.memory_node > 0) | (self.gpus_node > 0)
        nodes, even = np.where(self.nodes < 0, 0, self.nodes), np.ones(len(self.nodes), bool)
        least = np.flatnonzero((self.nodes < 0) & (each | self.asking))
        for shapes, counts, rows in by_nodes(self.allowed, least, self.platform, [MEMORY, GPU]):
            for few in np.array_split(rows, 1 + len(rows) * len(shapes) // MOST_CELLS):
                nodes[few], even[few] = self._fewest(shapes, counts, few)
        alone = self.asking & (self.whole == 0) & even
        uneven = self.asking & (self.whole == 0) & ~even
        nodes[uneven & ~each] = 0
        packs = (self.per > 1) | (self.per_node > 0) | (self.gpus_task > 0) | (self.memory_core > 0)
        packs |= self.allowed.which > 0 if self.allowed is not None else False
        loose = (nodes == 0) & ~packs & alone.any()
        packed, tasks = (nodes == 0) & (packs | loose), np.where(loose, self.cores, self.tasks)
        parts = np.where(packed, tasks, nodes)
        by_task = self.cores == tasks * self.per
        grain = np.where(by_task & (tasks >= parts), self.per, 1)
        units, spread = np.maximum(self.cores, parts * grain) // grain, np.maximum(parts, 1)
        share = grain * -(-units // spread)
        less = np.where(packed, share, grain * (units // spread))
        if self.whole.any():
            all_ = np.maximum(share, self.whole)
            share, less = (np.where(self.whole > 0, all_, x) for x in (share, less))
        large = np.where(share == less, parts, units % spread)
        most = np.where(packed, np.minimum(np.where(self.per_node > 0, self.per_node, tasks), parts), 1)
        most += loose  # see `Parts.anywhere`
        of_part = np.where(packed, 1, -(-tasks // spread))  # tasks
        demands, never = self._further(share, of_part, parts > 0)
        if alone.any():
            demands[SHARERS] = sharers_in(alone, self.platform)
        more = demands, never, self.allowed, bool(uneven.any()), self.parted
        return Parts(self.cores, parts, most, share, less, large, *more)

    def _fewest(self, shapes: Ints, counts: Ints, rows: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The fewest nodes that could hold each of these jobs, with its tasks dealt out evenly, of so many of each
        shape (cores, memory, GPUs), and True; where none could, as many as the best would have to be, or 1, and
        False."""
        tasks, per = self.tasks[rows], self.per[rows]
        of_task = np.stack([per, self.memory_core[rows] * per, self.gpus_task[rows]], axis=1)
        most = np.where(self.per_node[rows] > 0, self.per_node[rows], tasks)
        held = np.zeros((len(rows), len(shapes)), np.int64)  # tasks on a node
        for k, (cores, mb, gpu) in enumerate(shapes):
            able = (self.memory_node[rows] <= mb) & (self.gpus_node[rows] <= gpu)
            held[:, k] = np.where(able, np.minimum(_times(np.array([cores, mb, gpu]), of_task), most), 0)
        order = np.argsort(-held, axis=1, kind="stable")
        held = np.take_along_axis(held, order, axis=1)
        needed = np.where(held > 0, -(-tasks[:, None] // np.maximum(held, 1)), 1)
        enough = (held > 0) & (needed <= np.cumsum(counts[order], axis=1))
        best = np.where(enough, needed, MOST).min(axis=1, initial=MOST)
        return np.where(best < MOST, best, needed[:, 0] if len(shapes) else 1), best < MOST

    def _further(self, share: Ints, tasks: Ints, placed: NDArray[np.bool_]) -> tuple[dict[str, Ints], Any]:
        """Demands of each part, of `share` cores and so many tasks; jobs that ask for a kind of GPU that there is
        not."""
        found = {MEMORY: self.memory_node + self.memory_core * share, GPU: self.gpus_node + self.gpus_task * tasks}
        never = None
        if KIND in self.columns:
            kinds = self.jobs[KIND]
            for kind in _kinds(self.platform):
                mine = (kinds == kind.partition(":")[2]).fill_null(False).to_numpy()
                found[kind] = np.where(mine, found[GPU], 0)
            known = [kind.partition(":")[2] for kind in _kinds(self.platform)]
            never = (kinds.is_not_null() & ~kinds.is_in(known)).to_numpy()
        demands = dict(self.named)
        for kind, values in found.items():
            amounts = np.where(placed, values, 0)
            if amounts.any():
                demands[kind] = np.maximum(demands.get(kind, 0), amounts)
        return demands, never


def demands_of(workload: Workload, platform: Platform) -> dict[str, NDArray[np.int64]]:
    """Demand per further kind that the workload names."""
    demands = {}
    for column in workload.jobs.columns:
        if column.startswith("demand_"):
            kind = column.removeprefix("demand_")
            values = workload.jobs[column].to_numpy()
            if kind not in platform.resources and len(values) and values.max() > 0:
                have = ", ".join(platform.resources) or "cores only"
                raise EscalaError(
                    f"workload {workload.name!r} demands {kind!r}, which platform {platform.name!r} does not have "
                    f"({have})"
                )
            if kind in platform.resources:
                demands[kind] = values
    return demands
