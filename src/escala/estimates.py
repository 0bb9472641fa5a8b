"""How long jobs are expected to run: the requests, the run times, a prediction of the simulation itself, or one from
outside.

- walltime: the request (the default)
- runtime: what the job will run, where nodes differ in speed on the slowest; no scheduler of a real machine knows that
- last2: the mean of the last two runs of the same user that ended in this simulation, at most the request (Tsafrir,
  Etsion, Feitelson 2007, "Backfilling Using System-Generated Predictions Rather than User Runtime Estimates")
- COLUMN: a column of the workload whose name begins with `estimate_`, s
- model:DIR: the model of run times in this folder (`escala predict`), asked when a job is submitted
- an object with `estimate(view, job)`: asked when a job is submitted, s

An estimate is never a limit: a job that outlives it runs on to its request, and its planned end moves
(`Options.corrections_s`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from escala.errors import EscalaError, quoted
from escala.foresight import RUNTIME as RUNTIME
from escala.kernel import codes
from escala.prediction.folder import PREFIX, folder_of, is_model, manifest_of

if TYPE_CHECKING:
    import polars as pl

WALLTIME, LAST2 = "walltime", "last2"
NAMES = (WALLTIME, RUNTIME, LAST2)
COLUMN = "estimate_"
"""How the name of a column with estimates begins."""
CORRECTIONS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0, 180000.0, 360000.0)
"""As in the same paper: 1, 5, 15, 30 minutes, then 1, 2, 5, 10, 20, 50, 100 hours."""
MOST_CORRECTIONS = 1000


def check_estimate(estimate: Any, option: str) -> None:
    """EscalaError for what is no estimate. option: its name."""
    if is_model(estimate):
        try:
            manifest_of(folder_of(estimate))
        except EscalaError as error:
            raise EscalaError(f"option {option}={quoted(estimate)}: {error}") from None
        return
    if isinstance(estimate, str) and (estimate in NAMES or estimate.startswith(COLUMN)):
        return
    if (
        not isinstance(estimate, str)
        and callable(getattr(estimate, "estimate", None))
        and not isinstance(estimate, type)
    ):
        return
    known = (
        f"{', '.join(NAMES)}, a column of the log whose name begins with {COLUMN}, {PREFIX}DIR, or an object with "
        "estimate(view, job)"
    )
    near = difflib.get_close_matches(estimate, NAMES, n=1) if isinstance(estimate, str) else []
    hint = f"did you mean {near[0]}? " if near else ""
    raise EscalaError(f"option {option}={quoted(estimate)} is not known: {hint}use {known}")


def check_corrections(given: Any) -> tuple[float, ...]:
    """Seconds, each above 0, as plain numbers; EscalaError for anything else."""
    if type(given) is tuple and given == CORRECTIONS_S:
        return CORRECTIONS_S
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) <= MOST_CORRECTIONS:
        steps = tuple(
            float(step) if isinstance(step, Real) and not isinstance(step, bool) else math.nan for step in given
        )
        if all(1e-6 <= step <= 1e10 for step in steps):
            return steps
    raise EscalaError(
        f"option corrections_s={quoted(given)} (--corrections): give seconds above 0, such as (60, 300, 900), at most "
        f"{MOST_CORRECTIONS}"
    )


def way_of(estimate: Any) -> int:
    """How an estimate becomes known: codes.BEFOREHAND, LAST2 or ASKED."""
    if not isinstance(estimate, str) or is_model(estimate):
        return codes.ASKED
    return codes.LAST2 if estimate == LAST2 else codes.BEFOREHAND


def name_of_estimate(estimate: Any) -> Any:
    """As it stands in a manifest: the text, or the name of an object."""
    if estimate is None or isinstance(estimate, str):
        return estimate
    return str(getattr(estimate, "name", None) or type(estimate).__name__)


def lengths_us(estimate: Any, jobs: pl.DataFrame, speed: float = 1.0) -> Any:
    """int64 [jobs]: what is expected of each job of a workload's table, us, 1 to the request. What becomes known at
    submission only is the request here. speed: of the nodes on which `runtime` is meant. EscalaError for a column that
    is not there."""
    walltime = microseconds(jobs["walltime_s"].to_numpy())
    if estimate == RUNTIME and speed != 1.0:
        return np.minimum(runtimes_us(jobs, speed), walltime)
    if estimate == RUNTIME:
        return np.minimum(microseconds(jobs["runtime_s"].to_numpy()), walltime)
    if way_of(estimate) != codes.BEFOREHAND or estimate == WALLTIME:
        return walltime
    if estimate not in jobs.columns:
        there = [name for name in jobs.columns if name.startswith(COLUMN)]
        has = f"it has {', '.join(there)}" if there else f"it has no column {COLUMN}..."
        raise EscalaError(
            f"estimate {quoted(estimate)}: the log lacks this column: {has}; use walltime or last2, or add the column"
        )
    return np.clip(microseconds(jobs[estimate].to_numpy()), 1, walltime)


def runtimes_us(jobs: pl.DataFrame, speed: Any = 1.0) -> Any:
    """int64 [jobs]: how long the jobs of a workload's table run, us, on nodes of this relative speed (one, or one a
    job) and without a limit. Those that do not compute (load 0) take their time."""
    runtime = microseconds(jobs["runtime_s"].to_numpy())
    if isinstance(speed, float) and speed == 1.0:
        return runtime
    lasts = np.clip(np.floor(runtime / speed + 0.5), 1, codes.LONGEST_US).astype(np.int64)
    return np.where((jobs["load"].to_numpy() > 0) & (speed != 1.0), lasts, runtime)


def foretold(names: Iterable[str], jobs: pl.DataFrame) -> list[str]:
    """[RUNTIME] where one of these columns, whatever its name says, is how long the jobs really run; [] where none
    is."""
    named = [name for name in names if name.startswith(COLUMN) and name in jobs.columns]
    if not named:
        return []
    run = lengths_us(RUNTIME, jobs)
    asked = lengths_us(WALLTIME, jobs)
    return (
        [RUNTIME] if (run != asked).any() and any(np.array_equal(lengths_us(name, jobs), run) for name in named) else []
    )


def microseconds(seconds: Any) -> Any:
    """Seconds -> integer microseconds, half up."""
    from escala.kernel.clock import SECOND

    us = np.asarray(np.asarray(seconds, np.float64) * SECOND)
    us += 0.5
    return np.floor(us, out=us).astype(np.int64)[()]


def microseconds_of(given: Any, limit_us: int, name: str, job_id: str) -> int:
    """What an object said of a job, 1 us to its request; EscalaError unless it is a number of seconds above 0."""
    from escala.kernel.clock import SECOND

    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if isinstance(given, bool | str) or not 0.0 < seconds < math.inf:
        raise EscalaError(
            f"{name}: estimate(view, job) gave {quoted(given)} for job {quoted(job_id)}: return a number of seconds "
            "above 0"
        )
    return int(min(max(math.floor(min(seconds, limit_us / SECOND) * SECOND + 0.5), 1), limit_us))
