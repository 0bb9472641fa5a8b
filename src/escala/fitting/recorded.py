"""One replay of a log by requests, in which the features of each job are noted at its submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.platform import Platform
from escala.policies.run import Progress, simulate
from escala.policy import name_of
from escala.prediction.inside import LAST2, Recorder
from escala.workload import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """Jobs of a replay, in the log's order, [jobs]. rows [jobs, features]; runtime_s: what ran; asked: has it a request?; last2_s: the mean
    of the user's last two runs that had ended, at most the request; jobs: their rows of the log's table."""

    rows: Floats
    submit_s: Floats
    finish_s: Floats
    runtime_s: Floats
    request_s: Floats
    asked: NDArray[np.bool_]
    last2_s: Floats
    jobs: pl.DataFrame


def recorded(
    log: Workload,
    machine: Platform,
    scheduler: Any,
    features: tuple[str, ...],
    columns: tuple[str, ...],
    progress: Progress | None,
    options: Mapping[str, Any],
) -> Recorded:
    """Replay the log under a scheduler. EscalaError: the scheduler has estimates of its own."""
    wanted = features if LAST2 in features else (*features, LAST2)  # without users it is not known
    recorder = Recorder(wanted, columns)
    how = {name: value for name, value in options.items() if name not in ("estimate", "order_estimate")}
    result = simulate(log, machine, scheduler, estimate=recorder, progress=progress, **{**how, "record": False})
    if not len(recorder.rows):
        raise EscalaError(f"scheduler {quoted(name_of(scheduler))} has an estimate of its own: name it without (--scheduler)")
    ran = (result.jobs["state"] != "REJECTED").to_numpy()
    jobs = log.jobs.filter(pl.Series(ran))
    request, last2 = jobs["walltime_s"].to_numpy(), np.exp(recorder.rows[:, wanted.index(LAST2)])
    return Recorded(
        recorder.rows[:, : len(features)],
        jobs["submit_s"].to_numpy(),
        result.jobs["finish_s"].to_numpy()[ran],
        result.jobs["runtime_s"].to_numpy()[ran],
        request,
        jobs["limited"].to_numpy() if "limited" in jobs.columns else np.ones(len(jobs), bool),
        np.where(np.isnan(last2), request, np.minimum(last2, request)),
        jobs,
    )
