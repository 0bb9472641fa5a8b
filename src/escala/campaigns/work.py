"""One run of a campaign, in whatever process: its log is read once, and kept for the runs that follow."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from escala.campaigns import as_text
from escala.campaigns.runs import Run, digest_of, policies_digest
from escala.engines.by_text import ByText
from escala.errors import EscalaError, one_line
from escala.metrics.jobs import finished
from escala.metrics.recorded import recorded_waits
from escala.options import with_options
from escala.policies.run import simulate
from escala.result import Result
from escala.workload import Workload

FIGURES: dict[str, Any] = {
    **dict.fromkeys(("n_jobs", "n_completed", "n_killed", "n_rejected", "n_unfinished"), pl.Int64),
    **dict.fromkeys(("mean_bounded_slowdown", "mean_wait_s", "median_wait_s", "p95_wait_s", "p99_wait_s"), pl.Float64),
    **dict.fromkeys(
        ("longest_wait_s", "area_weighted_wait_s", "mean_stretch", "utilisation", "makespan_s"), pl.Float64
    ),
    **dict.fromkeys(("recorded_wait_s", "mean_wait_of_these_s"), pl.Float64),
}
"""The figures of every run, in the order of the table. Waits and slowdowns are over the jobs that ran to their end.
recorded_wait_s: the mean wait that the log itself tells; mean_wait_of_these_s: of its jobs in the replay; null where it
tells none."""
ENERGIES: dict[str, Any] = {"energy_j": pl.Float64, "waste_j": pl.Float64, "transitions": pl.Int64}
"""Those of runs on a platform with watts."""
TRIES = 2
LOGS_KEPT = 2

_logs: dict[str, Workload] = {}


@dataclass(frozen=True)
class Replays:
    """The work of a campaign, see `escala.engines.by_text.ByText`."""

    module: ClassVar[str] = "escala.campaigns.task"

    def __call__(self, run: Run, /) -> dict[str, Any]:
        return work(run)

    def key(self, run: Run, /) -> str:
        """Of a run."""
        return run.key

    def written(self, runs: Sequence[Run], /) -> str:
        """Runs as text."""
        return as_text.written(runs)

    @staticmethod
    def read(text: str) -> tuple[ByText, list[Any]]:
        """What was written."""
        return Replays(), as_text.read(text)


def work(run: Run) -> dict[str, Any]:
    """`found` (the figures, and what the policies know of the future) and `seconds` (of this processor) of a run;
    `error`, one line, of one that failed twice."""
    return tried(run, lambda log: figures(replayed(run, log)))


def check_policies(run: Run) -> None:
    """EscalaError where what decides in a run is not here, or is not what it was when the campaign began."""
    where = f"node {socket.gethostname()}"
    try:
        found = policies_digest(run.scheduler, run.shutdown, run.options, run.predictors)
    except EscalaError as error:
        raise EscalaError(f"{where}: {error}") from error
    if found != run.policies:
        raise EscalaError(
            f"{where} finds another agent, policy, model or plug-in than the campaign began with: give the same "
            "command again"
        )


def replayed(run: Run, log: Workload) -> Result:
    """A run; log: its jobs."""
    return simulate(log, run.platform, run.scheduler, run.shutdown, **options_of(run))


def options_of(run: Run) -> dict[str, Any]:
    """The options of a run, its seed among them. Which nodes a job had enters no figure, and is not recorded."""
    options = with_options(run.options, seed=run.seed or 0, record=False)
    return {name: getattr(options, name) for name in options.__dataclass_fields__} | dict(run.predictors)


def tried(run: Run, find: Callable[[Workload], dict[str, Any]]) -> dict[str, Any]:
    """`found` (what `find` gives of the jobs of a run) and `seconds` (of this processor); `error`, one line, where that
    failed twice."""
    why = ""
    for _ in range(TRIES):
        try:
            check_policies(run)
            log = log_of(run)
            begin = time.process_time()
            return {"found": find(log), "seconds": time.process_time() - begin}
        except EscalaError as error:
            why = str(error)
        except Exception as error:  # the other runs go on
            why = one_line(f"{type(error).__name__}: {error}")
    return {"error": why}


def log_of(run: Run) -> Workload:
    """The jobs of a run; EscalaError where they are no longer those that the campaign began with."""
    if run.digest not in _logs:
        log = run.log.load(run.seed or 0)
        if digest_of(log) != run.digest:
            raise EscalaError(
                f"log {run.log.name!r} holds other jobs than when the campaign began: give the same command again"
            )
        while len(_logs) >= LOGS_KEPT:
            del _logs[next(iter(_logs))]
        _logs[run.digest] = log
    return _logs[run.digest]


def figures(result: Result) -> dict[str, Any]:
    """The figures of a run, None for those without a value (a mean over no job), and `knows`."""
    summary = result.metrics({*FIGURES, *ENERGIES, "max_wait_s"})
    jobs = finished(result.jobs.drop("job_id", "nodes"))
    wait, area = jobs["wait_s"].to_numpy(), (jobs["runtime_s"] * jobs["cores"]).to_numpy()
    some = len(wait) > 0
    logged = recorded_waits(result.jobs) or {}
    own = {
        "p99_wait_s": float(np.percentile(wait, 99.0)) if some else math.nan,
        "recorded_wait_s": logged.get("mean_recorded_s", math.nan),
        "mean_wait_of_these_s": logged.get("mean_replayed_s", math.nan),
        "longest_wait_s": summary["max_wait_s"],
        "area_weighted_wait_s": float(wait @ area / area.sum()) if some else math.nan,
    }
    told = {name: own[name] if name in own else summary[name] for name in FIGURES}
    if "energy_j" in summary:
        told |= {name: summary[name] for name in ENERGIES}
    return {**{name: value if math.isfinite(value) else None for name, value in told.items()}, "knows": result.knows}
