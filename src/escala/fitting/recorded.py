"""One replay of a log by requests, in which the features of each job are noted at its submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
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
from escala.writing import Pieces

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """Jobs of a replay, in the log's order, [jobs]. rows [jobs, features]; runtime_s: what ran; asked: has it a
    request?; last2_s: the mean of the user's last two runs that had ended, at most the request; jobs: their rows of the
    log's table."""

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
    pieces: Pieces,
) -> Recorded:
    """Replay the log under a scheduler, as a piece. EscalaError: the scheduler has estimates of its own."""
    wanted = features if LAST2 in features else (*features, LAST2)  # without users it is not known
    how = {name: value for name, value in options.items() if name not in ("estimate", "order_estimate")}

    def replay() -> dict[str, Any]:
        recorder = Recorder(wanted, columns)
        result = simulate(log, machine, scheduler, estimate=recorder, progress=progress, **{**how, "record": False})
        if not len(recorder.rows):
            raise EscalaError(
                f"scheduler {quoted(name_of(scheduler))} has an estimate of its own: name it without (--scheduler)"
            )
        ran = (result.jobs["state"] != "REJECTED").to_numpy()
        return {
            "ran": ran,
            "rows": recorder.rows,
            **{name: result.jobs[name].to_numpy()[ran] for name in ("finish_s", "runtime_s")},
        }

    found = pieces.file("replay", replay, _write, _read)
    jobs = log.jobs.filter(pl.Series(found["ran"]))
    request, last2 = jobs["walltime_s"].to_numpy(), np.exp(found["rows"][:, wanted.index(LAST2)])
    return Recorded(
        found["rows"][:, : len(features)],
        jobs["submit_s"].to_numpy(),
        found["finish_s"],
        found["runtime_s"],
        request,
        jobs["limited"].to_numpy() if "limited" in jobs.columns else np.ones(len(jobs), bool),
        np.where(np.isnan(last2), request, np.minimum(last2, request)),
        jobs,
    )


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    with path.open("wb") as stream:
        np.savez(stream, **arrays)


def _read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)
