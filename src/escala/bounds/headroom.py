"""Head-room of policies judged day by day, each day run to its last job: of what could be saved over the first policy,
the share that each saves, with its interval over days.

Waste. A policy that lets jobs wait wastes less, so each is measured at its own waits: of all schedules in which no job
starts later than under the policy or under the first one, whichever is later, none wastes less than a proved bound
(`escala.bounds.waste_bound`). With `stretch` a job may besides wait that share of its requested time. Where the policy
gains, (first - policy) / (first - bound) is at most the true share, and the same with the least waste of all judged
schedules within the limits, chosen day by day in hindsight, is at least that; where it loses, the other way round.

Waits and slowdowns. No scheduler is below the bound of `escala.bound`, with all cores in one pool that never switches.
Nodes that boot make that bound lower than what can be reached, so the share of the bound is told alone: the true one is
at least this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.admit import refuse_speeds
from escala.bounds import waste_bound
from escala.bounds.schedule_bound import METRIC, bound
from escala.errors import EscalaError
from escala.metrics import headroom
from escala.optimum.ladder import check_limit

OBJECTIVES = (waste_bound.WASTE, "slowdown", "bounded-slowdown", "wait")
OF_SWITCHING = "nodes that are off or switch off take no time to boot"
DAY_S = 10.0  # the longest that a bound may take, s; most take a tenth of a second
LEAST_S = 1e-3
ROUNDING_S = 1e-6

Floats = NDArray[np.float64]
Starts = Mapping[tuple[str, int, int], Floats]
"""(policy, run, number of the day) -> start of each job, s; NaN: never."""


def metric_of(objective: str) -> str:
    """The column that an objective is."""
    return "waste_j" if objective == waste_bound.WASTE else METRIC[objective]


@dataclass
class _Days:
    """What is known of each day. values: policy -> [runs, days]; lower, found: the same of the bound and of the best
    judged schedule within the limits; late: [runs, days], jobs past the limit. done: days with a bound for every
    policy. refused: why a day has none.
    """

    values: dict[str, Floats]
    lower: dict[str, Floats] = field(default_factory=dict)
    found: dict[str, Floats] = field(default_factory=dict)
    late: dict[str, Floats] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)
    relaxations: tuple[str, ...] = ()
    cut: bool = False
    interrupted: bool = False
    refused: str = ""

    def __post_init__(self) -> None:
        for table in (self.lower, self.found, self.late):
            table |= {name: np.full(values.shape, np.nan) for name, values in self.values.items()}


def of_days(
    days: Sequence[Any],
    machine: Any,
    rows: pl.DataFrame,
    starts: Starts,
    objective: str,
    *,
    stretch: float | None = None,
    limit_s: float = 300.0,
    oversized: str = "error",
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Head-room over days, as plain data.

    days: Workloads, each run to its last job with all nodes off at the start. rows: policy, run, episode (number of the
    day) and the metric of the objective; the first policy is the reference. limit_s: for all bounds, wall seconds; days
    that it leaves without a bound are left out, as are those after Ctrl-C. Gives objective, metric, reference, stretch,
    days (their number), bounded (names of those with a bound), relaxations, cut (by the limit), interrupted, refused
    (why a day has none), seconds, and policies: name -> runs, mean (of the metric), bound, proved, proved_low,
    proved_high, found (waste), late (with a stretch; jobs a run). Shares are None where there is no room.
    EscalaError: an unknown objective, a stretch of another one, bad numbers, a platform of which the waste cannot be
    bounded.
    """
    if objective not in OBJECTIVES:
        raise EscalaError(f"head-room in {objective!r} is unknown: use {', '.join(OBJECTIVES)}")
    if stretch is not None and (objective != waste_bound.WASTE or not 0.0 <= stretch < 1e6):
        raise EscalaError(
            f"stretch is {stretch}: give, for the objective waste, the longest wait as a share of the requested time, "
            "from 0 on"
        )
    check_limit(limit_s)
    check(days, machine, objective)
    known = _Days(_matrices(rows, metric_of(objective), len(days)))
    began = time.monotonic()
    try:
        for k, day in enumerate(days):
            left = limit_s - (time.monotonic() - began)
            known.cut |= left <= LEAST_S
            if left <= LEAST_S or known.interrupted:
                break
            try:
                if objective == waste_bound.WASTE:
                    _bound_waste(known, k, day, machine, starts, stretch, began + limit_s, oversized)
                else:
                    _bound_waits(known, k, day, machine, objective, min(DAY_S, left / (len(days) - k)), oversized)
            except EscalaError as error:
                known.refused = str(error)
            if progress is not None:
                progress((k + 1) / len(days))
    except KeyboardInterrupt:
        known.interrupted = True
    return {
        "objective": objective, "metric": metric_of(objective), "reference": next(iter(known.values)),
        "stretch": stretch, "days": len(days), "bounded": [days[k].name for k in known.done], "limit_s": limit_s,
        "seconds": time.monotonic() - began, "cut": known.cut, "interrupted": known.interrupted,
        "refused": known.refused, "relaxations": list(known.relaxations),
        "policies": {name: _policy(known, name, stretch, seed) for name in known.values},
    }  # fmt: skip


