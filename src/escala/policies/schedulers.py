"""The schedulers that have a name: a score and a way to walk the queue. Their table needs no compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from escala.kernel import codes
from escala.policies.scores import CHANGING, FIXED, PACKING, Score, by_size

if TYPE_CHECKING:
    from escala.options import Options
    from escala.workload import Workload


@dataclass(frozen=True)
class Scheduler:
    """A way to walk the queue, and an order: by queue, by a fixed score, or by a changing one (then `score` tells in which order the
    kernel keeps the jobs)."""

    queueing: int
    ordering: int = codes.BY_QUEUE
    score: Score | None = None
    random: bool = False
    guard_s: float = math.inf  # who has waited so long stands in front, the oldest first

    def keys(self, workload: Workload, options: Options) -> Any:
        """One key a job of the workload's table, None where the order is not fixed."""
        from escala.options import microseconds

        if self.random:
            return np.random.default_rng([options.seed, 0x5C4ED]).random(len(workload))
        if self.score is None:
            return None
        jobs = workload.jobs
        walltime = microseconds(jobs["walltime_s"].to_numpy())
        if options.estimate == "runtime":
            walltime = np.minimum(walltime, microseconds(jobs["runtime_s"].to_numpy()))
        return self.score(microseconds(jobs["submit_s"].to_numpy()), walltime, jobs["cores"].to_numpy())


def _schedulers() -> dict[str, Scheduler]:
    by_rank = codes.BY_RANK
    table = {
        "fcfs": Scheduler(codes.STRICT),
        "first-fit": Scheduler(codes.GREEDY),
        "easy": Scheduler(codes.EASY),
        "easy-fast": Scheduler(codes.EASY_FAST),
        "conservative": Scheduler(codes.CONSERVATIVE),
        "random": Scheduler(codes.GREEDY, by_rank, random=True),
    }
    for name, score in FIXED.items():
        strict = "saf-strict" if name == "saf" else name
        table[strict] = Scheduler(codes.STRICT, by_rank, score)
        table[f"{name}-fit"] = Scheduler(codes.GREEDY, by_rank, score)
        table[f"easy-{name}"] = Scheduler(codes.EASY, by_rank, score)
    for name, ordering in CHANGING.items():
        table[name] = Scheduler(codes.STRICT, ordering, by_size)
        table[f"{name}-fit"] = Scheduler(codes.GREEDY, ordering, by_size)
        table[f"easy-{name}"] = Scheduler(codes.EASY, ordering, by_size)
    for name, (ordering, score) in PACKING.items():
        table[name] = Scheduler(codes.GREEDY, ordering, score)
    table["saf"] = table["easy-saf"]
    return table


SCHEDULERS = _schedulers()
"""Every scheduler inside the kernel that has a name."""
