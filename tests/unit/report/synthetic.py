"""Runs with the tables of a Result, made by a small first-come first-served schedule, and trainings, for tests of what
reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from escala.metrics import summarise
from escala.platform import Platform
from escala.report import curves

WATTS = {"computing": 190.0, "idle": 95.0, "switching_off": 101.0, "off": 9.0, "switching_on": 125.0}

PLATFORM = Platform.uniform(4, 4, "grid5000").spec()


@dataclass
class Run:
    """What the report needs of a Result."""

    jobs: pl.DataFrame
    nodes: pl.DataFrame
    power: pl.DataFrame
    n_nodes: int
    cores: int
    manifest: dict[str, Any] = field(
        default_factory=lambda: {"scheduler": "fcfs", "shutdown": "timeout", "platform": PLATFORM}
    )

    def summary(self) -> dict[str, float | int]:
        start, end = (0.0, 0.0) if self.nodes.is_empty() else (self.nodes["from_s"].min(), self.nodes["to_s"].max())
        return summarise(self.jobs, self.power, nodes=self.n_nodes, cores=self.cores, start_s=start, end_s=end)


def run(
    n_jobs: int,
    *,
    nodes: int = 16,
    per_node: int = 1,
    timeout: float = 300.0,
    delay: float = 0.0,
    seed: int = 0,
    gap: float = 400.0,
) -> Run:
    """A schedule of `n_jobs` random jobs on nodes x per_node cores; nodes idle for `timeout` s are switched off; each
    job starts `delay` s late.
    """
    random = np.random.default_rng(seed)
    submit = np.round(np.cumsum(random.exponential(gap, n_jobs)), 3) if n_jobs else np.empty(0)
    submit = submit - submit[:1].sum()
    runtime = np.round(np.minimum(random.lognormal(6.0, 1.5, n_jobs), 40_000.0) + 1.0, 3)
    cores = np.minimum(2 ** random.integers(0, 5, n_jobs), nodes * per_node)
    start, allocated = _first_come(submit + delay, runtime, cores, nodes * per_node, per_node)
    killed = random.random(n_jobs) < 0.05
    jobs = pl.DataFrame(
        {
            "job_id": [f"job-{i}" for i in range(n_jobs)],
            "submit_s": submit,
            "start_s": start,
            "finish_s": start + runtime,
            "wait_s": start - submit,
            "cores": cores,
            "walltime_s": np.where(killed, runtime, runtime * random.uniform(1.0, 10.0, n_jobs)),
            "runtime_s": runtime,
            "user": [f"user{u}" for u in random.integers(0, 12, n_jobs)],
            "state": np.where(killed, "KILLED", "COMPLETED").tolist(),
            "nodes": [" ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in intervals(own)) for own in allocated],
        },
        schema_overrides={
            "job_id": pl.String,
            "user": pl.String,
            "state": pl.String,
            "nodes": pl.String,
            "cores": pl.Int64,
        },
    )
    table = _node_states(jobs, allocated, nodes, timeout)
    power = (
        table.group_by("node", "state")
        .agg(
            seconds=(pl.col("to_s") - pl.col("from_s")).sum(),
            transitions=pl.when(pl.col("state").str.starts_with("sw")).then(1).otherwise(0).sum(),
        )
        .with_columns(joules=pl.col("seconds") * pl.col("state").replace_strict(WATTS, return_dtype=pl.Float64))
        .select("node", "state", "seconds", "joules", "transitions")
        .sort("node", "state")
    )
    return Run(jobs, table, power, nodes, nodes * per_node)


def _first_come(
    ready: np.ndarray, runtime: np.ndarray, cores: np.ndarray, total: int, per_node: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    free_at = np.zeros(total)
    start, allocated, last = np.empty(ready.size), [], 0.0
    for i in range(ready.size):
        q = cores[i]
        last = max(ready[i], last, np.partition(free_at, q - 1)[q - 1])
        mine = np.flatnonzero(free_at <= last)[:q]
        free_at[mine] = last + runtime[i]
        start[i] = last
        allocated.append(np.unique(mine // per_node))
    return start, allocated


def intervals(own: np.ndarray) -> list[tuple[int, int]]:
    """Runs of consecutive node numbers."""
    cut = np.flatnonzero(np.diff(own) > 1)
    return list(
        zip(
            own[np.concatenate([[0], cut + 1]).astype(int)].tolist(),
            own[np.concatenate([cut, [own.size - 1]])].tolist(),
        )
    )


def _node_states(jobs: pl.DataFrame, allocated: list[np.ndarray], nodes: int, timeout: float) -> pl.DataFrame:
    schema = {"node": pl.Int64, "from_s": pl.Float64, "to_s": pl.Float64, "state": pl.String}
    if not allocated:
        return pl.DataFrame(schema=schema)
    end = float(jobs["finish_s"].max())
    size = [a.size for a in allocated]
    busy = pl.DataFrame(
        {
            "node": np.concatenate(allocated),
            "from_s": np.repeat(jobs["start_s"], size),
            "to_s": np.repeat(jobs["finish_s"], size),
        }
    )
    ends = pl.DataFrame({"node": np.arange(nodes).repeat(2), "from_s": [0.0, end] * nodes, "to_s": [0.0, end] * nodes})
    busy = pl.concat([busy, ends]).sort("node", "from_s").with_columns(until=pl.col("to_s").cum_max().over("node"))
    busy = busy.with_columns(gap_from=pl.col("until").shift(1).over("node").fill_null(0.0))
    gaps = busy.filter(pl.col("from_s") > pl.col("gap_from")).select("node", a="gap_from", b="from_s")
    block = (pl.col("from_s") > pl.col("gap_from")).cum_sum().over("node")
    parts = [
        busy.group_by("node", block.alias("block"))
        .agg(pl.col("from_s").min(), pl.col("until").max().alias("to_s"))
        .drop("block")
        .with_columns(state=pl.lit("computing"))
    ]
    off, on = 180.0, 60.0
    long = pl.col("b") - pl.col("a") > timeout + off + on
    parts.append(gaps.filter(~long).select("node", from_s="a", to_s="b", state=pl.lit("idle")))
    marks = [pl.col("a"), pl.col("a") + timeout, pl.col("a") + timeout + off, pl.col("b") - on, pl.col("b")]
    for i, state in enumerate(("idle", "switching_off", "off", "switching_on")):
        parts.append(gaps.filter(long).select("node", from_s=marks[i], to_s=marks[i + 1], state=pl.lit(state)))
    table = pl.concat([p.select("node", "from_s", "to_s", "state").cast(schema) for p in parts])
    return table.filter(pl.col("to_s") > pl.col("from_s")).sort("node", "from_s")


def training() -> curves.Training:
    """Three seeds of five points, and two levels."""
    points = pl.DataFrame([{"step": 100 * k, "value": -10.0 + k + s, "seed": s} for k in range(5) for s in range(3)])
    return curves.Training(points, {"timeout:0": -7.0, "hold": -6.5})


def panels() -> Figure:
    """Two learners and a level; the second learner's second step has a seed that did not end."""
    rows = [("one", 1000 * 4**k, s, 3.0 + k + s, 9.0) for k in range(3) for s in range(2)]
    rows += [("two", 1000 * 4**k, s, None if k == 1 and s == 1 else 5.0 + k, 8.0) for k in range(3) for s in range(2)]
    points = pl.DataFrame(rows, schema=["line", "step", "seed", "a", "b"], orient="row")
    levels = pl.DataFrame({"policy": ["rule"], "a": [7.0], "b": [8.5]})
    return curves.learning_panels(points, levels, {"a": "Mean a (1)", "b": "Mean b (1)"})
