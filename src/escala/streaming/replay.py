"""The window that moves over a log: jobs come in piece by piece, and leave as soon as they have ended."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from escala.admit import met, refuse_late
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.metrics.recorded import RECORDED, means_beside
from escala.options import Options, Plan, with_options
from escala.parquet import note_written
from escala.partitions import BY, QUEUE, described
from escala.platform import Platform, read_platform
from escala.platform.sharers import SHARERS
from escala.policies.files import policy_files
from escala.policies.run import check_power, pair
from escala.policies.schedulers import SCHEDULERS
from escala.result import FORMAT, SAVED, without_places
from escala.simulation import Simulation
from escala.streaming.carried import Carried, go_on, state_of
from escala.streaming.digest import JobsDigest
from escala.streaming.summary import summary_of
from escala.tables import totals_of
from escala.unseen import says_once
from escala.workload import Workload
from escala.workload.ordering import OutOfOrder
from escala.workload.pieces import OPTIONS as READING
from escala.workload.pieces import PIECE, Pieces
from escala.writing import output_folder

QUEUEINGS = (codes.STRICT, codes.GREEDY, codes.EASY, codes.EASY_PRIORITY)
SHUTDOWNS = (codes.NEVER, codes.TIMEOUT)
ORDERS = (codes.BY_QUEUE, codes.BY_RANK, codes.BY_WFP3, codes.BY_UNICEP, codes.BY_XFACTOR, codes.BY_PLACE)
TAKEN = ("head", "plan_margin_s", "oversized", "start_off")
"""The options of a run that a stream takes."""
ENDED = ("COMPLETED", "KILLED")


@dataclass(frozen=True)
class Streamed:
    """A replay of a log in pieces. summary: its metrics by name; totals: state, seconds, joules, transitions over all
    nodes; manifest: what was run; recorded: the log's own mean wait beside the replay's (jobs, of, mean_recorded_s,
    mean_replayed_s, resembles), None where it tells none; first_cleaned: rule of cleaning -> the first job touched;
    pieces: how many there were; most: jobs in memory at once."""

    summary: dict[str, float | int]
    totals: pl.DataFrame
    manifest: dict[str, Any]
    pieces: int
    most: int
    recorded: dict[str, Any] | None = None
    first_cleaned: dict[str, str] = field(default_factory=dict)


@says_once
def stream(
    path: str | Path,
    platform: Any,
    scheduler: str = "easy",
    shutdown: str = "never",
    *,
    out: str | Path | None = None,
    jobs: int = PIECE,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
    sha256: str | None = None,
    **options: Any,
) -> Streamed:
    """Replay a log that need not fit into memory; every job starts when `simulate` would start it, on the same nodes.

    path: any log that `read_workload` reads, in the same form. platform, scheduler, shutdown: as for `simulate`, by
    name: strict, greedy and EASY schedulers in a fixed order or by wfp3, unicep or xfactor; never and
    timeout:SECONDS[+SPARE]. out: folder for what `simulate` would save there, but for the tables by node; rows stand in
    the order in which windows end. jobs: how many are read at a time. progress: called with the jobs that have ended.
    sha256: of the jobs, as the manifest of an earlier run has it; others are refused. options: head, plan_margin_s,
    oversized, start_off; and of `read_workload` those of `workload.pieces.OPTIONS` (columns, cores, since, ...). A log
    in another order is sorted by way of the disk. EscalaError for anything else.
    """
    machine = platform if isinstance(platform, Platform) else read_platform(platform)
    if not isinstance(jobs, int) or jobs < 1:
        raise EscalaError(f"stream: jobs={jobs!r}: give the number of jobs to read at a time, at least 1")
    reading = {name: options.pop(name) for name in READING if name in options}
    for name in options:
        if name not in TAKEN:
            raise EscalaError(f"stream: option {name!r} is not known in a stream; known: {', '.join(TAKEN)}")
    told = with_options(Options(), **options)
    _check_watts(machine, shutdown, told)
    named = SCHEDULERS.get(scheduler) if isinstance(scheduler, str) else None
    if not (isinstance(scheduler, str) and isinstance(shutdown, str)) or (named is not None and named.random):
        raise EscalaError(
            f"stream: {scheduler!r}: give a scheduler and a shutdown policy by name; random orders need the whole log"
        )

    def replay(on_disk: bool) -> Streamed:
        log, window = (
            Pieces(path, jobs, keeps=BY if described(machine) else (), on_disk=on_disk, scratch=folder, **reading),
            _Window(machine, scheduler, shutdown, told),
        )
        with tempfile.TemporaryDirectory(prefix="parts-", dir=folder) as parts:
            for piece, following in _with_next(log):
                ended = window.take(piece, following)
                ended.write_parquet(Path(parts) / f"{window.pieces:08d}.parquet")
                if progress is not None:
                    progress(window.ended)
            if sha256 is not None and window.digest.hexdigest() != sha256:
                raise EscalaError(
                    f"{path}: does not hold the jobs of that run (manifest: sha256): give the log that was streamed"
                )
            return _finish(window, log, folder, Path(parts))

    with _folder(out, force) as folder:
        try:
            return replay(False)
        except OutOfOrder:
            return replay(True)


def _check_watts(machine: Platform, shutdown: Any, told: Options) -> None:
    """EscalaError where a policy lacks a profile, and where GPUs have watts: a window forgets who had which."""
    check_power(machine, [shutdown], told.start_off)
    if machine.drawn.counted:
        raise EscalaError(
            f"stream: platform {machine.name!r} has watts of GPUs, which a replay in pieces does not count: leave "
            "gpu_idle_w and gpu_computing_w out of its power profiles, or replay the log, or a part of it, in memory"
        )


@contextmanager
def _folder(out: str | Path | None, force: bool) -> Iterator[Path]:
    """Where tables are written: what becomes `out`, or a folder for the time being."""
    with output_folder(None if out is None else Path(out), SAVED, force=force) as folder:
        if folder is not None:
            yield folder
            return
        with tempfile.TemporaryDirectory(prefix="escala-stream-") as scratch:
            yield Path(scratch)


def _with_next(pieces: Iterable[Workload]) -> Iterator[tuple[Workload, float | None]]:
    """Each piece, and when the next one's first job is submitted, s; None for the last."""
    before: Workload | None = None
    for piece in pieces:
        if before is not None:
            yield before, float(piece.jobs["submit_s"][0])
        before = piece
    if before is not None:
        yield before, None


