"""The figures of a streamed replay, from its tables in Parquet: one column in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from escala.metrics.jobs import BOUND_S, FINISHED
from escala.metrics.summary import energy_of
from escala.platform import Platform

TURNAROUND = pl.col("finish_s") - pl.col("submit_s")
MEASURES = {
    "wait_s": pl.col("start_s") - pl.col("submit_s"),
    "turnaround_s": TURNAROUND,
    "slowdown": (TURNAROUND / pl.col("runtime_s")).clip(lower_bound=1.0),
    "bounded_slowdown": (TURNAROUND / pl.col("runtime_s").clip(lower_bound=BOUND_S)).clip(lower_bound=1.0),
}
PERCENTILES = {"median": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


COLUMNS = ("submit_s", "start_s", "finish_s", "runtime_s", "cores", "state")


def summary_of(
    parts: Sequence[Path], totals: pl.DataFrame, machine: Platform, window: dict[str, float]
) -> dict[str, float | int]:
    """The metrics that `Result.summary` calls so, but for those by node and for the loss of capacity. parts: tables of
    jobs."""
    tally, work, sums = dict.fromkeys((*FINISHED, "REJECTED"), 0), 0.0, dict.fromkeys(MEASURES, 0.0)
    for part in parts:
        jobs = pl.read_parquet(part, columns=list(COLUMNS))
        for state, count in jobs.group_by("state").len().iter_rows():
            tally[state] += count
        ended = jobs.filter(pl.col("state").is_in(FINISHED))
        work += float((ended["runtime_s"] * ended["cores"]).sum())
        for name, measure in MEASURES.items():
            sums[name] += float(ended.select(measure.sum()).item())
    count = sum(tally[state] for state in FINISHED)
    out: dict[str, float | int] = {
        "n_jobs": sum(tally.values()),
        **{f"n_{state.lower()}": n for state, n in tally.items()},
    }
    for name in MEASURES:
        out[f"mean_{name}"] = sums[name] / count if count else float("nan")
        out |= {f"{statistic}_{name}": value for statistic, value in _percentiles(parts, name, count).items()}
    span = window["end_s"] - window["start_s"]
    out |= {"makespan_s": span if count else float("nan"), "window_s": span}
    out["utilisation"] = work / (machine.total_cores * span) if span > 0.0 else float("nan")
    out |= energy_of(totals, span)
    return out | {"nodes": machine.n_nodes, "cores": machine.total_cores}


def _percentiles(parts: Sequence[Path], name: str, count: int) -> dict[str, float]:
    """Of one measure over all jobs that ended: eight bytes a job."""
    if count == 0:
        return dict.fromkeys(PERCENTILES, float("nan"))
    values, at = np.empty(count), 0
    for part in parts:
        some = (
            pl.scan_parquet(part)
            .filter(pl.col("state").is_in(FINISHED))
            .select(MEASURES[name].alias(name))
            .collect()[name]
        )
        values[at : at + len(some)] = some.to_numpy()
        at += len(some)
    found = np.percentile(values, list(PERCENTILES.values()), overwrite_input=True)
    return {statistic: float(value) for statistic, value in zip(PERCENTILES, found, strict=True)}
