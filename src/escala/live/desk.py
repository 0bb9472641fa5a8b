"""`Desk`: asks a scheduler and a shutdown policy what to do on a machine of which snapshots tell.

Every decision loads the whole state into one simulation, lets the policies decide at that instant, and reads what they
changed. So nothing drifts, and no event can be lost. What no snapshot tells is carried (`escala.live.carried`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.estimates import microseconds
from escala.kernel import codes
from escala.kernel.changes import changes
from escala.kernel.clock import SECOND
from escala.kernel.load import await_holds
from escala.live.asked import asked
from escala.live.carried import Carried
from escala.live.fitting import Fitting, fitting, with_whole_nodes
from escala.live.orders import Orders, Planned, Start
from escala.live.parts import held_of
from escala.live.rows import Rows
from escala.live.snapshot import DEMAND, IN_ORDER, Snapshot
from escala.live.state_file import reading_state, take_state, told_state, write_state
from escala.live.tables import Tables, stand_ins
from escala.naming import named_by
from escala.partitions import apart, described, gives_whole_nodes, pooled
from escala.parts import Parts
from escala.platform import Platform, read_platform
from escala.platform.site import Site
from escala.policies.run import TURNS, decider
from escala.policy import counts_of, name_of
from escala.simulation import Simulation
from escala.workload import Workload

FIRST_STEP_US = 60 * SECOND
UNTOLD = np.zeros((0, 0), np.int64)


class Desk:
    """platform: a `Platform`, or a spec. scheduler, shutdown: as for `escala.simulate`. options: rules, head, depth,
    rebuild, plan_margin_s, estimate, order_estimate, corrections_s, seed. EscalaError for policies that cannot be asked
    from outside, and a site with a partition of some of its nodes, for which there is `SiteDesk`.

    An object that decides may have `state()` (plain data for JSON) and `restore(state)`; one without is taken to
    remember nothing. Rows of jobs (`QueuedJob.row`) stay while a job lives.
    """

    def __init__(self, platform: Any, scheduler: Any = "easy", shutdown: Any = "never", **options: Any) -> None:
        self.platform: Platform = platform if isinstance(platform, Platform) else read_platform(platform)
        if apart(self.platform):
            raise EscalaError(
                f"site {quoted(self.platform.name)}: a partition has only some of its nodes, and a Desk knows no "
                "partitions: take a SiteDesk, or a Desk for one (site.machine(name))"
            )
        self._pool = pooled(self.platform).alike()  # jobs that run are taken to end at their limits
        first = stand_ins(1, self.platform, 0)
        self._asked = asked(self.platform, scheduler, shutdown, first, options)
        self.name = f"{name_of(scheduler)} + {name_of(shutdown)}"
        self._carried = Carried()
        self._tables = Tables(self.platform, self._simulation_of, self._asked.by_node, self._asked.plan.has_front)
        self._rows = Rows(self._asked, self._tables, self._carried)
        simulation = self._tables.simulation
        self._turns = {who: decider(policy, simulation, 0, None) for who, policy in self._asked.objects.items()}
        parts = self.platform.partitions if isinstance(self.platform, Site) and described(self.platform) else []
        self._partition = next((one.name for one in parts), None) if len(parts) == 1 else None  # of all jobs
        spans = [(p.switch_on_s, p.switch_off_s) for p in self.platform.profiles] or [(0.0, 0.0)]
        self._spans: NDArray[np.int64] = microseconds(np.array(spans))[self.platform.profile_of]

    def _simulation_of(self, log: Workload) -> Simulation:
        plan = asked_plan(self._asked, log)
        return Simulation(log, self._pool, plan, self._asked.options)

    @property
    def counts(self) -> dict[str, int]:
        """What policies count of their decisions, such as those that a shield overruled; of both together."""
        return counts_of(self._asked.objects.values())

    def decide(self, snapshot: Snapshot) -> Orders:
        """What to do now. Snapshots come in the order of time; two of one instant are two decisions. Jobs that could
        never run are refused in the orders, and no policy sees them. EscalaError for a snapshot that makes no sense: it
        leaves no trace, but in a policy object that was asked already."""
        snapshot, parts, refused = self._fitting(snapshot)
        before = self._carried.copy()
        try:
            self._load(snapshot, parts)
            self._run(snapshot.now_us)
            orders = self._orders(snapshot, parts)
            self._rows.keep(snapshot)
            self._carried.now_us = snapshot.now_us
            self._rows.tidy()
        except BaseException:
            self._go_back(before)
            raise
        return replace(orders, refused=refused) if refused else orders

    def warm(self) -> None:
        """Compile now what decisions need, so that the first comes in time; nothing of it is remembered."""
        before = self.told()
        job = {"job_id": ["1"], "submit_s": [0.0], "walltime_s": [60.0], "cores": [1], "state": ["queued"]}
        job["single_node"] = [self._tables.single > 0]
        idle = Snapshot.of(0.0, job, {"power": ["on"] * self.platform.n_nodes})
        self.decide(idle)
        self.take(before)
        if not self._asked.objects:
            self.plan(idle, first=1)

    def _go_back(self, before: Carried) -> None:
        """What is carried becomes what it was."""
        vars(self._carried).update(vars(before))
        self._rows.begin_anew()

    def _fitting(self, snapshot: Snapshot) -> Fitting:
        """EscalaError for what cannot be of this machine, or comes too late."""
        n = self.platform.n_nodes
        if len(snapshot.nodes) != n:
            raise EscalaError(
                f"snapshot: {len(snapshot.nodes)} nodes, platform {self.platform.name!r} has {n}: tell of each, in "
                "its order"
            )
        if snapshot.now_us < self._carried.now_us:
            raise EscalaError(
                f"snapshot: of {snapshot.now_s} s, and the last was of {self._carried.now_us / SECOND} s: {IN_ORDER}"
            )
        if snapshot.partitions is not None:
            raise EscalaError(
                "snapshot: jobs.partition: this desk knows no partitions: ask a SiteDesk, or leave it out"
            )
        for kind in snapshot.demand:
            if kind not in self.platform.resources:
                raise EscalaError(
                    f"snapshot: jobs.{DEMAND}{kind}: platform {self.platform.name!r} has no {kind!r}: leave it out"
                )
        return fitting(with_whole_nodes(snapshot) if gives_whole_nodes(self.platform) else snapshot, self._pool)

    def _load(self, snapshot: Snapshot, parts: Parts | None) -> None:
        """The state into the tables, and what is carried."""
        tables, carried, rows, placed = self._tables, self._carried, self._rows, snapshot.placed
        untold, off, cores = snapshot.survey.untold, snapshot.survey.off, self.platform.total_cores
        if ((placed["high"] - placed["low"] + 1) * placed["per"]).sum() > cores:  # the tables have room for no more
            raise EscalaError(
                f"snapshot: jobs hold more cores in placed than the platform's {cores}: tell the cores that each has"
            )
        rows.seat(snapshot, parts)
        nodes = self._timed(snapshot) if untold else snapshot.nodes
        now, demand = snapshot.now_us, self._demands(snapshot)
        if tables.load(now, carried.tick_us, rows.jobs, rows.number, nodes, placed, demand, off):
            raise _misplaced(tables.simulation.world, snapshot)
        rows.loaded(snapshot)
        tables.simulation.numbers = rows.numbers
        if self._turns:
            tables.simulation.names[0] = named_by(snapshot.shapes, rows.jobs["row"].tolist(), self._partition)
        for policy in self._asked.insiders:
            policy.loaded(tables.simulation, 0, len(carried.users), rows.ended)

    def _timed(self, snapshot: Snapshot) -> NDArray[Any]:
        """NODES, where nobody told the end of a switch with the platform's time from now."""
        nodes = snapshot.nodes.copy()
        untold = (nodes["done"] < 0) & (nodes["power"] % 2 == 1)
        which = (nodes["power"] == codes.SWITCHING_OFF).astype(np.int64)
        nodes["done"][untold] = snapshot.now_us + self._spans[np.arange(len(nodes)), which][untold]
        return nodes

    def _demands(self, snapshot: Snapshot) -> NDArray[np.int64]:
        kinds = self._tables.simulation.kinds
        if not kinds:
            return UNTOLD
        none = np.zeros(len(snapshot.jobs), np.int64)
        return np.stack([snapshot.demand.get(kind, none) for kind in kinds], axis=1)

    def _run(self, now: int) -> None:
        """The decision at `now` (us), and nothing after it."""
        simulation = self._tables.simulation
        while True:
            stop = int(simulation.drivers[0](simulation.table, 0, now - 1))
            if stop not in TURNS:
                return
            with self._rows.looking_back(stop):
                self._turns[TURNS[stop]]()

    def _orders(self, snapshot: Snapshot, parts: Parts | None) -> Orders:
        """What the decision has changed."""
        simulation, carried = self._tables.simulation, self._carried
        world, jobs, now = simulation.world, self._rows.jobs, snapshot.now_us
        found = np.empty(4 * len(jobs) + 3 * world.chunk.shape[1] + len(snapshot.nodes), np.int64)
        n, filled, offs, due, tick, timers = changes(simulation.table, 0, jobs, snapshot.nodes, found)
        if tick < codes.NEVER_US:
            carried.tick_us = tick
        if timers or carried.timers:
            heap = world.heaps[0, 3, :timers]
            carried.timers = sorted({time for time in (*carried.timers, *heap["time"].tolist()) if time > now})
            due = min([due, *carried.timers[:1]])
        told = found[:filled].tolist()
        starts, at = _starts(told, n, snapshot.job_ids, parts)
        first_off = filled - offs
        next_s = due / SECOND if due < codes.NEVER_US else None
        return Orders(snapshot.now_s, starts, tuple(told[at:first_off]), tuple(told[first_off:]), next_s)

    def plan(self, snapshot: Snapshot, first: int = 10) -> list[Planned]:
        """The waiting jobs that would start first, `first` of them at most, and when: the machine simulated on from
        this snapshot, as if every job ran for the time that it requested, and none came. It decides nothing.
        EscalaError for policies that are objects."""
        if self._asked.objects:
            raise EscalaError(
                f"{self.name}: only policies inside the kernel can plan ahead; an object would remember what has not "
                "happened"
            )
        if first < 1:
            raise EscalaError(f"plan: first={first}: give 1 or more jobs")
        snapshot, parts, _ = self._fitting(snapshot)
        before = self._carried.copy()
        try:
            self._load(snapshot, parts)
            return self._planned(snapshot, first)
        finally:
            self._go_back(before)

    def _planned(self, snapshot: Snapshot, first: int) -> list[Planned]:
        """What is loaded, simulated on."""
        simulation = self._tables.simulation
        waiting = np.flatnonzero(snapshot.jobs["state"] == codes.QUEUED)
        rows = self._rows.jobs["row"][waiting]
        simulation.make_room(0, len(waiting) + 1)
        self._tables.run_on()
        await_holds(simulation.table, 0)
        until, step = snapshot.now_us, FIRST_STEP_US
        while True:
            stop = simulation.advance(0, until / SECOND)
            start = simulation.world.run[0, rows]["start"]
            if stop != codes.NONE or np.count_nonzero(start >= 0) >= first:
                break
            until, step = until + step, 2 * step
        found = sorted((int(start[k]), k) for k in np.flatnonzero(start >= 0).tolist())
        return [Planned(snapshot.job_ids[int(waiting[k])], us / SECOND) for us, k in found[:first]]

    def save(self, path: Any, note: Any = None) -> None:
        """Write what the desk and its policies remember as a whole file: a desk that restores it goes on as this one
        would. note: plain data that whoever saves wants to find again."""
        write_state(path, self.name, self.told(), note)

    def restore(self, path: Any) -> Any:
        """Go on from such a file; EscalaError where it is damaged, or of other policies or another platform. Gives the
        note."""
        with reading_state(path) as told:
            self.take(told)
        return told.get("note")

    def told(self) -> dict[str, Any]:
        """What the desk and its policies remember, as plain data."""
        return told_state(self.name, self.platform, self._carried, self._asked.objects)

    def take(self, told: Any) -> None:
        """Go on from what `told` gave; EscalaError for anything else."""
        self._go_back(take_state(told, self.name, self.platform, self._asked.objects))


