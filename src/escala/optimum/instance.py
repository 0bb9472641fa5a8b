"""What is to be bounded: rigid jobs, capacities and one objective, all in whole ticks.

Every objective but the makespan is a mean over jobs of ``base + max(0, start - ready) / divisor`` (base 1 for
slowdowns, 0 for the wait):

| objective | ready | divisor |
|---|---|---|
| slowdown | release | length |
| bounded-slowdown | release + max(0, pi - length) | max(length, pi) |
| wait | release | 1 |

The makespan is max(start + length) - min(release). The definitions are those of `escala.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from escala.errors import EscalaError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

OBJECTIVES = ("slowdown", "bounded-slowdown", "wait", "makespan")
MAX_TICK = 1 << 40  # times below this keep every product of the proofs inside 64 bits; `coarse` rounds what is finer
FINEST = 1 << 60  # sums of times stay below this


def whole_ticks(values: Any, name: str, dims: int) -> Ints:
    """`values` as a contiguous int64 array of `dims` dimensions; fractions are refused, not rounded."""
    given = np.asarray(values)
    if given.ndim != dims:
        raise EscalaError(f"instance: {name} has {given.ndim} dimensions, not {dims}: give one row per job")
    if given.size and not np.issubdtype(given.dtype, np.number):
        raise EscalaError(f"instance: {name} holds {given.dtype}, not numbers: give whole ticks")
    if given.size and not (np.all(np.isfinite(given)) and np.all(np.floor(given) == given)):
        raise EscalaError(f"instance: {name} is not whole: choose a tick that divides every time")
    return np.ascontiguousarray(given, dtype=np.int64)


@dataclass(frozen=True)
class Instance:
    """n jobs on a pool of capacities; known in full before the first decision (clairvoyant).

    release: (n,) ticks >= 0. length: (n,) ticks >= 1. demand: (n, kinds) units >= 0 (one column may be given as (n,)).
    capacity: (kinds,) units. objective: one of `OBJECTIVES`. pi: ticks, the threshold of the bounded slowdown. Bad rows
    raise EscalaError naming the row.
    """

    release: Ints
    length: Ints
    demand: Ints
    capacity: Ints
    objective: str = "slowdown"
    pi: int = 10
    ready: Ints = field(init=False, repr=False)  # (n,) tick from which delay costs
    divisor: Ints = field(init=False, repr=False)  # (n,) ticks of delay that cost 1

    def __post_init__(self) -> None:
        demand = np.asarray(self.demand)
        release, length = whole_ticks(self.release, "release", 1), whole_ticks(self.length, "length", 1)
        demand = whole_ticks(demand[:, None] if demand.ndim == 1 else demand, "demand", 2)
        capacity = whole_ticks(np.atleast_1d(self.capacity), "capacity", 1)
        _check(release, length, demand, capacity, self.objective, self.pi)
        grace = np.maximum(0, self.pi - length) if self.objective == "bounded-slowdown" else np.zeros_like(length)
        divisor = {"slowdown": length, "bounded-slowdown": np.maximum(length, self.pi)}.get(
            self.objective, np.ones_like(length)
        )
        for name, value in (("release", release), ("length", length), ("demand", demand), ("capacity", capacity)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "ready", release + grace)
        object.__setattr__(self, "divisor", np.ascontiguousarray(divisor))

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return int(self.release.size)

    @property
    def summed(self) -> bool:
        """Whether the objective is a mean over jobs (all but the makespan)."""
        return self.objective != "makespan"

    @property
    def base(self) -> int:
        """Objective of a job that starts at its release: 1 for slowdowns, else 0."""
        return int(self.objective.endswith("slowdown"))

    @property
    def horizon(self) -> int:
        """A tick by which some optimal schedule has ended: max release + sum of lengths (never a heuristic's
        makespan)."""
        return int(self.release.max()) + int(self.length.sum())

    def value(self, starts: Ints) -> float:
        """Objective of a schedule; its feasibility is `check_schedule`'s business."""
        if not self.summed:
            return float(int((starts + self.length).max()) - int(self.release.min()))
        late = np.maximum(0, starts - self.ready)
        return self.base + fsum((late / self.divisor).tolist()) / self.jobs


def _check(release: Ints, length: Ints, demand: Ints, capacity: Ints, objective: str, pi: int) -> None:
    n = release.size
    if objective not in OBJECTIVES:
        raise EscalaError(f"objective '{objective}' is unknown: choose one of {', '.join(OBJECTIVES)}")
    if n == 0:
        raise EscalaError("instance: no jobs: nothing to bound")
    if length.size != n or demand.shape[0] != n:
        raise EscalaError(
            f"instance: {n} releases, {length.size} lengths, {demand.shape[0]} demands: give one of each per job"
        )
    if demand.shape[1] != capacity.size or capacity.size == 0:
        raise EscalaError(
            f"instance: demands of {demand.shape[1]} resource kinds, capacities of {capacity.size}: give the same kinds"
        )
    if isinstance(pi, bool) or not isinstance(pi, Real) or not 1 <= pi < FINEST or pi != int(pi):
        raise EscalaError(f"instance: pi is {pi!r}: give a whole number of ticks >= 1")
    if np.any(capacity < 1):
        raise EscalaError("instance: a capacity is below 1: leave that resource kind out")
    for bad, what in (
        (release < 0, "release below 0: shift the times"),
        (length < 1, "length below 1 tick: drop the job or choose a finer tick"),
        (np.any(demand < 0, axis=1), "negative demand"),
        (np.any(demand > capacity, axis=1), "demand above the capacity, so it can never run: drop the job"),
    ):
        if np.any(bad):
            raise EscalaError(f"instance: job in row {int(np.argmax(bad))}: {what}")
    if int(release.max()) + int(length.sum(dtype=object)) >= FINEST:
        raise EscalaError(
            "instance: the times add up to more than 2^60 ticks: round them (a log's to whole seconds, say), or take "
            "a shorter window"
        )
    if int(capacity.max()) >= 1 << 31:
        raise EscalaError("instance: a capacity is 2^31 or more: count it in larger units")


def check_schedule(instance: Instance, starts: Ints) -> None:
    """Independent check in integers, in plain Python: raises EscalaError at the first breach of release or capacity."""
    if len(starts) != instance.jobs:
        raise EscalaError(f"schedule: {len(starts)} starts for {instance.jobs} jobs")
    changes: dict[int, list[int]] = {}
    for job, start in enumerate(int(s) for s in starts):
        if start < int(instance.release[job]):
            raise EscalaError(
                f"schedule: job in row {job} starts at {start}, before its release {int(instance.release[job])}"
            )
        for when, sign in ((start, 1), (start + int(instance.length[job]), -1)):
            row = changes.setdefault(when, [0] * instance.capacity.size)
            for kind, units in enumerate(instance.demand[job]):
                row[kind] += sign * int(units)
    used = [0] * instance.capacity.size
    for when in sorted(changes):
        used = [u + c for u, c in zip(used, changes[when])]
        for kind, units in enumerate(used):
            if units > int(instance.capacity[kind]):
                raise EscalaError(
                    f"schedule: {units} units of kind {kind} in use at {when}, capacity {int(instance.capacity[kind])}"
                )
