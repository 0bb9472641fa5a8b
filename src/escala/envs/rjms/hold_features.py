"""What a small network for the action `hold` reads: one linear score of these numbers, rounded to the nearest choice.

Few weights, so that a direct search (`escala.agents.search`) can find them, and so that they can be read: a positive
weight means that jobs are held back longer when the number is large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import lean
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT, SUMMARY
from escala.errors import EscalaError

HOLD_FEATURES = "hold-features"
"""How presets and manifests name the numbers below."""
HISTORY, JOBS = 20, 10
"""Snapshots and waiting jobs of the compact observation that is read here."""
FEATURES = (
    "walltime of the first job",
    "cores of the first job",
    "jobs of its user in the system",
    "longest stretch so far among the waiting",
    "mean walltime of the waiting",
    "length of the queue",
    "demand of the queue",
    "computing nodes",
    "change of the computing nodes in 10 min",
    "nodes under way between on and off",
    "free cores on nodes that are on",
    "cores that no job holds",
    "some job runs",
    "youth of the youngest running job",
    "time left, by walltime, of the running job that ends first",
    "running cores, in first jobs",
    "cores of running jobs younger than 15 min, in first jobs",
    "time of day",
)
YOUNG = (15.0 / 1440.0) ** 0.5  # 15 min on the scale of the observations


JOBS_AT = HISTORY * SNAPSHOT
RUNNING_AT = JOBS_AT + JOBS * JOB
SUMMARY_AT = RUNNING_AT + RUNNING_SHOWN * RUNNING


@lean
def write_features(seen: Any, out: Any) -> None:
    """The numbers of `FEATURES`, from one compact observation."""
    now = JOBS_AT - SNAPSHOT
    before = now - 10 * SNAPSHOT
    first = max(seen[JOBS_AT], 1e-6)
    waiting = 0
    stretch = 0.0
    walls = 0.0
    for j in range(JOBS):
        at = JOBS_AT + j * JOB
        stretch = max(stretch, seen[at + 2])
        if seen[at] > 0.0:
            waiting += 1
            walls += seen[at + 1]
    runs = 0.0
    youngest = 1.0
    soonest = 1.0
    held = 0.0
    young = 0.0
    for j in range(RUNNING_SHOWN):
        at = RUNNING_AT + j * RUNNING
        if seen[at] > 0.0:
            runs = 1.0
            soonest = min(soonest, seen[at + 1])
            youngest = min(youngest, seen[at + 2])
            held += seen[at]
            if seen[at + 2] < YOUNG:
                young += seen[at]
    out[0] = seen[JOBS_AT + 1] - 0.3
    out[1] = seen[JOBS_AT] - 0.1
    out[2] = seen[JOBS_AT + 3]
    out[3] = stretch
    out[4] = walls / max(waiting, 1) - 0.3
    out[5] = seen[now + 5]
    out[6] = seen[SUMMARY_AT + 3]
    out[7] = seen[now]
    out[8] = seen[now] - seen[before]
    out[9] = seen[now + 3] + seen[now + 4]
    out[10] = seen[SUMMARY_AT]
    out[11] = seen[SUMMARY_AT + 2]
    out[12] = runs
    out[13] = 1.0 - youngest
    out[14] = soonest
    out[15] = min(held / first, 1.0)
    out[16] = min(young / first, 1.0)
    out[17] = seen[now + 7] - 0.5


@lean
def _features_of(seen: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        write_features(seen[i], out[i])


def hold_features(seen: NDArray[np.float32]) -> NDArray[np.float64]:
    """[batch, numbers] -> [batch, len(FEATURES)]."""
    check_shape(seen.shape[1:])
    out = np.empty((len(seen), len(FEATURES)))
    _features_of(seen, out)
    return out


def check_shape(shape: tuple[int, ...]) -> None:
    """EscalaError where observations are not those that are read here."""
    if shape != (SUMMARY_AT + SUMMARY,):
        raise EscalaError(
            f"extractor {HOLD_FEATURES} reads observation='compact' with history=20 and jobs=10: give these"
        )
