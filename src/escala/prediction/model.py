"""A model of run times: for stretches of a log's time trees that were fitted on what had ended before each."""

from __future__ import annotations

import functools
import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.prediction.features import COLUMNS, FEATURES, columns_of, known_by
from escala.prediction.folder import AGAIN, MANIFEST, manifest_of, model_digest, text_of
from escala.prediction.trees import Trees, evaluate, read_trees

DATED_FROM_S = 5e8
"""A clock whose 0 is later than this (1985), in Unix seconds, is known."""
LONGEST_LOG = 30.0
MOST_STAGES = 100


@dataclass(frozen=True)
class Stage:
    """Trees that know the jobs which had ended at `since_s`, and tell the log of a run time in s. jobs: how many these
    were."""

    since_s: float
    trees: Trees
    text: str
    jobs: int


@dataclass(frozen=True)
class Model:
    """Stages in the order of their times. features: what they look at; columns: the columns of a log that these need.
    dated: are times Unix seconds, or those of a log's own clock?"""

    features: tuple[str, ...]
    columns: tuple[str, ...]
    dated: bool
    stages: tuple[Stage, ...]
    name: str = "model"

    def stage_at(self, at_s: float, origin_s: float) -> Stage | None:
        """The stage that may be used at a time on the clock of a log with this origin: the last that was fitted by
        then; None before the first. Where one of both clocks is not known, the last."""
        if self.dated != is_dated(origin_s):
            return self.stages[-1]
        at_s = at_s + origin_s if self.dated else at_s
        return next((stage for stage in reversed(self.stages) if stage.since_s <= at_s), None)

    def estimate(self, view: Any, job: Any) -> float:
        """Nobody asks this: simulations ask a model in their own way, whether they are given it or the name of its
        folder."""
        raise EscalaError("a model of run times works inside a simulation alone")

    def seconds(self, stage: Stage, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run times, s, of jobs by their features [jobs, features]."""
        found = np.empty(len(rows))
        evaluate(stage.trees, rows, found)
        return np.exp(np.clip(found, -LONGEST_LOG, LONGEST_LOG))


def is_dated(origin_s: float) -> bool:
    """Does a log with this origin know the date?"""
    return origin_s >= DATED_FROM_S


def read_model(estimate: str, folder: Path) -> Model:
    """The model `estimate` of a folder; EscalaError, one line, for another version, and for a folder that is not as it
    was written."""
    digests = model_digest(estimate)
    manifest_of(folder)
    return _read(folder, next(iter(digests.values())), estimate)


@functools.lru_cache(maxsize=4)
def _read(folder: Path, digest: str, estimate: str) -> Model:
    told = manifest_of(folder)
    path = folder / MANIFEST
    features, columns = _names(told.get("features"), FEATURES), _names(told.get("columns"), COLUMNS)
    dated, stages = told.get("dated"), told.get("stages")
    if features is None or columns is None or not isinstance(dated, bool):
        raise EscalaError(f"{path}: tells features or columns that this version does not know: {AGAIN}")
    needed = {one for name in features for one in columns_of(name)}
    if not needed <= {*columns, "program"} or not set(features) <= set(known_by(columns, dated)):
        raise EscalaError(f"{path}: its features need other columns than it tells: {AGAIN}")
    if not isinstance(stages, list) or not 1 <= len(stages) <= MOST_STAGES:
        raise EscalaError(f"{path}: stages are {quoted(stages)}: {AGAIN}")
    made = tuple(_stage(folder, told, one, len(features)) for one in stages)
    if any(after.since_s < before.since_s for before, after in itertools.pairwise(made)):
        raise EscalaError(f"{path}: its stages are not in the order of their times: {AGAIN}")
    return Model(features, columns, dated, made, estimate)


def _names(given: Any, known: Any) -> tuple[str, ...] | None:
    """The list, if it is one of known names, each once."""
    listed = (
        isinstance(given, list)
        and all(isinstance(name, str) and name in known for name in given)
        and len(set(given)) == len(given)
    )
    return tuple(given) if listed else None


def _stage(folder: Path, manifest: dict[str, Any], told: Any, features: int) -> Stage:
    one = told if isinstance(told, dict) else {}
    file, since, jobs = one.get("file"), _finite(one.get("since_s")), one.get("jobs")
    if (
        not isinstance(file, str)
        or not re.fullmatch(r"[\w-]+\.txt", file)
        or since is None
        or not isinstance(jobs, int)
    ):
        raise EscalaError(f"{folder / MANIFEST}: a stage is {quoted(told)}: {AGAIN}")
    text = text_of(folder, manifest, file)
    return Stage(since, read_trees(text, folder / file, features), text, jobs)


def _finite(value: Any) -> float | None:
    """The number, if it is a finite one."""
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        else None
    )
