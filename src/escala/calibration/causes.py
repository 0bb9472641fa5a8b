"""What of a log its replay cannot explain, each with the likeliest cause: limits of users, downtime and reservations,
nodes, sizes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.calibration.curves import levels
from escala.calibration.order import lag, order
from escala.calibration.placed import MOST_PLACED
from escala.errors import EscalaError
from escala.platform import Platform, Site
from escala.platform.hostlist import count_of, folded, hosts_of, in_order
from escala.workload import Workload
from escala.workload.filters import ABSOLUTE_FROM_S
from escala.workload.ignored import jobs_told

Floats = NDArray[np.float64]
GAP_S = 3600.0
ROUNDED_S = 2.0  # logs have whole seconds, and jobs that ran none are read as running one
LEAST_JOBS, CAPPED = 50, 0.5
MOST_TOLD = 5


def causes(log: Workload, jobs: pl.DataFrame, machine: Platform, about: dict[str, Any]) -> list[str]:
    """In sentences, the most telling first; none where all fits. jobs: the table of `calibrate`."""
    known = jobs.filter(pl.col("recorded_s").is_not_null())
    told = [*_refused(jobs, machine), *_late(jobs, about), *_size(known, machine), *_gaps(known, machine, about)]
    both = jobs.filter(pl.col("measured"))
    told += [*_caps(known, machine, about["since_s"]), *order(both), *lag(both)]
    return [*told, *_nodes(log, machine), *_ignored(log, machine, about)]


def _refused(jobs: pl.DataFrame, machine: Platform) -> list[str]:
    never = jobs.filter(pl.col("replayed_start_s").is_null())
    if never.is_empty():
        return []
    return [
        f"{never.height:,} of {jobs.height:,} jobs can never run on {machine.name} as it is described (first: "
        f"{never['job_id'][0]}, {never['cores'][0]:,} cores), and are left out: it lacks nodes, GPUs or memory, or a "
        "partition's limits are too narrow."
    ]


def _late(jobs: pl.DataFrame, about: dict[str, Any]) -> list[str]:
    """Jobs that ran at the first instant, and that the replay could not start when the log did."""
    if not about["warm"]:
        return []
    late = jobs.filter(
        (pl.col("recorded_start_s") < about["since_s"]) & (pl.col("replayed_start_s") > pl.col("recorded_start_s") + 60)
    )
    if late.is_empty():
        return []
    return [
        f"{late.height:,} of the {about['running']:,} jobs that ran at the log's first instant found no room when the "
        "log started them: the platform is smaller than the machine was."
    ]


def _size(known: pl.DataFrame, machine: Platform) -> list[str]:
    """The most cores in use at one time against the platform's."""
    begun, ended = _times(known)
    whole, cores = ended - begun > ROUNDED_S, known["cores"].to_numpy().astype(float)
    _, held = levels(begun[whole], ended[whole] - ROUNDED_S, cores[whole])
    most, total = float(held.max(initial=0.0)), machine.total_cores
    waited = float(known.select((pl.col("recorded_s") > 60).mean()).item() or 0.0)
    if most > total:
        return [f"The log had {most:,.0f} cores in use at one time, the platform has {total:,}: it is too small."]
    if most < 0.8 * total and waited > 0.05:
        return [
            f"Never more than {most:,.0f} of the {total:,} cores were in use, though {100 * waited:.0f} % of jobs "
            "waited over a minute: the platform is larger than the machine was, or limits, reservations or memory "
            "held jobs back."
        ]
    return []


def _times(known: pl.DataFrame) -> tuple[Floats, Floats]:
    return known["recorded_start_s"].to_numpy(), known["recorded_end_s"].to_numpy()


def _gaps(known: pl.DataFrame, machine: Platform, about: dict[str, Any]) -> list[str]:
    """Spans in which nothing started, though a job waited and as many cores as it asks for were free; none where the
    replay, which may hold cores back for a job ahead, has such spans of half the time too."""
    found, ours = (_idle_spans(known, machine, about["since_s"], how) for how in ("recorded", "replayed"))
    hours, usual = (sum(high - low for low, high in spans) / 3600 for spans in (found, ours))
    if not found or hours < 2 * usual + 1:
        return []
    low, high = max(found, key=lambda gap: gap[1] - gap[0])
    return [
        f"Nothing started for more than an hour {len(found):,} times ({hours:,.0f} h in all, {usual:,.0f} h in the "
        f"replay; the longest {(high - low) / 3600:.1f} h from {_when(low, about)}), though jobs waited and cores "
        "enough for the widest of them were free: downtime, a reservation, memory, or a limit."
    ]


def _idle_spans(known: pl.DataFrame, machine: Platform, since_s: float, how: str) -> list[tuple[float, float]]:
    """The spans, longer than an hour, by the log or by the replay."""
    table = known.filter(pl.col(f"{how}_start_s").is_not_null())
    columns = ("submit_s", f"{how}_start_s", f"{how}_end_s", "cores")
    submit, begun, ended, cores = (table[name].cast(pl.Float64).to_numpy() for name in columns)
    starts = np.sort(begun)
    pairs = [(float(starts[k]), float(starts[k + 1])) for k in np.flatnonzero(np.diff(starts) > GAP_S)]
    spans = [
        (_since(submit, begun, ended, cores, machine.total_cores, low, high), high)
        for low, high in pairs
        if low >= since_s
    ]
    return [(at, high) for at, high in spans if high - at > GAP_S]