class _Window:
    """The jobs in memory, and what was counted of those that have left."""

    def __init__(self, machine: Platform, scheduler: str, shutdown: str, options: Options) -> None:
        self.machine, self.scheduler, self.shutdown, self.options = machine, scheduler, shutdown, options
        self.pieces = self.ended = self.most = self.jobs = 0
        self.carried: Carried | None = None
        self.about: dict[str, Any] = {}
        self.unseen: dict[str, str] = {}
        self.digest = JobsDigest((QUEUE, *BY) if described(machine) else ())
        self.window_us = 0, 0  # first arrival to last finish
        self.totals = pl.DataFrame()

    def take(self, piece: Workload, following_s: float | None) -> pl.DataFrame:
        """Replay on with the jobs of a piece, until just before the next one comes; the rows of the jobs that have
        ended since."""
        carried, ahead = self.carried, 0
        refuse_late(piece, "a log in pieces is replayed by submissions")
        self._note(piece)
        piece = met(piece, self.machine)
        if carried is not None:
            ahead = len(carried.truth)
            piece = piece.with_jobs(_behind(carried.table, piece.jobs))
        chosen = pair(piece, self.scheduler, self.shutdown, self.options)
        check_plan(chosen.plan, self.scheduler, self.shutdown)
        simulation = Simulation(piece, self.machine, chosen.plan, replace(self.options, record=True))
        _refuse_joined(simulation, chosen.plan)
        if SHARERS in simulation.kinds:
            raise EscalaError(
                "stream: a job has nodes of several sizes to itself (exclusive), and a window does not know whether "
                "later jobs do: leave that column out, or replay the log with simulate"
            )
        self.unseen |= simulation.unseen[0]
        if carried is not None:
            go_on(simulation, carried)
        before = None if following_s is None else following_s - 1.0 / SECOND
        stop = simulation.advance(0, before)
        if following_s is None and stop != codes.DONE:
            raise EscalaError(
                f"stream: jobs wait and nothing will ever happen again under {self.scheduler} + {self.shutdown}"
            )
        if len(simulation.admitted[0].rows):  # else every job so far is too large for the machine
            self.carried = state_of(simulation)
        self.most = max(self.most, len(piece))
        left = self._left(simulation, ahead - len(carried.jobs) if carried is not None else 0)
        simulation.forget()
        return left

    def _note(self, piece: Workload) -> None:
        self.pieces += 1
        self.jobs += len(piece)
        self.digest.add(piece.jobs)
        self.digest.origin_s = piece.origin_s
        self.about = self.about or {"name": piece.name, "source": piece.source}

    def _left(self, simulation: Simulation, told_before: int) -> pl.DataFrame:
        """The rows that are told now. told_before: rows in front that were told with an earlier window."""
        jobs = simulation.workloads[0].jobs  # later ones may have waits of the log's own, if these have none
        own = jobs["wait_s"].alias(RECORDED), jobs["queue"]
        table = simulation.result().jobs.with_columns(own)[told_before:]
        left = table.filter(pl.col("state").is_in((*ENDED, "REJECTED")))
        self.ended += left.height
        if self.carried is not None:
            first = int(self.carried.truth["submit"][0])
            self.window_us = first, max(self.carried.counts["last_finish"], first)
        self.totals = totals_of(simulation.world, 0, self.machine, self.window_us)
        return left


