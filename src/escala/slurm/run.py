"""Running a workload by Slurm's rules, and the Result of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.admit import arrivals_us, never
from escala.errors import EscalaError, quoted
from escala.estimates import COLUMN, foretold
from escala.foresight import known_to
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.drive import DONE, ENDLESS, MOST_AGAIN, drive
from escala.kernel.state import LOG
from escala.options import Options
from escala.partitions import strange_queues, taking
from escala.platform import Platform
from escala.platform.constraints import has_features
from escala.platform.site import GPU, Site, site_of
from escala.prediction.folder import model_columns
from escala.result import FORMAT, Result
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asked, Asking
from escala.slurm.in_name import changed
from escala.slurm.named import FCFS, NAME
from escala.slurm.orders import Looks, Order, as_asked, told_in_order
from escala.slurm.settings import Settings, settings_of
from escala.tables import NodeHistory, node_texts
from escala.unseen import NO_FEATURES, in_default, warn
from escala.workload import Workload
from escala.workload.shapes import BEGIN, FEATURES, OF_NODES, SHAPES

Ints = NDArray[np.int64]
STATES = pl.Series(["REJECTED", "QUEUED", "QUEUED", "RUNNING", "COMPLETED", "REJECTED"])
DROP = "drop such jobs with oversized='drop' (--oversized drop)"
HEEDED = ("oversized", "seed", "record")


def run_slurm(
    workload: Workload,
    platform: Platform,
    scheduler: str | Settings,
    options: Options,
    progress: Callable[[float], None] | None = None,
    order: Order | None = None,
) -> Result:
    """Replay a workload by Slurm's rules on a site, or on a plain platform as one partition.

    scheduler: "slurm", "slurm:KEY=VALUE...", or `Settings`. order: of the queue, in place of the site's priorities.
    EscalaError for options that mean nothing here, for jobs that can never run (or REJECTED rows, with
    oversized="drop"), and for unknown keys.
    """
    began = time.perf_counter()
    site, settings, asked = asked_of(workload, platform, scheduler, options)
    if order is not None or settings.queue:
        _refuse_thresholds(settings)
    run = play(workload, site, settings, asked, progress, order)
    looked_at, knows = ([], "") if order is None else _looked_at(workload, order)
    about: dict[str, Any] = {
        "scheduler": scheduler if isinstance(scheduler, str) else NAME,
        "shutdown": "never",
        "knows": knows,
        "elapsed_s": time.perf_counter() - began,
        "slurm": {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()},
    }
    if order is not None:
        about |= {"scheduler": order.name} | ({"policy_files": dict(order.files)} if order.files else {})
    if not isinstance(scheduler, str):
        about["objects"] = ["scheduler"]
    asking = [name for name in SHAPES if name not in (BEGIN, *OF_NODES) and _says(workload, name)]
    if columns := workload.column_digests([*taking(workload.jobs, site), *asking, *looked_at]):
        about["columns"] = columns
    unseen = in_default(strange_queues(workload.jobs, site))
    if _says(workload, FEATURES) and not has_features(site):
        unseen[FEATURES] = NO_FEATURES
    if unseen:
        about["unseen"] = unseen
        warn([unseen])
    return _result(run, workload, site, asked, options, about)


def _says(workload: Workload, name: str) -> bool:
    """Has a job something in this column?"""
    return name in workload.jobs.columns and workload.jobs[name].null_count() < len(workload)


def asked_of(
    workload: Workload, platform: Platform, scheduler: str | Settings, options: Options, else_: str = DROP
) -> tuple[Site, Settings, Asked]:
    """The site, the settings, and what the jobs ask for there; EscalaError as of `run_slurm`. else_: what to do if not
    mend a job that can never run, or the site."""
    refuse_options(options)
    site = site_of(platform)
    settings = scheduler if isinstance(scheduler, Settings) else changed(settings_of(site), scheduler)
    if workload.needs_speed():
        raise EscalaError(
            f"workload {workload.name!r} gives work in flop: read it with a speed, or name the platform's"
        )
    asked = Asking(workload, site, settings).asked()
    if asked.refused and options.oversized == "error":
        j, why = next(iter(asked.refused.items()))
        more = f" (and {len(asked.refused) - 1} more jobs)" if len(asked.refused) > 1 else ""
        raise EscalaError(never(workload, j, site, f"{why}{more}", else_))
    return site, settings, asked


def play(
    workload: Workload,
    site: Site,
    settings: Settings,
    asked: Asked,
    progress: Callable[[float], None] | None = None,
    order: Order | None = None,
) -> t.World:
    """The tables of a finished replay: starts, ends, and what each job held where."""
    if order is None:
        run = arrays_of(workload, site, settings, asked)
        table = t.table_of(run)
        _drive(run, lambda until_us: drive(table, until_us), workload, asked, progress)
        return run
    jobs = as_asked(workload, asked)
    run, plan = told_in_order(arrays_of(workload, site, replace(settings, queue=FCFS), asked)), order.plan(jobs)
    _drive(run, Looks(run, jobs, plan, order.every_us(plan, run.rules.calc_us)).drive, workload, asked, progress)
    return run


def _looked_at(workload: Workload, order: Order) -> tuple[list[str], str]:
    """The columns that an order looks at, and what it knows of the future."""
    plan = order.plan(workload)
    estimate = plan.order_estimate or plan.estimate or ""
    columns = [*plan.columns, *([estimate] if estimate.startswith(COLUMN) else model_columns(estimate))]
    return columns, known_to(order.name, None, estimate, *foretold(columns, workload.jobs))


def refuse_options(options: Options) -> None:
    """EscalaError for the first option that means nothing under Slurm's rules."""
    usual = Options()
    for name in Options.__dataclass_fields__:
        if name not in HEEDED and getattr(options, name) != getattr(usual, name):
            raise EscalaError(
                f"option {name} means nothing to scheduler slurm: its settings come from the site, or as "
                "slurm:KEY=VALUE"
            )


