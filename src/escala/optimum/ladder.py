"""`bound`: the steps from cheap to exact, each stopping the ladder if it closes the gap, and an honest status of what
was proved."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from escala.errors import EscalaError, quoted
from escala.optimum.bounds import RELAXATIONS, Bound, Progress, Step, closes, down, status_of, within
from escala.optimum.coarse import Rounded, unit_for
from escala.optimum.exact import check_exact, cost_or_span, exact
from escala.optimum.instance import Floats, Instance, Ints, check_schedule
from escala.optimum.lagrange import Dual
from escala.optimum.room import bits, pack
from escala.optimum.search import search
from escala.optimum.searcher import Searcher
from escala.optimum.splitting import STEPS as SPLIT_STEPS
from escala.optimum.splitting import Parts
from escala.optimum.wspt import makespan_bound, mean_busy_bound

STEPS = ("wspt", "lagrange", "search", "exact")
LONGEST_S = 1e9  # no timer takes an endless time
# above (or where capacities do not fit one word), only bounds are computed, unless a schedule is given
SEARCH_JOBS = 20_000
# subgradient steps before the search, with few conflicts and with many; after it the first, and three times as many for
# many jobs
ROUNDS, SHARP_ROUNDS = 1400, 500
# many: more than so many kinds for each that the instance has of its own; a step then takes longer than its jobs do
SHARP_KINDS = 8
# up to so many jobs the schedules are split into parts, so often before and after the search, with few conflicts and
# with
SPLIT_JOBS = 100
# many, as long as (jobs, or SHARP_KINDS, x prices x subgradient steps) stays about below this
SPLITS, SHARP_SPLITS = (13, 500), (0, 100)
SPLIT_WORK = 100_000_000


def effort(dual: Dual, again: bool) -> tuple[int, int]:
    """(subgradient steps, splits) before the search or after it (again). With many conflicts each step takes several
    times as long, and is worth more than a part."""
    jobs, size = dual.instance.jobs, dual.whole.prices.size
    many = dual.instance.capacity.size > SHARP_KINDS * dual.given.capacity.size
    rounds = (SHARP_ROUNDS if many and not again else ROUNDS) * (3 if again and jobs > 64 else 1)
    splits = (SHARP_SPLITS if many else SPLITS)[again] if jobs <= SPLIT_JOBS else 0
    return rounds, min(splits, SPLIT_WORK // (size * 2 * SPLIT_STEPS * (SHARP_KINDS if dual.sharp else jobs)))


class _Ladder:
    """Bound and best schedule so far, in the units that the steps use: summed cost, or the makespan."""

    def __init__(self, instance: Instance, limit_s: float, seed: int, progress: Progress | None) -> None:
        self.instance, self.limit_s, self.seed, self.progress = instance, limit_s, seed, progress
        self.begin = time.monotonic()
        self.lower, self.prover = -math.inf, ""
        self.starts: Ints | None = None
        self.dual: Dual | None = None
        self.parts: Parts | None = None
        self.done: list[Step] = []
        self.cut = self.interrupted = False
        self.searches = False  # whether a search is among the steps
        self.searchable = instance.jobs <= SEARCH_JOBS and bits(instance.demand, instance.capacity) <= 63

    def left(self) -> float:
        return self.begin + self.limit_s - time.monotonic()

    def expired(self) -> bool:
        return self.left() <= 0

    def _half_over(self) -> bool:
        return self.left() <= self.limit_s / 2

    def raise_lower(self, lower: float, prover: str) -> None:
        if lower > self.lower:
            self.lower, self.prover = lower, prover

    def whole(self, cost: Fraction) -> float:
        """A proved bound of the summed cost as a float, never above it; waits are whole, so theirs is rounded up
        first."""
        return down(Fraction(math.ceil(cost)) if self.instance.objective == "wait" else cost)

    def offer(self, starts: Ints) -> None:
        if self.starts is None or self.instance.value(starts) < self.instance.value(self.starts):
            self.starts = starts

    def objective(self, cost: float) -> float | None:
        """A bound in the objective's unit; None if there is none."""
        if cost == -math.inf:
            return None
        return down(self.instance.base + Fraction(cost) / self.instance.jobs) if self.instance.summed else cost

    def found(self) -> float | None:
        return None if self.starts is None else self.instance.value(self.starts)

    def closed(self) -> bool:
        return closes(self.objective(self.lower), self.found())

    # the steps; each returns its iterations

    def wspt(self) -> int:
        if self.instance.summed:
            self.raise_lower(self.whole(mean_busy_bound(self.instance)), "mean busy time, exact integers")
        else:
            self.raise_lower(float(makespan_bound(self.instance)), "areas and dual feasible roundings, exact integers")
        return 1

    def lagrange(self) -> int:
        instance = self.instance
        again, known = self.dual is not None, self._rough()
        if self.dual is None:
            cells = max(64, min(1 << 12, 100_000_000 // (instance.jobs * instance.capacity.size)))
            self.dual = Dual(instance, int((known + instance.length).max()), cells)
        dual, before = self.dual, self.dual.iterations
        rounds, splits = effort(dual, again)
        target = cost_or_span(instance, known)
        over = self.expired if again or not self.searches else self._half_over  # the rest is for a schedule
        self._until_ctrl_c(lambda: dual.improve(target, rounds, over))
        parts = self.parts = Parts(dual, target)
        if splits > 0 and not over() and not self.interrupted:
            self._until_ctrl_c(lambda: parts.split(splits, over))
        pieces = f" in {len(parts)} parts" if len(parts) > 1 else ""
        priced = "capacity and of conflicts" if dual.sharp else "capacity"
        self.raise_lower(self.whole(parts.cost()), f"Lagrangian of the {priced}{pieces}, exact integers")
        return dual.iterations - before

    def _until_ctrl_c(self, step: Callable[[], bool]) -> None:
        """Do a part of a step, which returns whether the limit cut it short."""
        try:
            self.cut |= step()
        except KeyboardInterrupt:
            self.interrupted = True

    def _rough(self) -> Ints:
        """A schedule to aim at: the best known, or one by a simple rule (not counted as found), or all jobs one after
        the other."""
        instance = self.instance
        if self.starts is not None:
            return self.starts
        if self.searchable:
            searcher = Searcher(instance, self.seed)
            searcher.rules(4)
            return searcher.starts
        order = np.argsort(instance.release, kind="stable")
        before = np.cumsum(instance.length[order]) - instance.length[order]
        starts = np.empty_like(before)
        starts[order] = before + np.maximum.accumulate(instance.release[order] - before)
        return starts

    def search(self) -> int:
        if not self.searchable:
            return 0
        hints: list[Ints | Floats] = [] if self.starts is None else [self.starts]
        if self.dual is not None:
            hints.append(self.dual.starts)
        lower = self.objective(self.lower)
        found = search(
            self.instance,
            seed=self.seed,
            hints=hints,
            lower=-math.inf if lower is None else lower,
            expired=self.expired,
        )
        self.cut |= found.cut
        self.interrupted |= found.interrupted
        self.offer(found.starts)
        return found.steps

    def exact(self) -> int:
        if self.lower == -math.inf:
            self.wspt()
        if self.starts is None:
            self.offer(self._rough())
        assert self.starts is not None
        if self.instance.summed and self.parts is None:
            self.lagrange()
        begin = time.monotonic()

        def report(cost: float) -> None:
            if self.progress is not None and cost > self.lower:
                self.progress(Step("exact", time.monotonic() - begin, 0, self.objective(cost), self.found()))

        result = exact(self.instance, self.parts, self.starts, self.lower, max(0.0, self.left()), report)
        self.interrupted |= result.interrupted
        self.raise_lower(result.lower, result.prover)
        if result.starts is not None:
            self.offer(result.starts)
        self.cut |= self.expired()
        return 1

    def run(self, steps: Sequence[str]) -> None:
        self.searches = "search" in steps
        for name in steps:
            if self.closed() or self.interrupted:
                break
            if self.expired() and self.done and (name != "search" or self.starts is not None):
                continue  # a first schedule takes next to no time
            if name == "lagrange" and not self.instance.summed:
                continue  # it bounds sums
            begin, iterations = time.monotonic(), 0
            try:
                iterations = getattr(self, name)()
            except KeyboardInterrupt:
                self.interrupted = True
            self.done.append(Step(name, time.monotonic() - begin, iterations, self.objective(self.lower), self.found()))
            if self.progress is not None:
                try:
                    self.progress(self.done[-1])
                except KeyboardInterrupt:
                    self.interrupted = True

    def result(self) -> Bound:
        found = self.found()
        lower = within(self.objective(self.lower), found, self.prover)
        return Bound(
            status_of(lower, found), self.instance.objective, self.instance.jobs, lower, found, self.starts,
            self.prover, RELAXATIONS,
            tuple(self.done), time.monotonic() - self.begin, self.seed, self.limit_s, self.cut, self.interrupted,
        )  # fmt: skip


def check_limit(limit_s: float) -> None:
    """EscalaError for what is no time."""
    if isinstance(limit_s, bool) or not isinstance(limit_s, Real) or not limit_s > 0:
        raise EscalaError(f"limit_s is {quoted(limit_s)}: give seconds above 0")


def bound(
    instance: Instance, *, exact: bool = False, limit_s: float = 60.0, seed: int = 0, progress: Progress | None = None,
    steps: Sequence[str] = STEPS[:3], known: Ints | None = None,
) -> Bound:  # fmt: skip
    """Lower bound and best schedule of `instance`, in at most about `limit_s` seconds of wall time.

    Steps: `wspt` (milliseconds), `lagrange` (the default bound), `search`, and with `exact` the solvers of the extra
    `optimum`. known: starts (n,) of a schedule to begin from. Without `exact` the outcome depends on the seed alone,
    unless the limit cut a step short (`Bound.cut`). More than 2^40 ticks are rounded for the proof (`Bound.unit`; see
    `coarse`). Ctrl-C ends the step and returns what was proved (`Bound.interrupted`). EscalaError on bad input or if
    `exact` finds no solver.
    """
    check_limit(limit_s)
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise EscalaError(f"seed is {seed!r}: give a whole number of at least 0")
    if exact or "exact" in steps:
        check_exact(instance)
        if instance.jobs > SEARCH_JOBS:
            raise EscalaError(
                f"exact is for up to {SEARCH_JOBS} jobs, not {instance.jobs}: leave it out, or choose a shorter window"
            )
        pack(instance.demand, instance.capacity)  # it begins from a schedule
    for name in steps:
        if name not in STEPS:
            raise EscalaError(f"step '{name}' is unknown: choose from {', '.join(STEPS)}")
    if (unit := unit_for(instance)) > 1:
        rounded = Rounded(instance, unit, bound, min(float(limit_s), LONGEST_S), int(seed), progress)
        return rounded.run(steps, exact or "exact" in steps, known)
    ladder = _Ladder(instance, min(float(limit_s), LONGEST_S), seed, progress)
    if known is not None:
        check_schedule(instance, known)
        ladder.offer(np.asarray(known, np.int64))
    order = list(steps)
    if "lagrange" in order and "search" in order:
        order.insert(order.index("search") + 1, "lagrange")  # again, with the better schedule to aim at
    if exact and "exact" not in order:
        order.append("exact")
    ladder.run(order)
    return ladder.result()
