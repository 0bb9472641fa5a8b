"""From the columns of a workload to what the compiled passes read: shapes, records of jobs in partitions, priorities,
followers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.errors import number_of, quoted, said_of
from escala.kernel.slurm import tables as t
from escala.partitions import barred, limits_of, named_in, partitions_of
from escala.platform.closures import FLEX
from escala.platform.constraints import features_mask, has_features, named_mask, places_of, refuse_others, strange_in
from escala.platform.site import Partition, Site
from escala.slurm.closed import names_of
from escala.slurm.columns import Columns
from escala.slurm.limits import Bounded, over
from escala.slurm.settings import ENDLESS_S, Settings
from escala.workload import Workload
from escala.workload.tasks import tasks_of

Ints = NDArray[np.int64]
MOST_NODES = 1 << 40
Record = tuple[int, int, int, int, int]
"""Partition, class of nodes, class of limits, reservation or NONE, 1: a magnetic one that the job does not ask for."""
LATE_S = 60.0  # a recorded run time up to so much over the limit is Slurm's own late kill


@dataclass
class Asked:
    """What the jobs ask, in the order of their submission; rows of jobs that can never run are in `refused` with the
    reason."""

    shape: Ints
    record: Ints
    # job, partition, class of nodes, class of limits, reservation, 1: magnetic
    records: list[tuple[int, int, int, int, int, int]]
    masks: NDArray[np.bool_]  # [classes, nodes]
    refused: dict[int, str]
    limit_s: Ints
    run_us: Ints
    most_us: Ints  # until it is killed, FAR: never
    killed: NDArray[np.bool_]
    cut: NDArray[np.bool_]  # killed at the beat after the limit, not when the log says
    bounded: Bounded
    inside: Ints  # the reservation that each asks for, NONE


def shapes_of(workload: Workload, site: Site, settings: Settings) -> Ints:
    """int64 [jobs, SHAPE], but for what its partition decides (memory, exclusive nodes, limits)."""
    told = Columns(workload.jobs)
    shape = np.full((len(workload), t.SHAPE), t.NONE, np.int64)
    nodes, tasks, per, per_node = tasks_of(workload.jobs)
    shape[:, t.MIN_NODES] = np.where(nodes > 0, nodes, 1)
    shape[:, t.REQ_NODES] = shape[:, t.MIN_NODES]
    shape[:, t.MAX_NODES] = np.where(nodes > 0, nodes, MOST_NODES)
    shape[:, t.TASKS] = tasks
    shape[:, t.CORES_PER_TASK] = per
    shape[:, t.TASKS_PER_NODE] = per_node
    shape[:, t.NODE_CORES] = np.maximum(per, per_node * per)
    shape[:, t.MIN_CORES] = np.maximum(tasks * per, np.where(nodes > 0, nodes, 1))
    shape[:, t.MEMORY_CORE] = told.ints("memory_mb_per_core", 0)
    shape[:, t.MEMORY_NODE] = told.ints("memory_mb_per_node", 0)
    shape[:, t.GPUS_NODE] = told.ints("gpus_per_node", 0)
    shape[:, t.GPUS_TASK] = told.ints("gpus_per_task", 0)
    shape[:, t.EXCLUSIVE] = np.maximum(told.ints("exclusive", 0), int(settings.whole_nodes))
    shape[:, t.MOST_NODES] = MOST_NODES
    shape[:, t.USER] = np.maximum(workload.user_ranks, 0)
    return shape


class Asking:
    """Turns each job into its records: the partitions that it names, the nodes there that have what it needs, and its
    limit."""

    def __init__(self, workload: Workload, site: Site, settings: Settings, exact: bool = False) -> None:
        """exact: the site says of all features which nodes have them; else one without any is not asked."""
        self.workload, self.site, self.settings = workload, site, settings
        self.shape = shapes_of(workload, site, settings)
        told = Columns(workload.jobs)
        self.named = named_in(workload.jobs, site).to_list()
        heeded = exact or has_features(site)
        self.features = told.texts("features" if heeded else "")  # else as of jobs that ask for none
        self.kinds = told.texts("gpu_kind")
        self.required, self.excluded = told.texts("required_nodes"), told.texts("excluded_nodes")
        self.accounts, self.qos, self.users = told.texts("account"), told.texts("qos"), told.texts("user")
        self.queues, self.names = told.texts("queue"), names_of(site)
        # of a site that has none, all are left out
        self.inside = told.texts("reservation") if self.names else [None] * len(workload)
        self.bounded = Bounded(site, settings.limits)
        self.minutes = limits_of(workload.jobs)
        self.classes: dict[tuple[int | str | None, ...], int] = {}
        self.places = places_of(site)
        self.masks: list[NDArray[np.bool_]] = []
        self.numbers = {one.name: k for k, one in enumerate(site.partitions)}
        self.cpus = np.asarray(site.cores)

    def asked(self) -> Asked:
        """All jobs."""
        records: list[tuple[int, int, int, int, int, int]] = []
        first = np.zeros(len(self.workload) + 1, np.int64)
        refused: dict[int, str] = {}
        alike: dict[tuple[object, ...], tuple[list[Record], str, Ints]] = {}
        for j in range(len(self.workload)):
            row = self.shape[j]
            who = (
                self.accounts[j],
                self.qos[j],
                self.users[j] if self.bounded.any or self.names else None,
                self.inside[j],
            )
            hosts = self.required[j], self.excluded[j]
            key = (self.named[j], self.features[j], self.kinds[j], who, int(self.minutes[j]), hosts, row[:-1].tobytes())
            if key not in alike:
                alike[key] = (*self._all_records(j), row.copy())
            mine, why, shape = alike[key]
            row[:-1] = shape[:-1]  # all but the user
            if not mine:
                refused[j] = why
            records += [(j, *one) for one in mine]
            first[j + 1] = len(records)
        run = self._runs()
        masks = np.array(self.masks) if self.masks else np.zeros((0, self.site.n_nodes), bool)
        inside = np.array([t.NONE if one is None else self.names.get(one, t.NONE) for one in self.inside], np.int64)
        return Asked(self.shape, first, records, masks, refused, self.shape[:, t.LIMIT_S], *run, self.bounded, inside)

    def _all_records(self, j: int) -> tuple[list[Record], str]:
        """Its records, and why there is none."""
        why = self._kept_out(j) or self._lacking(j)
        mine: list[Record] = []
        with said_of(self._who(j)):
            asked = [] if why else partitions_of(self.site, self.named[j], self.queues[j])
        for part in asked:
            found = self._record(j, part, not mine)
            if isinstance(found, str):
                why = why or found
            else:
                mine.append(found)
        return mine + self._drawn(j, mine), why

    def _drawn(self, j: int, plain: list[Record]) -> list[Record]:
        """The same in magnetic reservations that it may use, the first to begin first, if it asks for none."""
        if self.inside[j] is not None or not self.names:
            return []
        parts = self.site.partitions
        chain = self._chain(j)
        drawing = sorted(
            (one for one in self.site.closed if one.draws(self.users[j], chain)), key=lambda one: one.from_s
        )
        names = dict.fromkeys(one.name for one in drawing if one.name is not None)
        return [
            (one[0], self._class(j, parts[one[0]], name), one[2], self.names[name], 1)
            for name in names
            for one in plain
        ]

    def _kept_out(self, j: int) -> str:
        """Why it may not run in the reservation that it asks for; "" where it may, or asks for none."""
        name = self.inside[j]
        if name is None:
            return ""
        if name not in self.names:
            return (
                f"reservation {quoted(name)} is not there (there are {', '.join(self.names)}): describe it under "
                "[[closed]]"
            )
        chain = self._chain(j)
        spans = [one for one in self.site.closed if one.name == name]
        if not any(one.admits(self.users[j], chain) for one in spans):
            return (
                f"reservation {quoted(name)} is for others than user {quoted(self.users[j])} and account "
                f"{quoted(self.accounts[j])}"
            )
        return ""

    def _chain(self, j: int) -> list[str]:
        """Its account and those above."""
        own, chain = self.accounts[j], list[str]()
        while own is not None and own not in chain:
            chain.append(own)
            own = self.site.accounts.get(own, {}).get("parent")
        return chain

    def _lacking(self, j: int) -> str:
        """What it asks for and no node of the site has; "" where there is nothing."""
        word = strange_in(self.site, self.features[j])
        if word is not None:
            return f"it needs feature {quoted(word)}, which no node of site {quoted(self.site.name)} has"
        kind = self.kinds[j]
        if kind is not None and kind not in self.site.gpu_kinds:
            known = ", ".join(self.site.gpu_kinds) or "none"
            return f"it asks for GPUs of kind {quoted(kind)}, and site {quoted(self.site.name)} has {known}"
        return ""

    def _who(self, j: int) -> str:
        return f"workload {quoted(self.workload.name)}: job {quoted(self.workload.jobs['job_id'][j])}"

    def _record(self, j: int, part: Partition, first: bool) -> Record | str:
        """Of job j in this partition, or why it can never run there. The first decides its memory and limit."""
        kept = self.bounded.of(part, self.qos[j], self.accounts[j], self.users[j]) if self.bounded.any else None
        limit = int(self.minutes[j])
        if limit < 0:
            limit = int(min(part.default_s if part.default_s is not None else part.max_s or ENDLESS_S, ENDLESS_S))
            limit = min(limit, int(kept.max_s)) if kept is not None and kept.max_s is not None else limit
        why = barred(part, limit, int(self.shape[j, t.MIN_NODES]), self.accounts[j], self.qos[j])
        if why:
            return f"partition {quoted(part.name)} {why}"
        row = self.shape[j]
        if first:
            row[t.LIMIT_S] = limit
            row[t.EXCLUSIVE] = max(row[t.EXCLUSIVE], int(part.exclusive))
            if row[t.MEMORY_CORE] <= 0 and row[t.MEMORY_NODE] <= 0:
                row[t.MEMORY_CORE] = part.memory_mb_per_core or 0
                row[t.MEMORY_NODE] = part.memory_mb_per_node or 0
            row[t.MAX_NODES] = min(row[t.MAX_NODES], part.max_nodes or MOST_NODES, self.site.n_nodes)
            row[t.GPU_KIND] = t.NONE if self.kinds[j] is None else self.site.gpu_kinds.index(self.kinds[j])
            row[t.MOST_NODES] = MOST_NODES if kept is None else kept.nodes
        which = self._class(j, part, self.inside[j])
        why = self._never_fits(row, self.masks[which])
        if why:
            return f"partition {quoted(part.name)} {why}"
        why = over(kept, row, limit) if kept is not None else ""
        name = self.inside[j]
        own = t.NONE if name is None else self.names[name]
        return why or (self.numbers[part.name], which, 0 if kept is None else kept.number, own, 0)

    def _class(self, j: int, part: Partition, inside: str | None) -> int:
        """Nodes of the partition that have what it asks for, in a reservation those of its spans, unless it is
        flexible."""
        key = (self.numbers[part.name], self.features[j] or None, inside, self.required[j], self.excluded[j])
        if key not in self.classes:
            self.classes[key] = len(self.masks)
            mask = np.zeros(self.site.n_nodes, bool)
            mask[list(part.nodes)] = True
            spans = [one for one in self.site.closed if inside is not None and one.name == inside]
            if spans and not any(FLEX in one.flags for one in spans):
                mask &= np.isin(np.arange(self.site.n_nodes), [n for one in spans for n in one.nodes])
            with said_of(self._who(j)):
                if self.required[j]:
                    required = named_mask(self.site, self.places, self.required[j])
                    refuse_others(int(required.sum()), int(self.shape[j, t.MIN_NODES]))
                    mask &= required
                if self.excluded[j]:
                    mask &= ~named_mask(self.site, self.places, self.excluded[j])
                self.masks.append(mask & features_mask(self.site, self.features[j]))
        return self.classes[key]

    def _never_fits(self, row: Ints, mask: NDArray[np.bool_]) -> str:
        """Why a job of this shape would not fit these nodes if they were empty; "" where it would."""
        cpus = np.where(mask, self.cpus, 0)
        per = int(row[t.CORES_PER_TASK])
        if per > 1 and row[t.GPUS_NODE] == 0 and row[t.GPUS_TASK] == 0:
            cpus = cpus - cpus % per  # whole tasks only
        if self.settings.memory:
            memory = self.site.resources.get("memory", np.zeros(self.site.n_nodes, np.int64))
            if row[t.MEMORY_CORE] > 0:
                whole = row[t.EXCLUSIVE] == 1
                room = np.where(memory >= cpus * row[t.MEMORY_CORE], cpus, 0) if whole else memory // row[t.MEMORY_CORE]
                cpus = np.minimum(cpus, room)
                cpus = cpus if whole else cpus - cpus % per
            elif row[t.MEMORY_NODE] > 0:
                cpus = np.where(memory >= row[t.MEMORY_NODE], cpus, 0)
        gpus = self._gpus(int(row[t.GPU_KIND]))
        cpus = np.where(gpus >= row[t.GPUS_NODE], cpus, 0)
        if row[t.GPUS_TASK] > 0:
            cpus = np.minimum(cpus, gpus // row[t.GPUS_TASK] * per)
        least = max(int(row[t.NODE_CORES]), int(row[t.TASKS] * per) if row[t.MAX_NODES] == 1 else 1)
        cpus = np.where(cpus >= least, cpus, 0)
        wanted = max(
            int(row[t.MIN_NODES]),
            -(-int(row[t.TASKS]) // int(row[t.TASKS_PER_NODE])) if row[t.TASKS_PER_NODE] > 0 else 1,
        )
        if (cpus > 0).sum() < wanted:
            return f"has {number_of(int((cpus > 0).sum()), 'node')} that could run it, and it needs {wanted}"
        most = np.sort(cpus)[::-1][: max(int(min(row[t.MAX_NODES], len(cpus))), 1)].sum()
        return (
            f"could give it {int(most)} cores, and it needs {int(row[t.MIN_CORES])}" if most < row[t.MIN_CORES] else ""
        )

    def _gpus(self, kind: int) -> Ints:
        name = "gpu" if kind < 0 else f"gpu:{self.site.gpu_kinds[kind]}"
        return self.site.resources.get(name, np.zeros(self.site.n_nodes, np.int64))

    def _runs(self) -> tuple[Ints, Ints, NDArray[np.bool_], NDArray[np.bool_]]:
        """(us that each job would run, us at which it is killed, is it, is it so at a beat of the clock). A recorded
        run time that passes the limit by no more than a kill of Slurm may be late is kept."""
        runtime = self.workload.jobs["runtime_s"].to_numpy()
        limit = self.shape[:, t.LIMIT_S] + 60 * self.settings.over_time
        limited = self.minutes >= 0
        return (
            np.round(runtime * t.SECOND).astype(np.int64),
            np.where(limited, limit * t.SECOND, t.FAR),
            limited & (runtime >= limit),
            limited & (runtime > limit + LATE_S),
        )
