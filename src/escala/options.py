"""What a run is asked to do: the plan of a scheduler and a shutdown policy, and the options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, nearest, quoted
from escala.estimates import (
    COLUMN,
    CORRECTIONS_S,
    RUNTIME,
    WALLTIME,
    check_corrections,
    check_estimate,
    microseconds,
    name_of_estimate,
    way_of,
)
from escala.foresight import plain
from escala.kernel import codes

__all__ = ["Options", "Plan", "microseconds", "with_options"]

RULES = ("escala", "batsched")
BATSCHED_MARGIN_S = 5.0
MOST_DEPTH = 2**31 - 1
FLAGS = {"plan_margin_s": " (--plan-margin)", "until_s": " (--stop-at)"}  # on the command line


@dataclass(frozen=True)
class Terms:
    """A linear score as the kernel knows it, the smallest first.

    `fixed`: cores of the machine -> what never changes, [jobs]. The weights of what does: `log_wait` of log1p(wait / 1
    h), `log_ratio` of log1p(wait / estimate), `length` of log(estimate / 1 h) and `length_cores` of its product with
    log(cores / cores of the machine), where estimates become known at submission (else these are in `fixed`), `age` of
    wait / `max_age_s`, at most 1, `running` of the user's share of the machine, `queued` of log1p(the user's waiting
    jobs), `fair` of the user's fair-share factor by `shares` [users] and `half_life_s` (0: nothing decays). `every_s`:
    scores are computed anew in each such stretch, 0: at each decision.
    """

    fixed: Callable[[int], NDArray[np.float64]]
    log_wait: float = 0.0
    log_ratio: float = 0.0
    age: float = 0.0
    length: float = 0.0
    length_cores: float = 0.0
    max_age_s: float = 1.0
    running: float = 0.0
    queued: float = 0.0
    fair: float = 0.0
    shares: NDArray[np.float64] | None = None
    half_life_s: float = 0.0
    every_s: float = 0.0

    @property
    def by_user(self) -> bool:
        """Is something of the user's counted?"""
        return self.running != 0.0 or self.queued != 0.0 or self.fair != 0.0


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of time in a scheduler's name, each with a key: `guard=24h` is `guard_s` here and `guard_us` among the
    kernel's options."""

    guard_s: float = math.inf  # who has waited so long stands in front, the oldest first

    @property
    def spans(self) -> dict[str, Any]:
        """Field -> seconds."""
        return {entry.name: getattr(self, entry.name) for entry in fields(Spans)}


SPANS = tuple(name.removesuffix("_s") for name in Spans().spans)
"""Their keys."""


@dataclass(frozen=True)
class Plan(Spans):
    """A scheduler and a shutdown policy as the kernel knows them. `keys` [jobs]: a fixed order, the smallest first
    (ties in queue order). `passing`: the order of those who pass the first, BY_QUEUE: the same; then `fixed` [jobs] are
    the numbers of either order that does not change, `key` is codes.KEY_... of either that becomes known at submission,
    `terms` of either that is a linear score, `columns` those of the log that they name."""

    queueing: int = codes.EXTERNAL
    ordering: int = codes.BY_QUEUE
    keys: NDArray[np.float64] | None = None
    passing: int = codes.BY_QUEUE
    fixed: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None)
    key: tuple[int, int] = (codes.NONE, codes.NONE)
    terms: tuple[Terms | None, Terms | None] = (None, None)
    columns: tuple[str, ...] = ()
    shutdown: int = codes.NEVER
    timeout_s: float = 0.0
    spare: int = 0
    fraction: float = 0.0
    cap_s: float = math.inf
    if_busy: bool = False
    target: int = 0
    pause_before: int = 0
    period_s: float = 0.0
    estimate: Any = None  # of the scheduler's name; None: that of the options
    order_estimate: Any = None

    @property
    def has_front(self) -> bool:
        """Do jobs that have waited the guard get ranks of their own, in front of a fixed order?"""
        return self.guard_s < math.inf and self.keys is not None and self.ordering not in codes.CHANGING

    @property
    def orders(self) -> int:
        """How many orders of the queue are found by a tournament (`escala.kernel.urgency`)."""
        return (self.ordering in codes.CHANGING) * (1 if self.passing == codes.BY_QUEUE else 2)

    @property
    def numbered(self) -> bool:
        """Has an order a number a job?"""
        return not {self.ordering, self.passing}.isdisjoint((codes.BY_PLACE, codes.BY_LINEAR))

    @property
    def by_user(self) -> bool:
        """Does an order look at users?"""
        return any(terms is not None and terms.by_user for terms in self.terms)


