"""How good could any scheduler have been? A proved bound and the best schedule found for a log on a platform.

`escala.optimum` works on whole ticks; here a log becomes such an instance, and the schedule that is found is replayed
by the simulator before it is believed. What a bound leaves out is listed in it: it knows the future and takes the
machine as one pool of cores, so it is a limit for every policy and no target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from escala.admit import Admitted, admit_jobs, met, refuse_closures, refuse_late, refuse_speeds
from escala.bounds.waste_bound import WASTE, WasteBound, waste_bound
from escala.errors import EscalaError, nearest
from escala.kernel.clock import SECOND
from escala.optimum import OBJECTIVES, Bound, Instance
from escala.optimum import bound as bound_of
from escala.optimum.bounds import Progress, status_of
from escala.optimum.ladder import check_limit
from escala.options import Options, with_options
from escala.parts import demands_of
from escala.platform import Platform
from escala.policies.kept_pieces import Keep, play_anew
from escala.policies.rollout_names import rollout_of
from escala.policies.run import read, simulate
from escala.policy import Commands, View, name_of
from escala.result import Result
from escala.unseen import BOUNDS, says_once, unclosed
from escala.workload import Workload
from escala.workload.shapes import OF_NODES

METRIC = {
    "slowdown": "mean_slowdown",
    "bounded-slowdown": "mean_bounded_slowdown",
    "wait": "mean_wait_s",
    "makespan": "makespan_s",
}
"""The metric of `escala.metrics` that an objective is."""

PI_S = 10.0  # least runtime of the bounded slowdown
BEGIN_WITH = ("sjf-fit", "saf-fit", "easy")  # their schedules are where the search begins


@dataclass(frozen=True)
class LogBound:
    """What is known of the best schedule of a log; times in seconds, slowdowns plain.

    status: optimal, interval, bound-only or found-only. lower: no schedule is below it. found: the value of the best
    schedule found, which the simulator has carried out on the platform as it is; its starts are `starts_s` [jobs] in
    the order of the workload's rows (NaN: the job never fits). found_by: "search", or the policy whose schedule that
    is: where nodes boot or jobs must lie on one node, what was found for one pool of cores may not be possible.
    policies: the value of each policy that was asked for, on the platform as it is;
    knows: what each knows of the future.
    """

    status: str
    objective: str
    lower: float | None
    found: float | None
    policies: dict[str, float]
    starts_s: NDArray[np.float64] | None
    relaxations: tuple[str, ...]
    detail: Bound
    tick_s: float
    jobs: int
    rejected: int
    knows: dict[str, str]
    found_by: str | None = None

    @property
    def gap(self) -> float | None:
        """(found - lower) / found; 0: proved optimal."""
        if self.lower is None or self.found is None:
            return None
        return max(0.0, self.found - self.lower) / self.found if self.found > 0.0 and self.status != "optimal" else 0.0

    def headroom(self, policy: str, reference: str) -> float | None:
        """Share of what is possible over the reference that a policy gains: (reference - policy) / (reference - found).
        None where nothing better than the reference was found."""
        room = None if self.found is None else self.policies[reference] - self.found
        return (self.policies[reference] - self.policies[policy]) / room if room is not None and room > 1e-12 else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without the starts."""
        d = self.detail
        return {
            "status": self.status, "objective": self.objective, "lower": self.lower, "found": self.found,
            "found_by": self.found_by,
            "gap": self.gap, "policies": self.policies, "knows": self.knows, "jobs": self.jobs,
            "rejected": self.rejected, "tick_s": self.tick_s,
            "prover": d.prover, "relaxations": list(self.relaxations), "seconds": d.seconds, "limit_s": d.limit_s,
            "seed": d.seed, "cut": d.cut, "interrupted": d.interrupted,
            "steps": [{"name": s.name, "seconds": s.seconds, "iterations": s.iterations} for s in d.steps],
        }  # fmt: skip


class Refused(EscalaError):
    """A planned start was not possible."""


class Planned:
    """Starts given jobs at given times: how a schedule made elsewhere is replayed. starts_us [rows of the kernel]."""

    name = "planned"
    clairvoyant = True

    def __init__(self, starts_us: NDArray[np.int64]) -> None:
        self._order = np.argsort(starts_us, kind="stable")
        self._starts = starts_us
        self._next = 0

    def decide(self, view: View, act: Commands) -> None:
        """Start what is due; ask for the next."""
        now = round(view.now_s * SECOND)
        while self._next < len(self._order) and self._starts[self._order[self._next]] <= now:
            row = int(self._order[self._next])
            if not act.start(row):
                raise Refused(f"planned schedule: job in row {row} cannot start at {view.now_s} s: {act.refusal}")
            self._next += 1
        if self._next < len(self._order):
            act.call_at(int(self._starts[self._order[self._next]]) / SECOND)