def check(days: Sequence[Any], machine: Any, objective: str) -> None:
    """Refuse, before anything is judged, days or a platform that cannot be bounded."""
    refuse_speeds(machine, "bounds are")
    if objective == waste_bound.WASTE:
        for day in days:
            waste_bound.check(day, machine)


def _matrices(rows: pl.DataFrame, metric: str, n: int) -> dict[str, Floats]:
    """Policy -> [runs, days]."""
    out = {}
    for (name,), part in rows.group_by("policy", maintain_order=True):
        out[str(name)] = part.sort("run", "episode")[metric].cast(pl.Float64).to_numpy().reshape(-1, n)
    return out


def _bound_waste(
    known: _Days, k: int, day: Any, machine: Any, starts: Starts, stretch: float | None, end: float, oversized: str
) -> None:
    """Bound day k at the waits of every policy and run; nothing is kept of a day that is not finished."""
    base, share = starts[next(iter(known.values)), 0, k], stretch or 0.0
    limit = np.fmax(base, day.jobs["submit_s"].to_numpy() + share * day.jobs["walltime_s"].to_numpy())
    bounds: dict[bytes, tuple[float, float | None]] = {}  # many runs have the same limits
    for name, run in ((name, run) for name, values in known.values.items() for run in range(len(values))):
        own = starts[name, run, k]
        later = np.fmax(base, own).tobytes()
        if later not in bounds:
            left = end - time.monotonic()
            known.cut |= left <= LEAST_S
            if left <= LEAST_S:
                return
            detail, latest = waste_bound.bound_at(
                day, machine, [base, own], stretch=share, limit_s=min(DAY_S, left), oversized=oversized
            )
            known.interrupted |= detail.interrupted
            known.cut |= detail.cut and not detail.interrupted
            if detail.interrupted:
                return
            bounds[later] = waste_bound.checked(detail, _within(known, k, starts, latest))
        known.lower[name][run, k], known.found[name][run, k] = bounds[later]  # there is a best: the policy itself
        known.late[name][run, k] = float((own > limit + ROUNDING_S).sum())
    known.relaxations = waste_bound.OF_NODES
    known.done.append(k)


def _within(known: _Days, k: int, starts: Starts, latest: Floats) -> list[float]:
    """What the judged schedules of day k that keep these limits waste."""
    runs = (
        (values[run, k], starts[name, run, k]) for name, values in known.values.items() for run in range(len(values))
    )
    return [float(wasted) for wasted, start in runs if not (start > latest + ROUNDING_S).any()]


def _bound_waits(known: _Days, k: int, day: Any, machine: Any, objective: str, limit_s: float, oversized: str) -> None:
    """Bound day k for any scheduler."""
    detail = bound(day, machine, objective, limit_s=max(limit_s, LEAST_S), policies=(), oversized=oversized)
    known.cut |= detail.detail.cut and not detail.detail.interrupted
    known.interrupted |= detail.detail.interrupted
    if detail.lower is None or known.interrupted:
        return
    least = min(float(values[:, k].min()) for values in known.values.values())
    if detail.lower > least * (1 + 1e-6) + 1e-6:
        raise AssertionError(
            f"{day.name}: bound {detail.lower} above a simulated {objective} of {least}: a defect in Escala"
        )
    for table in known.lower.values():
        table[:, k] = min(detail.lower, least)
    known.relaxations = (*detail.relaxations, OF_SWITCHING)
    known.done.append(k)


def _policy(known: _Days, name: str, stretch: float | None, seed: int) -> dict[str, Any]:
    """The figures of one policy over the days that have a bound."""
    shown = known.done
    first = next(iter(known.values.values()))[:1, shown]
    values, lower, found = (table[name][:, shown] for table in (known.values, known.lower, known.found))
    out: dict[str, Any] = {
        "runs": len(values),
        "mean": None,
        "bound": None,
        "proved": None,
        "proved_low": None,
        "proved_high": None,
    }
    if shown:
        out |= {"mean": float(values.mean()), "bound": float(lower.mean())}
        if first.sum() - lower.mean(axis=0).sum() > 1e-9 * abs(first.sum()):
            got = headroom(values, first, lower, seed=seed)
            out |= {"proved": got.value, "proved_low": got.low, "proved_high": got.high}
    if np.isfinite(found).all() and shown:
        room = float(first.sum() - found.mean(axis=0).sum())
        out["found"] = (
            float(first.sum() - values.mean(axis=0).sum()) / room if room > 1e-9 * abs(float(first.sum())) else None
        )
    if stretch is not None and shown:
        out["late"] = float(known.late[name][:, shown].sum(axis=1).mean())
    return out
