"""Options of `escala/Slots-v0`, and the job lists that they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.checks import above_zero, number, whole_number
from escala.envs.core.options import EnvOptions, choice, option, seconds, whole
from escala.envs.core.records import Records, settings_of
from escala.envs.slots.lists import MOST_COLUMNS, JobLists, draw_lists, given_lists, join
from escala.envs.slots.observation import CLOCK, GLOBAL, PILE, SLOT
from escala.envs.slots.state import (
    BOOKED,
    GAME,
    HOLD_PILE,
    MEMORY,
    PAY_MEAN,
    PAY_TOTAL,
    SETTINGS,
    SHOWS_ENDS,
    SHOWS_OLDEST,
    SHOWS_SHORTEST,
    SKIP_EMPTY,
    SKIP_FORCED,
    SKIP_NOTHING,
)
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import microseconds
from escala.workload.generate_slots import SlotModel, bernoulli_model, cpu_memory_model

SKIPS = {"none": SKIP_NOTHING, "empty": SKIP_EMPTY, "forced": SKIP_FORCED}
SHOWS = {"oldest": SHOWS_OLDEST, "shortest": SHOWS_SHORTEST, "ends": SHOWS_ENDS}
REWARDS = {
    "slowdown": (
        PAY_TOTAL,
        "for each unit that passes, minus the sum of 1 / length over the jobs in the system: the rewards of an "
        "episode add up to minus the sum of the jobs' slowdowns",
    ),
    "mean": (
        PAY_MEAN,
        "minus the change of that sum over the jobs submitted so far: they add up to minus the mean slowdown (R1's "
        "own)",
    ),
    "relative": (
        PAY_TOTAL,
        "as slowdown, divided by what greedy SJF loses on the same list (its summed slowdown above the least "
        "possible), so that lists of all loads weigh alike",
    ),
}
"""Option `reward` -> what is paid by the compiled step, and in words."""
MODELS = ("bernoulli", "cpu-memory")
MOST_SLOTS, MOST_LISTS = 10_000, 200_000
DRAWN = ("model", "load", "rate", "window", "demand", "lists", "lists_seed")
RESCUE = 50
"""Units of silence on an idle machine after which the no-op is taken from an agent that is asked for its greedy
actions: these alone could idle for ever."""
BACKLOG = 60  # waiting jobs without a slot that the compact observation of one machine shows in full
NEAR = 1.05  # of a model's ceiling: loads are given in rounded per cent, and R1's 190 % is 184.5 %


class SlottedOptions(EnvOptions):
    """What the options of all slotted worlds share: how their records are laid out."""

    slots: int
    horizon: int
    skip: str
    observation: str

    def ring(self, longest: int) -> int:
        """Rows that are remembered: a power of two above the horizon and the longest job."""
        return 1 << int(max(self.horizon, longest, 15) + 1).bit_length()

    def records(
        self, n: int, capacity: NDArray[np.int64], longest: int, points: NDArray[np.int64], jobs: int, **given: Any
    ) -> Records:
        """Settings and memory of n games. capacity [machines, kinds]; longest: units of the longest job; points: rows
        of the charts that are shown; jobs: as many as may wait behind the slots; given: the settings that are not
        options of the same name."""
        (machines, kinds), rows, slots = capacity.shape, self.ring(longest), self.slots
        pool, agents = bool(given["pool"]), given["agents"]
        own = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        # an option that a team has not: 0
        settings = {name: own.get(name, 0) for name in SETTINGS.names or () if name in ALONE}
        settings |= {
            "kinds": kinds,
            "of_kinds": kinds,
            "ring": rows - 1,
            "skip": SKIPS[self.skip],
            "image": self.observation == "image",
            "discount": 1.0,
        }
        charts, wide = kinds if pool else 0, int(capacity.max()) if settings["image"] else 0
        return Records(
            GAME,
            n,
            settings=settings_of(SETTINGS, settings | dict.fromkeys(HOLD, 0) | given),
            capacity=capacity,
            scale=capacity.max(axis=0).astype(np.float64),
            points=points,
            memory=np.zeros(n, MEMORY),
            slots=np.full((n, slots), codes.NONE, np.int64),
            starts=np.zeros((n, slots), np.int64),
            used=np.zeros((n, machines * kinds, rows), np.int64),
            busy=np.zeros((n, charts, rows), np.int64),
            chart=np.zeros((n, charts, rows, wide), np.uint8),
            ends=np.zeros((n, agents, rows)),
            running=np.zeros((n, agents)),
            booked=np.zeros((n, int(capacity[0, 0]) * self.horizon if given["reserve"] else 1), BOOKED),
            behind=np.zeros((n, jobs), np.int64),
            pile=np.array(HOLD_PILE),
        )


@dataclass(frozen=True)
class SlotOptions(SlottedOptions):
    """Options of the environment; see `escala.envs.slots.Slots`."""

    env: ClassVar[str] = "escala/Slots-v0"

    slots: int = whole(10, 1, MOST_SLOTS, about="M, the waiting jobs that can be chosen")
    horizon: int = whole(20, 1, MOST_SLOTS, about="rows of the chart, units of time")
    placement: str = choice("start-now", "reserve", about="what becomes of a choice that does not fit now")
    observation: str = choice("compact", "image", about="numbers, or the chart as a picture")
    dtype: str = choice("uint8", "float32", about="observation=image: 0..255, or 0..1")
    reward: str = choice(*REWARDS, about="what is paid, see Rewards")
    skip: str = choice(
        "empty", "none", "forced", about="units that pass unasked: with empty slots, none, or where no job has a place"
    )
    limit: int = whole(0, about="units after which an episode is cut; 0: never")
    queue: str = choice("oldest", "shortest", "ends", about="which waiting jobs the slots show; see Observation space")
    backlog: int = whole(3, 1, about="columns of the backlog in the picture")
    arrivals_end: int = whole(0, about="the unit after which no job comes, where that is known; 0: it is not")
    model: str | SlotModel = option(
        "bernoulli", "bernoulli (R1), cpu-memory (R2) or a SlotModel", "what job lists are drawn by"
    )
    load: float | Sequence[float] = option(
        1.0, "numbers above 0", "model=bernoulli: load of the drawn lists; several: each its share"
    )
    rate: float | Sequence[float] = option(0.9, "numbers above 0", "model=cpu-memory: the same")
    window: int | Sequence[int] | None = option(
        None, "whole numbers >= 1", "steps with arrivals; None: 100, cpu-memory 50"
    )
    demand: str = option("author", "see `escala.workload.generate_slots`", "model=bernoulli: how wide jobs are")
    lists: int = whole(4096, 1, MOST_LISTS, about="job lists that are drawn")
    lists_seed: int = whole(0, about="their seed")
    unit_s: float = seconds(1.0, about="a unit of time")
    estimate: str = choice(
        "walltime", "runtime", about="a job's length; runtime where the two differ: the slotted world knows lengths"
    )

    def job_lists(self, workload: Any = None, platform: Any = None) -> JobLists:
        """The lists that episodes are drawn from; EscalaError where they do not suit the slotted world."""
        if workload is not None:
            self._refuse(DRAWN, "job lists are drawn with it; leave it out beside a workload")
        if isinstance(workload, JobLists):
            made = workload
        elif workload is not None:
            made = given_lists(workload, platform, self.unit_s, self.estimate)
        else:
            self._refuse(
                ("unit_s", "estimate"), "it is for a workload of yours; drawn lists have units of 1 s and known lengths"
            )
            if platform is not None:
                raise EscalaError("platform: the machine follows from the model; give platform only beside workload")
            models = self.models()
            share = -(-self.lists // len(models))
            made = join([draw_lists(model, share, self.lists_seed) for model in models])
        self.check(made)
        return made

    def _refuse(self, names: Sequence[str], why: str) -> None:
        """EscalaError for the first of these options that is not at its default."""
        for name in names:
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                raise EscalaError(f"option {name}={getattr(self, name)!r}: {why}")

    def models(self) -> list[SlotModel]:
        """The models whose lists are drawn: one for each load (or rate) and window."""
        if isinstance(self.model, SlotModel):
            self._refuse(("load", "rate", "window", "demand"), "a SlotModel has its own; change the model")
            return [self.model]
        if self.model not in MODELS:
            raise EscalaError(
                f"option model={self.model!r} is not known: use one of {', '.join(MODELS)}, or a SlotModel"
            )
        given = {"bernoulli": 100, "cpu-memory": 50}[self.model] if self.window is None else self.window
        if not isinstance(given, int) and not (
            isinstance(given, Sequence) and not isinstance(given, str) and len(given)
        ):
            raise EscalaError(f"option window={given!r}: give a whole number >= 1, or several")
        windows = [whole_number("window", steps, 1) for steps in ([given] if isinstance(given, int) else given)]
        if self.model == "bernoulli":
            self._refuse(("rate",), "it is of the model cpu-memory; the model bernoulli has a load")
            loads = above_zero("load", self.load, "1.0")
            ceiling = bernoulli_model(rate=1.0, demand=self.demand).load
            if max(loads) > NEAR * ceiling:
                raise EscalaError(
                    f"option load={self.load!r}: a job in every step is a load of {ceiling:.3f}; give at most that"
                )
            return [bernoulli_model(load, steps, self.demand) for load in loads for steps in windows]
        self._refuse(("load", "demand"), "it is of the model bernoulli; the model cpu-memory has a rate")
        return [cpu_memory_model(rate, steps) for rate in above_zero("rate", self.rate, "0.9") for steps in windows]

    def check(self, lists: JobLists) -> None:
        """Do these lists suit the options?"""
        check_arrivals(self.arrivals_end, lists)
        if lists.capacity.max() > MOST_COLUMNS:
            raise EscalaError(
                f"platform {lists.platform.name!r}: {lists.capacity.max()} units of a resource; the slots show at "
                f"most {MOST_COLUMNS}"
            )
        if lists.longest > self.horizon:
            raise EscalaError(
                f"option horizon={self.horizon}: the longest job takes {lists.longest} rows, the chart shows fewer: "
                "give a larger one"
            )

    def games(
        self,
        n: int,
        capacity: NDArray[np.int64],
        unit_us: int,
        longest: int,
        named: bool,
        begin: int = 0,
        jobs: int = 0,
    ) -> Records:
        """Settings and memory of n games on one machine, for environment and policy alike.

        capacity [kinds]; longest: units of the longest job; named: columns of the first kind are nodes; begin: unit of
        the first arrival;
        jobs: as many as a list may have.
        """
        return self.records(
            n,
            capacity[None],
            longest,
            np.arange(self.horizon),
            jobs if self.queue != "oldest" else 0,
            unit_us=unit_us,
            agents=1,
            machines=1,
            pool=1,
            named=named,
            reserve=self.placement == "reserve",
            first=1,
            until_noop=1,
            shows=SHOWS[self.queue],
            all_seen=1,
            pay=REWARDS[self.reward][0],
            all_paid=1,
            overflow=0,
            arrivals_begin=begin,
            backlog=BACKLOG,
            columns=self.backlog,
            width=self.width(capacity),
            alpha=0.0,
            beta=0.0,
            gamma=0.0,
        )

    def width(self, capacity: NDArray[np.int64]) -> int:
        """Columns of the image."""
        return int(capacity.sum()) * (1 + self.slots) + self.backlog + 1

    def numbers(self, kinds: int) -> int:
        """Numbers in the compact observation, see `slots.observation`."""
        known = (CLOCK if self.arrivals_end > 0 else 0) + (PILE if self.queue == "shortest" else 0)
        return self.slots * (SLOT + kinds) + kinds * self.horizon + GLOBAL + known

    def slot_numbers(self, shape: Sequence[int]) -> int:
        """Numbers of each slot in a compact observation of this shape; EscalaError where it is none."""
        none = self.numbers(0)
        kinds, rest = divmod(shape[0] - none, self.numbers(1) - none)
        if self.observation == "image" or len(shape) != 1 or rest != 0 or kinds < 1:
            seen = " x ".join(map(str, shape))
            raise EscalaError(
                f"slot-scorer reads the compact observation of {self.slots} slots and {self.horizon} rows, not {seen} "
                "numbers"
            )
        return SLOT + kinds


ALONE = tuple(entry.name for entry in fields(SlotOptions))
"""Options of one agent alone; a team has some of them."""
SHAPING = tuple(name for name in ALONE if name not in (*DRAWN, "reward", "limit", "estimate"))
"""Options of the environment that shape what is seen and done: all but those of its lists, its rewards and its end."""


def shaping(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of them that shape what is seen and done."""
    return {name: value for name, value in options.items() if name in SHAPING}


HOLD = ("long", "quiet", "share")


def set_hold(games: Records, hold: Sequence[int]) -> None:
    """Give games (long, quiet, share) of the rule hold-back."""
    for name, value in zip(HOLD, hold, strict=True):
        games.settings[name] = value


def check_hold(hold: Any) -> None:
    """Is it (long, quiet, share) of the rule hold-back? EscalaError else."""
    if (
        not isinstance(hold, Sequence)
        or isinstance(hold, str)
        or len(hold) != 3
        or not all(number(v) and v == int(v) >= 0 for v in hold)
    ):
        raise EscalaError(
            f"hold={hold!r}: give (long, quiet, share) of the rule hold-back, whole numbers >= 0, for instance (3, 6, "
            "0)"
        )


def check_arrivals(arrivals_end: int, lists: JobLists) -> None:
    """EscalaError where a job comes at or after the unit at which arrivals are said to end."""
    last = int(lists.job["submit"].max()) // int(microseconds(lists.unit_s))
    if 0 < arrivals_end <= last:
        raise EscalaError(
            f"option arrivals_end={arrivals_end}: a job comes at unit {last}: give more than that, or leave it out"
        )


options_of = SlotOptions.of
