"""The later weeks, judged once: figures, ratios with intervals over whole weeks, and who pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.metrics.bootstrap import paired
from escala.metrics.jobs import size_classes
from escala.tuning.measures import PERCENTILES, Floats, Jobs, in_weeks, weekly
from escala.tuning.promise import log_ratio

RATIOS = {
    "bounded_slowdown": "bounded_slowdown",
    "wait": "mean_wait_s",
    "area_wait": "area_weighted_wait_s",
    "p95_wait": "p95_wait_s",
}
"""Ratio -> the figure of which it is."""
RESAMPLES = 1000
HOUR_S = 3600.0
LEAST_JOBS = 20
"""Users with fewer later jobs are not judged one by one."""
QUEUES_SHOWN = 12
Ratio = tuple[float | None, float | None, float | None]
"""Value, and the ends of its 95 % interval; None where the reference is 0."""


def ratios(jobs: Jobs, waits: Floats, reference: Floats, week: NDArray[np.int64], seed: int = 0) -> dict[str, Ratio]:
    """Each of `RATIOS` of two schedules of the same jobs, with its interval from resamples of whole weeks, paired."""
    return {name: ratio(jobs, waits, reference, figure, week, seed) for name, figure in RATIOS.items()}


def ratio(jobs: Jobs, waits: Floats, reference: Floats, figure: str, week: NDArray[np.int64], seed: int) -> Ratio:
    """The ratio of one figure; see `ratios`."""
    if figure in PERCENTILES:
        return _ratio_of_percentiles(waits, reference, PERCENTILES[figure], week, seed)
    (ours, _), (theirs, _) = weekly(jobs, waits, figure, week), weekly(jobs, reference, figure, week)
    if not theirs.sum() > 0.0:
        return None, None, None
    counted = np.bincount(week) > 0
    found = paired(ours[counted], theirs[counted], resamples=RESAMPLES, seed=seed)
    return 1.0 + found.value, 1.0 + found.low, 1.0 + found.high


def weeks_of(
    jobs: Jobs, waits: Floats, reference: Floats, figure: str, week: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """(logarithm of the ratio of one figure, weight) of each week that has jobs."""
    own, other = in_weeks(jobs, waits, figure, week), in_weeks(jobs, reference, figure, week)
    counts = np.bincount(week)
    return np.array([log_ratio(a, b, figure) for a, b in zip(own, other, strict=True)]), np.sqrt(counts[counts > 0])


def mean_over_logs(parts: Sequence[tuple[Floats, Floats]], seed: int) -> Ratio:
    """The geometric mean over weeks (`weeks_of`) of the ratio of one figure in each, weighted by sqrt(jobs), as
    `choice.value` weighs weeks; its interval from resamples of whole weeks, paired. One bad week says as much as
    another: it needs fewer weeks than a ratio of means. Of several logs each counts alike; weeks are drawn within their
    log."""
    random, found, drawn = np.random.default_rng(seed), 0.0, np.zeros(RESAMPLES)
    for logs, weights in parts:
        often = random.multinomial(len(logs), np.full(len(logs), 1.0 / len(logs)), size=RESAMPLES) * weights
        found += float(np.average(logs, weights=weights)) / len(parts)
        drawn += often @ logs / often.sum(axis=1) / len(parts)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(np.exp(found)), float(np.exp(low)), float(np.exp(high))


def _ratio_of_percentiles(
    waits: Floats, reference: Floats, percent: float, week: NDArray[np.int64], seed: int
) -> Ratio:
    """As for means, of a percentile: that of the jobs of the drawn weeks."""
    present, place = np.unique(week, return_inverse=True)
    drawn = np.random.default_rng(seed).multinomial(
        len(present), np.full(len(present), 1.0 / len(present)), size=RESAMPLES
    )
    below = np.percentile(reference, percent)
    if not below > 0.0:
        return None, None, None
    ours, theirs = (_drawn_percentiles(x, percent, place, drawn) for x in (waits, reference))
    found = ours[theirs > 0.0] / theirs[theirs > 0.0]
    low, high = np.percentile(found, (2.5, 97.5))
    return float(np.percentile(waits, percent) / below), float(low), float(high)


def _drawn_percentiles(values: Floats, percent: float, place: NDArray[np.int64], drawn: NDArray[np.int64]) -> Floats:
    """The percentile (the lower of two neighbours) in each resample, [resamples]; a week counts as often as it was
    drawn."""
    order = np.argsort(values, kind="stable")
    ordered, week = values[order], place[order]
    out = np.empty(len(drawn))
    for i, often in enumerate(drawn):
        reached = np.cumsum(often[week])
        out[i] = ordered[min(int(np.searchsorted(reached, percent / 100.0 * reached[-1])), len(ordered) - 1)]
    return out


def who_pays(jobs: Jobs, policy: Floats, reference: Floats) -> dict[str, pl.DataFrame]:
    """Mean and longest waits of both schedules "by size", "by queue" (where the log names queues); group, jobs,
    share_of_work, ..."""
    table = pl.DataFrame(
        {
            "size": size_classes(jobs.cores),
            "queue": jobs.queue,
            "work": jobs.cores * jobs.runtime_s,
            "policy": policy,
            "reference": reference,
            "least": jobs.cores,
        }
    )
    found = {"by size": _grouped(table, "size").sort("least").drop("least")}
    if jobs.queue.n_unique() > 1:
        often = table["queue"].drop_nulls().value_counts(sort=True)["queue"][:QUEUES_SHOWN]
        named = pl.when(pl.col("queue").is_in(often.to_list())).then("queue").otherwise(pl.lit("others"))
        found["by queue"] = (
            _grouped(table.with_columns(queue=named), "queue").sort("jobs", descending=True).drop("least")
        )
    return found


def _grouped(table: pl.DataFrame, by: str) -> pl.DataFrame:
    return table.group_by(pl.col(by).alias("group")).agg(
        jobs=pl.len(),
        work_share=pl.col("work").sum() / max(float(table["work"].sum()), 1e-300),
        mean_wait_before_s=pl.col("reference").mean(),
        mean_wait_s=pl.col("policy").mean(),
        longest_wait_before_s=pl.col("reference").max(),
        longest_wait_s=pl.col("policy").max(),
        least=pl.col("least").min(),
    )


def users(jobs: Jobs, policy: Floats, reference: Floats) -> dict[str, float] | None:
    """Of users with enough jobs: their number, and the shares whose mean wait is shorter, longer (by more than an
    hour), and neither; None where no user has so many, or the log names none."""
    each = (
        pl.DataFrame({"user": jobs.user, "more": policy - reference})
        .drop_nulls("user")
        .group_by("user")
        .agg(pl.len(), pl.col("more").mean())
        .filter(pl.col("len") >= LEAST_JOBS)
    )
    if each.is_empty():
        return None
    more = each["more"].to_numpy()
    better, worse = float((more < -HOUR_S).mean()), float((more > HOUR_S).mean())
    return {"users": float(len(more)), "better": better, "worse": worse, "alike": 1.0 - better - worse}


def undecided(found: Mapping[str, Mapping[str, Ratio]]) -> list[tuple[str, str]]:
    """(against, ratio) whose interval holds 1: not told apart from chance. Where the figure is the same in every week,
    nothing is told."""
    return [
        (against, name)
        for against, each in found.items()
        for name, (value, low, high) in each.items()
        if value is not None and low is not None and high is not None and low <= 1.0 <= high and low < high
    ]
