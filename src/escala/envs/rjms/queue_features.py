"""What a small network for escala/Scheduling-v0 reads: numbers of every waiting job, and how their two scores become
preferences.

A job whose `release` is above 0 may start; of those that may and fit, the one with the highest `order` does. If there
is none, a minute passes. So the one score says which jobs had better wait for nodes that are on, and the other which go
first: a single score for both cannot hold a job without moving it in the order. Reads the observation with
`waits=True`: without the time that a job has waited, a job that is held for nodes that are on may be held for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import lean
from escala.envs.rjms.scheduling_step import QUEUED, RUNNING, WIDTH
from escala.errors import EscalaError

QUEUE_SCORER = "queue-scorer"
"""How presets and manifests name this network."""
JOB_FEATURES = (
    "always",
    "walltime",
    "cores",
    "confidence in the walltime",
    "walltime x confidence",
    "place in the queue",
    "more cores than idle nodes have",
    "cores beyond those of idle nodes",
    "such a job x length of the queue",
    "such a job x computing nodes",
    "such a job x running jobs that should end within 15 min",
    "such a job x walltime x confidence",
    "such a job x place in the queue",
    "such a job x nodes under way between on and off",
    "such a job x its wait, up to 15 min",
    "such a job x its wait, up to 1 h",
    "such a job x its wait / walltime, up to 1",
)
SCORES = ("order", "release")
SHARPNESS = 200.0  # of the softmax over orders: draws differ from the greedy choice only where orders nearly tie
NEVER = 50.0  # in preferences, between the released jobs, the no-op, and those that are held
SOON = (15.0 / 1440.0) ** 0.5  # 15 min on the scale of the observations


@lean
def leaving_soon(seen: Any) -> float:
    """Share of the cores whose jobs should end within 15 min. seen [places, WIDTH + 1]."""
    total = 0.0
    for k in range(seen.shape[0]):
        if seen[k, QUEUED + 2] < SOON:
            total += seen[k, QUEUED]
    return total


@lean
def write_features(seen: Any, place: int, soon: float, out: Any) -> None:
    """The numbers of the job at a place, in the order of JOB_FEATURES. seen [places, WIDTH + 1], of which the snapshots
    but the newest are not read; soon: `leaving_soon` of it."""
    places = seen.shape[0]
    now = QUEUED + RUNNING  # given cores, queue length, time of day, nodes in the five states
    queue, computing, idle = seen[places - 1, now + 1], seen[places - 1, now + 3], seen[places - 1, now + 4]
    cores, wall, confidence = seen[place, 0], seen[place, 1], seen[place, 2]
    day_waited = seen[place, WIDTH] * seen[place, WIDTH]  # in days, as walltimes are after squaring
    beyond = max(cores - idle - 1e-6, 0.0)
    wakes = 1.0 if beyond > 0.0 else 0.0
    out[0] = 1.0
    out[1] = wall
    out[2] = cores
    out[3] = confidence
    out[4] = wall * np.sqrt(max(confidence, 0.0))
    out[5] = place / max(places - 1, 1)
    out[6] = wakes
    out[7] = beyond
    out[8] = wakes * queue
    out[9] = wakes * computing
    out[10] = wakes * soon
    out[11] = wakes * out[4]
    out[12] = wakes * out[5]
    out[13] = wakes * (seen[places - 1, now + 6] + seen[places - 1, now + 7])
    out[14] = wakes * min(day_waited * 96.0, 1.0)
    out[15] = wakes * min(day_waited * 24.0, 1.0)
    out[16] = wakes * min(day_waited / max(wall * wall, 1e-6), 1.0)


@lean
def _features_of(seen: Any, row: Any, place: Any, out: Any) -> None:
    last = -1
    soon = 0.0
    for k in range(out.shape[0]):
        if row[k] != last:
            last = row[k]
            soon = leaving_soon(seen[last])
        write_features(seen[row[k]], place[k], soon, out[k])


def job_features(seen: NDArray[np.float32], row: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.float64]:
    """[batch, places, WIDTH + 1], and where some jobs are in it, row [jobs] and place [jobs] -> [jobs,
    len(JOB_FEATURES)]."""
    if seen.shape[2] != WIDTH + 1:
        raise EscalaError(
            f"extractor {QUEUE_SCORER} reads {WIDTH + 1} numbers a place, got {seen.shape[2]}: use waits=True"
        )
    out = np.empty((len(row), len(JOB_FEATURES)))
    _features_of(seen, row, place, out)
    return out
