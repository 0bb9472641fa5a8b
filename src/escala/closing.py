"""Nodes that go and come back during a run: outages and drains of a site, under every scheduler but slurm, which has
its own.

Between two instants the kernel's tables are read, changed and loaded again (`escala.kernel.resume`). A node that is
gone is in no set there; cores that jobs have on it come back to nobody. What is over is kept here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.kernel import calls, codes
from escala.kernel.clock import SECOND
from escala.kernel.load import JOBS, NODES, PLACED, await_holds
from escala.kernel.resume import resume, until
from escala.kernel.state import HEAP_TIMERS, LOG
from escala.platform.closures import DOWN, MOST_S, Closure, counts
from escala.platform.sharers import amounts_of
from escala.platform.site import Site
from escala.sealed import held_by
from escala.tables import NodeHistory, switches_of
from escala.unseen import OUTSIDE, warn

Ints = NDArray[np.int64]
ENDED = (codes.COMPLETED, codes.KILLED)
FAR_S = 30 * 86400.0
"""So long after the last submission, at least, an outage is at another time."""
PLACED_STATES = (codes.GIVEN, codes.RUNNING)
SWITCHES = (
    (codes.SWITCHING_ON, codes.IS_SWITCHING_ON, codes.IDLE),
    (codes.SWITCHING_OFF, codes.IS_SWITCHING_OFF, codes.IS_OFF),
)
"""Power of a node that switches; what it does until then, and afterwards, as the ledger has it."""


class Lost(NamedTuple):
    """A run that an outage ended, and that counts for nothing: its job runs anew. Times in us; chunks: int64 [3, *],
    low node, high node, cores on each."""

    row: int
    start: int
    runtime: int
    chunks: Ints


def closing_of(simulation: Any) -> Closing | None:
    """None where no node of the platform goes."""
    site = simulation.platform
    found = [one for one in site.closed if counts(one)] if isinstance(site, Site) else []
    submits = simulation.workloads[0].jobs["submit_s"]
    if found and len(submits):
        first, last = (simulation.workloads[0].origin_s + float(submits[k]) for k in (0, -1))
        late = last + max(last - first, FAR_S)
        if all(one.until_s <= first or one.from_s > late for one in found):
            simulation.unseen[0]["closed"] = OUTSIDE
            warn([{"closed": OUTSIDE}])
    return Closing(simulation, found) if found else None


class Closing:
    """The nodes of a batch's only simulation that go and come back. lost_us: int64 [jobs], what each job ran in vain.

    Just before an instant at which some go or come back, `turn` is to be called; `before_us` says when. EscalaError for
    a shutdown policy that looks at what is to come of nodes that are gone.
    """

    def __init__(self, simulation: Any, closures: list[Closure]) -> None:
        self.simulation, self.closures = simulation, closures
        options, origin_s = simulation.options, simulation.workloads[0].origin_s
        self.start_us = round(options.start_s * SECOND)
        turns = list[tuple[int, int, int]]()  # us, 1: goes, -1: comes back; which
        for k, one in enumerate(closures):
            begins, ends = (round((at - origin_s) * SECOND) for at in (one.from_s, one.until_s))
            if ends > self.start_us:
                turns.append((max(begins, self.start_us), 1, k))
                turns += [(ends, -1, k)] if one.until_s < MOST_S else []
        self.turns = sorted(turns)
        self.lost = list[Lost]()

    @property
    def before_us(self) -> int:
        """The last moment before the next turn, NEVER_US without one."""
        return self.turns[0][0] - 1 if self.turns else codes.NEVER_US

    def begin(self) -> None:
        """The simulation is at its start."""
        w, n = self.simulation.world, len(self.simulation.admitted[0].rows)
        if w.o["shutdown"][0, 0] == codes.ORACLE:
            raise EscalaError(
                "shutdown policy oracle does not know of nodes that are down or drained for a while: give another, or "
                "a site without them ([[closed]])"
            )
        self.asked = w.job[0, :n].copy()  # a running job has fewer cores while nodes are gone
        self.away = np.zeros(w.node.shape[1], np.int64)  # how many closures a node is in
        self.kept = w.node[0].copy()  # as nodes that are gone will come back
        self.start, self.state = np.full(n, codes.NONE, np.int64), np.zeros(n, np.int64)  # of jobs that have ended
        self.lost_us = np.zeros(n, np.int64)
        self.cut = np.zeros(n, bool)  # ended by an outage
        self.held = dict[int, Ints]()  # row -> int64 [3, *], of jobs that held nodes at a turn and have not ended
        self.past = list[Ints]()  # as `escala.tables.chunks_of`, of those that have
        self.log = list[tuple[int, int, int]]()  # switches that ended while the node was gone: time, node, state
        self.since = self.start_us  # until then the ledger is right
        self.busy = list[tuple[int, int, float]]()  # nodes that are gone with a job: node, its end, share of the power
        if self.turns and self.turns[0][0] <= self.start_us:
            self.turn()

    def turn(self) -> None:
        """Nodes go and come back, just before the instant at which they do."""
        w, at = self.simulation.world, self.turns[0][0]
        until(self.simulation.table, 0, at)
        self._measure(at)
        placed = self._note()
        before = self.away > 0
        down = np.zeros((len(self.away), 2), bool)  # goes down: what ran there runs anew, or is over
        while self.turns and self.turns[0][0] == at:
            _, sign, k = self.turns.pop(0)
            nodes = list(self.closures[k].nodes)
            self.away[nodes] += sign
            if sign > 0 and self.closures[k].kind == DOWN:
                fresh = [n for n in nodes if not down[n].any()]
                down[fresh, 0 if self.closures[k].requeue else 1] = True
        gone = self.away > 0
        nodes = self._nodes(before, gone, at)
        again = self._end(placed, down, gone & ~before, nodes, at)
        self._load(at, nodes, again)
        w = self.simulation.world
        ended = self.state != codes.PENDING
        w.run["start"][0, : len(ended)][ended] = self.start[ended]
        w.run["state"][0, : len(ended)][ended] = self.state[ended]
        w.s["now"][0, 0] = at
        if at > self.start_us:
            w.s["next_plan_us"][0, 0] = at  # there is a decision then, whatever else happens
        self._note_busy(gone)

    def _note(self) -> list[int]:
        """What has ended since the last turn, and what each job has or had. The rows that hold nodes."""
        w, n = self.simulation.world, len(self.state)
        run = w.run[0, :n]
        over = np.flatnonzero(np.isin(run["state"], ENDED) & (self.state == codes.PENDING))
        placed = np.flatnonzero(np.isin(run["state"], PLACED_STATES))
        chunks = self._chunks(over)
        self.past.append(chunks[:, ~np.isin(chunks[0], list(self.held))])
        for row in self.held.keys() & set(over.tolist()):
            self.past.append(_of_row(row, self.held.pop(row)))
        chunks = self._chunks(placed)
        first = np.searchsorted(chunks[0], [placed, placed + 1])
        for row, low, high in zip(placed.tolist(), *first.tolist(), strict=True):
            if row not in self.held and high > low:
                self.held[row] = chunks[1:, low:high]
        self.start[over], self.state[over] = run["start"][over], run["state"][over]
        w.job["cores"][0, over] = self.asked["cores"][over]
        return [int(row) for row in placed]

    def _chunks(self, rows: Ints) -> Ints:
        """What these rows, ascending, hold, or held at their end; see `escala.tables.chunks_of`."""
        found = held_by(self.simulation.table, 0, rows)
        found[0] = rows[found[0]]
        return found

    def _nodes(self, before: Any, gone: Any, at: int) -> Any:
        """NODES: those that go are kept as they are, those that come back are as they were; a switch goes on
        meanwhile."""
        node = self.simulation.world.node[0]
        goes, back = gone & ~before, before & ~gone
        for n in np.flatnonzero(goes):
            self.kept[n] = node[n]
        for n in np.flatnonzero(back):
            self._switched(int(n), at)
            self.kept[n]["since"] = at
        nodes = np.zeros(len(node), NODES)
        for name in ("since", "done", "power"):
            nodes[name] = np.where(before | gone, self.kept[name], node[name])
        nodes["gone"] = gone
        return nodes

    def _switched(self, n: int, until: int) -> None:
        """The switch under way of a node that is gone has ended, if it has by then."""
        kept, ends = self.kept[n], {codes.SWITCHING_ON: codes.ON, codes.SWITCHING_OFF: codes.OFF}
        if int(kept["power"]) in ends and kept["done"] <= until:
            kept["power"] = ends[int(kept["power"])]
            self.log.append((int(kept["done"]), n, int(kept["power"])))

    def _note_busy(self, gone: Any) -> None:
        """Which nodes that are gone have a job still."""
        w, platform = self.simulation.world, self.simulation.platform
        self.busy.clear()
        for row, chunks in self.held.items():
            job, run = w.job[0, row], w.run[0, row]
            for low, high, per in chunks.T.tolist() if gone.any() and int(run["state"]) == codes.RUNNING else ():
                for n in (low + np.flatnonzero(gone[low : high + 1])).tolist():
                    share = float(job["load"]) * per / int(platform.cores[n])
                    self.busy.append((n, int(run["start"] + job["runtime"]), share))

    def _measure(self, now: int) -> None:
        """The ledger, up to now, has nodes that are gone as switching off; put what they did in its place."""
        w, gone = self.simulation.world, np.flatnonzero(self.away > 0)
        first = self.start_us if w.o["limited"][0, 0] or not len(self.state) else int(w.job["submit"][0, 0])
        since, self.since = max(self.since, first), now
        if now <= since or not len(gone):
            return
        ledger, kept = w.ledger[0], self.kept[gone]
        us = np.zeros((len(gone), 5), np.int64)
        ends = np.clip(kept["done"], since, now) - since  # of switches
        for power, before, after in SWITCHES:
            mine = kept["power"] == power
            us[mine, before] += ends[mine]
            us[mine, after] += now - since - ends[mine]
        us[kept["power"] == codes.OFF, codes.IS_OFF] = now - since
        busy = np.full(len(self.away), since)
        for n, end, share in self.busy:
            busy[n] = max(busy[n], min(end, now))
            ledger["load_s"][w.node["profile"][0, n]] += share * max(min(end, now) - since, 0) / SECOND
        on = kept["power"] == codes.ON
        us[on, codes.COMPUTING] = (busy[gone] - since)[on]
        us[on, codes.IDLE] = (now - busy[gone])[on]
        us[:, codes.IS_SWITCHING_OFF] -= now - since
        np.add.at(ledger["node_us"], kept["profile"], us)

    def _end(self, placed: list[int], down: Any, goes: Any, nodes: Any, at: int) -> list[int]:
        """Jobs on nodes that go down end, or wait again; so do those that wait for a node that goes to be on. The rows
        that wait again."""
        w, again = self.simulation.world, list[int]()
        for row in placed:
            job, run = w.job[0, row], w.run[0, row]
            runs = int(run["state"]) == codes.RUNNING
            mine = _nodes_of(self.held[row])
            hit = down[mine].any(axis=0) if runs else np.array([goes[mine].any(), False])
            if not hit.any() or (runs and run["start"] + job["runtime"] <= at):
                continue
            if hit[0] and not hit[1]:
                again.append(row)
                chunks = self.held.pop(row)
                if runs:
                    self.lost.append(Lost(row, int(run["start"]), at - int(run["start"]), chunks))
                    self.lost_us[row] += at - int(run["start"])
            else:
                job["runtime"], job["killed"] = at - run["start"], 1
                self.start[row], self.state[row], self.cut[row] = run["start"], codes.KILLED, True
                self.past.append(_of_row(row, self.held.pop(row)))
                self._remember(row)
                w.s["last_finish"][0, 0] = at
            nodes["since"][mine] = np.where(nodes["power"][mine] == codes.ON, at, nodes["since"][mine])
        return again

    def _remember(self, row: int) -> None:
        """A run that an outage has ended is one that has ended: the user's last one."""
        w = self.simulation.world
        user, ended = int(w.job[0, row]["user"]), int(w.s["n_ended"][0, 0])
        if user != codes.NONE and w.recent.shape[1] > 0:
            w.recent[0, user] = w.job[0, row]["runtime"], w.recent[0, user, 0]
        if w.past.shape[1] > 0:
            w.past[0, ended] = row
        w.s["n_ended"][0, 0] += 1

    def _load(self, at: int, nodes: Any, again: list[int]) -> None:
        """The kernel's tables anew, just before this instant."""
        simulation = self.simulation
        w = simulation.world
        begun = at > self.start_us
        now = at - 1 if begun else at
        came = int(w.s["next_job"][0, 0])
        state = w.run["state"][0, :came].astype(np.int64)
        state[again] = codes.QUEUED
        state[self.state[:came] != codes.PENDING] = codes.COMPLETED
        rows = np.flatnonzero(state != codes.COMPLETED)
        truth = w.job[0, :came].copy()
        truth["cores"] = self.asked["cores"][:came]
        for name in ("runtime", "killed"):  # on other nodes it may run longer
            truth[name][again] = self.asked[name][again]
        jobs = np.zeros(len(rows), JOBS)
        jobs["row"], jobs["state"], jobs["start"] = rows, state[rows], w.run["start"][0, rows]
        for name in ("submit", "walltime", "cores", "user", "single"):
            jobs[name] = truth[name][rows]
        jobs["estimate"] = jobs["order"] = codes.NONE
        if w.forecast.shape[1] > 0:
            jobs["walltime"], jobs["estimate"] = w.forecast["limit"][0, rows], truth["walltime"][rows]
            jobs["order"] = w.forecast["order"][0, rows]
        held = [
            (k, *chunk)
            for k, row in enumerate(rows.tolist())
            if state[row] in PLACED_STATES
            for chunk in self.held[row].T.tolist()
        ]
        placed = np.array(held, PLACED) if held else np.zeros(0, PLACED)
        member, fixed, timers = w.member[0].copy(), w.fixed[0].copy(), self._timers()
        while True:
            w.ledger["rate"][0] = 0.0
            for k, kind in enumerate(simulation.kinds):
                simulation.world.room[0, :, k] = amounts_of(simulation.platform)[kind]
            if resume(simulation.table, 0, now, jobs, nodes, placed, truth, begun) == 0:
                break
            simulation.grow(0)
        w = simulation.world
        w.member[0], w.fixed[0] = member, fixed
        w.user["used_us"][0], w.terms["used_us"][0] = at, at
        simulation.make_room(0, int(w.s["n_queued"][0, 0]))
        await_holds(simulation.table, 0)
        for time in timers:
            simulation.command(0, calls.TIMER, time)

    def _timers(self) -> list[int]:
        """The moments at which a policy has asked to be called."""
        w = self.simulation.world
        heap = w.heaps[0, HEAP_TIMERS, : int(w.s["n_timers"][0, 0])]
        return [int(one["time"]) for one in heap if one["id"] == codes.NONE]

    def make_whole(self, rows: list[int], job: Any, held: list[list[tuple[int, int, int]]]) -> None:
        """JOB of these rows, and what they hold, as if no node of theirs were gone."""
        gone = self.away > 0
        for k, row in enumerate(rows):
            if row in self.held and gone[_nodes_of(self.held[row])].any():
                job["cores"][k] = self.asked["cores"][row]
                held[k] = [(low, high, per) for low, high, per in self.held[row].T.tolist()]

    def settle(self) -> NDArray[np.bool_]:
        """All that has ended until now is noted. bool [jobs]: which jobs outages ended."""
        now = int(self.simulation.world.s["now"][0, 0])
        self._measure(now)
        self._note()
        for n in np.flatnonzero(self.away > 0):
            self._switched(int(n), now)
        return self.cut

    def placed(self, vain: bool) -> Ints:
        """As `escala.tables.chunks_of`; vain: behind the jobs, a row for each run that counts for nothing."""
        begun = self.simulation.world.run["start"][0]
        found = [*self.past, *(_of_row(row, some) for row, some in self.held.items() if begun[row] >= 0)]
        if vain:
            found += [_of_row(len(self.state) + k, one.chunks) for k, one in enumerate(self.lost)]
        every = np.concatenate([np.zeros((4, 0), np.int64), *found], axis=1)
        return every[:, np.lexsort((every[1], every[0]))]

    def history(self, window: tuple[int, int]) -> NodeHistory:
        """What the nodes did until now."""
        self.settle()
        simulation, lost = self.simulation, self.lost
        w, admitted, chunks = simulation.world, simulation.admitted[0], self.placed(True)
        run, job = w.run[0, : len(admitted.rows)], w.job[0, : len(admitted.rows)]
        of = np.concatenate([np.arange(len(admitted.rows)), np.array([one.row for one in lost], np.int64)])
        log = np.concatenate([np.array(self.log, LOG), switches_of(w, 0)])  # at one instant those come first
        rows, parts, gpus = admitted.rows[of], admitted.parts, dict[str, Ints]()
        if parts is not None:
            gpus = parts.held_on_nodes(simulation.platform.drawn.more_w, rows[chunks[0]], chunks[3])
        return NodeHistory(
            *(simulation.platform, simulation.workloads[0].jobs["job_id"], rows, window, chunks),
            np.concatenate([run["start"], np.array([one.start for one in lost], np.int64)]),
            np.concatenate([job["runtime"], np.array([one.runtime for one in lost], np.int64)]),
            *(job["load"][of], log[np.argsort(log["time"], kind="stable")], simulation.options.start_off, gpus),
            vain=len(lost),
        )


def _of_row(row: int, chunks: Ints) -> Ints:
    return np.vstack([np.full(chunks.shape[1], row), chunks])


def _nodes_of(chunks: Ints) -> Ints:
    return np.concatenate([np.arange(low, high + 1) for low, high, _ in chunks.T.tolist()])
