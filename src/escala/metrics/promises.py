"""The promise test: does a schedule keep the start that EASY backfilling promises to the oldest waiting job?"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.metrics.jobs import require

Micro = NDArray[np.int64]
MOST_S = 1e12
STILL = np.iinfo(np.int64).max  # the finish of a job that still runs


@dataclass(frozen=True)
class Promises:
    """What `promises` found. blocked: jobs that were the oldest waiting and did not start at once; late: those that
    started after their promise; worst_s: the largest lateness, seconds (0 without one); jobs: one row for each blocked
    job, in the order in which they were blocked: job_id, since_s (when it became the oldest), promised_s, start_s,
    late_s."""

    blocked: int
    late: int
    worst_s: float
    jobs: pl.DataFrame


def promises(
    jobs: pl.DataFrame, cores: int, *, ends: Literal["walltime", "runtime"] = "walltime", margin_s: float = 0.0
) -> Promises:
    """Promised and true starts of the jobs that were the oldest waiting and could not start at once.

    When all earlier jobs (by submission, then by the order of the table) have started, a job is the oldest that waits.
    Its promise is the earliest time at which the jobs that run then leave it room by their planned ends; later jobs
    started at that same instant do not count, as they are what the promise is to hold against. EASY (Lifka 1995;
    Mu'alem and Feitelson 2001) lets others pass only where the promise holds, so none of its jobs is late; FCFS without
    backfilling keeps it too.

    jobs: the table of a Result. cores: of the whole machine; jobs may take them on any nodes, so the test is
    meaningless for single-node jobs, for other orders of the queue, and for nodes that are off or switching. ends: a
    planned end is the start + the walltime, or + the run time (what the scheduler knows: `estimate="runtime"`), +
    margin_s (`plan_margin_s`). Jobs that never started are left out.
    EscalaError: columns missing, a job larger than the machine, cores or a margin that is none.
    """
    if not isinstance(jobs, pl.DataFrame):
        raise EscalaError(f"jobs={quoted(jobs)}: pass the table `jobs` of a Result")
    if isinstance(cores, bool) or not isinstance(cores, Integral) or cores < 1:
        raise EscalaError(f"cores={quoted(cores)}: give the cores of the whole machine, a whole number of at least 1")
    if isinstance(margin_s, bool) or not isinstance(margin_s, Real) or not 0.0 <= margin_s <= MOST_S:
        raise EscalaError(f"margin_s={quoted(margin_s)}: give a number of seconds from 0 to {MOST_S:g}")
    require(jobs, "job_id", "state", "submit_s", "start_s", "finish_s", "runtime_s", "walltime_s", "cores")
    if ends not in ("walltime", "runtime"):
        raise EscalaError(f"ends={quoted(ends)}: use 'walltime' or 'runtime'")
    waited = jobs.filter(pl.col("state") != "REJECTED").sort("submit_s", maintain_order=True)
    asked = waited.get_column("cores").to_numpy()
    if asked.size and asked.max() > cores:
        raise EscalaError(f"a job of {asked.max()} cores on a machine of {cores}: give the cores of the whole machine")
    never = waited.get_column("start_s").is_null().to_numpy()
    # behind one that never started nothing becomes the oldest
    heads = int(never.argmax()) if never.any() else len(never)
    start = np.where(never, STILL, _micro(waited, "start_s"))
    finish = np.where(waited.get_column("finish_s").is_null().to_numpy(), STILL, _micro(waited, "finish_s"))
    planned = start + np.where(never, 0, _micro(waited, f"{ends}_s") + round(margin_s * 1e6))
    since = np.maximum(
        _micro(waited, "submit_s"), np.maximum.accumulate(np.concatenate([[0], start[:-1]]) if start.size else start)
    )
    blocked = np.flatnonzero(start[:heads] > since[:heads])
    promised = _promised(blocked, since, start, finish, planned, asked, cores)
    late = np.maximum(start[blocked] - promised, 0)
    table = pl.DataFrame(
        {
            "job_id": waited.get_column("job_id").gather(blocked),
            "since_s": since[blocked] / 1e6,
            "promised_s": promised / 1e6,
            "start_s": start[blocked] / 1e6,
            "late_s": late / 1e6,
        }
    )
    return Promises(len(blocked), int((late > 0).sum()), float(late.max(initial=0)) / 1e6, table)


def _micro(table: pl.DataFrame, column: str) -> Micro:
    """A column of seconds in whole microseconds; 0 for null."""
    return np.rint(table.get_column(column).fill_null(0.0).to_numpy() * 1e6).astype(np.int64)


def _promised(
    blocked: Micro, since: Micro, start: Micro, finish: Micro, planned: Micro, asked: Micro, cores: int
) -> Micro:
    """The promise of each blocked job, us. They became the oldest one after another: one sweep keeps the running
    jobs."""
    found = np.zeros(len(blocked), np.int64)
    order = np.argsort(start, kind="stable")
    starts = start[order]
    begun, running = 0, np.zeros(0, np.int64)
    for k, job in enumerate(blocked):
        now = since[job]
        until, same = np.searchsorted(starts, now, side="left"), np.searchsorted(starts, now, side="right")
        running = np.concatenate([running, order[begun:until]])
        running = running[finish[running] > now]
        begun = until
        older = order[until:same]
        present = np.concatenate([running, older[(older < job) & (finish[older] > now)]])
        by_end = present[np.argsort(planned[present], kind="stable")]
        room = cores - asked[present].sum() + np.concatenate([[0], np.cumsum(asked[by_end])])
        enough = int(np.argmax(room >= asked[job]))
        found[k] = now if enough == 0 else max(now, planned[by_end[enough - 1]])
    return found
