"""`SiteDesk`: a desk for each partition of a site. A snapshot is split by partitions, their orders are put together."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.live.desk import Desk
from escala.live.orders import Orders, Planned, Refused, Start
from escala.live.slurm_desk import SlurmDesk
from escala.live.snapshot import Snapshot
from escala.live.state_file import check_state, reading_state, whose, write_state
from escala.live.told import Cells, cells_of
from escala.partitions import apart, gives_whole_nodes
from escala.platform.hostlist import hosts_of
from escala.platform.site import Partition, Site
from escala.policy import name_of
from escala.slurm.named import is_slurm
from escala.workload.shapes import EXCLUDED, PLACES


def desk_of(
    platform: Any, scheduler: Any = "easy", shutdown: Any = "never", **options: Any
) -> Desk | SiteDesk | SlurmDesk:
    """A `SlurmDesk` for scheduler slurm, else a `SiteDesk` for a site with several partitions, or with one that lacks
    nodes or gives whole ones, else a `Desk`."""
    if is_slurm(scheduler):
        return SlurmDesk(platform, scheduler, shutdown, **options)
    if isinstance(platform, Site) and (len(platform.partitions) > 1 or apart(platform) or gives_whole_nodes(platform)):
        return SiteDesk(platform, scheduler, shutdown, **options)
    return Desk(platform, scheduler, shutdown, **options)


class SiteDesk:
    """A `Desk` for a site: jobs get nodes of their partition only, whole ones where it is exclusive, and each partition
    is decided for by itself.

    site: of which no two partitions that are up share nodes. A policy that is an object is copied for each partition.
    EscalaError for policies that cannot be asked, and for partitions that overlap.
    """

    def __init__(self, site: Site, scheduler: Any = "easy", shutdown: Any = "never", **options: Any) -> None:
        self.platform = site
        self.name = f"{name_of(scheduler)} + {name_of(shutdown)}"
        self._up = [one for one in site.partitions if one.up]
        self._place_of = {one.name: k for k, one in enumerate(self._up)}
        self._parts = [_Part(one, site) for one in self._up]
        _check_apart(site, self._up)
        machines = [site.machine(one.name) for one in self._up]
        self._desks = [Desk(machine, deepcopy(scheduler), deepcopy(shutdown), **options) for machine in machines]

    @property
    def counts(self) -> dict[str, int]:
        """As `Desk.counts`, of all partitions together."""
        each = [desk.counts for desk in self._desks]
        return {name: sum(counts[name] for counts in each) for name in each[0]}

    def decide(self, snapshot: Snapshot) -> Orders:
        """As `Desk.decide`; starts come partition by partition. A job that names no partition is in the default one."""
        before = [desk.told() for desk in self._desks]
        try:
            wanted = self._wanted(snapshot)
            asked = self._split(snapshot, wanted)
            found = [
                part.widened(desk.decide(one)) for part, desk, one in zip(self._parts, self._desks, asked, strict=True)
            ]
        except BaseException:
            for desk, told in zip(self._desks, before, strict=True):
                desk.take(told)
            raise
        due = [one.next_s for one in found if one.next_s is not None]
        return Orders(
            snapshot.now_s,
            tuple(start for one in found for start in one.starts),
            tuple(sorted(node for one in found for node in one.wakes)),
            tuple(sorted(node for one in found for node in one.offs)),
            min(due, default=None),
            (*(one for part in found for one in part.refused), *self._down(snapshot, wanted)),
        )

    def warm(self) -> None:
        """As `Desk.warm`."""
        for desk in self._desks:
            desk.warm()

    def plan(self, snapshot: Snapshot, first: int = 10) -> list[Planned]:
        """As `Desk.plan`: the first of all partitions together."""
        asked = zip(self._desks, self._split(snapshot, self._wanted(snapshot)), strict=True)
        found = [
            planned
            for desk, one in asked
            if (one.jobs["state"] == codes.QUEUED).any()
            for planned in desk.plan(one, first)
        ]
        return sorted(found, key=lambda planned: planned.start_s)[:first]

    def save(self, path: Any, note: Any = None) -> None:
        """As `Desk.save`: what all remember, in one file."""
        parts = {one.name: desk.told() for one, desk in zip(self._up, self._desks, strict=True)}
        told = {**whose(self.name, self.platform), "parts": parts}
        write_state(path, self.name, told, note)

    def restore(self, path: Any) -> Any:
        """As `Desk.restore`."""
        with reading_state(path) as told:
            check_state(told, self.name, self.platform)
            parts = told.get("parts")
            if not isinstance(parts, dict) or list(parts) != list(self._place_of):
                raise EscalaError(
                    f"it is of other partitions than {', '.join(self._place_of)}: give its own file, or begin without"
                )
            for desk, one in zip(self._desks, parts.values(), strict=True):
                desk.take(one)
        return told.get("note")

    def _split(self, snapshot: Snapshot, wanted: NDArray[np.int64]) -> list[Snapshot]:
        cells = cells_of(snapshot.placed)
        return [part.cut(snapshot, wanted == k, cells) for k, part in enumerate(self._parts)]

    def _wanted(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """The place among the partitions that are up of each job's; NONE for one that is not up. EscalaError for a
        snapshot that cannot be of this site."""
        n = self.platform.n_nodes
        if len(snapshot.nodes) != n:
            raise EscalaError(
                f"snapshot: {len(snapshot.nodes)} nodes, site {self.platform.name!r} has {n}: tell of each, in its "
                "order"
            )
        usual = self.platform.default_partition
        told = snapshot.partitions if snapshot.partitions is not None else [None] * len(snapshot.jobs)
        out = np.full(len(told), codes.NONE, np.int64)
        for k, name in enumerate(told):
            if name is None and usual is None and snapshot.jobs["state"][k] == codes.QUEUED:
                raise EscalaError(
                    f"snapshot: job {quoted(snapshot.job_ids[k])} names no partition, and none is the default: add "
                    "jobs.partition"
                )
            one = usual.name if name is None and usual is not None else name
            if one is not None and one not in self._place_of:
                self.platform.partition(one)  # refused where there is none
            out[k] = self._place_of.get(one or "", codes.NONE)
        return out

    def _down(self, snapshot: Snapshot, wanted: NDArray[np.int64]) -> list[Refused]:
        """The waiting jobs of partitions that are not up."""
        usual, told = self.platform.default_partition, snapshot.partitions
        out = []
        for k in np.flatnonzero((wanted == codes.NONE) & (snapshot.jobs["state"] == codes.QUEUED)).tolist():
            name = None if told is None else told[k]
            out.append(
                Refused(snapshot.job_ids[k], f"partition {quoted(name or (usual.name if usual else ''))} is down")
            )
        return out


class _Part:
    """One partition: which nodes of the site are its own."""

    def __init__(self, own: Partition, site: Site) -> None:
        self._nodes = np.array(own.nodes, np.int64)
        self._local = np.full(site.n_nodes, codes.NONE, np.int64)
        self._local[self._nodes] = np.arange(len(self._nodes))
        self._elsewhere = {site.names[n] for n in np.flatnonzero(self._local == codes.NONE)}

    def cut(self, snapshot: Snapshot, wanted: NDArray[np.bool_], cells: Cells) -> Snapshot:
        """What of a snapshot is the partition's: its waiting jobs, and what jobs hold of its nodes. wanted: the jobs
        that name it."""
        local = self._local[cells.node]
        mine = local >= 0
        job, node, per = cells.job[mine], local[mine], cells.per[mine]
        held, whole = (np.bincount(*some, len(snapshot.jobs)).astype(np.int64) for some in ((job, per), cells[::2]))
        chosen = np.flatnonzero((held > 0) | (wanted & (snapshot.jobs["state"] == codes.QUEUED)))
        jobs = snapshot.jobs[chosen]
        jobs["row"] = np.arange(len(jobs))
        partly = (held > 0) & (held < whole)
        jobs["cores"][partly[chosen]] = held[partly]
        place = np.full(len(snapshot.jobs), codes.NONE, np.int64)
        place[chosen] = np.arange(len(chosen))
        ends = np.ones(len(job), bool)
        ends[1:] = (job[1:] != job[:-1]) | (per[1:] != per[:-1]) | (node[1:] != node[:-1] + 1)
        beside = {name: values[cells.row[mine]] for name, values in snapshot.held.items()}
        for values in beside.values():
            ends[1:] |= values[1:] != values[:-1]
        first = np.flatnonzero(ends)
        placed = np.zeros(len(first), snapshot.placed.dtype)
        placed["job"], placed["low"], placed["per"] = place[job[first]], node[first], per[first]
        placed["high"] = node[np.append(first[1:], len(job))[: len(first)] - 1]
        return Snapshot(
            snapshot.now_us,
            [snapshot.job_ids[k] for k in chosen.tolist()],
            [snapshot.users[k] for k in chosen.tolist()],
            jobs,
            snapshot.nodes[self._nodes],
            placed,
            {kind: values[chosen] for kind, values in snapshot.demand.items()},
            snapshot.ended,
            shapes={name: self._asked(name, values, chosen, wanted) for name, values in snapshot.shapes.items()},
            held={name: values[first] for name, values in beside.items()},
        )

    def _asked(self, name: str, values: list[Any], chosen: NDArray[np.int64], wanted: NDArray[np.bool_]) -> list[Any]:
        """What these jobs ask; those of others, which lie here, of no nodes by name or feature."""
        asked = [values[k] if wanted[k] or name not in PLACES else None for k in chosen.tolist()]
        return [hosts and self._here(hosts) for hosts in asked] if name == EXCLUDED else asked

    def _here(self, hosts: str) -> str | None:
        """Without the nodes of other partitions, where it may not lie anyhow."""
        try:
            names = hosts_of(hosts, EXCLUDED)
        except EscalaError:
            return hosts  # its desk says what is wrong
        return ",".join(one for one in names if one not in self._elsewhere) or None

    def widened(self, orders: Orders) -> Orders:
        """With the numbers that nodes have in the site."""
        nodes = self._nodes
        starts = tuple(map(self._start, orders.starts))
        wakes, offs = (tuple(nodes[list(some)].tolist()) if some else () for some in (orders.wakes, orders.offs))
        return Orders(orders.now_s, starts, wakes, offs, orders.next_s, orders.refused)

    def _start(self, start: Start) -> Start:
        out: list[tuple[int, int, int]] = []
        chunks = list[int]()  # in which each of them begins
        for k, (low, high, per) in enumerate(start.nodes):
            for node in self._nodes[low : high + 1].tolist():
                if out and out[-1][1] == node - 1 and out[-1][2] == per:
                    out[-1] = (out[-1][0], node, per)
                else:
                    out.append((node, node, per))
                    chunks.append(k)
        held = tuple((name, tuple(values[k] for k in chunks)) for name, values in start.held)
        return start._replace(nodes=tuple(out), held=held)


def _check_apart(site: Site, up: list[Partition]) -> None:
    if not up:
        raise EscalaError(f"site {quoted(site.name)}: no partition is up, so that nothing can be asked")
    whose: dict[int, str] = {}
    for one in up:
        for node in one.nodes:
            if node in whose:
                raise EscalaError(
                    f"site {quoted(site.name)}: partitions {quoted(whose[node])} and {quoted(one.name)} share node "
                    f"{site.names[node]}, and are decided for apart: take scheduler slurm, or a Desk for one "
                    "(site.machine(name))"
                )
            whose[node] = one.name
