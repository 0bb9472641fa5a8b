"""Proof of optimality by solvers (extra `optimum`): HiGHS on the thinned time-indexed model, CP-SAT for few jobs, fine
ticks and the makespan.

Each solver runs in a process of its own (`prover.py`) on one thread and reports every bound it proves, so that a limit
or Ctrl-C keeps what was proved.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from escala.errors import EscalaError
from escala.optimum.instance import Instance, Ints, check_schedule
from escala.optimum.solver import Report, installed, solve
from escala.optimum.splitting import Parts
from escala.optimum.thinning import Starts, open_starts
from escala.optimum.timeindexed import Model, build, classes_of

FEW_JOBS = 25  # up to here CP-SAT goes first
CP_SHARE = 0.25  # of the time, and at most
CP_FIRST_S = 10.0


class Exact(NamedTuple):
    """What the solvers proved: lower bound of the summed cost or of the makespan (-inf: nothing), a better schedule
    (n,) or None, who proved it, and whether Ctrl-C ended it."""

    lower: float
    starts: Ints | None
    prover: str
    interrupted: bool


def available() -> tuple[bool, bool]:
    """Whether (highspy, OR-Tools) are installed."""
    return installed("highspy"), installed("ortools")


def check_exact(instance: Instance) -> None:
    """EscalaError if no solver is installed that can do it."""
    highs, ortools = available()
    if not highs and not ortools:
        raise EscalaError("exact needs a solver: pip install 'escala[optimum]', or leave out exact")
    if not instance.summed and not ortools:
        raise EscalaError("exact for the makespan needs OR-Tools: pip install 'escala[optimum]', or leave out exact")


def exact(
    instance: Instance,
    parts: Parts | None,
    starts: Ints,
    lower: float,
    limit_s: float,
    report: Report = lambda bound: None,
) -> Exact:
    """Try to prove `starts` optimal or find better, within `limit_s` seconds of wall time. lower: a bound proved
    before, in the same unit as the result's.

    parts: what the schedules were split into, one or more (None for the makespan). EscalaError as `check_exact`.
    """
    check_exact(instance)
    highs, ortools = available()
    deadline = time.monotonic() + limit_s
    best = Exact(lower, None, "", False)
    cost = summed_cost(instance, starts)
    opened = None
    if parts is not None:
        opened = open_starts(parts.dual.instance, parts.dual.grid, parts.proofs(), cost)
    model = build(instance, opened, cost) if opened is not None and highs and instance.summed else None
    if ortools and (model is None or instance.jobs <= FEW_JOBS):
        limit = limit_s if model is None else min(CP_FIRST_S, CP_SHARE * limit_s)
        best = _cpsat(instance, opened, starts, best, min(limit, deadline - time.monotonic()), report)
    known = starts if best.starts is None else best.starts
    left = deadline - time.monotonic()
    if (
        model is not None
        and not best.interrupted
        and best.lower < cost_or_span(instance, known) * (1 - 1e-7)
        and left > 0
    ):
        best = _milp(instance, model, best, left, report)
    if best.starts is not None:
        check_schedule(instance, best.starts)
    return best


def summed_cost(instance: Instance, starts: Ints) -> float:
    """Sum of max(0, start - ready) / divisor of a schedule."""
    return math.fsum((np.maximum(0, starts - instance.ready) / instance.divisor).tolist())


def cost_or_span(instance: Instance, starts: Ints) -> float:
    """The summed cost, or the makespan where that is the objective: the unit of `Exact.lower`."""
    return summed_cost(instance, starts) if instance.summed else instance.value(starts)


def _milp(instance: Instance, model: Model, best: Exact, limit_s: float, report: Report) -> Exact:
    names = ("cost", "top", "low", "high", "rows", "columns", "entries")
    data = {name: getattr(model, name) for name in names} | {"known": True}
    run = solve("milp", data, limit_s, lambda bound: report(bound + model.offset))
    lower, starts, prover = best.lower, best.starts, best.prover
    if run.bound + model.offset > lower:
        lower, prover = run.bound + model.offset, f"HiGHS, float tolerance 1e-6 ({run.version or 'stopped'})"
    if run.solution is not None:
        found = model.starts(np.array(run.solution), instance.jobs)
        if found is not None and (starts is None or summed_cost(instance, found) < summed_cost(instance, starts)):
            starts = found
    return Exact(lower, starts, prover, run.interrupted)


def _cpsat(
    instance: Instance, opened: Starts | None, starts: Ints, best: Exact, limit_s: float, report: Report
) -> Exact:
    if limit_s <= 0:
        return best
    low, first, ends = _domains(instance, opened)
    scale = _scale(instance)
    weight = scale // instance.divisor
    if instance.summed:
        high = sum(int(w) * max(0, int(s) - int(r)) for w, s, r in zip(weight, starts, instance.ready))
        floor = (
            max(0, math.floor(best.lower * scale * (1 - 1e-9)) - instance.jobs)
            if np.all(scale % instance.divisor == 0)
            else 0
        )
    else:
        high, floor = int((starts + instance.length).max()), int(best.lower) + int(instance.release.min())
    pairs = [(int(a), int(b)) for rows in classes_of(instance) for a, b in pairwise(rows)]
    data: dict[str, Any] = {
        name: getattr(instance, name) for name in ("release", "length", "demand", "capacity", "ready")
    }
    data |= {
        "weight": weight,
        "first": first,
        "lows": low,
        "highs": ends,
        "pairs": np.array(pairs, np.int64).reshape(-1, 2),
    }
    data |= {"known": starts, "low": min(floor, high), "high": high, "makespan": not instance.summed}

    def unit(bound: float) -> float:
        whole = math.ceil(bound - 1e-6) if math.isfinite(bound) else bound
        return whole / scale if instance.summed else whole - int(instance.release.min())

    run = solve("cpsat", data, limit_s, lambda bound: report(unit(bound)))
    lower, prover = best.lower, best.prover
    if math.isfinite(run.bound) and unit(run.bound) > lower:
        lower, prover = unit(run.bound), f"CP-SAT, integer ({run.version or 'stopped'})"
    found = np.array(run.solution, np.int64) if run.solution is not None else None
    if found is not None and cost_or_span(instance, found) >= cost_or_span(instance, starts):
        found = None
    return Exact(lower, found, prover, run.interrupted)


def _scale(instance: Instance) -> int:
    """Whole weights scale // divisor for CP-SAT: the common multiple of all divisors if sums stay below 2^50, else as
    large as that allows (then a bit low).
    """
    most = 2**50 // max(1, instance.jobs * (instance.horizon - int(instance.release.min()) + 1))
    common = 1
    for divisor in np.unique(instance.divisor).tolist():
        common = math.lcm(common, divisor)
        if common > most:
            return max(1, most)
    return common


def _domains(instance: Instance, opened: Starts | None) -> tuple[Ints, Ints, Ints]:
    """Allowed starts as closed intervals: (lows, first interval of each job (n + 1,), highs)."""
    if opened is None:
        return instance.release, np.arange(instance.jobs + 1), instance.horizon - instance.length
    lows: list[Ints] = []
    highs: list[Ints] = []
    for job in range(instance.jobs):
        ticks = opened.ticks[opened.first[job] : opened.first[job + 1]]
        gap = np.flatnonzero(np.diff(ticks) != 1) if opened.unit == 1 else np.arange(ticks.size - 1)
        lows.append(ticks[np.concatenate([[0], gap + 1]).astype(np.int64)])
        highs.append(ticks[np.concatenate([gap, [ticks.size - 1]]).astype(np.int64)])
    return np.concatenate(lows), np.concatenate([[0], np.cumsum([a.size for a in lows])]), np.concatenate(highs)
