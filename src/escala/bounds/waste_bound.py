"""How little energy could have been wasted? A proved bound of the waste of any scheduler and shutdown policy on a
cluster whose nodes switch off and on, all off at the start.

The waste is R3's (eq. 4.4): idle nodes and nodes that switch, from the first submission to the last finish. Not to
start anything would waste least, so there is a limit: each job starts at the latest when it has waited `stretch` x its
requested time, or when the reference (the first pair of policies) started it, if that was later. The bound is for every
policy that keeps this limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.admit import Admitted, admit_jobs, met, refuse_closures, refuse_late, refuse_speeds
from escala.bounds.node_sharing import shared
from escala.errors import EscalaError
from escala.kernel.clock import SECOND
from escala.optimum import EnergyBound, PowerInstance, energy_bound
from escala.optimum.energy import RELAXATIONS
from escala.optimum.ladder import check_limit
from escala.options import Options, with_options
from escala.platform import Platform
from escala.platform.told import how
from escala.policies.kept_pieces import Keep, play_anew
from escala.policies.run import read, simulate
from escala.policy import name_of
from escala.result import Result
from escala.unseen import BOUNDS, unclosed
from escala.workload import Workload

WASTE = "waste"
STRETCH = 0.5  # R3's threshold of a delay (eq. 5.1)
SHUTDOWNS = ("timeout:0",)
COARSEST_US = 60 * SECOND
MOST_SPAN_S = 11 * 86_400.0  # ticks of a microsecond stay below 2^40
MOST_JOBS = 10_000  # which may meet is a table of pairs of jobs
OF_NODES = (
    *RELAXATIONS,
    "no node is switched on before the first submission",
    "jobs that share nodes may lie on as many nodes as the placement rule allows at all",
)


@dataclass(frozen=True)
class WasteBound:
    """What is known of the least waste of a log, J.

    status: optimal, interval or bound-only. lower: no policy that keeps the limit wastes less. found: the least waste
    of the policies that were simulated and keep it. policies: waste of each pair "scheduler + shutdown"; late: jobs
    that a pair starts past the limit (a pair with any is no schedule within the limit, so it may lie below the bound);
    knows: what each pair knows of the future.
    latest_s [jobs]: the limit, in the order of the workload's
    rows (NaN: the job never fits).
    """

    status: str
    lower: float
    found: float | None
    policies: dict[str, float]
    late: dict[str, int]
    stretch: float
    latest_s: NDArray[np.float64]
    detail: EnergyBound
    limit_s: float
    tick_s: float
    jobs: int
    rejected: int
    knows: dict[str, str]
    objective: str = WASTE

    @property
    def relaxations(self) -> tuple[str, ...]:
        """What the bound leaves out."""
        return OF_NODES

    @property
    def gap(self) -> float | None:
        """(found - lower) / found; 0: proved optimal."""
        return None if self.found is None else (self.found - self.lower) / self.found if self.found > 0 else 0.0

    def headroom(self, policy: str, reference: str) -> float | None:
        """Share of the way from the reference to the proved bound that a policy goes: of what is possible it is at
        least this share where it is above 0. None for a policy that breaks the limit, or where nothing is left to
        gain."""
        room = self.policies[reference] - self.lower
        if self.late[policy] or self.late[reference] or room <= 1e-12:
            return None
        return (self.policies[reference] - self.policies[policy]) / room

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without the limits of the jobs."""
        d = self.detail
        return {
            "status": self.status, "objective": self.objective, "lower": self.lower, "found": self.found,
            "gap": self.gap, "policies": self.policies, "knows": self.knows, "late": self.late, "stretch": self.stretch,
            "jobs": self.jobs, "rejected": self.rejected,
            "tick_s": self.tick_s, "prover": d.prover, "relaxations": list(self.relaxations), "seconds": d.seconds,
            "limit_s": self.limit_s, "cut": d.cut, "interrupted": d.interrupted, "iterations": d.iterations,
        }  # fmt: skip


