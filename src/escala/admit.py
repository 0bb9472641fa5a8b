"""Admission: the jobs of a workload checked against a platform and brought into the order of the kernel's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.estimates import lengths_us
from escala.forks import check_fork
from escala.kernel.clock import SECOND
from escala.options import Options, microseconds
from escala.platform import Platform
from escala.workload import Workload
from escala.workload.shapes import BEGIN, first_late


@dataclass(frozen=True)
class Admitted:
    """The jobs of one simulation in the order of the kernel's rows: `rows[i]` is the workload's row of kernel row i."""

    rows: NDArray[np.int64]
    rejected: NDArray[np.int64]
    submit_us: NDArray[np.int64]  # when it comes, see `arrivals_us`
    runtime_us: NDArray[np.int64]  # what will run
    walltime_us: NDArray[np.int64]  # what policies see
    killed: NDArray[np.bool_]


def admit_jobs(workload: Workload, platform: Platform, options: Options) -> Admitted:
    """Check every job against the platform and bring the jobs into queue order."""
    check_fork()
    jobs = workload.jobs
    too_large = oversized(workload, platform)
    if options.oversized == "error":
        refuse(workload, platform, too_large, "drop such jobs with oversized='drop' (--oversized drop)")
    rows = np.flatnonzero(~too_large)
    if options.rules == "batsched":
        named = pl.DataFrame({"us": arrivals_us(jobs), "id": jobs["job_id"], "row": np.arange(len(jobs))})
        ranked = named.sort("us", "id")["row"].to_numpy()
        rows = ranked[~too_large[ranked]]
    elif BEGIN in jobs.columns:
        rows = rows[np.argsort(arrivals_us(jobs)[rows], kind="stable")]
    times = times_of(jobs, rows, options)
    submit = times[0]
    if len(rows) and submit[0] < microseconds(options.start_s):
        raise EscalaError(
            f"workload {workload.name!r}: job {jobs['job_id'][int(rows[0])]!r} is submitted at {submit[0] / SECOND} s, "
            "before the simulation starts "
            f"({options.start_s} s): shift the times or set start_s"
        )
    return Admitted(rows, np.flatnonzero(too_large), *times)


def times_of(jobs: pl.DataFrame, rows: Any, options: Options) -> tuple[Any, Any, Any, Any]:
    """(arrival, run, walltime as policies see it, killed) of these rows of a workload's table: us, us, us, bool."""
    every = len(rows) == len(jobs) and options.rules != "batsched" and BEGIN not in jobs.columns
    at = slice(None) if every else rows  # nothing to pick
    runtime = microseconds(jobs["runtime_s"].to_numpy())[at]
    walltime = microseconds(jobs["walltime_s"].to_numpy())[at]
    run = np.minimum(runtime, walltime)
    seen = walltime if options.estimate == "walltime" else lengths_us(options.estimate, jobs)[at]
    limited = jobs["limited"].to_numpy()[at] if "limited" in jobs.columns else True
    return arrivals_us(jobs)[at], run, seen, (runtime >= walltime) & limited


def arrivals_us(jobs: pl.DataFrame) -> NDArray[np.int64]:
    """When each job of a table comes, us: at its submission, or at its begin time where that is later."""
    submit = microseconds(jobs["submit_s"].to_numpy())
    if BEGIN not in jobs.columns:
        return submit
    begin = jobs[BEGIN].cast(pl.Float64)
    return np.where(begin.is_null(), submit, np.maximum(microseconds(begin.fill_null(0.0).to_numpy()), submit))


def refuse_late(workload: Workload, what: str) -> None:
    """EscalaError for a job that may not start when it is submitted. what: cannot be done then."""
    job = first_late(workload.jobs)
    if job is not None:
        why = f"job {quoted(job)} may begin after its submission (begin_s)"
        raise EscalaError(f"workload {workload.name!r}: {why}: {what}: drop that column")


def demands_of(workload: Workload, platform: Platform) -> dict[str, NDArray[np.int64]]:
    """Demand per further kind that the workload names."""
    demands = {}
    for column in workload.jobs.columns:
        if column.startswith("demand_"):
            kind = column.removeprefix("demand_")
            values = workload.jobs[column].to_numpy()
            if kind not in platform.resources and len(values) and values.max() > 0:
                have = ", ".join(platform.resources) or "cores only"
                raise EscalaError(
                    f"workload {workload.name!r} demands {kind!r}, which platform {platform.name!r} does not have "
                    f"({have})"
                )
            if kind in platform.resources:
                demands[kind] = values
    return demands


def oversized(workload: Workload, platform: Platform) -> NDArray[np.bool_]:
    """Which jobs can never run."""
    jobs = workload.jobs
    single = jobs["single_node"].to_numpy()
    return beyond(platform, jobs["cores"].to_numpy(), single, demands_of(workload, platform) if single.any() else {})


def beyond(
    platform: Platform, cores: NDArray[np.int64], single: NDArray[np.bool_], demands: dict[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Which jobs could never run, were the platform empty. cores, single (needs one node), demands (of kinds that the
    platform has): of each."""
    too_large: NDArray[np.bool_] = cores > platform.total_cores
    if single.any():
        shapes = np.unique(np.stack([platform.cores, *(platform.resources[k] for k in demands)], axis=1), axis=0)
        wanted = np.stack([cores, *demands.values()], axis=1)[single]
        fits = np.zeros(len(wanted), bool)
        for shape in shapes:
            fits |= (wanted <= shape).all(axis=1)
        too_large[np.flatnonzero(single)] = ~fits
    return too_large


def refuse(workload: Workload, platform: Platform, too_large: NDArray[np.bool_], else_: str) -> None:
    """EscalaError for the first of these jobs, if any. else_: what to do if not take a larger platform."""
    if not too_large.any():
        return
    job, further = workload.jobs.row(int(np.flatnonzero(too_large)[0]), named=True), int(too_large.sum()) - 1
    demand = ", ".join(
        f"{v} {k.removeprefix('demand_')}" for k, v in job.items() if k == "cores" or k.startswith("demand_")
    )
    where = "on one node" if job["single_node"] else f"of {platform.total_cores} cores"
    more = f" (and {further} more jobs)" if further else ""
    raise EscalaError(
        f"job {job['job_id']!r} of workload {workload.name!r} needs {demand} and can never run {where} "
        f"on platform {platform.name!r}{more}: use a larger platform, or {else_}"
    )
