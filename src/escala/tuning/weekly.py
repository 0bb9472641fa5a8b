"""Waits of several schedules of one log on its later weeks, each beside the first's, with intervals over weeks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from escala.errors import EscalaError, quoted
from escala.options import Options, with_options
from escala.platform import Platform
from escala.result import Result
from escala.tuning.judge import Ratio, ratios
from escala.tuning.measures import Figures, Floats, Jobs, figures, jobs_of
from escala.tuning.split import DAY_S, Split, split_of
from escala.workload import Workload


@dataclass(frozen=True)
class Weekly:
    """Waits of the jobs submitted in the last `days` of a log, under each policy, and each one's ratios to the first
    with their 95 % intervals over `weeks` weeks (`escala.tuning.judge.RATIOS`)."""

    days: float
    weeks: int
    figures: dict[str, Figures]
    ratios: dict[str, dict[str, Ratio]]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def weekly(jobs: Jobs, split: Split, waits: Mapping[str, Floats], seed: int = 0) -> Weekly:
    """Judge schedules on the later weeks. jobs: those submitted then; waits: of each policy, s, [jobs]; seed: of the
    resamples."""
    week, first = split.later_weeks(jobs.submit_s), next(iter(waits))
    return Weekly(
        (split.last_s - split.at_s) / DAY_S,
        int(week.max()) + 1,
        {name: figures(jobs, each) for name, each in waits.items()},
        {name: ratios(jobs, each, waits[first], week, seed) for name, each in waits.items() if name != first},
    )


def later_weeks_of(log: Workload, after: str | float, **options: Any) -> Split:
    """Where the later weeks of replays with these options begin; see `later_weeks`."""
    if with_options(Options(), **options).until_s is not None:
        raise EscalaError("later weeks are of whole replays: leave --stop-at (until_s) out, or --after")
    return split_of(log, after)


def later_weeks(
    results: Mapping[str, Result], log: Workload, platform: Platform, after: str | float, **options: Any
) -> Weekly:
    """Runs of one whole log, such as those of `escala.compare`, on its weeks after this share of its time ("60%").

    options: those of the runs. EscalaError: a log of less than three weeks, a run that is cut, a later job that never
    started.
    """
    split = later_weeks_of(log, after, **options)
    every = jobs_of(log, platform, with_options(Options(), **options))
    later = every.part(every.submit_s >= split.at_s)
    waits = {name: result.jobs["wait_s"].to_numpy()[later.row] for name, result in results.items()}
    for name, each in waits.items():
        if never := int(np.isnan(each).sum()):
            raise EscalaError(
                f"policy {quoted(name)}: {never} of {len(each)} jobs of the later weeks never started: waits on them "
                "cannot be compared; leave --after out"
            )
    return weekly(later, split, waits)