def _since(submit: Floats, begun: Floats, ended: Floats, cores: Floats, total: int, low: float, high: float) -> float:
    """From when on, in a span without starts, jobs waited and the widest of them would have found its cores, so that
    none need be kept for a wider one; the end of the span where that never was."""
    waits, runs = (submit < high) & (begun >= high), (begun <= low) & (ended > low)
    moments = np.unique(np.concatenate([[low], submit[waits & (submit > low)], ended[runs & (ended < high)]]))
    for at in moments:
        waiting = cores[waits & (submit <= at)]
        if len(waiting) and waiting.max() <= total - cores[runs & (ended > at)].sum():
            return float(at)
    return high


def _when(at_s: float, about: dict[str, Any]) -> str:
    if about["origin_s"] < ABSOLUTE_FROM_S:
        return f"{at_s:,.0f} s"
    return datetime.datetime.fromtimestamp(about["origin_s"] + at_s, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _caps(known: pl.DataFrame, machine: Platform, since_s: float) -> list[str]:
    """Users who, while more of their jobs waited, mostly ran one and the same number of jobs, never more, with cores
    free; and whose jobs the replay let run more of."""
    times, held = levels(*_times(known), known["cores"].to_numpy().astype(float))
    found: list[tuple[int, str]] = []
    for (user,), mine in known.filter(pl.col("user").is_not_null()).group_by("user", maintain_order=True):
        if mine.height < LEAST_JOBS:
            continue
        cap = _cap(mine, times, held, machine.total_cores, since_s)
        if cap is not None:
            found.append((mine.height, f"{user} {cap[0]} ({100 * cap[1]:.0f} % of the time)"))
    if not found:
        return []
    shown = ", ".join(text for _, text in sorted(found, reverse=True)[:MOST_TOLD])
    more = f", and {len(found) - MOST_TOLD} users more" if len(found) > MOST_TOLD else ""
    return [
        "Some users never ran more than a number of jobs at one time, though more of theirs waited and cores were "
        f"free, as a limit would have it: {shown}{more}. In site.toml such a limit is max_jobs of an account or of a "
        "user in it ([accounts.root]: of all)."
    ]


def _cap(mine: pl.DataFrame, times: Floats, held: Floats, total: int, since_s: float) -> tuple[int, float] | None:
    """(most jobs at one time, share of the time in which it had others waiting and free cores that it ran just so
    many); None: no cap."""
    starts, ends = _times(mine)
    ones = np.ones(mine.height)
    at, running = levels(starts, ends, ones)
    queued_at, queued = levels(mine["submit_s"].to_numpy(), starts, ones)
    moments = np.unique(np.concatenate([at, queued_at]))
    moments = moments[moments >= since_s]
    if len(moments) < 3 or running.max() < 2:
        return None
    width = np.diff(moments)
    level, waiting = _value(at, running, moments[:-1]), _value(queued_at, queued, moments[:-1])
    free = total - _value(times, held, moments[:-1])
    held_back = (waiting > 0) & (free >= float(mine["cores"].median() or 1.0))  # type: ignore[arg-type]
    time = float(width[held_back].sum())
    most = float(running.max())
    share = float(width[held_back & (level == most)].sum()) / time if time > GAP_S else 0.0
    ours, our_level = levels(
        mine["replayed_start_s"].fill_null(0).to_numpy(), mine["replayed_end_s"].fill_null(0).to_numpy(), ones
    )
    return (int(most), share) if share >= CAPPED and len(ours) and our_level.max() > most else None


def _value(times: Floats, values: Floats, at: Floats) -> Floats:
    """The level from each instant on."""
    return np.concatenate([[0.0], values])[np.searchsorted(times, at, side="right")]


def _nodes(log: Workload, machine: Platform) -> list[str]:
    """Nodes of the platform that ran nothing, where the log names its nodes."""
    if "hosts" not in log.jobs.columns:
        return []
    try:
        texts = log.jobs["hosts"].drop_nulls().unique()
        if sum(count_of(text, log.name) for text in texts) > MOST_PLACED:
            return []
        names, ran = set(machine.names), set[str]()
        for text in texts:
            ran.update(names.intersection(hosts_of(text, log.name)))
    except EscalaError:
        return []
    idle = [name for name in machine.names if name not in ran]
    if not ran or not idle:
        return []
    return [
        f"{len(idle):,} of the {machine.n_nodes:,} nodes never ran a job of this log: {folded(in_order(idle))[:200]}: "
        "down, drained, or not for these jobs."
    ]


def _ignored(log: Workload, machine: Platform, about: dict[str, Any]) -> list[str]:
    """What the log says of its jobs that this replay does not heed."""
    slurm = str(about["scheduler"]).partition(":")[0] == "slurm"
    parted = slurm or isinstance(machine, Site)
    there = {
        "GPUs": "gpu" in machine.resources,
        "memory": "memory" in machine.resources,
        "partitions": parted,
        "queues": parted,
    }
    names = [f"{name} ({jobs_told(entry)})" for name, entry in log.ignored.items() if not there.get(name, False)]
    told = [f"Not heeded in this replay, and in the log: {', '.join(names)}."] if names else []
    if "queue=" in str(about["scheduler"]) if slurm else told:
        told.append("An order of the queue other than the site's own is no test of the site.")
    return [" ".join(told)] if told else []
