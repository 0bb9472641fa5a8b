"""Slurm's rules under several phases of slurmctld's clocks: one second decides, so one replay is one sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.options import Options, with_options
from escala.platform import Platform
from escala.platform.site import site_of
from escala.result import Result
from escala.slurm.in_name import changed
from escala.slurm.run import run_slurm
from escala.slurm.settings import WHOLE_SECONDS, Settings, settings_of
from escala.workload import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ensemble:
    """`results`: one a draw. `phases`: started_s, tick_s, mean_wait_s, makespan_s of each."""

    results: tuple[Result, ...]
    phases: pl.DataFrame

    @property
    def mean_waits_s(self) -> list[float]:
        """Mean wait of each draw, s."""
        return [float(one) for one in self.phases["mean_wait_s"]]

    def starts(self) -> pl.DataFrame:
        """job_id, and over the draws the least, mean and greatest start_s: how far each start is decided by more than
        chance."""
        table = pl.concat([one.jobs.select("job_id", "start_s") for one in self.results])
        start = pl.col("start_s")
        return table.group_by("job_id", maintain_order=True).agg(
            least_s=start.min(), mean_s=start.mean(), greatest_s=start.max()
        )


def ensemble(
    workload: Workload,
    platform: Platform,
    scheduler: str | Settings = "slurm",
    *,
    draws: int = 20,
    seed: int = 0,
    **options: Any,
) -> Ensemble:
    """Replay a workload `draws` times under phases drawn anew: the second in which slurmctld started (within a minute
    before the clock's zero), the distance to its event passes (within 1 s), and how late its sleeps are (up to 2 and 3
    ms). EscalaError for draws < 1, and as `simulate`."""
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise EscalaError(f"ensemble: draws={draws!r}: give a whole number of at least 1")
    site = site_of(platform)
    base = scheduler if isinstance(scheduler, Settings) else changed(settings_of(site), scheduler)
    results, rows = [], []
    for started, tick, drift, every in _phases(draws, seed):
        settings = replace(
            base, started_s=started, tick_s=tick, drift_s=drift, tick_every_s=every, phase_s=None, passes_s=()
        )
        if base.version >= WHOLE_SECONDS:
            settings = replace(settings, tick_s=None, tick_every_s=None)
        result = run_slurm(workload, site, settings, with_options(Options(), **options))
        summary = result.summary()
        results.append(result)
        rows.append((started, tick, summary["mean_wait_s"], summary["makespan_s"]))
    names = dict.fromkeys(("started_s", "tick_s", "mean_wait_s", "makespan_s"), pl.Float64)
    return Ensemble(tuple(results), pl.DataFrame(rows, schema=names, orient="row"))


def _phases(draws: int, seed: int) -> list[tuple[float, float, float, float]]:
    """started_s, tick_s, drift_s, tick_every_s of each draw; the parts of a second are spread evenly."""
    drawn = np.random.default_rng([seed, 0x510])

    def spread() -> Floats:
        return (drawn.permutation(draws) + drawn.random(draws)) / draws

    started = -1.0 - drawn.integers(0, 60, draws) - spread()
    columns = (started, started + spread(), 0.002 * spread(), 1 + 0.003 * spread())
    return [tuple(map(float, one)) for one in zip(*columns, strict=True)]  # type: ignore[misc]
