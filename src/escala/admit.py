"""Admission: the jobs of a workload checked against a platform and brought into the order of the kernel's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.allowed import strange_feature, told_by
from escala.errors import EscalaError, number_of, quoted
from escala.estimates import lengths_us, runtimes_us
from escala.forks import check_fork
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.options import Options, microseconds
from escala.partitions import Parted
from escala.parts import Parts, parts_of
from escala.platform import Platform
from escala.platform.closures import counts
from escala.platform.site import GPU, Site
from escala.workload import Workload
from escala.workload.shapes import BEGIN, KIND, first_late


@dataclass(frozen=True)
class Admitted:
    """The jobs of one simulation in the order of the kernel's rows: `rows[i]` is the workload's row of kernel row i."""

    rows: NDArray[np.int64]
    rejected: NDArray[np.int64]
    submit_us: NDArray[np.int64]  # when it comes, see `arrivals_us`
    runtime_us: NDArray[np.int64]  # what will run, at speed 1
    walltime_us: NDArray[np.int64]  # what policies see
    killed: NDArray[np.bool_]
    parts: Parts | None  # of the workload's rows; None: all take cores of any nodes

    @property
    def parted(self) -> Parted | None:
        """Which partitions take the workload's rows; None where they leave none of them out."""
        return None if self.parts is None else self.parts.parted


def admit_jobs(workload: Workload, platform: Platform, options: Options) -> Admitted:
    """Check every job against the platform and bring the jobs into queue order."""
    check_fork()
    jobs = workload.jobs
    parts = parts_of(workload, platform)
    too_large = _too_large(workload, platform, parts)
    if options.oversized == "error":
        refuse(workload, platform, too_large, "drop such jobs with oversized='drop' (--oversized drop)", parts)
    rows = np.flatnonzero(~too_large)
    if options.rules == "batsched":
        named = pl.DataFrame({"us": arrivals_us(jobs), "id": jobs["job_id"], "row": np.arange(len(jobs))})
        ranked = named.sort("us", "id")["row"].to_numpy()
        rows = ranked[~too_large[ranked]]
    elif BEGIN in jobs.columns:
        rows = rows[np.argsort(arrivals_us(jobs)[rows], kind="stable")]
    times = times_of(jobs, rows, options, platform.slowest)
    submit = times[0]
    if len(rows) and submit[0] < microseconds(options.start_s):
        raise EscalaError(
            f"workload {workload.name!r}: job {jobs['job_id'][int(rows[0])]!r} is submitted at {submit[0] / SECOND} s, "
            "before the simulation starts "
            f"({options.start_s} s): shift the times or set start_s"
        )
    return Admitted(rows, np.flatnonzero(too_large), *times, parts)


def met(workload: Workload, platform: Platform) -> Workload:
    """The workload as it meets a platform: work in flops as times, and what a job without a limit is expected to run
    as no less than it takes on the slowest node."""
    log = workload if platform.speed is None else workload.at_speed(platform.speed)
    if platform.slowest >= 1.0 or "limited" not in log.jobs.columns or log.needs_speed():
        return log
    longest = pl.Series(runtimes_us(log.jobs, platform.slowest) / SECOND)
    free = pl.max_horizontal("walltime_s", longest)
    return log.with_jobs(log.jobs.with_columns(walltime_s=pl.when("limited").then("walltime_s").otherwise(free)))


def refuse_work(workload: Workload, platform: Platform) -> None:
    """EscalaError for a workload that gives work, of which nobody knows how long it takes there."""
    if len(workload) and workload.jobs["runtime_s"].is_nan().any():
        raise EscalaError(
            f"workload {workload.name!r} gives work in flop, and platform {platform.name!r} has no speed: "
            "read the workload with a speed, or name the platform's"
        )


def refuse_speeds(platform: Platform, what: str) -> None:
    """EscalaError for nodes of several speeds. what: "bounds are", which are not for these."""
    if platform.node_speed is not None:
        raise EscalaError(
            f"platform {platform.name!r} has nodes of several speeds, and {what} for jobs that run as long on any "
            "nodes: leave the speeds out"
        )


def refuse_closures(platform: Platform) -> None:
    """EscalaError for nodes that are down or drained for a while, of which bounds know nothing."""
    if isinstance(platform, Site) and any(counts(one) for one in platform.closed):
        raise EscalaError(
            f"site {platform.name!r} has nodes that are down or drained for a while ([[closed]]), of which bounds know "
            "nothing: leave them out, or use escala bound, which does so for the policies beside them too"
        )