def _refuse_joined(simulation: Simulation, plan: Plan) -> None:
    """EscalaError for jobs that make one queue of several, also of the jobs that have gone before them."""
    parted = simulation.admitted[0].parted
    if parted is not None and parted.lanes.joined and plan.queueing in codes.BY_LANE:
        raise EscalaError(
            f"stream: a job names the partitions {parted.lanes.joined}, which share no node and so have queues of "
            "their own; with it they have one from the first job on, and a window does not know that: let each job "
            "name one, or replay the log with simulate"
        )


def _behind(carried: pl.DataFrame, coming: pl.DataFrame) -> pl.DataFrame:
    """Jobs of a piece behind those that are carried; where either says nothing of limits, every job has one."""
    table = pl.concat([carried, coming], how="diagonal")
    return table.with_columns(pl.col("limited").fill_null(True)) if "limited" in table.columns else table


def check_plan(plan: Plan, scheduler: str, shutdown: str) -> None:
    """EscalaError for policies that remember more than the state of the machine and of the queue."""
    fine = plan.queueing in QUEUEINGS and plan.ordering in ORDERS and plan.passing in ORDERS
    if not fine or plan.estimate is not None or plan.order_estimate is not None:
        raise EscalaError(
            f"stream: {scheduler} looks at more than the jobs in a window: use fcfs, easy, saf, "
            "easy:queue=SCORE:guard=TIME, ..."
        )
    if plan.shutdown not in SHUTDOWNS:
        raise EscalaError(f"stream: {shutdown} looks at more than the jobs in a window: use never or timeout:SECONDS")


def _together(tables: Sequence[Path], without: Sequence[str]) -> pl.LazyFrame:
    """The tables as one, without these columns. Of limits not every table tells: where one does not, its jobs have
    them."""
    limited = any("limited" in pl.read_parquet_schema(table) for table in tables)
    parts = [pl.scan_parquet(table).drop(without) for table in tables]
    if limited:
        parts = [
            part if "limited" in part.collect_schema() else part.with_columns(limited=pl.lit(True)) for part in parts
        ]
    columns = parts[0].collect_schema().names()
    return pl.concat([part.select(columns) for part in parts])


def _finish(window: _Window, log: Pieces, folder: Path, parts: Path) -> Streamed:
    """The tables as one, the figures, and what was run."""
    machine, (start, end) = window.machine, window.window_us
    span = {"start_s": start / SECOND, "end_s": end / SECOND}
    tables = sorted(parts.iterdir())
    summary = summary_of(tables, window.totals, machine, span)
    recorded = means_beside(pl.read_parquet(part) for part in tables)
    _together(tables, [] if recorded else [RECORDED, "queue"]).sink_parquet(folder / "jobs.parquet")
    about = {**window.about, "jobs": window.jobs, "cleaning": log.cleaning, "read_as": log.read_as}
    manifest = {
        "format": FORMAT,
        "workload": {**about, "ignored": log.ignored, "sha256": window.digest.hexdigest()},
        "platform": machine.spec(),
        "n_nodes": machine.n_nodes,
        "n_cores": machine.total_cores,
        "options": window.options.told(),
        "window": span,
        "scheduler": window.scheduler,
        "shutdown": window.shutdown,
        "knows": "",
        "streamed": {"pieces": window.pieces, "most_jobs": window.most, "jobs_read_at_once": log.jobs},
        "left_out": ["nodes", "power", "allocations"],
    }
    if window.unseen:
        manifest["unseen"] = window.unseen
    if files := policy_files(window.scheduler, window.shutdown, window.options):
        manifest["policy_files"] = files
    window.totals.write_parquet(folder / "totals.parquet")
    note_written(folder / "jobs.parquet", folder / "totals.parquet")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(without_places(manifest), indent=1) + "\n", encoding="utf-8")
    return Streamed(summary, window.totals, manifest, window.pieces, window.most, recorded, log.firsts)