@overload
def bound(
    workload: Any, platform: Any, objective: Literal["waste"], *, exact: bool = ..., limit_s: float = ...,
    seed: int = ...,
    policies: Iterable[Any] = ..., progress: Progress | None = ..., stretch: float | None = ...,
    shutdowns: Iterable[Any] | None = ..., keep: Keep = ..., **options: Any,
) -> WasteBound: ...  # fmt: skip


@overload
def bound(
    workload: Any, platform: Any, objective: str = ..., *, exact: bool = ..., limit_s: float = ..., seed: int = ...,
    policies: Iterable[Any] = ..., progress: Progress | None = ..., keep: Keep = ..., **options: Any,
) -> LogBound: ...  # fmt: skip


@says_once
def bound(
    workload: Any,
    platform: Any,
    objective: str = "bounded-slowdown",
    *,
    exact: bool = False,
    limit_s: float = 60.0,
    seed: int = 0,
    policies: Iterable[Any] = ("easy",),
    progress: Progress | None = None,
    stretch: float | None = None,
    shutdowns: Iterable[Any] | None = None,
    keep: Keep = play_anew,
    **options: Any,
) -> LogBound | WasteBound:
    """Bound and best schedule of a log.

    workload, platform: as for `escala.simulate`. objective: slowdown, bounded-slowdown (at least 10 s), wait, makespan,
    or waste (energy; see `escala.bounds.waste_bound`: nodes off at the start, and a `WasteBound` comes back). exact:
    also the solvers of the extra `optimum`.
    limit_s: about how long, wall seconds. policies: schedulers to judge beside. For waste alone, stretch: no job waits
    longer than this share of its requested time (0.5), or than under the first pair of policies; shutdowns: shutdown
    policies to judge, each with every scheduler. keep: where finished runs of policies go and come from. options:
    `oversized` of `Options`. Ctrl-C keeps what was proved so far. EscalaError: unknown objective, no jobs, jobs that
    never fit.
    """
    if objective == WASTE:
        return waste_bound(
            workload,
            platform,
            stretch=stretch,
            exact=exact,
            limit_s=limit_s,
            policies=policies,
            shutdowns=shutdowns,
            keep=keep,
            **options,
        )
    if objective not in OBJECTIVES:
        hint = nearest(str(objective), (*OBJECTIVES, WASTE))
        raise EscalaError(f"objective {objective!r} is unknown: {hint}use {', '.join(OBJECTIVES)} or {WASTE}")
    if stretch is not None or shutdowns is not None:
        raise EscalaError(f"stretch and shutdowns belong to the objective {WASTE}, not to {objective}: leave them out")
    check_limit(limit_s)
    log, machine = read(workload, platform)
    machine = unclosed(machine, BOUNDS)
    refuse_speeds(machine, "bounds are")
    chosen = with_options(Options(), **options)
    aimed = {name_of(p): (rollout_of(p, chosen.seed, objective) or p) if isinstance(p, str) else p for p in policies}
    runs = {name: keep(name, partial(simulate, log, machine, p, record=False, **options)) for name, p in aimed.items()}
    return bound_of_runs(
        runs, log, machine, objective, exact=exact, limit_s=limit_s, seed=seed, progress=progress, **options
    )


