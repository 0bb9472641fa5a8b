"""Options of the game of several agents, and the job lists that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.checks import above_zero, number
from escala.envs.core.options import choice, option, weight, whole
from escala.envs.core.records import Records
from escala.envs.slots.lists import JobLists, draw_lists, join
from escala.envs.slots.observation import CLOCK, GLOBAL, TEAM_SLOT
from escala.envs.slots.options import MOST_LISTS, MOST_SLOTS, SlottedOptions, check_arrivals
from escala.envs.slots.state import PAY_WEIGHTS
from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload
from escala.workload.generate_slots import SlotModel, multi_resource_model

LOADS = (0.001, 100.0)  # below, a list has no job for ever; above, more than memory holds
MOST_AGENTS = 1000
POINTS = (0, 1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64)
"""Rows of a machine's chart that the compact observation shows (those below the horizon): what runs only ever ends, so
few say all."""
Capacity = int | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class MultiOptions(SlottedOptions):
    """Options; see `escala.envs.multi.slots`."""

    env: ClassVar[str] = "escala.envs.multi"

    agents: int = whole(3, 1, MOST_AGENTS, about="K, schedulers that share the queue")
    machines: int = whole(1, 1, MOST_AGENTS, about="N, of each agent")
    resources: int = whole(2, 1, about="R, kinds of each machine")
    capacity: Capacity = option(10, "whole numbers >= 1", "of all machines, of each, or of each and kind")
    horizon: int = whole(20, 2, MOST_SLOTS, about="rows of the charts, units of time")
    slots: int = whole(5, 1, MOST_SLOTS, about="M, the waiting jobs that can be chosen")
    backlog: int = whole(60, 1, about="waiting jobs without a slot that are shown")
    overflow: str = choice("keep", "end", about="with more than that: go on, or end the episode")
    information: str = choice("global", "local", about="an agent sees all machines, or its own")
    rewards: str = choice("global", "local", about="it is paid for all running jobs, or its own")
    alpha: float = weight(-1.0, about="reward a unit of 1 / length of the jobs in the slots")
    beta: float = weight(-1.0, about="of those in the backlog")
    gamma: float = weight(-1.0, about="of those that run")
    turns: str = choice("single", "until-void", about="one choice a turn, or choices until the no-op")
    skip: str = choice(
        "none", "empty", "forced", about="turns that pass unasked: none, with empty slots, or where nothing fits"
    )
    limit: int = whole(0, about="units after which an episode is cut; 0: never")
    arrivals_end: int = whole(0, about="the unit after which no job comes, where that is known; 0: it is not")
    observation: str = choice("compact", "image", about="numbers, or the charts as a picture")
    load: float | Sequence[float] = option(0.5, "numbers above 0", "of the drawn lists; several: each its share")
    formula: str = choice("plain", "printed", about="how arrivals follow from the load; printed: the paper's q squared")
    p_long: float = option(0.2, "a number from 0 to 1", "share of long jobs")
    steps: int = whole(200, 1, about="units with arrivals")
    lists: int = whole(4096, 1, MOST_LISTS, about="job lists that are drawn")
    lists_seed: int = whole(0, about="their seed")

    @property
    def owned(self) -> int:
        """Machines of all agents."""
        return self.agents * self.machines

    def capacities(self) -> NDArray[np.int64]:
        """Capacity of each machine and kind, [machines of all agents, resources]: from one number, one for each
        machine, or one for each machine and kind."""
        shape = (self.owned, self.resources)
        try:
            given = np.asarray(self.capacity)
            if given.dtype.kind not in "iu":
                raise TypeError
            full = np.broadcast_to((given if given.ndim != 1 else given[:, None]).astype(np.int64), shape)
        except (TypeError, ValueError, OverflowError):
            raise EscalaError(
                f"option capacity={self.capacity!r}: give one whole number, {self.owned} (one a machine), "
                f"or {self.owned} x {self.resources}"
            ) from None
        if full.min() < 1 or full[:, 0].max() < 2:
            raise EscalaError(
                f"option capacity={self.capacity!r}: give whole numbers >= 1, and at least 2 of the first resource"
            )
        return np.ascontiguousarray(full)

    def models(self) -> list[SlotModel]:
        """The models whose lists are drawn: one for each load. Demands are drawn for the largest capacity of which
        every job has a machine; a load is meant of all machines together, by the scarcest resource."""
        loads = above_zero("load", self.load, "0.5")
        if not all(LOADS[0] <= load <= LOADS[1] for load in loads):
            raise EscalaError(
                f"option load={self.load!r}: give loads from {LOADS[0]} to {LOADS[1]:g}, for instance 0.5"
            )
        if not number(self.p_long) or not 0 <= self.p_long <= 1:
            raise EscalaError(f"option p_long={self.p_long!r}: give a share from 0 to 1")
        capacity = self.capacities()
        largest = _drawn_for(capacity)
        share = float(capacity.sum(axis=0).min()) / (self.owned * largest)  # of machines that were all as large
        return [
            multi_resource_model(
                load * share, self.formula, self.owned, self.resources, largest, self.horizon, self.p_long, self.steps
            )
            for load in loads
        ]

    def platform(self, kinds: Sequence[str]) -> Platform:
        """The machines as nodes."""
        capacity = self.capacities()
        plain = Platform.uniform(
            self.owned, int(capacity[0, 0]), power=None, name=f"{self.agents} agents x {self.machines} machines"
        )
        return replace(
            plain, cores=capacity[:, 0], resources={kind: capacity[:, k + 1] for k, kind in enumerate(kinds[1:])}
        )

    def job_lists(self, workload: Any = None) -> JobLists:
        """The lists that episodes are drawn from: drawn from the model, or given (JobLists, a Workload or several)."""
        if isinstance(workload, JobLists):
            if len(workload.kinds) != self.resources:
                have = f"{len(workload.kinds)} ({', '.join(workload.kinds)})"
                raise EscalaError(f"option resources={self.resources}: the job lists have {have}")
            made = replace(workload, platform=self.platform(workload.kinds))
        elif workload is not None:
            made = self._given(workload)
        else:
            models = self.models()
            share = -(-self.lists // len(models))
            drawn = [draw_lists(replace(model, machines=1), share, self.lists_seed) for model in models]
            made = replace(join(drawn), platform=self.platform(models[0].kinds))
        self._check(made)
        return made

    def _given(self, workload: Any) -> JobLists:
        from escala.envs.slots.lists import given_lists

        many = (
            [workload] if isinstance(workload, Workload) else list(workload) if isinstance(workload, Sequence) else []
        )
        if not many or not all(isinstance(w, Workload) for w in many):
            raise EscalaError(f"workload {workload!r:.60}: give a Workload, or a list of at least one, each a Workload")
        further = sorted({name for w in many for name in w.jobs.columns if name.startswith("demand_")})
        kinds = ("cores", *(name.removeprefix("demand_") for name in further))
        if len(kinds) != self.resources:
            raise EscalaError(f"option resources={self.resources}: the workload has {len(kinds)} ({', '.join(kinds)})")
        for w in many:
            if not w.jobs["single_node"].all():
                raise EscalaError(
                    f"workload {w.name!r}: the agents' machines take whole jobs: set single_node for all of them"
                )
        most = self.capacities().max(axis=0)
        machine = Platform.uniform(
            1, int(most[0]), power=None, resources=dict(zip(kinds[1:], (int(c) for c in most[1:]), strict=True))
        )
        return replace(given_lists(many, machine, 1.0, "walltime"), platform=self.platform(kinds))

    def _check(self, lists: JobLists) -> None:
        check_arrivals(self.arrivals_end, lists)
        if not lists.job["single"].all():
            raise EscalaError(
                "the job lists hold jobs that spread over machines; each agent's machine takes whole jobs"
            )
        need = np.column_stack([lists.job["cores"], lists.demand]).astype(np.int64)
        fits = np.any(np.all(need[:, None, :] <= self.capacities()[None], axis=2), axis=1)
        if not fits.all():
            row = int(np.flatnonzero(~fits)[0])
            raise EscalaError(
                f"job {row} of the lists asks for {need[row].tolist()}, which no machine has: give a machine that "
                "large, or a workload"
            )
        if self.observation == "image" and lists.longest > self.horizon:
            raise EscalaError(
                f"option horizon={self.horizon}: the longest job takes {lists.longest} rows and cannot be drawn: give "
                "more"
            )

    def points(self) -> NDArray[np.int64]:
        """Rows of the charts that the compact observation shows."""
        return np.array([p for p in POINTS if p < self.horizon], np.int64)

    def games(self, n: int, capacity: NDArray[np.int64], unit_us: int, longest: int, begin: int = 0) -> Records:
        """Settings and memory of n games, for environment and policy alike. capacity [machines of all agents,
        resources]; longest: units of the longest job; begin: unit of the first arrival."""
        given = {name: getattr(self, name) for name in ("agents", "machines", "backlog", "alpha", "beta", "gamma")}
        return self.records(
            n,
            capacity,
            longest,
            self.points(),
            0,
            **given,
            unit_us=unit_us,
            pool=0,
            named=0,
            reserve=0,
            first=0,
            until_noop=self.turns == "until-void",
            shows=0,
            all_seen=self.information == "global",
            pay=PAY_WEIGHTS,
            all_paid=self.rewards == "global",
            overflow=self.overflow == "end",
            arrivals_begin=begin,
            columns=self.columns(),
            width=self.width(),
        )

    @property
    def seen(self) -> int:
        """Machines that an agent sees."""
        return self.owned if self.information == "global" else self.machines

    def columns(self) -> int:
        """Columns of the backlog in the image."""
        return max(1, -(-self.backlog // self.horizon))

    def width(self) -> int:
        """Columns of the image."""
        return int(self.capacities().max(axis=0).sum()) * (self.seen + self.slots) + self.columns()

    def numbers(self) -> int:
        """Numbers in the compact observation."""
        slot = TEAM_SLOT + self.resources + self.machines
        clock = CLOCK if self.arrivals_end > 0 else 0
        return self.slots * slot + self.seen * self.resources * len(self.points()) + GLOBAL + self.agents + clock


def _drawn_for(capacity: NDArray[np.int64]) -> int:
    """The largest capacity such that whatever is drawn for it (all of one kind at most, half of the others) fits one of
    the machines."""
    for largest in range(int(capacity.max()), 1, -1):
        half = capacity >= max(1, largest // 2)
        if all(np.any((capacity[:, k] >= largest) & half.all(axis=1)) for k in range(capacity.shape[1])):
            return largest
    return 1


options_of = MultiOptions.of
