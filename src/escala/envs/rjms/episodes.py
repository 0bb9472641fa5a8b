"""Days of a log as episodes: which day each simulation of a batch plays, and how it is brought to the day's start.

The jobs of all days lie once in memory, one day behind the other; a simulation that begins a day is pointed at them. So
a new episode costs no copy of jobs, and
any number of simulations share the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.admit import refuse_speeds
from escala.envs.core.batch import Rows, draw
from escala.envs.core.checks import environments
from escala.envs.core.records import restore
from escala.envs.rjms.warm import Start
from escala.errors import EscalaError
from escala.kernel import calls, codes
from escala.kernel.resume import resume
from escala.kernel.state import World
from escala.kernel.world import WORLD, table_of
from escala.options import Options, Plan, microseconds
from escala.parts import beside_cores
from escala.platform import Platform, read_platform
from escala.policies.run import needs_switches
from escala.simulation import Simulation
from escala.workload import Workload, generate, read_workload

STATIC = ("job", "order", "demand", "profile")  # arrays that no run changes
GUARD_INSTANTS = 1 << 40
MOST_SHOWN = 10_000  # of anything in an observation
ADVICE = "use the same days, platform and num_envs"  # where a saved state does not fit


BUILT_IN = {"cluster": "orion", "days": 14, "seed": 0}
"""The log that is played where none is given: two weeks of the generator `grid5000`, on the cluster that it is drawn
for."""


def given_or_built_in(workload: Any, platform: Any) -> tuple[Any, Any]:
    """The workload and the platform, or the built-in ones where neither is given.

    Raises:
        EscalaError: one of the two alone.
    """
    if workload is None and platform is None:
        return generate.grid5000(**BUILT_IN), BUILT_IN["cluster"]
    for name, other, value in (("workload", "platform", workload), ("platform", "workload", platform)):
        if value is None:
            raise EscalaError(f"{other} is given and {name} is not: give both, or neither for the built-in log")
    return workload, platform


def days_of(workload: Any, day_s: float, min_jobs: int) -> list[Workload]:
    """The days to draw from: a log (or its path) is split at midnight UTC and days with fewer than `min_jobs` jobs are
    left out; a list of workloads is taken as it is."""
    if isinstance(workload, Sequence) and not isinstance(workload, str | bytes):
        days = list(workload)
    else:
        log = workload if isinstance(workload, Workload) else read_workload(workload)
        days = [day for day in log.split_days(day_s=day_s, origin_s=-(log.origin_s % day_s)) if len(day) >= min_jobs]
        if not days:
            raise EscalaError(
                f"workload {log.name!r} has no day with at least {min_jobs} jobs: give a longer log, or min_jobs=1"
            )
    if not days or not all(isinstance(day, Workload) for day in days):
        raise EscalaError("workload: give a Workload, a path, or a list of Workloads (days), at least one")
    return days


def whole_log(workload: Any) -> Workload:
    """The log of episodes that begin as it has the machine; EscalaError for a list of days."""
    if isinstance(workload, Sequence) and not isinstance(workload, str | bytes):
        raise EscalaError(
            "option warm: the machine's state is known from a replay of the whole log: give the log, or its path, not "
            "days"
        )
    return workload if isinstance(workload, Workload) else read_workload(workload)


class Episodes:
    """N simulations, each playing one day at a time. `world`, `table`: the kernel's arrays of the N simulations; `day`
    int64 [N]: what they play. timers: so many of them may a job have at once. starts: of each day how it begins;
    without, the machine is empty."""

    def __init__(
        self,
        num_envs: int,
        days: Sequence[Workload],
        platform: Any,
        plan: Callable[[Workload, Options], Plan],
        options: Options,
        timers: int = 0,
        starts: Sequence[Start] = (),
    ) -> None:
        num_envs = environments(num_envs)
        self.platform: Platform = platform if isinstance(platform, Platform) else read_platform(platform)
        refuse_speeds(self.platform, "environments are")
        self.start_off = options.start_off
        self.days = list(days)
        plans = [plan(day, options) for day in self.days]
        if any(one.shutdown != codes.NEVER for one in plans):
            needs_switches(self.platform, "an environment in which nodes are switched off")
        source = Simulation(self.days, self.platform, plans, options, partitions=False)
        if not source.plain:
            raise EscalaError(
                f"workload {self.days[0].name!r} has jobs that go by nodes or further resource kinds: this environment "
                "plays jobs that take cores of any nodes only: leave out "
                f"{', '.join(beside_cores(self.days, self.platform))}, or read accounting for a machine given as NxM"
            )
        self._take_jobs(source)
        self._take_starts(starts)
        self.world = self._widen(source.world, num_envs, timers)
        self._nodes = source.world.node[0].copy()
        self._options = source.world.o[:, 0].copy()
        self._options["max_instants"] = GUARD_INSTANTS
        self.seeds = np.zeros(num_envs, np.uint64)
        self.count = np.zeros(num_envs, np.int64)
        self.day = np.zeros(num_envs, np.int64)
        self.table = table_of(self.world)
        self._point()

    def _take_jobs(self, source: Simulation) -> None:
        lengths = np.array([len(admitted.rows) for admitted in source.admitted], np.int64)
        self.jobs_of = lengths
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        self.users = int(max(1, source.world.job["user"].max(initial=0) + 1))
        self._job = np.concatenate([source.world.job[d, :n] for d, n in enumerate(lengths)])
        ranked = source.world.order.shape[2] > 0
        self._order = (
            np.concatenate([source.world.order[d, :, :n].ravel() for d, n in enumerate(lengths)]) if ranked else None
        )
        self.keys = ranked

    def _take_starts(self, starts: Sequence[Start]) -> None:
        """The jobs that live at the start of a day are its first rows."""
        self._starts = list(starts)
        self._truth = list[Any]()
        for d, start in enumerate(starts):
            mine = self._job[self._first[d] : self._first[d + 1]]
            mine["submit"] -= start.offset_us
            truth = mine[: len(start.jobs)].copy()
            for name in ("submit", "walltime", "cores", "user"):
                start.jobs[name] = truth[name]
            self._truth.append(truth)

    def _widen(self, source: World, n: int, timers: int) -> World:
        """Tables for n simulations in the shapes of the source's."""
        fields = {
            name: np.zeros((n, *array.shape[1:]), array.dtype)
            for name, array in source._asdict().items()
            if name not in STATIC
        }
        _, heaps, size = source.heaps.shape
        fields["heaps"] = np.zeros((n, heaps, max(size, timers * source.job.shape[1] + 64)), source.heaps.dtype)
        fields["profile"] = np.repeat(source.profile[:1], n, axis=0)
        fields["job"] = np.zeros((n, 0), source.job.dtype)
        fields["order"] = np.zeros((n, 2, 0), source.order.dtype)
        fields["demand"] = np.zeros((n, *source.demand.shape[1:]), source.demand.dtype)
        return World(**fields)

    def _point(self, rows: Rows | None = None) -> None:
        """Point simulations at the jobs of their days."""
        chosen = np.arange(len(self.day)) if rows is None else rows
        days = self.day[chosen]
        length = self.jobs_of[days]
        for name, array, per_job in (("job", self._job, 1), ("order", self._order, 2)):
            if array is not None:
                at = WORLD.at[name]
                self.table[chosen, at] = array.ctypes.data + self._first[days] * per_job * array.itemsize
                self.table[chosen, at + per_job] = length
                if per_job == 2:
                    self.table[chosen, at + 1] = 2

    def seed(self, rows: Rows, seeds: NDArray[np.uint64]) -> None:
        """Seeds of rows; their next episode is their first."""
        self.seeds[rows] = seeds
        self.count[rows] = 0

    def begin(self, rows: Rows, options: Mapping[str, Any]) -> None:
        """Bring rows to the start of their next day: the one in `options["day"]` (a number, or one for each row), else
        one drawn by seed."""
        unknown = set(options) - {"day"}
        if unknown:
            raise EscalaError(f"reset option {sorted(unknown)[0]!r} is not known: use day")
        if "day" in options:
            chosen = np.broadcast_to(np.asarray(options["day"], np.int64), rows.shape)
            if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self.days)):
                raise EscalaError(
                    f"reset option day={options['day']}: there are {len(self.days)} days, numbered from 0"
                )
        else:
            chosen = (draw(self.seeds[rows], self.count[rows]) % np.uint64(len(self.days))).astype(np.int64)
        self.count[rows] += 1
        self.day[rows] = chosen
        self._point(rows)
        w = self.world
        w.o[rows, 0] = self._options[chosen]
        w.s[rows] = np.zeros((), w.s.dtype)
        w.node[rows] = self._nodes
        w.ledger[rows] = np.zeros((), w.ledger.dtype)
        w.bits[rows] = 0
        for row in rows:
            calls.prepare(self.table, row, self.start_off)
            if self._starts:
                self._resume(int(row))

    def _resume(self, row: int) -> None:
        """Bring a simulation to the state in which its day begins."""
        day = int(self.day[row])
        start = self._starts[day]
        grow = resume(self.table, row, 0, start.jobs, start.nodes, start.placed, self._truth[day], False)
        assert grow == 0, "tables that grow are not those of environments"

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as arrays."""
        out = {f"world.{name}": getattr(self.world, name).copy() for name in World._fields if name not in STATIC}
        return out | {"seeds": self.seeds.copy(), "count": self.count.copy(), "day": self.day.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        for name in World._fields:
            if name not in STATIC:
                restore(getattr(self.world, name), state[f"world.{name}"], name, ADVICE)
        self.seeds[...], self.count[...], self.day[...] = state["seeds"], state["count"], state["day"]
        self._point()

    def __getstate__(self) -> dict[str, Any]:
        fields = self.__dict__.copy()
        del fields["table"]  # addresses: made anew
        return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.table = table_of(self.world)
        self._point()


def watts_of(platform: Platform) -> NDArray[np.float64]:
    """Watts of idle, switching-off and switching-on nodes by profile, float64 [profiles, 3]: what counts as waste."""
    return np.array([(p.idle_w, p.switching_off_w, p.switching_on_w) for p in platform.drawn.profiles], np.float64)


def idle_watts(platform: Platform) -> float:
    """Watts of the whole platform idling."""
    per_profile = np.array([p.idle_w for p in platform.drawn.profiles])
    return float(per_profile[platform.drawn.profile_of].sum())


def whole_us(seconds: float, what: str) -> int:
    """Seconds as microseconds; EscalaError unless above 0."""
    if not 0 < seconds < 1e10:
        raise EscalaError(f"option {what}={seconds}: give seconds above 0")
    return int(microseconds(seconds))