@dataclass(frozen=True)
class Options:
    """How to run. Times in seconds.

    rules: "escala" or "batsched" (the reference engine's conventions). head: cores that EASY's head reserves,
    "lowest-id" or "latest-released". depth: reservations of conservative backfilling, None: all. plan_margin_s: added
    to walltimes in plans, None: by the rules. estimate: how long jobs are expected to run, "walltime", "runtime",
    "last2", a column of the workload (estimate_...), or an object with `estimate(view, job)`; see `escala.estimates`.
    order_estimate: the same for the order of the queue, None: as estimate.
    corrections_s: by how much the planned end of a job that outlives its estimate moves, each time; then to the end of
    its request.
    until_s: time limit. start_off: all nodes off at the start. oversized: "error" or "drop" for jobs that can never
    run.
    """

    rules: str = "escala"
    head: str = "lowest-id"
    depth: int | None = None
    rebuild: bool = False
    plan_margin_s: float | None = None
    estimate: Any = WALLTIME
    order_estimate: Any = None
    corrections_s: tuple[float, ...] = CORRECTIONS_S
    until_s: float | None = None
    start_s: float = 0.0
    start_off: bool = False
    oversized: str = "error"
    seed: int = 0
    record: bool = True

    def __post_init__(self) -> None:
        for name in ("estimate", "order_estimate"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        self._check_types()
        choices = {
            "rules": RULES,
            "head": ("lowest-id", "latest-released"),
            "oversized": ("error", "drop"),
        }
        for name, allowed in choices.items():
            if (value := getattr(self, name)) not in allowed:
                hint = nearest(str(value), allowed)
                raise EscalaError(f"option {name}={quoted(value)} is not known: {hint}use one of {', '.join(allowed)}")
        check_estimate(self.estimate, "estimate")
        if self.order_estimate is not None:
            check_estimate(self.order_estimate, "order_estimate")
        object.__setattr__(self, "corrections_s", check_corrections(self.corrections_s))
        if self.depth is not None and not 1 <= self.depth <= MOST_DEPTH:
            raise EscalaError(
                f"option depth={self.depth} (--depth): give 1 to {MOST_DEPTH} reservations, or None for all"
            )
        for name in ("plan_margin_s", "until_s", "start_s"):
            value = getattr(self, name)
            if value is not None and (not math.isfinite(value) or abs(value) > 1e11):
                raise EscalaError(
                    f"option {name}={value}{FLAGS.get(name, '')}: give a finite number of seconds (at most 1e11)"
                )
        if self.plan_margin_s is not None and self.plan_margin_s < 0:
            raise EscalaError(f"option plan_margin_s={self.plan_margin_s} (--plan-margin): give seconds >= 0")
        if self.until_s is not None and self.until_s <= self.start_s:
            raise EscalaError(
                f"option until_s={self.until_s} (--stop-at): the limit must lie behind the start ({self.start_s} s)"
            )

    def _check_types(self) -> None:
        """Every option of the type that it needs; EscalaError naming the first that is not. Whole numbers and seconds
        become plain ones."""
        for name in ("rebuild", "start_off", "record"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise EscalaError(f"option {name}={value!r}: give True or False")
            object.__setattr__(self, name, bool(value))
        for name in ("depth", "seed"):
            value = getattr(self, name)
            if value is None and name == "depth":
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise EscalaError(f"option {name}={value!r}: give a whole number")
            object.__setattr__(self, name, int(value))
        if self.seed < 0:
            raise EscalaError(f"option seed={self.seed}: give a whole number of at least 0")
        for name in ("plan_margin_s", "until_s", "start_s"):
            value = getattr(self, name)
            if value is None and name != "start_s":
                continue
            if isinstance(value, bool) or not isinstance(value, Real):
                raise EscalaError(f"option {name}={value!r}: give a number of seconds")
            object.__setattr__(self, name, float(value))

    @property
    def ordered_by(self) -> Any:
        """The estimate by which the queue is ordered."""
        return self.estimate if self.order_estimate is None else self.order_estimate

    @property
    def moves(self) -> bool:
        """May a job outlive its estimate, so that plans move?"""
        return self.estimate not in (WALLTIME, RUNTIME)

    @property
    def forecasts(self) -> bool:
        """Is anything expected of a job besides the one length that all policies see?"""
        return self.moves or self.ordered_by != self.estimate

    @property
    def ways(self) -> tuple[int, int]:
        """How the lengths for plans and for the order become known: codes.BEFOREHAND, LAST2 or ASKED."""
        return way_of(self.estimate), way_of(self.ordered_by)

    def told(self) -> dict[str, Any]:
        """Name -> value, for a manifest: objects by their names."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        names = {name: name_of_estimate(getattr(self, name)) for name in ("estimate", "order_estimate")}
        return {**plain, **names, "corrections_s": list(self.corrections_s)}

    def columns(self, plan: Plan) -> set[str]:
        """Columns of the log that decide beside times and cores: those of estimates and scores, and users."""
        by_name = {one for one in (self.estimate, self.ordered_by) if isinstance(one, str) and one.startswith(COLUMN)}
        return by_name | set(plan.columns) | ({"user"} if plan.by_user or codes.LAST2 in self.ways else set())

    def under(self, plan: Plan) -> Options:
        """These options with the estimates of a scheduler's name."""
        given = {name: value for name in ("estimate", "order_estimate") if (value := getattr(plan, name)) is not None}
        return replace(self, **given) if given else self

    @property
    def margin_s(self) -> float:
        """Seconds added to walltimes in plans."""
        if self.plan_margin_s is not None:
            return self.plan_margin_s
        return BATSCHED_MARGIN_S if self.rules == "batsched" else 0.0


def with_options(options: Options, **changes: Any) -> Options:
    """A copy with some options changed; EscalaError for a name that is none."""
    unknown = [name for name in changes if name not in Options.__dataclass_fields__]
    if unknown:
        raise EscalaError(f"unknown option {unknown[0]!r}: use one of {', '.join(Options.__dataclass_fields__)}")
    return replace(options, **changes)
