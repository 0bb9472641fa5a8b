"""Jobs of the slotted studies: Bernoulli arrivals on a grid of steps, short and long jobs, one dominant resource. The
unit of time is 1 s (a step).

Three published settings are models of one family:

- `bernoulli`: one pool of 10 (Casagrande et al., Computer on the Beach 2019). The generator is the one seen in its
  author's own files, not the printed one: at most one job a step; length 80 % U{1..3}, else U{10..15}; demand a fair
  coin between U{1, 2} and U{5..10}. Load 1 is .542 jobs a step; a job in every step, 1.845, is the generator's ceiling
  (its "190 %").
- `cpu_memory`: two resources of 10, one dominant with U{3..5}, the other 1 (Liang et al., A2cScheduler, 2020; the text
  prints no demands).
- `multi_resource`: R resources of capacity C on machines with horizon H (Gergely, ICAART 2024): length U{1..H/2}, or
  with p_long U{ceil(2H/3)..H}; dominant demand U{C/2..C}, the others U{1..C/2}. `formula="plain"`: load = q E[D] E[L] /
  (C machines); `"printed"` puts q^2 in the place of q, as that paper prints and defends. A rate q above 1 means
  floor(q) sure arrivals a step and one draw for the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.workload.table import Workload

Ints = NDArray[np.int64]
Span = tuple[int, int]

DEMANDS: dict[str, tuple[Span, Span]] = {
    "author": ((1, 2), (5, 10)),
    "clip10": ((1, 5), (10, 10)),
    "six-to-ten": ((1, 5), (6, 10)),
}
"""Small and large demand of the one-pool study: the author's files; the printed [1,5] and [10,15] cut at the capacity;
and a middle reading."""


class SlotJobs(NamedTuple):
    """Jobs of several episodes, in order of episode and step."""

    offset: Ints  # [episodes + 1] jobs of episode e are rows offset[e] .. offset[e + 1]
    step: Ints  # [jobs] arrival, steps
    length: Ints  # [jobs] run time, steps; the requested time is the same
    demand: Ints  # [jobs, kinds] units of each resource


@dataclass(frozen=True)
class SlotModel:
    """A family of job lists. Spans are inclusive; `rate` is arrivals a step, `steps` the length of the arrival
    window."""

    name: str
    rate: float
    steps: int
    kinds: tuple[str, ...]  # the resources; the first is the cores
    capacity: int  # of each resource on each machine
    machines: int
    p_long: float
    short: Span  # steps
    long: Span
    p_dominant: float  # probability that a job has a dominant resource (then drawn evenly)
    dominant: Span
    other: Span
    single_node: bool

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise EscalaError(f"{self.name}: the rate is {self.rate} jobs a step; give a number >= 0")
        if self.steps < 1 or self.capacity < 1 or self.machines < 1 or not self.kinds:
            raise EscalaError(f"{self.name}: steps, capacity, machines and resources must be at least 1")
        if not 0 <= self.p_long <= 1:
            raise EscalaError(f"{self.name}: p_long is {self.p_long}; give a probability")
        for what, (low, high) in {
            "short": self.short,
            "long": self.long,
            "dominant": self.dominant,
            "other": self.other,
        }.items():
            if not 1 <= low <= high:
                raise EscalaError(f"{self.name}: the range {what} is {low}..{high}; give a larger horizon or capacity")

    @property
    def mean_work(self) -> float:
        """Mean length x mean demand (over the kinds) as a share of all capacity: the load of one arrival a step."""
        length = (1 - self.p_long) * sum(self.short) / 2 + self.p_long * sum(self.long) / 2
        share = self.p_dominant / len(self.kinds)
        demand = share * sum(self.dominant) / 2 + (1 - share) * sum(self.other) / 2
        return length * demand / (self.capacity * self.machines)

    @property
    def load(self) -> float:
        """Offered load in the arrival window: rate x `mean_work`."""
        return self.rate * self.mean_work

    def draw(self, rng: np.random.Generator, episodes: int = 1) -> SlotJobs:
        """The jobs of `episodes` independent arrival windows."""
        sure = math.floor(self.rate)
        counts = sure + (rng.random((episodes, self.steps)) < self.rate - sure)
        offset = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
        jobs = int(offset[-1])
        step = np.repeat(np.tile(np.arange(self.steps, dtype=np.int64), episodes), counts.ravel())
        is_long = rng.random(jobs) < self.p_long
        length = np.where(is_long, _uniform(rng, self.long, jobs), _uniform(rng, self.short, jobs))
        has = rng.random(jobs) < self.p_dominant
        which = np.where(has, rng.integers(0, len(self.kinds), jobs), -1)
        large, small = _uniform(rng, self.dominant, jobs), _uniform(rng, self.other, (jobs, len(self.kinds)))
        demand = np.where(which[:, None] == np.arange(len(self.kinds)), large[:, None], small)
        return SlotJobs(offset, step, length, demand)

    def workload(self, seed: int | np.random.Generator = 0) -> Workload:
        """One arrival window as a workload; `max_cores` is the capacity of all machines."""
        jobs = self.draw(np.random.default_rng(seed))
        columns: dict[str, Any] = {
            "submit_s": jobs.step.astype(np.float64),
            "runtime_s": jobs.length.astype(np.float64),
            "cores": jobs.demand[:, 0],
            "single_node": np.full(len(jobs.step), self.single_node),
        }
        columns |= {f"demand_{kind}": jobs.demand[:, k] for k, kind in enumerate(self.kinds) if k > 0}
        label = f", seed {seed}" if isinstance(seed, int) else ""
        source = f"generated: {self.name}, rate {self.rate:g}, load {self.load:.4g}, {self.steps} steps{label}"
        return Workload.from_jobs(columns, name=self.name, max_cores=self.capacity * self.machines, source=source)


def _uniform(rng: np.random.Generator, span: Span, size: int | tuple[int, int]) -> Ints:
    return rng.integers(span[0], span[1], size, endpoint=True, dtype=np.int64)


def bernoulli_model(
    load: float = 1.0, steps: int = 100, demand: str = "author", rate: float | None = None
) -> SlotModel:
    """One pool of 10 (see the module). `load` is cut at the ceiling of one job a step; `rate`, jobs a step, replaces it
    if given."""
    if not isinstance(demand, str) or demand not in DEMANDS:
        raise EscalaError(f"unknown demand {demand!r}; known: {', '.join(DEMANDS)}")
    small, large = DEMANDS[demand]
    model = SlotModel(
        "bernoulli", 1.0, steps, ("cores",), 10, 1, 0.2, (1, 3), (10, 15), 0.5, large, small, single_node=False
    )
    return _at(model, min(1.0, load / model.mean_work) if rate is None else min(1.0, rate))


def cpu_memory_model(rate: float = 0.9, steps: int = 50) -> SlotModel:
    """Two resources of 10 (see the module); `rate` is jobs a step."""
    return SlotModel(
        "cpu-memory",
        rate,
        steps,
        ("cores", "memory"),
        10,
        1,
        0.2,
        (1, 3),
        (10, 15),
        1.0,
        (3, 5),
        (1, 1),
        single_node=True,
    )


def multi_resource_model(
    load: float = 0.5,
    formula: str = "plain",
    machines: int = 3,
    resources: int = 2,
    capacity: int = 10,
    horizon: int = 20,
    p_long: float = 0.2,
    steps: int = 200,
) -> SlotModel:
    """Several machines (see the module). The further resources are called memory, resource3, resource4, ..."""
    if formula not in ("plain", "printed"):
        raise EscalaError(f"unknown load formula {formula!r}; known: plain, printed")
    if load < 0:
        raise EscalaError(f"the load is {load}; give a number >= 0")
    kinds = ("cores", "memory", *(f"resource{k}" for k in range(3, resources + 1)))[:resources]
    short, long = (1, horizon // 2), (math.ceil(2 * horizon / 3), horizon)
    dominant, other = (max(1, capacity // 2), capacity), (1, max(1, capacity // 2))
    model = SlotModel(
        "multi-resource",
        1.0,
        steps,
        kinds,
        capacity,
        machines,
        p_long,
        short,
        long,
        1.0,
        dominant,
        other,
        single_node=True,
    )
    q = load / model.mean_work
    return _at(model, math.sqrt(q) if formula == "printed" else q)


def _at(model: SlotModel, rate: float) -> SlotModel:
    return SlotModel(**(vars(model) | {"rate": rate}))
