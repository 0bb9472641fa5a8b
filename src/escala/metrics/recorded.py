"""The waits that a log itself recorded beside those of its replay, over the same jobs: is the replay like the machine?

A replay knows partitions, and nodes that failed, on a site that describes them, and limits and reservations by Slurm's
rules alone. Where the log's own waits are at hand they show what that costs. A replay *does not resemble* its log where
the two mean waits differ by more than a factor of `FACTOR` and by more than `LEAST_S`: a rule of thumb that lets other
policies of the same kind pass, and stops a replay in which nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from escala.metrics.jobs import FINISHED

FACTOR = 2.0
LEAST_S = 60.0
RECORDED, REPLAYED = "recorded_wait_s", "wait_s"


def resembles(recorded_s: float, replayed_s: float) -> bool:
    """Are two mean waits alike by the rule above?"""
    low, high = sorted((recorded_s, replayed_s))
    return high - low <= LEAST_S or high <= FACTOR * low


def recorded_waits(jobs: pl.DataFrame) -> dict[str, Any] | None:
    """Both waits over the finished jobs whose wait the log recorded, s; None where there is none.

    jobs (how many they are), of (finished jobs), mean_recorded_s, median_recorded_s, mean_replayed_s,
    median_replayed_s, resembles (the rule of this module), and queues: the same but `of` and `resembles` for each
    queue, the queue with the most jobs first; none where the log names fewer than two. As plain numbers, for JSON.
    """
    if RECORDED not in jobs.columns:
        return None
    ended = jobs.filter(pl.col("state").is_in(FINISHED))
    known = ended.filter(pl.col(RECORDED).is_not_null())
    if known.is_empty():
        return None
    whole = known.select(_figures()).row(0, named=True)
    queues = (
        known.filter(pl.col("queue").is_not_null())
        .group_by("queue", maintain_order=True)
        .agg(_figures())
        .sort("jobs", "queue", descending=[True, False])
    )
    alike = resembles(whole["mean_recorded_s"], whole["mean_replayed_s"])
    return {**whole, "of": ended.height, "resembles": alike, "queues": queues.to_dicts() if queues.height > 1 else []}


def means_beside(parts: Iterable[pl.DataFrame]) -> dict[str, Any] | None:
    """The means of `recorded_waits` of a table that comes in parts, without medians and queues."""
    of, count, sums = 0, 0, [0.0, 0.0]
    for jobs in parts:
        ended = jobs.filter(pl.col("state").is_in(FINISHED))
        of += ended.height
        if RECORDED in jobs.columns:
            known = ended.filter(pl.col(RECORDED).is_not_null())
            count += known.height
            sums = [total + float(known[name].sum()) for total, name in zip(sums, (RECORDED, REPLAYED), strict=True)]
    if not count:
        return None
    own, ours = (total / count for total in sums)
    return {"jobs": count, "of": of, "mean_recorded_s": own, "mean_replayed_s": ours, "resembles": resembles(own, ours)}


def waits_beside(recorded_s: pl.Series, replayed_s: pl.Series) -> dict[str, Any] | None:
    """`recorded_waits` of jobs that all ended, by their two waits, without queues. recorded_s: null where the log tells
    none."""
    jobs = pl.DataFrame({RECORDED: recorded_s.cast(pl.Float64), REPLAYED: replayed_s})
    return recorded_waits(jobs.with_columns(state=pl.lit(FINISHED[0]), queue=pl.lit(None, pl.String)))


def _figures() -> list[pl.Expr]:
    waits = {"recorded": pl.col(RECORDED), "replayed": pl.col(REPLAYED)}
    return [
        pl.len().alias("jobs"),
        *(wait.mean().alias(f"mean_{name}_s") for name, wait in waits.items()),
        *(wait.median().alias(f"median_{name}_s") for name, wait in waits.items()),
    ]
