"""`rollout`: look-ahead without training. At each decision every choice is tried on sampled futures, simulated on by a
base policy, and the best is taken.

One-step policy improvement (Tesauro and Galperin 1997; Bertsekas and Castanon 1999) over several bases, of which each
choice is continued by the one that is best in the mean (parallel rollout: Chang, Givan and Chong 2004). With c a choice
(start one of the jobs that fit, or wait), b a base and f = 1..K sampled futures, the same for every c and b,

    take  argmin_c  min_b  mean_f  sum_j weight_j(f) start_j(c, b, f)

over the jobs that wait or come in f; weight_j = 1 / max(runtime_j(f), floor) for (bounded) slowdown, 1 for wait. How
long jobs really take is drawn from the shares of their walltimes that ended jobs took; nothing is used that a scheduler
could not have written down.

`optimism` mixes this with the best base in each future, min_b inside the mean over f, which is more than a scheduler
can know.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, nearest, quoted
from escala.jobs import QueuedJob
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.lookahead import WAIT, look_ahead
from escala.kernel.world import table_of
from escala.options import Options, Plan
from escala.platform import read_platform
from escala.policies.futures import Arrivals, AsBefore, Lists, Memory, Numbers
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.policy import Commands, View
from escala.simulation import Simulation
from escala.workload import Workload

HOLD_BACK = "hold-back"
"""A base of rollout alone: sjf, and jobs longer than the mean walltime seen wait until the last arrival of the future.
`hold-back:M`: and until M mean walltimes before the last arrival that any of the futures has, if that is later; by
walltime squared x cores."""

BASES = (f"{HOLD_BACK}:0", f"{HOLD_BACK}:2", HOLD_BACK, "sjf-fit")
"""What is simulated on by unless told otherwise: greedy, and three ways to keep long jobs for quieter times."""

DEFAULT_FUTURES = 32
FLOORS_S = {"slowdown": 1e-6, "bounded-slowdown": 10.0}
OBJECTIVES = (*FLOORS_S, "wait")
FIRST = 32  # futures after which choices that are clearly worse are dropped
CLEARLY = 4.0  # standard errors


class Futures(NamedTuple):
    """Inputs of `escala.kernel.lookahead.look_ahead`, but for the choices."""

    running: Numbers
    left: Numbers
    drawn: Numbers
    weight: NDArray[np.float64]
    soon: Numbers
    release: Numbers
    order: Numbers

    def part(self, rows: slice) -> Futures:
        """Some of the futures."""
        return Futures(self.running, *(array[rows] for array in self[1:]))  # type: ignore[arg-type]


class Base:
    """A base policy on a pool of cores: the tables of one small simulation, used again and again."""

    def __init__(self, name: str, cores: int) -> None:
        self.scheduler = base_scheduler(name)
        self.held, self.ahead = _hold(name)
        self.cores = cores
        self._room = 0

    def cost(self, f: Futures, choices: Numbers) -> NDArray[np.float64]:
        """float64 [choices, futures]."""
        out = np.empty((len(choices), len(f.soon)))
        self._make_room(f.running.shape[1] + f.drawn.shape[2])
        look_ahead(self.table, self._start_table, choices, tuple(f), out)
        return out

    def _make_room(self, jobs: int) -> None:
        if jobs <= self._room:
            return
        self._room = 2 * jobs
        blank = Workload.from_jobs(
            {"submit_s": np.zeros(self._room), "runtime_s": np.ones(self._room), "cores": np.ones(self._room, int)}
        )
        ranked = self.scheduler.score is not None
        plan = Plan(
            queueing=self.scheduler.queueing,
            ordering=self.scheduler.ordering,
            keys=np.zeros(self._room) if ranked else None,
        )
        simulation = Simulation(blank, read_platform(f"1x{self.cores}:none"), plan, Options(record=False))
        w = simulation.world
        self._simulation, self.table = simulation, simulation.table
        self._start = w._replace(o=w.o.copy(), s=np.zeros_like(w.s), node=w.node.copy(), room=w.room.copy())
        self._start_table = table_of(self._start)


def _hold(name: str) -> tuple[bool, float | None]:
    """(whether a base holds jobs back, the M of hold-back:M)."""
    kind, colon, ahead = name.partition(":")
    if kind != HOLD_BACK or not colon:
        return kind == HOLD_BACK, None
    try:
        value = float(ahead)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1e6:
        raise EscalaError(
            f"rollout: base {quoted(name)}: {quoted(ahead)} is no number of mean walltimes: use {HOLD_BACK} or "
            f"{HOLD_BACK}:1.5"
        )
    return True, value


def base_scheduler(name: str) -> Scheduler:
    """The scheduler behind a base; EscalaError for one that rollout cannot simulate."""
    known = SCHEDULERS.get("sjf" if _hold(name)[0] else name)
    fixed = (
        known is not None
        and not known.random
        and known.ordering in (codes.BY_QUEUE, codes.BY_RANK)
        and known.estimate is None
    )
    if known is None or not fixed or known.queueing not in (codes.STRICT, codes.GREEDY, codes.EASY):
        raise EscalaError(
            f"rollout: base {quoted(name)} is none of its bases: {HOLD_BACK}, and strict, greedy and EASY schedulers "
            "with a fixed score (fcfs, first-fit, sjf, sjf-fit, saf-fit, easy, ...)"
        )
    return known


class Rollout:
    """The scheduler; see the module.

    futures: K. base: a scheduler's name, or several. arrivals: None (as before), or workloads to draw futures from
    (`Lists`), or a law.
    horizon: at most so many jobs come in a future. objective: slowdown, bounded-slowdown or wait. choices: at most so
    many kinds of job are tried at a decision. depth: at most so many waiting jobs are looked at, the first in the
    base's order. every_s: after a choice to wait, look again at the next multiple of this, s; None: after the mean time
    to the next event. optimism: of several bases, 1 takes the best in each future, 0 the best in the mean, between them
    a mixture. Jobs take cores of any nodes, others are refused; nodes are taken as on, and partitions as one pool.
    """

    one_pool = True

    def __init__(
        self,
        futures: int = DEFAULT_FUTURES,
        base: str | Sequence[str] = BASES,
        *,
        arrivals: Arrivals | Sequence[Workload] | None = None,
        horizon: int = 40,
        objective: str = "bounded-slowdown",
        choices: int = 10,
        depth: int = 100,
        every_s: float | None = None,
        optimism: float = 0.0,
        seed: int = 0,
    ) -> None:
        if min(futures, choices, depth, horizon) < 1:
            raise EscalaError("rollout: futures, choices, depth and horizon must be at least 1")
        if objective not in OBJECTIVES:
            hint = nearest(str(objective), OBJECTIVES)
            raise EscalaError(f"rollout: objective {objective!r} is unknown: {hint}use {', '.join(OBJECTIVES)}")
        if every_s is not None and not every_s > 0:
            raise EscalaError(f"rollout: every_s is {every_s}: give seconds above 0")
        if not 0.0 <= optimism <= 1.0:
            raise EscalaError(f"rollout: optimism is {optimism}: give a share from 0 to 1")
        self.name = "rollout"
        self.bases = (base,) if isinstance(base, str) else tuple(base)
        for name in self.bases:
            base_scheduler(name)
        self.arrivals: Arrivals = (
            AsBefore() if arrivals is None else Lists(arrivals) if isinstance(arrivals, Sequence) else arrivals
        )
        self.futures, self.horizon, self.objective = futures, horizon, objective
        self.choices, self.depth, self.every_s, self.optimism, self.seed = choices, depth, every_s, optimism, seed
        self._of: Callable[[], View | None] = lambda: None
        self._begun = False
        self._told: Any = None  # what the first decision goes on from

    def state(self) -> Any:
        """What it remembers, as plain data for JSON; None before the first decision."""
        if not self._begun:
            return self._told
        return {**self._memory.state(), "random": self._draw.bit_generator.state}

    def restore(self, state: Any) -> None:
        """Go on from what `state` gave; EscalaError for anything else."""
        if state is not None:
            self.read(state)
        self._of, self._begun, self._told = lambda: None, False, state

    def read(self, state: Any) -> tuple[Memory, np.random.Generator]:
        """What `state` gave, as objects; EscalaError for anything else."""
        draw = np.random.default_rng()
        try:
            draw.bit_generator.state = state["random"]
            return Memory.of_state(state), draw
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EscalaError(f"{self.name}: its state is none of its own: begin without the file") from None

    def decide(self, view: View, act: Commands) -> None:
        """Start jobs as long as starting one promises more than waiting."""
        self._begin(view)
        while True:
            job, pause_s = self.choose(view)
            if job is None or not act.start(job):
                break
        if pause_s is not None:
            act.call_at(self._again(view.now_s, pause_s))

    def choose(self, view: View, visible: Sequence[int] | None = None) -> tuple[QueuedJob | None, float | None]:
        """(the job to start now, or None, mean time to the next event of the futures in s). visible: rows of the
        waiting jobs that may be chosen, by default all."""
        self._memory.see(view)
        queue = self._spreading(view.queue)
        if not queue:
            return None, None
        queue = self._first(queue)
        candidates = self._candidates(queue, view.free_any, visible)
        if not candidates:
            return None, None
        waits = self._draw_futures(view, queue)
        choices = np.array([*candidates, WAIT] if waits[0].soon.min() < codes.NEVER_US else candidates, np.int64)
        best = int(choices[self._best(waits, choices)])
        return (None if best == WAIT else queue[best]), float(waits[0].soon.mean()) / SECOND

    def costs(self, view: View, rows: Sequence[int | None]) -> list[float]:
        """The mean cost of starting each of these waiting jobs now, or (None) of waiting for the next event, over the
        same futures, each continued by the base that is best. Infinite for waiting where nothing will happen."""
        self._memory.see(view)
        queue = self._first(self._spreading(view.queue))
        place = {job.row: k for k, job in enumerate(queue)}
        waits = self._draw_futures(view, queue)
        choices = np.array([WAIT if row is None else place[row] for row in rows], np.int64)
        found = self._cost(waits, choices, slice(0, self.futures)).mean(axis=1)
        idle = waits[0].soon.min() >= codes.NEVER_US
        return [math.inf if row is None and idle else float(cost) for row, cost in zip(rows, found, strict=True)]

    def _spreading(self, queue: list[QueuedJob]) -> list[QueuedJob]:
        """The queue; EscalaError where a job asks for more than cores of any nodes."""
        for job in queue:
            if job.parts > 0 or any(job.demand):
                raise EscalaError(
                    f"{self.name} plans cores of any nodes; it cannot schedule single-node jobs, or others that ask "
                    f"for nodes, memory or GPUs (job {job.row}): take easy or sjf-fit, or leave out what jobs ask of "
                    "nodes"
                )
        return queue

    def _begin(self, view: View) -> None:
        if self._of() is not view:  # another run
            self._of = weakref.ref(view)
            self.forget(int(view.node_cores.sum()))

    def forget(self, cores: int, bases: Sequence[Base] | None = None) -> None:
        """Begin anew, on a machine of so many cores. bases: tables to use in place of own ones."""
        self._memory, self._draw = Memory(), np.random.default_rng([self.seed, 0x4011])
        if self._told is not None:
            (self._memory, self._draw), self._told = self.read(self._told), None
        self._begun = True
        self._bases = list(bases) if bases is not None else [Base(name, cores) for name in self.bases]

    def _again(self, now_s: float, pause_s: float) -> float:
        if self.every_s is not None:
            return (np.floor(now_s / self.every_s + 1e-9) + 1.0) * self.every_s
        return now_s + max(pause_s, 1e-3)

    def _first(self, queue: list[QueuedJob]) -> list[QueuedJob]:
        """The first waiting jobs in the order of the (first) base, no more than can be looked at."""
        score = self._bases[0].scheduler.score
        if len(queue) <= self.depth or score is None:
            return queue[: self.depth]
        keys = score(
            *(
                np.array(column)
                for column in zip(*((j.submit_s * 1e6, j.walltime_s * 1e6, j.cores) for j in queue), strict=True)
            )
        )
        return [queue[k] for k in np.sort(np.argsort(keys, kind="stable")[: self.depth])]

    def _candidates(self, queue: list[QueuedJob], free: int, visible: Sequence[int] | None) -> list[int]:
        """The first waiting job of each kind that fits now, as places in the queue."""
        kinds: dict[tuple[int, float], int] = {}
        for k, job in enumerate(queue):
            if job.cores <= free and (visible is None or job.row in visible):
                kinds.setdefault((job.cores, job.walltime_s), k)
        return sorted(kinds.values(), key=lambda k: (queue[k].walltime_s, k))[: self.choices]

    def _draw_futures(self, view: View, queue: list[QueuedJob]) -> list[Futures]:
        """K futures, in the shape that each base needs."""
        memory, k, draw = self._memory, self.futures, self._draw
        now = round(view.now_s * SECOND)
        running = view.running
        whole = np.array([round(job.walltime_s * SECOND) for job in running], np.int64)
        ahead = np.array([round(job.planned_end_s * SECOND) - now for job in running], np.int64).clip(1)
        elapsed = np.maximum(whole - ahead, 0)
        left = np.minimum(np.maximum(memory.runtimes(whole, elapsed, k, draw) - elapsed, 1), ahead)
        walltime = np.array([round(job.walltime_s * SECOND) for job in queue], np.int64)
        ran = memory.runtimes(walltime, np.zeros(len(queue), np.int64), k, draw)
        come = self.arrivals.draw(memory, now, k, self.horizon, draw)
        drawn = np.zeros((k, 5, len(queue) + come.at.shape[1]), np.int64)
        cores = np.array([job.cores for job in queue], np.int64)
        for plane, (waiting, coming) in enumerate(
            ((ran, come.runtime), (walltime, come.walltime), (cores, come.cores), (0, come.at))
        ):
            drawn[:, plane, : len(queue)] = waiting
            drawn[:, plane, len(queue) :] = coming
        some = come.at < codes.NEVER_US
        soon = np.minimum(left.min(axis=1, initial=codes.NEVER_US), come.at.min(axis=1, initial=codes.NEVER_US))
        soon[soon == codes.NEVER_US] = soon[soon < codes.NEVER_US].max(initial=0) or codes.NEVER_US
        release = np.where(some, come.at, 0).max(axis=1, initial=0)
        submit = np.concatenate([[round(job.submit_s * SECOND) for job in queue], np.full(come.at.shape[1], now)])
        typical = float(np.mean(np.concatenate([memory.walltime_us, come.walltime[some]])))
        shared = np.stack([np.array([job.cores for job in running], np.int64), ahead])
        return [self._shaped(base, shared, left, drawn, submit, typical, soon, release) for base in self._bases]

    def _shaped(
        self,
        base: Base,
        running: Numbers,
        left: Numbers,
        drawn: Numbers,
        submit: Numbers,
        typical: float,
        soon: Numbers,
        release: Numbers,
    ) -> Futures:
        """The order and the held jobs of one base. typical: the mean walltime of the jobs that came or may come, us."""
        jobs = drawn.copy() if base.held else drawn
        if base.held:
            jobs[:, 4] = drawn[:, 1] > typical
        score = base.scheduler.score
        if base.ahead is not None:
            last = int(release.max()) - round(base.ahead * typical)
            release = np.maximum(release, last)
            score = _short_and_narrow
        key = (
            np.zeros(drawn[:, 1].shape)
            if score is None
            else score(submit + np.minimum(drawn[:, 3], 1 << 50), drawn[:, 1], drawn[:, 2])
        )
        floor = FLOORS_S.get(self.objective, 1.0) * SECOND
        weight = np.ones(drawn[:, 0].shape) if self.objective == "wait" else SECOND / np.maximum(drawn[:, 0], floor)
        return Futures(running, left, jobs, weight, soon, release, np.argsort(key, axis=1, kind="stable"))

    def _best(self, shaped: list[Futures], choices: Numbers) -> int:
        """Place of the choice with the least mean cost. After the first futures, choices that are clearly worse are
        dropped."""
        places = np.arange(len(choices))
        if len(choices) == 1:
            return 0
        first = self._cost(shaped, choices, slice(0, FIRST))
        if self.futures > FIRST:
            leader = int(first.mean(axis=1).argmin())
            gap = first - first[leader]
            clear = gap.mean(axis=1) > CLEARLY * gap.std(axis=1) / np.sqrt(gap.shape[1])
            clear[leader] = False
            places = places[~clear]
            if len(places) > 1:
                rest = self._cost(shaped, choices[places], slice(FIRST, self.futures))
                first = np.concatenate([first[places], rest], axis=1)
            else:
                return leader
        return int(places[first.mean(axis=1).argmin()])

    def _cost(self, shaped: list[Futures], choices: Numbers, rows: slice) -> NDArray[np.float64]:
        """Cost of each choice in each future, under the base that is best there, or best in the mean; see
        `optimism`."""
        costs = np.stack([base.cost(f.part(rows), choices) for base, f in zip(self._bases, shaped, strict=True)])
        least: NDArray[np.float64] = costs.min(axis=0)
        if self.optimism < 1.0 and len(costs) > 1:
            one = costs[costs.mean(axis=2).argmin(axis=0), np.arange(len(choices))]
            least = self.optimism * least + (1.0 - self.optimism) * one
        return least


def _short_and_narrow(submit: Any, walltime: Any, cores: Any) -> Any:
    """Score: walltime squared x cores, so short jobs and, of equal ones, narrow ones first."""
    return np.asarray(walltime, np.float64) ** 2 * cores