def whole_of(jobs: pl.DataFrame, rows: Any) -> NDArray[np.int64]:
    """int64 [rows, 2] of these rows of a workload's table: how long each runs at speed 1, and its limit, us; NEVER_US:
    none."""
    limit = microseconds(jobs["walltime_s"].to_numpy())
    if "limited" in jobs.columns:
        limit = np.where(jobs["limited"].to_numpy(), limit, codes.NEVER_US)
    return np.stack([runtimes_us(jobs), limit], axis=1)[rows]


def paced(jobs: pl.DataFrame, rows: Any, speed: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(us that they run, is it until the limit) of these rows of a workload's table, on nodes of these speeds."""
    whole = whole_of(jobs, rows)
    lasts = runtimes_us(jobs[rows], speed)
    return np.minimum(lasts, whole[:, 1]), lasts >= whole[:, 1]


def times_of(jobs: pl.DataFrame, rows: Any, options: Options, slowest: float = 1.0) -> tuple[Any, Any, Any, Any]:
    """(arrival, run at speed 1, walltime as policies see it, killed) of these rows of a workload's table: us, us, us,
    bool. slowest: the least speed of a node."""
    every = len(rows) == len(jobs) and options.rules != "batsched" and BEGIN not in jobs.columns
    at = slice(None) if every else rows  # nothing to pick
    runtime = microseconds(jobs["runtime_s"].to_numpy())[at]
    walltime = microseconds(jobs["walltime_s"].to_numpy())[at]
    run = np.minimum(runtime, walltime)
    seen = walltime if options.estimate == "walltime" else lengths_us(options.estimate, jobs, slowest)[at]
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


def oversized(workload: Workload, platform: Platform) -> NDArray[np.bool_]:
    """Which jobs can never run."""
    return _too_large(workload, platform, parts_of(workload, platform))


def _too_large(workload: Workload, platform: Platform, parts: Parts | None) -> NDArray[np.bool_]:
    cores = workload.jobs["cores"].to_numpy()
    return cores > platform.total_cores if parts is None else parts.too_large(platform)


def never(workload: Workload, row: int, site: Platform, why: str, else_: str) -> str:
    """That a job is admitted nowhere on a site, in words."""
    job = f"job {quoted(workload.jobs['job_id'][row])} of workload {workload.name!r}"
    return f"{job} can never run on site {quoted(site.name)}: {why}: mend the job or the site, or {else_}"


def refuse(
    workload: Workload, platform: Platform, too_large: NDArray[np.bool_], else_: str, parts: Parts | None = None
) -> None:
    """EscalaError for the first of these jobs, if any. else_: what to do if not take a larger platform. parts: what the
    jobs are made of, where some are of nodes."""
    if not too_large.any():
        return
    row, further = int(np.flatnonzero(too_large)[0]), int(too_large.sum()) - 1
    job = workload.jobs.row(row, named=True)
    more = f" (and {further} more jobs)" if further else ""
    why = parts.parted.refusal(row) if parts is not None and parts.parted is not None else ""
    if why:
        raise EscalaError(never(workload, row, platform, f"{why}{more}", else_))
    needs, mend = lacking(job, platform, parts, row)
    raise EscalaError(f"job {job['job_id']!r} of workload {workload.name!r} needs {needs}{more}: {mend}, or {else_}")


def lacking(job: Mapping[str, Any], platform: Platform, parts: Parts | None, row: int) -> tuple[str, str]:
    """What a job needs that a platform could never give it, and how to mend that. row: its own among `parts`."""
    strange = strange_feature(job, platform)
    if strange is not None:
        none = f"feature {quoted(strange)}, which no node of platform {platform.name!r} has"
        return none, "give one that some node has"
    name = f"platform {quoted(platform.name)}"
    if parts is None or (parts.anywhere[row] and not parts.which[row]):
        return f"{number_of(job['cores'], 'core')}, and {name} has {platform.total_cores}", "use a larger platform"
    if parts.never is not None and parts.never[row]:
        have = ", ".join(kind.partition(":")[2] for kind in platform.resources if kind.startswith(f"{GPU}:"))
        return f"GPUs of kind {quoted(job[KIND])}, and {name} has {have}", "name a kind that some node has"
    lacks = f"{parts.told(row)}, which {name} does not have"
    if parts.allowed is None or not parts.which[row]:
        return lacks, "use a larger platform"
    may = int(parts.allowed.mask(parts.which[row], platform.n_nodes).sum())
    by = ", ".join(filter(None, [parts.parted.told(row) if parts.parted is not None else "", told_by(job)]))
    return f"{lacks} among the {may} of its {number_of(platform.n_nodes, 'node')} open to it ({by})", "ask for others"