def asked_plan(given: Any, log: Workload) -> Any:
    """The kernel's plan for jobs that stand for those to come."""
    return (
        given.plan
        if given.own is None
        else replace(given.plan, **given.own.order(log, given.options.under(given.plan)))
    )


def _starts(found: list[int], n: int, ids: list[str], parts: Parts | None) -> tuple[tuple[Start, ...], int]:
    """The starts among what the kernel's `changes` filled in, in the order of their first chunks, and where they
    end. parts: what jobs are made of."""
    at, given = 0, []
    for _ in range(n):
        place, first, waits, chunks = found[at : at + 4]
        at, ends = at + 4, at + 4 + 3 * chunks
        nodes = tuple(zip(found[at:ends:3], found[at + 1 : ends : 3], found[at + 2 : ends : 3]))
        held = () if parts is None else held_of(parts, place, nodes)
        given.append((first, Start(ids[place], nodes, waits == 1, held=held)))
        at = ends
    return tuple([start for _, start in sorted(given)]), at


def _misplaced(world: Any, snapshot: Snapshot) -> EscalaError:
    """Jobs hold more of a node than it has, or run on one that is not on."""
    free = world.node[0]["free"]
    if (free < 0).any():
        n = int((free < 0).argmax())
        return EscalaError(
            f"snapshot: jobs hold {-free[n]} more cores of node {n} than the {world.node[0]['cores'][n]} that it has"
        )
    off = (world.node[0]["busy"] > 0) & (snapshot.nodes["power"] != codes.ON) & (snapshot.nodes["gone"] == 0)
    return EscalaError(
        f"snapshot: jobs run on node {quoted(int(off.argmax()))}, which is not on: tell its power state, or that it "
        "is gone"
    )
