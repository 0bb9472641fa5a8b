"""A replay beside the waits that the log recorded: whole, by day, partition, size and user, and over time."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from escala.calibration.causes import causes
from escala.calibration.curves import grid_of, over_time
from escala.calibration.warm import Warm, warm_start
from escala.errors import EscalaError
from escala.metrics.jobs import size_classes
from escala.metrics.recorded import LEAST_S, resembles
from escala.platform import Platform, read_platform
from escala.policies.kept_pieces import Keep, play_anew
from escala.policies.run import simulate
from escala.workload import Workload, read_workload
from escala.workload.filters import ABSOLUTE_FROM_S

NEAR_S = 300.0
MEAN_WITHIN, RANK_ABOVE = 0.10, 0.9
LEAST_DAYS = 5
FEWEST = 20  # jobs that a verdict needs
EARLIER = "before the log"
STANDS, RESEMBLES, UNLIKE, UNTESTED = "stands", "resembles", "does not resemble", "untested"
"""Verdicts. stands: mean wait within 10 %, and a rank correlation above 0.9: of the mean waits of days, with fewer than
5 days of the waits of jobs. resembles: the rule of `metrics.recorded`. untested: fewer than 20 jobs, or hardly any
waited, in the log and in the replay."""


@dataclass(frozen=True)
class Calibration:
    """What came out. verdict: one of those above. whole: figures over all measured jobs; groups: day, partition, size,
    user -> a row each (waits in s); curves: at_s, and utilisation and queue of both; causes: what does not fit, in
    sentences; about: log, platform, scheduler, warm start."""

    verdict: str
    whole: dict[str, Any]
    groups: dict[str, pl.DataFrame]
    curves: pl.DataFrame
    causes: list[str]
    about: dict[str, Any]
    jobs: pl.DataFrame = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        tables = {name: table.to_dicts() for name, table in self.groups.items()}
        return {
            "verdict": self.verdict,
            **self.whole,
            "causes": self.causes,
            "about": self.about,
            **tables,
            "over_time": self.curves.to_dicts(),
        }


def calibrate(
    log: Workload | str,
    platform: Platform | str,
    scheduler: Any = "slurm",
    progress: Any = None,
    keep: Keep = play_anew,
    **options: Any,
) -> Calibration:
    """Replay a log from the state in which its machine was, and hold the waits against those that the log recorded.

    log: read with `shapes=True` where it is accounting. Jobs that can never run on the platform are left out, and
    counted among the causes.
    keep: what gives the replay, made now or before. EscalaError where the log records no waits.
    """
    machine = read_platform(platform)
    log = log if isinstance(log, Workload) else read_workload(log, shapes=True)
    if log.jobs["wait_s"].null_count() == len(log):
        raise EscalaError(
            f"{log.name}: records no waits (a Start of each job is needed), so that there is nothing to hold a replay "
            "against"
        )
    warm = warm_start(log)
    how = {"oversized": "drop", **options}
    result = keep("replay", lambda: simulate(warm.log, machine, scheduler, "never", progress=progress, **how))
    since = warm.since_s if warm.since_s is not None else float(log.jobs["submit_s"][0])
    jobs = _beside(log, warm, since, result.jobs)
    measured = jobs.filter(pl.col("measured"))
    if measured.is_empty():
        raise EscalaError(
            f"{log.name}: none of its jobs with a recorded wait can run on {machine.name}: check the platform"
        )
    groups = {
        name: _by(measured, name)
        for name in ("day", "partition", "size", "user")
        if measured[name].null_count() < measured.height
    }
    whole = _whole(measured, groups["day"])
    grid = grid_of(since, float(jobs.select((pl.col("recorded_start_s")).max()).item()))
    curves = _curves(jobs, machine.total_cores, grid)
    means = [f"{what}_{how}" for what in ("utilisation", "queue") for how in ("recorded", "replayed")]
    whole |= {name: float(curves[name].mean() or 0.0) for name in means}  # type: ignore[arg-type]
    about = {
        "log": log.name, "jobs": len(log), "platform": machine.name, "scheduler": result.manifest["scheduler"],
        "origin_s": log.origin_s, "since_s": since, "warm": warm.since_s is not None, "running": warm.running,
        "waiting": warm.waiting, "knows": result.knows,
    }  # fmt: skip
    return Calibration(_verdict(whole), whole, groups, curves, causes(log, jobs, machine, about), about, jobs)


def _beside(log: Workload, warm: Warm, since_s: float, replayed: pl.DataFrame) -> pl.DataFrame:
    """A row for each job of the log: its class, and its start by the log and by the replay."""
    jobs, have = log.jobs, set(log.jobs.columns)
    partition = pl.coalesce(pl.col("partition") if "partition" in have else pl.lit(None, pl.String), pl.col("queue"))
    start, at = pl.col("submit_s") + pl.col("wait_s"), pl.col("submit_s") + log.origin_s
    frame = jobs.select(
        "job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user", partition.alias("partition"),
        start.alias("recorded_start_s"), (start + pl.col("runtime_s")).alias("recorded_end_s"),
        pl.col("wait_s").alias("recorded_s"), (at / 86400).floor().cast(pl.Int64).alias("day_number"),
        pl.col("job_id").is_in(warm.measured.implode()).alias("since"),
    ).with_columns(size=size_classes(jobs["cores"].cast(pl.Float64).to_numpy()).cast(pl.String))  # fmt: skip
    first, absolute = int((since_s + log.origin_s) // 86400), log.origin_s >= ABSOLUTE_FROM_S
    days = [
        EARLIER if at < since_s else _day(number, first, absolute)
        for at, number in zip(frame["submit_s"], frame["day_number"], strict=True)
    ]
    mine = replayed.select(
        "job_id", pl.col("start_s").alias("replayed_start_s"), pl.col("finish_s").alias("replayed_end_s")
    )
    frame = frame.with_columns(day=pl.Series(days, dtype=pl.String)).join(
        mine, on="job_id", how="left", maintain_order="left"
    )
    waited = pl.col("replayed_start_s") - pl.col("submit_s")
    done = pl.col("since") & pl.col("replayed_start_s").is_not_null()
    return frame.with_columns(replayed_s=waited, measured=done)


def _day(number: int, first: int, absolute: bool) -> str:
    if absolute:
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=number)).isoformat()
    return f"day {number - first + 1}"


def rank_correlation(a: pl.Series, b: pl.Series) -> float | None:
    """Spearman's, ties at their mean rank; None with fewer than three pairs, or where one of them is constant."""
    if len(a) < 3 or a.n_unique() < 2 or b.n_unique() < 2:
        return None
    ranks = pl.DataFrame({"a": a.rank("average"), "b": b.rank("average")})
    return float(ranks.select(pl.corr("a", "b")).item())


