"""The look-ahead of a shield before off-reservation agents: the machine as it stands, played on over sampled futures,
nodes that are off or switch included.

Both ways are played over the same futures: the agent's choice until the next decision and the base from then on, and
the base from now on. With V(s) the cost of a run that goes on by the base, and Q(s, a) that of one which does so after
the choice a, the sum of Q - V over the choices that are taken is the mean by which the whole run costs more than the
base's own (Kakade and Langford 2002). So what a choice may lose is measured by the base's cost in the time that it is
in force, and a margin for each choice is one for the run.

What a future costs is energy and wait in joules: see `prices_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.envs.rjms.episodes import idle_watts
from escala.envs.rjms.scheduling_step import waiting
from escala.envs.rjms.shield_step import PRICES, RULES, look_ahead
from escala.errors import EscalaError
from escala.filling import power_rules
from escala.kernel import calls, codes
from escala.kernel.load import JOBS, NODES, PLACED
from escala.kernel.state import HEAP_ENDS, HEAP_STARTS
from escala.options import Options, Plan, microseconds
from escala.partitions import pooled
from escala.platform import Platform
from escala.policies.futures import AsBefore, Coming, Memory
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.simulation import Simulation
from escala.workload import Workload

MOST = 100  # jobs that come in a future
LEAST_ROOM = 256  # jobs
PLAYED = (codes.STRICT, codes.GREEDY, codes.EASY)


class Live(NamedTuple):
    """The machine as it stands, see `escala.kernel.resume`. limit: requests; elapsed: how long the jobs have run,
    us."""

    jobs: Any
    nodes: Any
    placed: Any
    held: Any
    truth: Any
    limit: NDArray[np.int64]
    elapsed: NDArray[np.int64]


def rules_of(plans: tuple[Plan, Plan]) -> NDArray[Any]:
    """RULES of the agent's own shutdown policy and of the base."""
    rules = np.zeros(2, RULES)
    for k, plan in enumerate(plans):
        told = power_rules(plan)
        rules[k] = tuple(told[name] for name in RULES.names or ())
    return rules


def prices_of(options: Any, platform: Platform, price: float | None) -> NDArray[Any]:
    """What waiting is worth in joules of nodes that idle or switch. price: a waiting core costs so many times what a
    core draws idle;
    None: what the agent was trained for, its environment's reward, with the late cores counted all the time and not
    once a period. EscalaError for a platform that idles at 0 W."""
    idle = idle_watts(platform)
    if idle <= 0:
        raise EscalaError(
            f"a shield weighs joules, and platform {platform.name!r} idles at 0 W: give a platform with watts"
        )
    prices = np.zeros(1, PRICES)
    if price is not None:
        prices["late"] = price * idle / platform.total_cores
        return prices
    settings = options.settings(platform)
    scale = float(settings["waste_scale"])
    prices["late"] = float(settings["late_scale"]) / scale / options.period_s
    prices["tau"], prices["stretch"] = options.tau, options.stretch_cost / scale
    return prices


def played_by(scheduler: Any) -> Scheduler:
    """The scheduler of the futures: that of the run where it is strict, greedy or EASY with a fixed score, else
    EASY."""
    easy = SCHEDULERS["easy"]
    if (
        not isinstance(scheduler, Scheduler)
        or scheduler.queueing not in PLAYED
        or scheduler.ordering not in (codes.BY_QUEUE, codes.BY_RANK)
    ):
        return easy
    plain = not scheduler.random and scheduler.passing == codes.BY_QUEUE and scheduler.spans == easy.spans
    return scheduler if plain and scheduler.orders == (None, None) else easy


