"""From a snapshot to the tables of Slurm's rules: what jobs ask, what they hold, and the order in which those that run
began."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel import codes
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.closed import DOWN
from escala.kernel.slurm.standing import occupy
from escala.live.shapes import GPU, MEMORY, OF_KIND
from escala.live.snapshot import Snapshot
from escala.live.told import Ints, cells_of, log_of, summed
from escala.platform.site import Site
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asked, Asking
from escala.slurm.columns import as_words
from escala.slurm.settings import Settings

ENDLESS_US = t.FAR >> 2


class Standing:
    """A snapshot in the tables: `world`, with what runs in its place and nothing in the queue, and its `table` for
    compiled code.

    order: of each row its place in the snapshot. ahead: running jobs end at their limits, else no end is near.
    """

    def __init__(self, snapshot: Snapshot, site: Site, settings: Settings, origin_s: float, ahead: bool) -> None:
        self.site, self.snapshot = site, summed(snapshot)
        self.now = snapshot.now_us
        self.order = np.argsort(snapshot.jobs["submit"], kind="stable")
        self.jobs = snapshot.jobs[self.order]
        self.ids = [snapshot.job_ids[k] for k in self.order.tolist()]
        log = log_of(snapshot, self.order, origin_s)
        self.asked: Asked = Asking(log, site, settings, exact=True).asked()
        world = arrays_of(log, site, settings, self.asked)
        self.waiting = (self.jobs["state"] == codes.QUEUED) & (world.jobs.state != t.NEVER)
        self.running = np.flatnonzero(self.jobs["state"] != codes.QUEUED)
        away = gone(snapshot)
        if away.any():
            world = world._replace(closed=_closing(world.closed, as_words(away[None, :])))
        self.gpus = [f"{OF_KIND}{kind}" for kind in site.gpu_kinds]
        self.gpus += [GPU] * (world.machine.gpus.shape[1] - len(self.gpus))
        jobs = world.jobs._replace(
            submit=np.append(world.jobs.submit, self.now), state=np.append(world.jobs.state, t.NEVER)
        )
        self.world: t.World = world._replace(jobs=jobs, allocated=self._room(world.allocated))
        self.table = t.table_of(self.world)
        world.s[t.NEXT_SUBMIT] = len(self.ids)  # a moment in place of a job: what comes next
        jobs.cut[:] = 0
        jobs.run[:] = jobs.shape[:, t.LIMIT_S] * t.SECOND if ahead else ENDLESS_US
        self._hold()
        self._run(ahead)

    def _room(self, rows: t.Allocated) -> t.Allocated:
        """More rows, for what is held."""
        spans = self.snapshot.placed["high"] - self.snapshot.placed["low"] + 1
        more = int(spans.sum())
        return t.Allocated(*(np.concatenate([np.zeros((more, *one.shape[1:]), np.int64), one]) for one in rows))

    def _hold(self) -> None:
        """What jobs hold into the rows of `allocated`, job by job."""
        world, n = self.world, len(self.ids)
        row_of = np.empty(n, np.int64)
        row_of[self.order] = np.arange(n)
        cells = cells_of(self.snapshot.placed)
        row = row_of[cells.job]
        by_row = np.argsort(row, kind="stable")
        row = row[by_row]
        node, cpus, chunk = (one[by_row] for one in (cells.node, cells.per, cells.row))
        size = len(row)
        world.allocated.node[:size], world.allocated.cpus[:size] = node, cpus
        first, last = world.jobs.first, world.jobs.last
        first[:n] += size  # the rows of those that wait stand behind
        last[:n] = first[:n]
        first[self.running], last[self.running] = (
            np.searchsorted(row, self.running),
            np.searchsorted(row, self.running, side="right"),
        )
        shape = world.jobs.shape[row]
        if world.rules.by_memory:
            told = self.snapshot.held.get(MEMORY)
            world.allocated.memory[:size] = (
                _memory(shape, cpus, world.machine.memory[node]) if told is None else told[chunk]
            )
        self._hold_gpus(chunk, node, shape, cpus)

    def _hold_gpus(self, chunk: Ints, node: Ints, shape: Ints, cpus: Ints) -> None:
        """GPUs as they are told, or as jobs ask for them."""
        held = {name: values for name, values in self.snapshot.held.items() if name != MEMORY}
        gpus = self.world.allocated.gpus
        for name, values in held.items():
            if name not in self.gpus and values.any():
                known = ", ".join(self.gpus) if any(self.site.resources.get(GPU, ())) else "none"
                raise EscalaError(
                    f"snapshot: placed.{name}: site {quoted(self.site.name)} has {known}: say of which kind they are"
                )
        if held:
            for k, name in enumerate(self.gpus):
                gpus[: len(chunk), k] = held[name][chunk] if name in held else 0
            return
        wanted = np.maximum(shape[:, t.GPUS_NODE], 0)
        wanted = wanted + np.maximum(shape[:, t.GPUS_TASK], 0) * np.maximum(
            cpus // np.maximum(shape[:, t.CORES_PER_TASK], 1), 1
        )
        left = self.world.machine.gpus.copy()
        whole = shape[:, t.EXCLUSIVE] == 1
        gpus[: len(chunk)][whole] = left[node[whole]]
        for at in np.flatnonzero((wanted > 0) & ~whole).tolist():
            n, kind, more = int(node[at]), int(shape[at, t.GPU_KIND]), int(wanted[at])
            for k in range(left.shape[1]) if kind < 0 else (kind,):
                taken = min(more, int(left[n, k]))
                gpus[at, k] = taken
                left[n, k] -= taken
                more -= taken

    def _run(self, ahead: bool) -> None:
        """Who runs; EscalaError where more is held than there is."""
        world, rows = self.world, self.running
        jobs, rules = world.jobs, world.rules
        unlimited = jobs.shape[rows, t.LIMIT_S] < 0  # of jobs that could not start any more
        minutes = -(-self.jobs["walltime"][rows] // (60 * t.SECOND)) * 60
        jobs.shape[rows, t.LIMIT_S] = np.where(unlimited, minutes, jobs.shape[rows, t.LIMIT_S])
        start = np.where(self.jobs["start"][rows] < 0, self.now, self.jobs["start"][rows])
        jobs.start[rows] = start
        jobs.end_s[rows] = (start + rules.epoch_us) // t.SECOND + jobs.shape[rows, t.LIMIT_S]
        ends = np.maximum(jobs.end_s[rows] * t.SECOND - rules.epoch_us, self.now + 1)
        jobs.finish[rows] = ends if ahead else t.FAR
        held = np.array([self._record(j) for j in rows.tolist()], np.int64)
        if not occupy(self.table, rows, held):
            free = (world.free.cpus < 0) | (world.free.gpus < 0).any(axis=1)
            n = int(free.argmax())
            raise EscalaError(
                f"snapshot: jobs hold more of node {n} than its {world.machine.cpus[n]} cores, or than its GPUs"
            )

    def _record(self, j: int) -> int:
        """The record by which a job runs: that of a partition with all its nodes, NONE where there is none."""
        jobs = self.world.jobs
        nodes = set(self.world.allocated.node[jobs.first[j] : jobs.last[j]].tolist())
        for record in range(int(jobs.record[j]), int(jobs.record[j + 1])):
            if nodes <= set(self.site.partitions[int(self.world.records.part[record])].nodes):
                return record
        return t.NONE


def gone(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Nodes that no job may have now: those that are gone, and those that are not on."""
    found: NDArray[np.bool_] = (snapshot.nodes["gone"] == 1) | (snapshot.nodes["power"] != codes.ON)
    return found


def _closing(closed: t.Closed, nodes: t.Words) -> t.Closed:
    """These nodes are closed too, as in an outage whose end nobody knows: they are in no set of available ones, and
    still those of their partitions. nodes [1, words]."""
    more = {name: np.append(getattr(closed, name), 0) for name in ("requeue", "begin_s", "flex", "gone_us")}
    return closed._replace(
        nodes=np.concatenate([closed.nodes, nodes]),
        kind=np.append(closed.kind, DOWN),
        end_s=np.append(closed.end_s, codes.NEVER_US // t.SECOND),
        name=np.append(closed.name, t.NONE),
        on=np.append(closed.on, 1),
        gone=closed.gone | nodes[0],
        **more,
    )


def _memory(shape: Ints, cpus: Ints, whole: Ints) -> Ints:
    """MB that jobs of these shapes take of nodes, with so many CPUs there."""
    core, node = shape[:, t.MEMORY_CORE], shape[:, t.MEMORY_NODE]
    found: Ints = np.where(core > 0, core * cpus, np.where(node > 0, node, whole))
    return found
