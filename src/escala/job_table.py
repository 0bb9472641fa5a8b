"""The table of jobs of a finished simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.options import microseconds

STATES = pl.Series(["QUEUED", "QUEUED", "QUEUED", "RUNNING", "COMPLETED", "KILLED"])  # by the kernel's codes
FIRST = ("job_id", "submit_s", "start_s", "finish_s", "wait_s", "cores", "walltime_s", "runtime_s", "user", "state")
"""Columns of the table of jobs that come first; behind them the nodes."""


def job_table(simulation: Any, i: int, nodes: pl.Series) -> pl.DataFrame:
    """The jobs in the order of the workload; times that did not happen are null."""
    admitted = simulation.admitted[i]
    jobs = simulation.workloads[i].jobs
    run = simulation.world.run[i, : len(admitted.rows)]
    start, state = run["start"].copy(), run["state"].astype(np.int64)
    ended = (state == codes.COMPLETED) | (state == codes.KILLED)
    table: dict[str, pl.Series] = {
        "start_s": _seconds(start, start >= 0),
        "finish_s": _seconds(start + admitted.runtime_us, ended),
        "wait_s": _seconds(start - microseconds(jobs["submit_s"].to_numpy())[admitted.rows], start >= 0),
        "runtime_s": pl.Series(admitted.runtime_us / SECOND, dtype=pl.Float64),
        "state": STATES[state] if len(state) else STATES[:0],
        "nodes": nodes,
    }
    if simulation.told[i].moves:  # else it is the request, or the run time
        table["estimate_s"] = _seconds(
            simulation.world.job[i, : len(admitted.rows)]["walltime"].copy(), state != codes.PENDING
        )
    if simulation.closing is not None:
        table["lost_s"] = pl.Series(simulation.closing.lost_us / SECOND, dtype=pl.Float64)
    if len(admitted.rejected):
        runtime = jobs["runtime_s"][admitted.rejected].cast(pl.Float64)
        left = pl.DataFrame({"runtime_s": runtime}).with_columns(state=pl.lit("REJECTED"), nodes=pl.lit(""))
        rows = pl.Series(np.concatenate([admitted.rows, admitted.rejected]))
        whole = pl.concat([pl.DataFrame(table), left], how="diagonal").with_columns(row=rows).sort("row")
        table = {name: whole[name] for name in table}
    elif not bool((np.diff(admitted.rows) > 0).all()):
        place = np.argsort(admitted.rows)
        table = {name: column[place] for name, column in table.items()}
    given = ("job_id", "submit_s", "cores", "walltime_s", "user", "limited")
    own: dict[str, pl.Series] = {name: jobs[name] for name in given if name in jobs.columns}
    if jobs["wait_s"].null_count() < len(jobs):
        own |= {"recorded_wait_s": jobs["wait_s"], "queue": jobs["queue"]}
    both = {**own, **table}
    return pl.DataFrame([both[name].alias(name) for name in dict.fromkeys((*FIRST, "nodes", *own, *table))])


def _seconds(us: NDArray[np.int64], happened: NDArray[np.bool_]) -> pl.Series:
    """Times in s; null where they did not happen."""
    seconds = pl.Series(us / SECOND, dtype=pl.Float64)
    return seconds if happened.all() else seconds.set(pl.Series(~happened), None)
