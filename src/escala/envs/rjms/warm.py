"""Episodes that begin as the machine and the queue were: one replay of the whole log, stopped at the start of each.

A queue is carried from day to day: on days that begin with an empty machine half of the waiting may be missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from escala.admit import arrivals_us
from escala.errors import EscalaError
from escala.kernel.clock import SECOND
from escala.options import Options, Plan, microseconds
from escala.platform import Platform
from escala.simulation import Simulation
from escala.standing import standing
from escala.workload import Workload
from escala.workload.shapes import clocked


class Start(NamedTuple):
    """How things stand at the start of an episode; times in us from there. jobs: JOBS, row, state and start of those
    that live; nodes: NODES; placed: PLACED; offset_us: what the episode's own clock is ahead, so that no submission
    lies before its 0."""

    jobs: Any
    nodes: Any
    placed: Any
    offset_us: int


def warm_episodes(
    log: Workload,
    platform: Platform,
    plan: Callable[[Workload, Options], Plan],
    options: Options,
    day_s: float,
    min_jobs: int,
) -> tuple[list[Workload], list[Start]]:
    """The days of a log that have at least `min_jobs` submissions, from midnight UTC where its times are absolute, each
    with the jobs that live when it begins in front; and how these stand. plan: of the policies of the replay.
    EscalaError where there is no such day."""
    origin = -(log.origin_s % day_s)
    submit = log.jobs["submit_s"].to_numpy()
    number = np.floor((arrivals_us(log.jobs) / SECOND - origin) / day_s).astype(np.int64)
    told = Options(start_off=options.start_off, oversized=options.oversized, record=False)
    simulation = Simulation(log, platform, plan(log, told), told, partitions=False)
    days, starts = list[Workload](), list[Start]()
    for k in np.unique(number):
        rows = np.flatnonzero(number == k)
        if len(rows) < min_jobs:
            continue
        begin_s = origin + float(k) * day_s
        begin_us = int(microseconds(np.array([begin_s]))[0])
        if begin_us > 0:
            simulation.advance(0, (begin_us - 1) / SECOND)
        now = standing(simulation.world, begin_us)
        chosen = np.concatenate([simulation.admitted[0].rows[now.rows], rows])
        offset_s = max(begin_s - float(submit[chosen].min()), 0.0)
        table = log.jobs[chosen].with_columns(clocked(log.jobs) - begin_s + offset_s)
        days.append(
            log.with_jobs(table, name=f"{log.name}#{k}", origin_s=log.origin_s + begin_s - offset_s, cleaning={})
        )
        starts.append(Start(now.jobs, now.nodes, now.placed, int(microseconds(np.array([offset_s]))[0])))
    if not days:
        raise EscalaError(
            f"workload {log.name!r} has no day with at least {min_jobs} jobs: give a longer log, or min_jobs=1"
        )
    return days, starts