def _refuse_thresholds(settings: Settings) -> None:
    """EscalaError where jobs are treated by how high their priority is: an order of the queue gives its own."""
    told = {"bf_min_prio_reserve": settings.bf_min_prio_reserve > 0}
    told |= {"min_exempt_priority": settings.preempts > 0 and settings.min_exempt_priority < 2**32}
    for name in (name for name, there in told.items() if there):
        raise EscalaError(
            f"scheduler {NAME}: {name} is a priority of the site, and queue= gives jobs other ones: take it out of the "
            "site's settings, or of the name"
        )


def _drive(
    run: t.World,
    on: Callable[[int], int],
    workload: Workload,
    asked: Asked,
    progress: Callable[[float], None] | None,
) -> None:
    """Until all has ended, a hundredth of the log at a time; jobs that wait for ever are an error, but for those that a
    limit may hold, or whose reservation is over. on: as `drive`, of this run."""
    last = float(run.jobs.submit[-1]) if len(run.jobs.submit) else 0.0
    for step in range(1, 101):
        found = on(int(last * step / 100) if step < 100 else t.FAR)
        if found == ENDLESS:
            raise EscalaError(
                f"scheduler slurm: job {quoted(workload.jobs['job_id'][int(run.jobs.again.argmax())])} has lost its "
                f"nodes more than {MOST_AGAIN:,} times, to other jobs or outages, and gets no further: requeue_delay, "
                "or preempt_mode cancel, ends it"
            )
        if found == DONE:
            break
        if progress is not None:
            progress(min(step / 100, 0.99))
    waiting = np.flatnonzero((run.jobs.state == t.WAITING) & (run.jobs.inside == t.NONE))
    if len(waiting) and not asked.bounded.any:
        raise EscalaError(
            f"scheduler slurm: job {quoted(workload.jobs['job_id'][int(waiting[0])])} waits and nothing more will "
            f"happen ({len(waiting)} such jobs): does it fit within bf_window and the partition's limits?"
        )
    if progress is not None:
        progress(1.0)