def waste_bound(
    workload: Any,
    platform: Any,
    *,
    stretch: float | None = None,
    exact: bool = False,
    limit_s: float = 60.0,
    policies: Iterable[Any] = ("easy",),
    shutdowns: Iterable[Any] | None = None,
    keep: Keep = play_anew,
    **options: Any,
) -> WasteBound:
    """The bound of a log and the waste of all pairs of policies and shutdown policies; see the module, and
    `escala.bound`.

    EscalaError: no jobs or policies, nodes that differ, cannot switch or draw no power, more than some days, times
    without a common tick.
    """
    limit = _limit(stretch, limit_s)
    log, machine = read(workload, platform)
    machine = unclosed(machine, BOUNDS)
    check(log, machine)
    pairs = [(s, d) for s in policies for d in (SHUTDOWNS if shutdowns is None else shutdowns)]
    if not pairs:
        raise EscalaError("the waste is bounded beside policies: give at least one scheduler and one shutdown policy")
    _admitted(log, machine, options)  # refuses what never fits before anything is simulated
    runs = {}
    for s, d in pairs:
        name = f"{name_of(s)} + {name_of(d)}"
        runs[name] = keep(name, partial(simulate, log, machine, s, d, start_off=True, **options))
    return waste_of_runs(log, machine, runs, stretch=limit, exact=exact, limit_s=limit_s, **options)


def waste_of_runs(
    log: Workload, machine: Platform, runs: Mapping[str, Result], *, stretch: float | None = None, exact: bool = False,
    limit_s: float = 60.0, **options: Any,
) -> WasteBound:  # fmt: skip
    """The bound beside runs that were simulated already: whole ones of this log on this platform, all nodes off at the
    start. The first is the reference. options: those of the runs."""
    limit = _limit(stretch, limit_s)
    check(log, machine)
    refuse_closures(machine)
    log, admitted = _admitted(log, machine, options)
    starts = {name: _starts(run, admitted) for name, run in runs.items()}
    instance, latest_us = instance_of(log, machine, admitted, limit, next(iter(starts.values())))
    late = {name: int((start > latest_us).sum()) for name, start in starts.items()}
    values = {name: float(run.summary()["waste_j"]) for name, run in runs.items()}
    detail = energy_bound(instance, exact=exact, limit_s=limit_s)
    lower, found = checked(detail, [values[name] for name in values if not late[name]])
    status = "bound-only" if found is None else "optimal" if found - lower <= 1e-6 * found else "interval"
    latest_s = np.full(len(log), np.nan)
    latest_s[admitted.rows] = latest_us / SECOND
    return WasteBound(
        status,
        lower,
        found,
        values,
        late,
        limit,
        latest_s,
        detail,
        limit_s,
        instance.tick_s,
        len(admitted.rows),
        len(admitted.rejected),
        {name: run.knows for name, run in runs.items()},
    )


def bound_at(
    log: Workload,
    machine: Platform,
    starts_s: Sequence[NDArray[np.float64]],
    *,
    stretch: float = 0.0,
    limit_s: float = 60.0,
    **options: Any,
) -> tuple[EnergyBound, NDArray[np.float64]]:
    """The bound of every schedule in which each job starts at the latest when it has waited `stretch` x its requested
    time, or at the latest of its starts; and these limits [jobs], s. starts_s: [jobs] each, of schedules that start all
    jobs (NaN: one that never fits)."""
    log, admitted = _admitted(log, machine, options)
    since = np.floor(np.max(starts_s, axis=0)[admitted.rows] * SECOND + 0.5).astype(np.int64)
    instance, latest_us = instance_of(log, machine, admitted, stretch, since)
    latest_s = np.full(len(log), np.nan)
    latest_s[admitted.rows] = latest_us / SECOND
    return energy_bound(instance, limit_s=limit_s), latest_s


def checked(detail: EnergyBound, kept: list[float]) -> tuple[float, float | None]:
    """(bound, least of the waste of schedules that keep the limit, if there are any); the bound is not above it."""
    found, lower = min(kept, default=None), detail.lower_j
    if found is not None and lower > found:
        if lower > found * (1 + 1e-6) + 1e-3:
            raise AssertionError(
                f"bound {lower} J by {detail.prover} above a simulated waste of {found} J: a defect in Escala"
            )
        lower = found  # within the rounding of the sums, or the solver's tolerance
    return lower, found


def _limit(stretch: float | None, limit_s: float) -> float:
    """The limit on waiting; EscalaError for one that is none, or no time."""
    limit = STRETCH if stretch is None else float(stretch)
    if not 0.0 <= limit < 1e6:
        raise EscalaError(f"stretch is {limit}: give the longest wait as a share of the requested time, from 0 on")
    check_limit(limit_s)
    return limit