class SwitchAhead:
    """options: of the agent's environment. rules: see `rules_of`. told: options of the run. ahead_s: a future ends
    after so long, or with the last of its `MOST` jobs if that comes sooner, but not before a node has had the time to
    switch off and on."""

    def __init__(
        self,
        platform: Platform,
        options: Any,
        rules: Any,
        scheduler: Any,
        told: Options,
        futures: int,
        ahead_s: float,
        price: float | None,
    ) -> None:
        self._platform, self._scheduler, self._futures = platform, played_by(scheduler), futures
        self._rules, self._prices = rules, prices_of(options, platform, price)
        self._told = Options(rules=told.rules, head=told.head, plan_margin_s=told.plan_margin_s, record=False)
        self._at_submissions = options.ask == "submissions"
        switching = max(
            (one.switch_on_s + one.switch_off_s for one in platform.profiles if one.can_switch), default=0.0
        )
        self._most_us = int(microseconds(max(ahead_s, options.period_s)))
        self._least_us = min(int(microseconds(switching + options.period_s)), self._most_us)
        self._room = -1
        self.memory, self.draw = Memory(), np.random.default_rng()

    def begin(self, seed: int) -> None:
        """A run begins."""
        self.memory, self.draw = Memory(), np.random.default_rng([seed, 0x5B1D])

    def state(self) -> dict[str, Any]:
        """What it remembers, as plain data for JSON."""
        return {**self.memory.state(), "random": self.draw.bit_generator.state}

    @staticmethod
    def read(state: Mapping[str, Any]) -> tuple[Memory, np.random.Generator]:
        """What `state` gave; KeyError, TypeError, ValueError or OverflowError for anything else."""
        draw = np.random.default_rng()
        draw.bit_generator.state = state["random"]
        return Memory.of_state(state), draw

    def costs(
        self, simulation: Any, i: int, games: Any, own: bool, chosen: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the agent's choice costs in each future, and the base, J [2, K]; and the share of each future for which
        a choice is in force, [K]. own: the agent's rules are in force now. EscalaError for jobs that need one node, or
        more than cores."""
        s = simulation.world.s[i, 0]
        now = int(s["now"])
        live = _live(simulation, i)
        ran = self.memory.runtimes(live.limit, live.elapsed, self._futures, self.draw)
        come = self._coming(now)
        last = come.at[:, -1] if come.at.shape[1] else np.full(self._futures, self._most_us)
        until = now + np.clip(last, self._least_us, self._most_us)
        due = np.full(self._futures, int(s["tick_us"]), np.int64)
        if self._at_submissions and come.at.shape[1]:
            due = np.minimum(due, now + come.at[:, 0])
        ends = np.stack([due, until])
        simulated = self._tables(len(live.jobs) + come.at.shape[1])
        drawn = ran, come.at, come.walltime, come.runtime, come.cores, self._order(live, come, now), ends
        told = live.jobs, live.nodes, live.placed, live.held, live.truth, now
        out = np.empty((2, self._futures))
        if not look_ahead(simulated.table, games, told, drawn, (self._rules, own, chosen), self._prices, out):
            raise AssertionError("the look-ahead of a shield has run out of room")
        return out, (due - now) / (until - now)

    def _coming(self, now: int) -> Coming:
        """Jobs that come; none before the first that was seen."""
        if not self.memory.submit_us:
            none = np.zeros((self._futures, 0), np.int64)
            return Coming(none, none, none, none)
        return AsBefore().draw(self.memory, now, self._futures, MOST, self.draw)

    def _order(self, live: Live, come: Coming, now: int) -> NDArray[np.int64]:
        """Rows in the scheduler's order, [K, jobs]; of one without a score in that of the queue."""
        jobs = len(live.jobs)
        shape = self._futures, jobs + come.at.shape[1]
        if self._scheduler.score is None:
            return np.zeros(shape, np.int64)
        columns = []
        for now_, coming in (
            (live.truth["submit"], now + come.at),
            (live.limit, come.walltime),
            (live.truth["cores"].astype(np.int64), come.cores),
        ):
            whole = np.empty(shape, np.int64)
            whole[:, :jobs], whole[:, jobs:] = now_, coming
            columns.append(whole)
        return np.argsort(self._scheduler.score(*columns), axis=1, kind="stable")

    def _tables(self, jobs: int) -> Simulation:
        """The small simulation, with room for so many jobs."""
        if jobs > self._room:
            self._room = max(LEAST_ROOM, 2 * jobs)
            ones = np.ones(self._room)
            blank = Workload.from_jobs({"submit_s": 0.0 * ones, "runtime_s": ones, "cores": ones.astype(int)})
            keys = None if self._scheduler.score is None else np.zeros(self._room)
            # Paused at periods, of which there are none: nobody is asked, neither before the scheduler nor after it.
            plan = Plan(
                self._scheduler.queueing, self._scheduler.ordering, keys, shutdown=codes.TIMEOUT, pause_before=2
            )
            self._simulation = Simulation(blank, pooled(self._platform).alike(), plan, self._told)
            self._simulation.make_room(0, 2 * self._room)
            self._simulation.world.o["max_instants"] = 1 << 40
        return self._simulation


def living(simulation: Any, i: int) -> NDArray[np.int64]:
    """Rows of the jobs of simulation i that wait or hold cores, ascending."""
    w = simulation.world
    s = w.s[i, 0]
    queue = np.empty(int(s["n_queued"]), np.int64)
    waiting(simulation.table, i, queue)
    heaps = [w.heaps["id"][i, which, : int(s[n])] for which, n in ((HEAP_ENDS, "n_ends"), (HEAP_STARTS, "n_starts"))]
    return np.sort(np.concatenate([queue, *heaps]))


def requested(simulation: Any, i: int, rows: NDArray[np.int64]) -> NDArray[Any]:
    """JOB of these rows, with their requests as walltimes."""
    w = simulation.world
    jobs = w.job[i][rows]
    if w.forecast.shape[1]:
        jobs["walltime"] = w.forecast["limit"][i, rows]
    return jobs


def _live(simulation: Any, i: int) -> Live:
    """How simulation i stands: who waits, who holds what, and the nodes. What jobs will really run is not looked at."""
    w, rows = simulation.world, living(simulation, i)
    truth, run, now = requested(simulation, i, rows), w.run[i][rows], int(w.s[i, 0]["now"])
    if truth["single"].any() or (w.demand.size and w.demand[i, rows].any()):
        raise EscalaError(
            "a shield before a shutdown policy plays on cores of any nodes; it cannot play jobs that ask for "
            "nodes, or further kinds, nor any beside one that has nodes of several sizes to itself (exclusive)"
        )
    limit = truth["walltime"].astype(np.int64)
    jobs = np.zeros(len(rows), JOBS)
    jobs["row"], jobs["user"], jobs["estimate"], jobs["order"] = (
        np.arange(len(rows)),
        codes.NONE,
        codes.NONE,
        codes.NONE,
    )
    jobs["submit"], jobs["walltime"], jobs["cores"] = truth["submit"], limit, truth["cores"]
    jobs["state"], jobs["start"] = run["state"], run["start"]
    truth["runtime"], truth["load"], truth["killed"], truth["user"] = limit, 1.0, 0, codes.NONE
    node = w.node[i]
    nodes = np.zeros(len(node), NODES)
    for name in ("since", "done", "power"):
        nodes[name] = node[name]
    nodes["gone"] = (node["power"] == codes.SWITCHING_OFF) & (node["done"] >= codes.NEVER_US)
    elapsed = np.where(run["state"] == codes.RUNNING, now - run["start"], 0)
    placed = _placed(simulation.table, i, rows, np.flatnonzero(run["state"] != codes.QUEUED))
    return Live(jobs, nodes, placed, node["held"].copy(), truth, limit, elapsed)


def _placed(table: Any, i: int, rows: NDArray[np.int64], holders: NDArray[np.int64]) -> NDArray[Any]:
    """PLACED: the cores that these of the rows hold."""
    room = 4 * len(holders)
    while True:
        parts = np.empty((4, room), np.int64)
        n = calls.held(table, i, rows[holders], parts)
        if n <= room:
            break
        room = n
    placed = np.zeros(n, PLACED)
    placed["job"] = holders[parts[0, :n]]
    for k, name in enumerate(("low", "high", "per"), 1):
        placed[name] = parts[k, :n]
    return placed
