"""Job lists of the slotted worlds, held once in the kernel's own layout; simulations are pointed at the list that they
play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala import admit
from escala.envs.core.batch import Rows, draw
from escala.envs.core.checks import environments, wanted_lists
from escala.envs.core.records import restore
from escala.envs.slots.rewind import rewind
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.allocate import Sizes, allocate
from escala.kernel.state import JOB, World
from escala.kernel.world import WORLD, table_of
from escala.options import Options, Plan, microseconds
from escala.partitions import pooled
from escala.parts import beside_cores
from escala.platform import Platform, read_platform
from escala.simulation import Simulation
from escala.workload import Workload, read_workload
from escala.workload.generate_slots import SlotModel

STATIC = ("job", "demand", "profile")  # arrays that no run changes
GUARD_INSTANTS = 1 << 40
MOST_COLUMNS = 62  # a set of columns is one signed word


def machine_of(model: SlotModel) -> Platform:
    """The platform of a slot model: nodes of one core where cores may come from any node, else one node with all
    kinds."""
    if not model.single_node:
        return Platform.uniform(
            model.capacity * model.machines, 1, power=None, name=f"pool of {model.capacity * model.machines}"
        )
    if model.machines > 1:
        raise EscalaError(
            f"{model.name}: escala/Slots-v0 has one machine, the model has {model.machines}: use escala.envs.multi"
        )
    further = dict.fromkeys(model.kinds[1:], model.capacity)
    return Platform.uniform(1, model.capacity, power=None, name="machine", resources=further)


@dataclass(frozen=True)
class JobLists:
    """Job lists on a machine. job: JOB records of all lists; demand: int32 [jobs, further kinds]; list e has rows
    first[e] .. first[e + 1].

    capacity: int64 [kinds], columns of each kind; unit_s: length of a unit of time. named: the columns of the first
    kind are nodes.
    """

    platform: Platform
    kinds: tuple[str, ...]
    capacity: NDArray[np.int64]
    unit_s: float
    job: NDArray[Any]
    demand: NDArray[np.int32]
    first: NDArray[np.int64]
    example: Workload

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def named(self) -> bool:
        """Are the columns of the first kind nodes of one core?"""
        return int(self.platform.cores.max()) == 1 and self.platform.n_nodes > 1

    @property
    def longest(self) -> int:
        """Units of the longest job."""
        return int(-(-int(self.job["walltime"].max()) // int(microseconds(self.unit_s))))

    @property
    def jobs_of(self) -> NDArray[np.int64]:
        """Number of jobs of each list."""
        return np.diff(self.first)

    def workload(self, e: int) -> Workload:
        """List `e` as a workload: for `escala.simulate` and for bounds."""
        rows = slice(int(self.first[e]), int(self.first[e + 1]))
        job = self.job[rows]
        columns: dict[str, Any] = {
            "submit_s": job["submit"] * 1e-6,
            "runtime_s": job["runtime"] * 1e-6,
            "cores": job["cores"].astype(np.int64),
            "single_node": job["single"].astype(bool),
        }
        columns |= {f"demand_{kind}": self.demand[rows, k].astype(np.int64) for k, kind in enumerate(self.kinds[1:])}
        return Workload.from_jobs(columns, name=f"{self.example.name} {e}", max_cores=self.platform.total_cores)

    def part(self, lists: Sequence[int]) -> JobLists:
        """Some of the lists."""
        chosen = [slice(int(self.first[e]), int(self.first[e + 1])) for e in lists]
        first = np.concatenate([[0], np.cumsum([c.stop - c.start for c in chosen])]).astype(np.int64)
        job, demand = (np.concatenate([array[c] for c in chosen]) for array in (self.job, self.demand))
        return replace(self, job=job, demand=demand, first=first)


def draw_lists(model: SlotModel, count: int, seed: int) -> JobLists:
    """`count` independent lists of a model; empty lists, which hold no decision, are drawn again."""
    if count < 1:
        raise EscalaError(f"option lists={count}: give at least 1 job list")
    if model.rate <= 0:
        raise EscalaError(f"{model.name}: no job ever arrives at rate {model.rate}; give a load above 0")
    rng = np.random.default_rng([seed, 0x51075])
    steps, lengths, demands, sizes = [], [], [], np.zeros(0, np.int64)
    while len(sizes) < count:
        drawn = model.draw(rng, count)
        full = np.diff(drawn.offset)
        kept = full[full > 0][: count - len(sizes)]
        n = int(kept.sum())
        steps.append(drawn.step[:n])
        lengths.append(drawn.length[:n])
        demands.append(drawn.demand[:n])
        sizes = np.concatenate([sizes, kept])
    step, length, demand = np.concatenate(steps), np.concatenate(lengths), np.concatenate(demands)
    job = np.zeros(len(step), JOB)
    job["submit"], job["runtime"], job["walltime"] = step * 1_000_000, length * 1_000_000, length * 1_000_000
    job["cores"], job["load"], job["single"], job["user"] = demand[:, 0], 1.0, model.single_node, codes.NONE
    job["killed"] = 1  # runtime = walltime, as in the kernel's rules
    capacity = np.full(len(model.kinds), model.capacity * (1 if model.single_node else model.machines), np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    example = _example(model, seed)
    return JobLists(machine_of(model), model.kinds, capacity, 1.0, job, demand[:, 1:].astype(np.int32), first, example)


def _example(model: SlotModel, seed: int) -> Workload:
    """A list of the model that is not empty."""
    drawn = model.workload(seed)
    while len(drawn) == 0:
        seed += 1
        drawn = model.workload(seed)
    return drawn


def join(parts: Sequence[JobLists]) -> JobLists:
    """Lists of several models on one machine."""
    head = parts[0]
    if any(p.kinds != head.kinds or (p.capacity != head.capacity).any() or p.named != head.named for p in parts):
        raise EscalaError(
            "job lists of different machines cannot be mixed: give models of one capacity and the same resource kinds"
        )
    shifts = np.cumsum([0, *(len(p.job) for p in parts[:-1])])
    first = np.concatenate([[0], *(p.first[1:] + shift for p, shift in zip(parts, shifts, strict=True))])
    return replace(
        head, job=np.concatenate([p.job for p in parts]), demand=np.concatenate([p.demand for p in parts]), first=first
    )


def given_lists(workloads: Any, platform: Any, unit_s: float, estimate: str) -> JobLists:
    """Workloads (or one, or a path) as job lists, checked: one machine, times on the grid of the unit, lengths
    known."""
    if not isinstance(workloads, Workload | Sequence | Path):
        raise EscalaError(f"workload={workloads!r}: give a Workload, a path, or a list of Workloads")
    several = isinstance(workloads, Sequence) and not isinstance(workloads, str | bytes)
    lists = list(workloads) if several else [workloads if isinstance(workloads, Workload) else read_workload(workloads)]
    for w in lists:
        if not isinstance(w, Workload):
            raise EscalaError(f"workload: {w!r} in a list: give Workloads, for instance escala.read_workload(path)")
    lists = [w for w in lists if len(w)]
    if not lists:
        raise EscalaError("workload: no list has a job; give at least one job")
    if platform is None:
        raise EscalaError("platform: name the machine on which the workload runs, for instance platform='10x1'")
    machine = platform if isinstance(platform, Platform) else read_platform(platform)
    named = int(machine.cores.max()) == 1
    if not named and machine.n_nodes > 1:
        raise EscalaError(
            f"platform {machine.name!r}: the slotted world is one machine: nodes of one core each (10x1), or a single "
            "node (1x10)"
        )
    admit.refuse_speeds(machine, "environments are")
    pool = pooled(machine)
    for w in lists:
        admit.refuse(w, pool, admit.oversized(w, pool), "leave such jobs out of the workload")
    options = Options(record=False, estimate=estimate)
    source = Simulation(lists, machine, Plan(queueing=codes.EXTERNAL, period_s=unit_s), options, partitions=False)
    if source.world.shape.shape[1] > 0:
        raise EscalaError(
            f"workload {lists[0].name!r}: jobs ask for several nodes or tasks, or whole nodes, and slots give each "
            f"job one place: leave out {', '.join(beside_cores(lists, machine))}"
        )
    sizes = np.array([len(admitted.rows) for admitted in source.admitted], np.int64)
    job = np.concatenate([source.world.job[i, :n] for i, n in enumerate(sizes)])
    kinds = ("cores", *source.kinds)
    further = source.world.demand.shape[1] > 0
    demand = (
        np.concatenate([source.world.demand[i, :n] for i, n in enumerate(sizes)])
        if further
        else np.zeros((len(job), len(kinds) - 1), np.int32)
    )
    capacity = np.array([machine.total_cores, *(int(machine.resources[k].sum()) for k in kinds[1:])], np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    made = JobLists(machine, kinds, capacity, unit_s, job, demand, first, lists[0])
    _check_times(made, lists, source)
    return made


def _check_times(made: JobLists, lists: Sequence[Workload], source: Simulation) -> None:
    unit = int(microseconds(made.unit_s))
    job = made.job
    hurry = np.flatnonzero(job["runtime"] != job["walltime"])
    if len(hurry):
        raise EscalaError(
            f"{_named(made, lists, source, int(hurry[0]))} ends before its walltime, and the slots show lengths: use "
            "estimate='runtime'"
        )
    odd = np.flatnonzero((job["submit"] % unit != 0) | (job["runtime"] % unit != 0) | (job["submit"] < 0))
    if len(odd):
        raise EscalaError(
            f"{_named(made, lists, source, int(odd[0]))} is not on the grid of {made.unit_s:g} s: give another "
            "unit_s, or round its times"
        )


def _named(made: JobLists, lists: Sequence[Workload], source: Simulation, row: int) -> str:
    e = int(np.searchsorted(made.first, row, side="right")) - 1
    ident = lists[e].jobs["job_id"][int(source.admitted[e].rows[row - int(made.first[e])])]
    return f"workload {lists[e].name!r}: job {ident!r}"


class SlotWorlds:
    """N simulations that play job lists. `world`, `table`: the kernel's arrays; `chosen` int64 [N]: the list of each;
    `seeds`, `count` [N]: what lists are drawn by."""

    def __init__(self, num_envs: int, lists: JobLists) -> None:
        environments(num_envs)
        self.lists = lists
        self.chosen, self.count = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self.seeds = np.zeros(num_envs, np.uint64)
        plan = Plan(queueing=codes.EXTERNAL, period_s=lists.unit_s)
        options = Options(record=False, estimate="runtime")
        source = Simulation(lists.example, lists.platform, plan, options, partitions=False).world
        platform, kinds, most = lists.platform, len(lists.kinds) - 1, int(lists.jobs_of.max())
        multi = bool(lists.job["single"].any()) or kinds > 0
        room = np.array([platform.resources[kind] for kind in lists.kinds[1:]], np.int32).reshape(
            kinds, platform.n_nodes
        )
        self._start = source._replace(s=np.zeros_like(source.s), room=np.ascontiguousarray(room.T[None]))
        for name, value in (("max_instants", GUARD_INSTANTS), ("n_kinds", kinds), ("plain", not multi)):
            self._start.o[name] = value
        sizes = Sizes(most, platform.n_nodes, platform.total_cores, kinds, len(platform.profiles), multi=multi)
        world = allocate(num_envs, sizes)
        world.profile[:] = source.profile[0]
        self.world = world._replace(job=np.zeros((num_envs, 0), JOB), demand=np.zeros((num_envs, 0, kinds), np.int32))
        self._point(np.arange(num_envs))

    def _point(self, rows: Rows) -> None:
        """Point simulations at the jobs of their lists (anew, where the addresses were lost)."""
        if not hasattr(self, "table"):
            self.table, self._start_table = table_of(self.world), table_of(self._start)
        lists = self.lists
        begin, size = lists.first[self.chosen[rows]], lists.jobs_of[self.chosen[rows]]
        at = WORLD.at["job"]
        self.table[rows, at] = lists.job.ctypes.data + begin * lists.job.itemsize
        self.table[rows, at + 1] = size
        if lists.demand.size:
            at = WORLD.at["demand"]
            self.table[rows, at] = lists.demand.ctypes.data + begin * lists.demand.strides[0]
            self.table[rows, at + 1] = size

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Seeds of rows; their next episode is their first."""
        self.seeds[rows] = seeds
        self.count[rows] = 0

    def begin(self, rows: Rows, options: Mapping[str, Any]) -> NDArray[np.uint64]:
        """Bring rows to the start of their next list: the one in `options["list"]` (a number, or one for each row),
        else one drawn by seed. Returns the bits that were drawn, uint64 [rows]."""
        lists, unknown = self.lists, set(options) - {"list"}
        if unknown:
            raise EscalaError(f"reset option {sorted(unknown)[0]!r} is not known: use list")
        drawn = draw(self.seeds[rows], self.count[rows])
        if "list" in options:
            chosen = wanted_lists(options["list"], len(rows), len(lists))
        else:
            chosen = (drawn % np.uint64(len(lists))).astype(np.int64)
        self.count[rows] += 1
        self.chosen[rows] = chosen
        where = np.array([lists.job.ctypes.data, lists.job.itemsize,
                          lists.demand.ctypes.data if lists.demand.size else 0,
                          lists.demand.strides[0] if lists.demand.size else 0], np.int64)  # fmt: skip
        rewind(self.table, np.asarray(rows, np.int64), chosen, lists.first, where, self._start_table)
        return drawn

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as arrays."""
        out = {f"world.{name}": getattr(self.world, name).copy() for name in World._fields if name not in STATIC}
        return out | {name: getattr(self, name).copy() for name in ("chosen", "seeds", "count")}

    def restore(self, state: Any) -> None:
        """Restore a saved state."""
        for name in World._fields:
            if name not in STATIC:
                restore(getattr(self.world, name), state[f"world.{name}"], name, "use the same options")
        for name in ("chosen", "seeds", "count"):
            getattr(self, name)[...] = state[name]
        self._point(np.arange(len(self.chosen)))

    def __getstate__(self) -> dict[str, Any]:
        fields = self.__dict__.copy()
        del fields["table"], fields["_start_table"]  # addresses: made anew
        return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self._point(np.arange(len(self.chosen)))