def chunks_of_run(run: t.World, rows: Ints) -> tuple[Ints, Ints]:
    """int64 [4, chunks]: place in `rows`, low node, high node, CPUs on each; and int64 [chunks, kinds]: GPUs on each.
    Neighbours with equal CPUs and GPUs are one."""
    lengths = run.jobs.last[rows] - run.jobs.first[rows]
    row = np.repeat(np.arange(len(rows)), lengths)
    at = (
        np.arange(len(row))
        - np.repeat(np.cumsum(lengths) - lengths, lengths)
        + np.repeat(run.jobs.first[rows], lengths)
    )
    node, cpus, gpus = run.allocated.node[at], run.allocated.cpus[at], run.allocated.gpus[at]
    if not len(row):
        return np.zeros((4, 0), np.int64), gpus
    new = np.ones(len(row), bool)
    new[1:] = (row[1:] != row[:-1]) | (node[1:] != node[:-1] + 1) | (cpus[1:] != cpus[:-1])
    new[1:] |= (gpus[1:] != gpus[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(row)) - 1
    return np.stack([row[first], node[first], node[last], cpus[first]]), gpus[first]


def _result(
    run: t.World, workload: Workload, site: Site, asked: Asked, options: Options, about: dict[str, Any]
) -> Result:
    jobs = workload.jobs
    rows = np.flatnonzero(run.jobs.state == t.ENDED)
    chunks, of_kinds = chunks_of_run(run, rows)
    gpus = {f"{GPU}:{kind}": of_kinds[:, k] for k, kind in enumerate(site.gpu_kinds)} | {GPU: of_kinds.sum(axis=1)}
    start, finish = run.jobs.start[rows], run.jobs.finish[rows]
    first = int(arrivals_us(jobs).min()) if len(jobs) else 0
    window = (first, int(finish.max(initial=first)))
    past = NodeHistory(
        site,
        jobs["job_id"],
        rows,
        window,
        chunks,
        start,
        finish - start,
        jobs["load"].to_numpy()[rows],
        np.zeros(0, LOG),
        gpus=gpus if site.drawn.counted else {},
    )
    manifest = {
        "format": FORMAT,
        "escala": version("escala"),
        "workload": {
            "name": workload.name,
            "source": workload.source,
            "jobs": len(workload),
            "cleaning": workload.cleaning,
            "ignored": workload.ignored,
            "read_as": workload.read_as,
            "origin_s": workload.origin_s,
            "sha256": workload.digest(),
        },
        "platform": site.spec(),
        "n_nodes": site.n_nodes,
        "n_cores": site.total_cores,
        "options": options.told(),
        "window": {"start_s": window[0] / t.SECOND, "end_s": window[1] / t.SECOND},
        **about,
    }
    return Result(_job_table(run, workload, asked, rows, chunks), past.totals(), manifest, past.tables())


def _job_table(run: t.World, workload: Workload, asked: Asked, rows: Ints, chunks: Ints) -> pl.DataFrame:
    """The jobs in the order of the workload; times that did not happen are null."""
    jobs = workload.jobs
    n = len(jobs)
    ended = np.zeros(n, bool)
    ended[rows] = True
    nodes = np.full(n, "", object)
    nodes[rows] = node_texts(chunks, len(rows)).to_numpy() if len(rows) else []
    state = STATES[run.jobs.state].to_numpy().copy()
    killed = asked.killed if len(run.machine.speed) == 0 else run.jobs.run >= asked.most_us
    state[ended & killed] = "KILLED"
    state[ended & (run.jobs.again < 0)] = "KILLED"
    # its reservation has ended
    state[ended & (run.jobs.inside != t.NONE) & (run.jobs.finish - run.jobs.start != run.jobs.run)] = "KILLED"
    run_s = np.where(ended, run.jobs.finish - run.jobs.start, run.jobs.run) / t.SECOND

    def seconds(us: Ints) -> pl.Series:
        return pl.Series(us / t.SECOND, dtype=pl.Float64).set(pl.Series(~ended), None)

    table: dict[str, pl.Series] = {
        "job_id": jobs["job_id"],
        "submit_s": jobs["submit_s"],
        "start_s": seconds(run.jobs.start),
        "finish_s": seconds(run.jobs.finish),
        "wait_s": seconds(run.jobs.start - run.jobs.submit),
        "cores": jobs["cores"],
        "walltime_s": jobs["walltime_s"],
        "runtime_s": pl.Series(run_s, dtype=pl.Float64),
        "user": jobs["user"],
        "state": pl.Series(state, dtype=pl.String),
        "nodes": pl.Series(nodes.tolist(), dtype=pl.String),
    }
    if "limited" in jobs.columns:
        table["limited"] = jobs["limited"]
    if jobs["wait_s"].null_count() < n:
        table |= {"recorded_wait_s": jobs["wait_s"], "queue": jobs["queue"]}
    by = pl.Series(["event", "backfill"])[run.jobs.by].set(pl.Series(~ended), None)
    table["started_by"] = by
    if run.rules.preempt or len(run.closed.kind):
        table["lost_s"] = pl.Series(run.jobs.lost / t.SECOND, dtype=pl.Float64)
    return pl.DataFrame([column.alias(name) for name, column in table.items()])
