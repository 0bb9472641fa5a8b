"""The schedulers that have a name: a score and a way to walk the queue. Their table needs no compiled code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from escala.estimates import LAST2, lengths_us, way_of
from escala.kernel import codes
from escala.options import Spans
from escala.scores import CHANGING, FIXED, KEYS, PACKING, Score, by_size, by_user

if TYPE_CHECKING:
    from escala.options import Options, Terms
    from escala.workload import Workload


SCORES = {by_size, *FIXED.values(), *(score for _, score in PACKING.values())}


@runtime_checkable
class LinearScore(Protocol):
    """A linear score: see `escala.policies.linear`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the log that it looks at, beside those that every run does."""

    def terms(self, workload: Workload, options: Options) -> Terms:
        """As the kernel knows it."""


@dataclass(frozen=True)
class Scheduler(Spans):
    """A way to walk the queue, and an order: by queue, by a fixed score, or by a changing one (then `score` tells in
    which order the kernel keeps the jobs). `orders`: a linear score; where those who pass the first have an order of
    their own, what is fixed or linear of both."""

    queueing: int
    ordering: int = codes.BY_QUEUE
    score: Score | None = None
    random: bool = False
    passing: int = codes.BY_QUEUE  # the order of those who pass the first; BY_QUEUE: the same
    orders: tuple[Score | LinearScore | None, Score | LinearScore | None] = (None, None)
    estimate: Any = None  # of its name, or an object; None: that of the options
    order_estimate: Any = None
    name: str = ""  # in tables, of one that no name says

    def order(self, workload: Workload, options: Options) -> dict[str, Any]:
        """Fields of a Plan: the ordering, and its keys, one a job of the workload's table, None where the order is not
        fixed. options: with the estimates of the scheduler's name. A fixed score of lengths that become known at
        submission is found by the kernel."""
        from escala.admit import arrivals_us

        if self.random:
            return {
                "ordering": self.ordering,
                "keys": np.random.default_rng([options.seed, 0x5C4ED]).random(len(workload)),
            }
        if self.score is None:
            return {"ordering": self.ordering}
        jobs = workload.jobs
        of_jobs = arrivals_us(jobs), lengths_us(options.ordered_by, jobs), jobs["cores"].to_numpy()
        return self.arrange(of_jobs, workload, options)

    def arrange(self, of_jobs: tuple[Any, Any, Any], workload: Workload, options: Options) -> dict[str, Any]:
        """As `order`, for a score, from submissions (us), lengths (us) and cores; the workload is looked at by linear
        scores alone."""
        later = way_of(options.ordered_by) != codes.BEFOREHAND
        if self.score is None or (later and self.ordering == codes.BY_TETRIS):
            return {"ordering": self.ordering}
        if later and self.score in KEYS:
            return {"ordering": codes.BY_PLACE, "key": (KEYS[self.score], codes.NONE), "keys": by_size(*of_jobs)}
        told: dict[str, Any] = {"ordering": self.ordering, "passing": self.passing}
        if self.orders != (None, None):
            told |= self._numbers(workload, options, of_jobs)
        if "keys" not in told:
            told["keys"] = self.score(*of_jobs)
        return told

    @cached_property
    def _linear(self) -> list[LinearScore | None]:
        """Of both orders those that are linear scores."""
        return [one if isinstance(one, LinearScore) else None for one in self.orders]

    def _numbers(self, workload: Workload, options: Options, of_jobs: tuple[Any, Any, Any]) -> dict[str, Any]:
        """Fields of a Plan: what the kernel needs of orders that are fixed or linear, beside that in which it keeps the
        jobs."""
        later = way_of(options.ordered_by) != codes.BEFOREHAND
        linear = self._linear
        terms = tuple(None if one is None else one.terms(workload, options) for one in linear)
        keys = tuple(KEYS.get(one, codes.NONE) if later and callable(one) else codes.NONE for one in self.orders)
        fixed = tuple(
            one(*of_jobs) if callable(one) and key == codes.NONE else None
            for one, key in zip(self.orders, keys, strict=True)
        )
        columns = tuple(name for one in linear if one is not None for name in one.columns)
        told: dict[str, Any] = {"terms": terms, "key": keys, "fixed": fixed, "columns": columns}
        if any(one is not None and one.by_user for one in terms):
            told["keys"] = by_user(workload.user_ranks, *of_jobs)
        return told

    def passed_by(self, other: Scheduler) -> Scheduler:
        """This scheduler, those who pass its first in the order of another: then the jobs are kept by size, and both
        orders beside."""
        if (self.ordering, self.score, self.orders) == (other.ordering, other.score, other.orders):
            return self
        first, second = (codes.BY_PLACE if one.ordering == codes.BY_RANK else one.ordering for one in (self, other))
        a, b = (one.score if one.ordering == codes.BY_RANK else one.orders[0] for one in (self, other))
        return replace(self, ordering=first, passing=second, score=by_size, orders=(a, b))


def is_own(scheduler: Scheduler) -> bool:
    """Are its scores those of Escala's own? What orders the queue sees all jobs of a log, those to come too."""
    from escala.policies.linear import Linear, Multifactor

    scores = (one for one in (scheduler.score, *scheduler.orders) if one is not None)
    return type(scheduler) is Scheduler and all(type(one) in (Linear, Multifactor) or one in SCORES for one in scores)


def _schedulers() -> dict[str, Scheduler]:
    by_rank = codes.BY_RANK
    table = {
        "fcfs": Scheduler(codes.STRICT),
        "first-fit": Scheduler(codes.GREEDY),
        "easy": Scheduler(codes.EASY),
        "easy-fast": Scheduler(codes.EASY_FAST),
        "conservative": Scheduler(codes.CONSERVATIVE),
        "random": Scheduler(codes.GREEDY, by_rank, random=True),
    }
    for name, score in FIXED.items():
        strict = "saf-strict" if name == "saf" else name
        table[strict] = Scheduler(codes.STRICT, by_rank, score)
        table[f"{name}-fit"] = Scheduler(codes.GREEDY, by_rank, score)
        table[f"easy-{name}"] = Scheduler(codes.EASY, by_rank, score)
    for name, ordering in CHANGING.items():
        table[name] = Scheduler(codes.STRICT, ordering, by_size)
        table[f"{name}-fit"] = Scheduler(codes.GREEDY, ordering, by_size)
        table[f"easy-{name}"] = Scheduler(codes.EASY, ordering, by_size)
    for name, (ordering, score) in PACKING.items():
        table[name] = Scheduler(codes.GREEDY, ordering, score)
    table["saf"] = table["easy-saf"]
    table["easy+"] = replace(table["easy"], estimate=LAST2)
    table["easy++"] = replace(table["easy-sjf"], estimate=LAST2)
    return table


SCHEDULERS = _schedulers()
"""Every scheduler inside the kernel that has a name."""