def _figures() -> list[pl.Expr]:
    own, ours = pl.col("recorded_s"), pl.col("replayed_s")
    return [
        pl.len().alias("jobs"),
        own.mean().alias("mean_recorded_s"),
        ours.mean().alias("mean_replayed_s"),
        (ours.mean() - own.mean()).alias("error_of_mean_s"),
        own.median().alias("median_recorded_s"),
        ours.median().alias("median_replayed_s"),
        (ours.median() - own.median()).alias("error_of_median_s"),
        ((ours - own).abs() <= NEAR_S).mean().alias("within_5_min_share"),
    ]


def _by(measured: pl.DataFrame, name: str) -> pl.DataFrame:
    """One row a class: days and sizes in their order, others by their jobs."""
    known = measured.filter(pl.col(name).is_not_null())
    rows = known.group_by(name, maintain_order=True).agg(
        *_figures(), pl.col("submit_s").min().alias("_day"), pl.col("cores").min().alias("_size")
    )
    order = {"day": ["_day"], "size": ["_size"]}.get(name, ["jobs", name])
    return rows.sort(order, descending=[name not in ("day", "size")] + [False] * (len(order) - 1)).drop("_day", "_size")


def _whole(measured: pl.DataFrame, days: pl.DataFrame) -> dict[str, Any]:
    whole: dict[str, Any] = measured.select(_figures()).row(0, named=True)
    whole["rank_correlation"] = rank_correlation(measured["recorded_s"], measured["replayed_s"])
    days = days.filter(pl.col("day") != EARLIER)
    whole["days"] = days.height
    enough = days.height >= LEAST_DAYS
    whole["rank_correlation_of_days"] = (
        rank_correlation(days["mean_recorded_s"], days["mean_replayed_s"]) if enough else None
    )
    return whole


def _curves(jobs: pl.DataFrame, total_cores: int, grid: Any) -> pl.DataFrame:
    known = jobs.filter(pl.col("recorded_s").is_not_null() & pl.col("replayed_start_s").is_not_null())
    both = {
        how: over_time(known, f"{how}_start_s", f"{how}_end_s", total_cores, grid) for how in ("recorded", "replayed")
    }
    columns = {f"{name}_{how}": table[name] for name in ("utilisation", "queue") for how, table in both.items()}
    return pl.DataFrame({"at_s": grid[:-1], **columns})


def _verdict(whole: dict[str, Any]) -> str:
    own, ours = whole["mean_recorded_s"], whole["mean_replayed_s"]
    rank = whole["rank_correlation_of_days" if whole["days"] >= LEAST_DAYS else "rank_correlation"]
    if max(own, ours) <= LEAST_S or whole["jobs"] < FEWEST:
        return UNTESTED
    if not resembles(own, ours):
        return UNLIKE
    near = math.isfinite(own) and abs(ours - own) <= MEAN_WITHIN * own
    return STANDS if near and (rank is None or rank > RANK_ABOVE) else RESEMBLES
