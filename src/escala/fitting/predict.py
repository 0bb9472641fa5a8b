"""`predict`: a model of run times, fitted to a log's past and judged on its later jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.admit import met
from escala.errors import EscalaError, quoted, refuse_text
from escala.extras import need
from escala.fitting import accuracy
from escala.fitting.predicted import Predicted
from escala.fitting.recorded import Recorded, recorded
from escala.fitting.trees import fitted
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.pairs import Begin
from escala.policies.run import read
from escala.policy import name_of
from escala.prediction.features import COLUMNS, known_by
from escala.prediction.keys import check_columns, there_in
from escala.prediction.model import Model, Stage, is_dated
from escala.prediction.trees import read_trees
from escala.workload import Workload, read_workload
from escala.workload.transform import share_of
from escala.writing import Pieces

STAGES = 5
"""A model is fitted anew at so many instants of the past, the last of them its end, each time on what had ended by
then: so that a replay of the past itself does not meet trees that know its future."""
LEAST_JOBS = 50
"""Stages that would know fewer jobs are left out."""
REQUEST, LAST2, MODEL = "request", "last2", "model"


def predict(
    workload: Any,
    platform: Any = None,
    *,
    after: str | float = "60%",
    by: Sequence[str] | None = None,
    scheduler: Any = "easy",
    seed: int = 0,
    begin: Begin | None = None,
    pieces: Pieces | None = None,
    **options: Any,
) -> Predicted:
    """Fit a model of run times to a log's past, and judge it on its later jobs.

    What a model sees of a job is known at its submission: its request and cores, what the jobs that are alike in some
    column (the same user, the same program, ...) ran, of those that had ended in a replay of the log, and the hour.
    workload, platform: see `simulate`; without a platform the log's own number of cores. after: the share of the log's
    time that is its past. by: columns of the log that the model may go by, of user, group, account, queue, partition,
    qos, executable, job_name; None: all in which the log says something.
    scheduler: of that replay. seed: of the fit. begin: told what is done now, gives what to tell the share done.
    pieces: where the replay and each fit are kept as soon as they are finished. options: as of `simulate`.
    EscalaError: LightGBM is not installed, a log without requests, a column that it lacks, too few jobs that have
    ended.
    """
    need("predict", "predict")
    share = check_asked(after, by, options, seed)
    log, machine = _read(workload, platform)
    _check_log(log)
    columns, dated = _columns(log, by), is_dated(log.origin_s)
    features = known_by(columns, dated)
    first, last = float(log.jobs["submit_s"][0]), float(log.jobs["submit_s"][-1])
    at = first + share * (last - first)
    told, pieces = begin or (lambda _: None), pieces or Pieces(None, None)
    watched = told(f"replaying {len(log):,} jobs under {name_of(scheduler)}")
    found = recorded(log, machine, scheduler, features, columns, watched, {**options, "seed": seed}, pieces)
    stages, gain = _stages(found, features, (first, at), log.origin_s if dated else 0.0, seed, told, pieces)
    model = Model(features, columns, dated, stages)
    about = {
        "escala": version("escala"),
        "workload": {"name": log.name, "jobs": len(log), "sha256": log.digest()},
        "platform": machine.name,
        "asked": {"after": str(after), "by": list(columns), "scheduler": name_of(scheduler), "seed": seed, **options},
        "split": {"at_s": at, "first_s": first, "last_s": last},
    }
    return _judged(model, found, at, gain, about)


def model_of(
    log: Workload,
    machine: Platform,
    at_s: float,
    *,
    seed: int = 0,
    begin: Begin | None = None,
    pieces: Pieces | None = None,
    **options: Any,
) -> Model:
    """A model of run times fitted to jobs that ended by `at_s`, on the log's clock: nothing behind it is looked at. Its
    stages are those of `predict`, which also judges it. log, machine: as the machine runs the log. pieces: as of
    `predict`. EscalaError: as of `predict`."""
    need("predict", "predict")
    _check_log(log)
    past = log.with_jobs(log.jobs.filter(pl.col("submit_s") < at_s))
    columns, dated = _columns(past, None), is_dated(past.origin_s)
    features = known_by(columns, dated)
    told, pieces = begin or (lambda _: None), pieces or Pieces(None, None)
    found = recorded(past, machine, "easy", features, columns, None, {**options, "seed": seed}, pieces)
    span = float(past.jobs["submit_s"][0]), at_s
    return Model(
        features, columns, dated, _stages(found, features, span, past.origin_s if dated else 0.0, seed, told, pieces)[0]
    )


def check_asked(after: str | float, by: Sequence[str] | None, options: Mapping[str, Any], seed: int = 0) -> float:
    """The share of the log's time that is its past; EscalaError for what makes no sense whatever the log. See
    `predict`."""
    share = share_of(after)
    refuse_text(by=by)
    unknown = next((name for name in by or () if name not in COLUMNS), None)
    if unknown is not None:
        raise EscalaError(f"by={quoted(unknown)} (--by): a model may go by {', '.join(COLUMNS)}")
    how = with_options(Options(), **options, seed=seed)
    if how.until_s is not None or how.start_off:
        raise EscalaError("predict replays a whole log on nodes that are on: leave --stop-at and --start-off out")
    if how.estimate != "walltime" or how.ordered_by != "walltime":
        raise EscalaError("predict replays by what jobs ask for: leave --estimate and --order-estimate out")
    return share


def _read(workload: Any, platform: Any) -> tuple[Workload, Platform]:
    """The log, as it runs on the platform, and the platform."""
    log = workload if isinstance(workload, Workload) else read_workload(workload)
    if platform is None and log.max_cores is None:
        raise EscalaError(
            f"workload {log.name!r} does not tell the cores of its machine: name a platform (--platform NODESxCORES)"
        )
    log, machine = read(log, f"1x{log.max_cores}" if platform is None else platform)
    return met(log, machine), machine


def _check_log(log: Workload) -> None:
    if "limited" in log.jobs.columns and not log.jobs["limited"].any():
        raise EscalaError(
            f"workload {log.name!r}: no job tells the time that it asks for, so every policy is given its run time "
            "and a prediction is of no use: read the log with a limit in seconds (--no-request SECONDS)"
        )


def _columns(log: Workload, by: Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return there_in(log.jobs)
    check_columns(log.jobs, tuple(by), "the model asked for", log.name)
    return tuple(name for name in COLUMNS if name in by)


def _stages(
    found: Recorded,
    features: tuple[str, ...],
    past: tuple[float, float],
    origin_s: float,
    seed: int,
    told: Begin,
    pieces: Pieces,
) -> tuple[tuple[Stage, ...], dict[str, float]]:
    """(the stages, what share of the gain is each feature's in the last). past: from when to when, s on the log's
    clock."""
    stages, gain = list[Stage](), dict[str, float]()
    share = told("fitting")
    for number in range(1, STAGES + 1):
        since = past[0] + (past[1] - past[0]) * number / STAGES
        ended = found.finish_s <= since
        count = int(ended.sum())
        if count >= LEAST_JOBS:
            text, gain = pieces.value(
                f"fit {number}", partial(fitted, found.rows[ended], found.runtime_s[ended], features, seed)
            )
            stages.append(
                Stage(since + origin_s, read_trees(text, Path("LightGBM's trees"), len(features)), text, count)
            )
        elif number == STAGES:
            raise EscalaError(
                f"only {count} jobs have ended by the end of the past, and a model needs {LEAST_JOBS}: give more of "
                "the log"
            )
        if share is not None:
            share(number / STAGES)
    return tuple(stages), gain


def _judged(model: Model, found: Recorded, at: float, gain: dict[str, float], about: dict[str, Any]) -> Predicted:
    """What the model gives for the jobs submitted after the split that have a request."""
    later = (found.submit_s >= at) & found.asked
    if not later.any():
        raise EscalaError(
            "no job with a request is submitted after the past: give a smaller share of the log (--after), or more of "
            "it"
        )
    runtime, request = found.runtime_s[later], found.request_s[later]
    own = np.minimum(model.seconds(model.stages[-1], found.rows[later]), request)
    predictions = {REQUEST: request, LAST2: found.last2_s[later], MODEL: own}
    user, cores = found.jobs["user"], found.jobs["cores"].to_numpy().astype(np.float64)[later]
    past = user.filter(found.submit_s < at)
    user = user.filter(later)
    return Predicted(
        model,
        {name: accuracy.figures(each, runtime) for name, each in predictions.items()},
        accuracy.by_size(cores, predictions, runtime),
        accuracy.by_past(user, past, predictions, runtime),
        accuracy.users_nearer(user, predictions, runtime, MODEL),
        gain,
        {**about, "later_jobs": int(later.sum())},
    )