def _admitted(log: Workload, machine: Platform, options: dict[str, Any]) -> tuple[Workload, Admitted]:
    """The log at the platform's speed, and its rows for the kernel."""
    log = met(log, machine)
    refuse_late(log, "bounds count waits from the first moment at which a job may start")
    admitted = admit_jobs(log, machine, with_options(Options(), **options))
    if not len(admitted.rows):
        raise EscalaError(f"workload {log.name!r} has no job that fits platform {machine.name!r}: nothing to bound")
    return log, admitted


def instance_of(
    log: Workload, machine: Platform, admitted: Admitted, stretch: float, reference_us: NDArray[np.int64]
) -> tuple[PowerInstance, NDArray[np.int64]]:
    """The day in ticks from the first submission (of at most a minute, dividing submissions and runtimes), and the
    latest start of each row of the admitted jobs, us."""
    walltime = log.jobs["walltime_s"].to_numpy()[admitted.rows]
    wait = np.floor(np.minimum(stretch * walltime, 1e11) * SECOND).astype(np.int64)
    latest_us: NDArray[np.int64] = np.maximum(admitted.submit_us + wait, reference_us)
    origin = int(admitted.submit_us.min())
    release = admitted.submit_us - origin
    length = np.maximum(admitted.runtime_us, 1)
    span = int((latest_us - origin + length).max())
    tick = int(np.gcd.reduce(np.concatenate([release, length])))
    parts = -(-tick // COARSEST_US)  # the latest starts are rounded up to ticks, so not too coarse
    while tick % parts:
        parts += 1
    tick //= parts
    if span // tick > MOST_SPAN_S * SECOND:
        raise EscalaError(
            f"workload {log.name!r} lasts {span / SECOND / 86400:.0f} days in ticks of {tick / SECOND:g} s, too many "
            "to count: the waste is bounded for a few days at a time (escala workload convert --first), or give a "
            "smaller stretch"
        )
    cores = int(machine.cores[0])
    demand = log.jobs["cores"].to_numpy()[admitted.rows]
    single = log.jobs["single_node"].to_numpy()[admitted.rows]
    needed, spread = shared(demand, single, release, latest_us - origin, length, machine.n_nodes, cores)
    profile = machine.drawn.profiles[int(machine.drawn.profile_of[0])]
    on_s, off_s = (round(s * SECOND) / SECOND for s in (profile.switch_on_s, profile.switch_off_s))
    instance = PowerInstance(
        release // tick, length // tick, needed, -(-(latest_us - origin) // tick), machine.n_nodes, tick / SECOND,
        profile.idle_w,
        profile.switching_on_w * on_s, profile.switching_off_w * off_s, 0, spread, -(-round(off_s * SECOND) // tick),
    )  # fmt: skip
    return instance, latest_us


def check(log: Workload, machine: Platform) -> None:
    """Refuse what the model does not hold for, and what is too large for it."""
    if len(log) > MOST_JOBS:
        raise EscalaError(
            f"workload {log.name!r} has {len(log):,} jobs: the waste is bounded for {MOST_JOBS:,} at most, a few days "
            "at a time (escala workload convert --first)"
        )
    refuse_speeds(machine, "bounds are")
    if len(np.unique(machine.cores)) > 1 or len(np.unique(machine.drawn.profile_of)) > 1:
        raise EscalaError(
            f"platform {machine.name!r} has nodes that differ in cores or power: the waste is bounded for equal nodes "
            "only"
        )
    profile = machine.profiles[int(machine.profile_of[0])]
    if not machine.has_energy:
        raise EscalaError(f"platform {machine.name!r} has no power data, and the waste is an energy: {how(machine)}")
    if not profile.can_switch:
        raise EscalaError(
            f"nodes of platform {machine.name!r} cannot switch off: no shutdown policy has anything to save"
        )


def _starts(run: Result, admitted: Admitted) -> NDArray[np.int64]:
    """Start of each admitted job, us."""
    starts: NDArray[np.int64] = np.floor(run.jobs["start_s"].to_numpy()[admitted.rows] * SECOND + 0.5).astype(np.int64)
    return starts
