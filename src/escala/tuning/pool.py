"""One score for several logs: weights searched on parts of all of them at once, each log with a guard by its own
easy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from escala.engines.threads import Threads
from escala.errors import EscalaError
from escala.options import Options, with_options
from escala.policies.linear import Linear
from escala.policies.pairs import Begin
from escala.policies.run import read
from escala.policies.score_files import written
from escala.tuning.candidates import BASELINES
from escala.tuning.ground import Ground, ground
from escala.tuning.measures import OBJECTIVES, figures
from escala.tuning.promise import promise_of
from escala.tuning.replays import Replays, watching
from escala.tuning.tuner import DEFAULT_PROMISE
from escala.tuning.weights import Point, linear_at, scheduler_at, searched
from escala.writing.files import write_whole

JOBS = 5000
"""Of each log the last jobs are searched on: no log has more say than another."""
SEARCHES = 5
LEAST_GUARD_S = 24 * 3600.0
HOUR_S = 3600.0


@dataclass(frozen=True)
class Pooled:
    """A score for several logs. score: the mean of all searches; ends: where each of them ended; estimate: what it
    orders by; logs: their names."""

    score: Linear
    ends: list[Linear]
    estimate: str
    logs: list[str]

    def save(self, path: str | Path, *comments: str) -> Path:
        """Write the score into a file, as `easy:queue=score:FILE` reads it."""
        write_whole(
            path, written(self.score, *comments, f"Searched on {', '.join(self.logs)}; ordered by {self.estimate}.")
        )
        return Path(path)


def pooled(
    logs: Sequence[tuple[Any, Any]],
    *,
    estimate: str = "last2",
    objective: str = "slowdown",
    promise: str = DEFAULT_PROMISE,
    searches: int = SEARCHES,
    most: int = JOBS,
    seed: int = 0,
    jobs: int | None = None,
    begin: Begin | None = None,
    **options: Any,
) -> Pooled:
    """Search the weights of one linear score on several logs, each a pair (workload, platform) as of `simulate`.

    estimate: by which jobs are ordered. objective, promise: as of `tune`; what is made small is the mean over the logs.
    searches: of which the mean is taken. most: jobs of each log, the last ones. The guard is no part of it: in the
    search it is easy's longest wait on each log, at least 24 h; `tune` chooses one by replay of a log's own past.
    EscalaError: no log, and as of `simulate`.
    """
    if not logs:
        raise EscalaError("pooled needs at least one log: give pairs of a workload and a platform")
    how = with_options(Options(), **{**options, "order_estimate": estimate})
    wanted = OBJECTIVES[objective], promise_of(promise, list(BASELINES))
    grounds, names = list[tuple[Ground, float]](), list[str]()
    for workload, platform in logs:
        log, machine = read(workload, platform)
        last = log.with_jobs(log.jobs.tail(most))
        found = ground(
            Replays(machine, how, options, None, begin, None if jobs is None else Threads(jobs)),
            last,
            (-np.inf, np.inf),
            BASELINES,
            wanted,
        )
        assert found is not None
        longest = figures(found.copies[0].jobs, found.copies[0].easy)["longest_wait_s"]
        grounds.append((found, max(longest, LEAST_GUARD_S)))
        names.append(log.name)
    told = watching(begin, f"searching weights on {len(grounds)} logs at once")
    ends = list[Point]()
    for number in range(searches):
        ends.append(
            searched(lambda points, turn: _costs(grounds, estimate, points, turn), lambda point: point, seed + number)
        )
        if told is not None:
            told("", (number + 1) / searches)
    return Pooled(linear_at(np.mean(ends, axis=0)), [linear_at(end) for end in ends], estimate, names)


def _costs(grounds: Sequence[tuple[Ground, float]], estimate: str, points: Sequence[Point], turn: int) -> list[float]:
    """The mean cost over the logs of each point."""
    total = np.zeros(len(points))
    for place, guard_s in grounds:
        here = [np.append(point[:-1], np.log10(guard_s / HOUR_S)) for point in points]
        schedulers = [scheduler_at(point, estimate, estimate) for point in here]
        total += place.replays.each(schedulers, partial(place.cost, turn=turn))
    return list(total / len(grounds))
