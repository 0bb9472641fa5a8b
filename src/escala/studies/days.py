"""Judging policies day by day: each day of a log is one episode, and every policy runs the same days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

import escala
from escala.platform import Platform
from escala.workload import Workload

DAY_S = 86400.0
METRICS = ("waste_j", "energy_j", "transitions", "mean_wait_s", "mean_bounded_slowdown", "mean_stretch")


def days_of(workload: Workload, least: int = 2) -> list[Workload]:
    """The days of a log in time order, each with its own midnight as time 0. Days begin at midnight UTC where the log has absolute times;
    days with fewer than `least` jobs are left out, as in R. B. Casagrande's dissertation (2020).
    """
    return [day for day in workload.split_days(origin_s=-(workload.origin_s % DAY_S)) if len(day) >= least]


def judge(
    days: Sequence[Workload],
    platform: Platform,
    policies: Mapping[str, tuple[Any, Any]],
    *,
    metrics: Sequence[str] = METRICS,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> pl.DataFrame:
    """One row per policy and day: policy, episode, day (its name) and the metrics of that day's run.

    policies: name -> (scheduler, shutdown). A day is run until its last job is done, with all nodes off at its start; `options` go to
    `escala.simulate`. progress: called with the share done.
    """
    rows = []
    for name, (scheduler, shutdown) in policies.items():
        for number, day in enumerate(days):
            result = escala.simulate(day, platform, scheduler=scheduler, shutdown=shutdown, **{"start_off": True, **options})
            summary = result.summary()
            rows.append({"policy": name, "episode": number, "day": day.name, **{metric: float(summary[metric]) for metric in metrics}})
            if progress is not None:
                progress(len(rows) / (len(days) * len(policies)))
    return pl.DataFrame(rows)