def bound_of_runs(
    runs: Mapping[str, Result],
    log: Workload,
    machine: Platform,
    objective: str,
    *,
    exact: bool = False,
    limit_s: float = 60.0,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> LogBound:
    """`bound` beside policies that have run already: name -> Result of this log on this machine."""
    refuse_speeds(machine, "bounds are")
    refuse_closures(machine)
    log = met(log, machine)
    refuse_late(log, "bounds count waits from the first moment at which a job may start")
    admitted = admit_jobs(log, machine, with_options(Options(), **options))
    instance, tick_us, origin_us = instance_of(log, machine, admitted, objective)
    metric = METRIC[objective]
    values = {name: float(run.summary()[metric]) for name, run in runs.items()}
    known = _known(log, pool_of(machine), admitted, instance, (tick_us, origin_us), options, runs.values())
    detail = bound_of(instance, exact=exact, limit_s=limit_s, seed=seed, progress=progress, known=known)
    unit = 1.0 if objective.endswith("slowdown") else tick_us / SECOND
    lower, found = (None if v is None else v * unit for v in (detail.lower, detail.found))
    starts, by = None, None
    whole = {
        name: run for name, run in runs.items() if np.isfinite(run.jobs["start_s"].to_numpy()[admitted.rows]).all()
    }
    if detail.starts is not None:
        starts_us = detail.starts * tick_us + origin_us
        try:
            possible = _carried_out(log, machine, admitted, starts_us, options)
        except KeyboardInterrupt:  # what was proved stays; a schedule that was not replayed is not told
            possible, detail = False, replace(detail, interrupted=True)
        if possible:
            by, starts = "search", np.full(len(log), np.nan)
            starts[admitted.rows] = starts_us / SECOND
        elif not detail.interrupted:
            exactly = {**options, "estimate": "runtime", "order_estimate": None, "record": False}
            whole |= {f"{name}, runtimes known": simulate(log, machine, name, **exactly) for name in BEGIN_WITH}
    found = found if by else None
    for name, run in whole.items():
        value = float(run.summary()[metric])
        if found is None or value < found * (1.0 - 1e-12):
            found, by, starts = value, name, run.jobs["start_s"].to_numpy().astype(np.float64)
    rounded = (
        [f"times rounded to {detail.unit * tick_us / SECOND:g} s for the proof, so that it holds"]
        if detail.unit > 1
        else []
    )
    return LogBound(
        status_of(lower, found), objective, lower, found, values, starts, (*detail.relaxations, *rounded), detail,
        tick_us / SECOND, len(admitted.rows), len(admitted.rejected), {name: run.knows for name, run in runs.items()},
        by,
    )  # fmt: skip


def instance_of(log: Workload, machine: Platform, admitted: Admitted, objective: str) -> tuple[Instance, int, int]:
    """The jobs that fit as an instance on one pool that begins with the first submission, its tick (the largest that
    divides every time), and when it begins, both in us."""
    if not len(admitted.rows):
        raise EscalaError(f"workload {log.name!r} has no job that fits platform {machine.name!r}: nothing to bound")
    pi_us = round(PI_S * SECOND)
    origin = int(admitted.submit_us.min())
    times: list[Any] = [
        admitted.submit_us - origin,
        admitted.runtime_us,
        [pi_us] if objective == "bounded-slowdown" else [],
    ]
    tick = int(np.gcd.reduce(np.concatenate(times).astype(np.int64))) or 1
    demands = demands_of(log, machine)
    capacity = [machine.total_cores, *(int(machine.resources[kind].sum()) for kind in demands)]
    demand = np.stack(
        [log.jobs["cores"].to_numpy()[admitted.rows], *(values[admitted.rows] for values in demands.values())], axis=1
    )
    release = (admitted.submit_us - origin) // tick
    instance = Instance(
        release, admitted.runtime_us // tick, demand, np.array(capacity), objective, max(1, pi_us // tick)
    )
    return instance, tick, origin


def without_nodes(log: Workload) -> Workload:
    """The log of which no job does."""
    return log.with_jobs(log.jobs.drop(OF_NODES, strict=False))


def pool_of(machine: Platform) -> Platform:
    """The machine as a single node that never switches."""
    resources = {kind: int(values.sum()) for kind, values in machine.resources.items()}
    return Platform.uniform(1, machine.total_cores, power=None, name=f"{machine.name} as one pool", resources=resources)


def _starts(run: Result, admitted: Admitted) -> NDArray[np.int64]:
    """Start of each admitted job, us."""
    starts: NDArray[np.int64] = np.floor(run.jobs["start_s"].to_numpy()[admitted.rows] * SECOND + 0.5).astype(np.int64)
    return starts


def _known(
    log: Workload,
    pool: Platform,
    admitted: Admitted,
    instance: Instance,
    clock: tuple[int, int],
    options: dict[str, Any],
    runs: Iterable[Result],
) -> NDArray[np.int64]:
    """The best schedule of some simple policies on the pool that know the runtimes, and of the runs in which all jobs
    start at whole ticks (what fits on nodes fits in the pool, which knows no nodes)."""
    log = without_nodes(log)
    # a pool never switches
    exactly = {**options, "estimate": "runtime", "order_estimate": None, "record": False, "start_off": False}
    tick_us, origin_us = clock
    found = [(_starts(simulate(log, pool, name, **exactly), admitted) - origin_us) // tick_us for name in BEGIN_WITH]
    for run in runs:
        if np.isfinite(run.jobs["start_s"].to_numpy()[admitted.rows]).all():
            since = _starts(run, admitted) - origin_us
            found += [since // tick_us] if not (since % tick_us).any() else []
    return min(found, key=instance.value)


def _carried_out(
    log: Workload, machine: Platform, admitted: Admitted, starts_us: NDArray[np.int64], options: dict[str, Any]
) -> bool:
    """Whether the simulator carries out the schedule on the machine as it is, each job on the lowest nodes with room
    for it; at the least it does on its pool."""

    def exactly_on(platform: Platform, jobs: Workload, options: dict[str, Any]) -> bool:
        run = simulate(jobs, platform, Planned(starts_us), record=False, **options)
        return bool(np.array_equal(_starts(run, admitted), starts_us))

    try:
        if exactly_on(machine, log, options):
            return True
    except Refused:
        pass
    if not exactly_on(pool_of(machine), without_nodes(log), {**options, "start_off": False}):
        raise AssertionError("the simulator does not carry out the schedule that was found: a defect in Escala")
    return False
