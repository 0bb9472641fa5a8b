"""A warm start: what a log says of the machine at its first instant, as a workload that puts it there before the replay
begins."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from escala.workload import Workload

# of the jobs: where more were running at the first end, the log begins with an empty machine, and says so itself
MOST = 0.5


class Warm(NamedTuple):
    """log: jobs that ran at `since_s` come when the log started them, those that waited then come at that instant;
    running, waiting: how many. measured: ids of the jobs that started since. since_s: None where the machine was empty
    at the beginning of the log."""

    log: Workload
    since_s: float | None
    running: int
    waiting: int
    measured: pl.Series


def warm_start(log: Workload) -> Warm:
    """The log, so that its replay begins with the machine as it was.

    Accounting has the jobs that ended in its period: those that ended before are not in it, so that it is whole only
    from the first end on. What is submitted before that finds too empty a machine in a plain replay.
    """
    known = log.jobs.with_columns(start_s=pl.col("submit_s") + pl.col("wait_s"))
    since = known.select((pl.col("start_s") + pl.col("runtime_s")).min()).item()
    started = known.filter(pl.col("start_s") < since)["job_id"] if since is not None else known["job_id"].clear()
    if not 0 < len(started) <= MOST * len(log):
        return Warm(log, None, 0, 0, known.filter(pl.col("wait_s").is_not_null())["job_id"])
    ran = pl.col("start_s") < since
    waited = ~ran.fill_null(False) & (pl.col("submit_s") < since)
    counts = known.select(ran.sum().alias("ran"), waited.sum().alias("waited")).row(0)
    moved = known.with_columns(
        submit_s=pl.when(ran).then("start_s").when(waited).then(pl.lit(since)).otherwise("submit_s")
    )
    measured = known.filter(pl.col("start_s") >= since)["job_id"]
    return Warm(log.with_jobs(moved.drop("start_s")), float(since), int(counts[0]), int(counts[1]), measured)
