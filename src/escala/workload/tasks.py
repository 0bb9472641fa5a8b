"""How many nodes and tasks jobs ask for, by the columns of `shapes`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NONE = -1
MOST = 1 << 31
"""More than any machine has of anything: so many stand for all above, so that products are no more than 64 bits."""


class Tasks(NamedTuple):
    """int64 [jobs] each."""

    nodes: Ints  # exactly so many; NONE: not asked
    tasks: Ints
    cores_per_task: Ints
    tasks_per_node: Ints  # at most; 0: not asked


def ints_of(jobs: pl.DataFrame, name: str, usual: int) -> Ints:
    """A column of whole numbers; `usual` where it is null or not there."""
    if name not in jobs.columns:
        return np.full(len(jobs), usual, np.int64)
    return jobs[name].cast(pl.Int64).fill_null(usual).to_numpy()


def tasks_of(jobs: pl.DataFrame) -> Tasks:
    """Of each job: those that it asks for. Without tasks a job has as many as fill its nodes, or its cores; a job of
    `single_node` asks for one node."""
    usual = {"nodes": NONE, "tasks": NONE, "cores_per_task": 1, "tasks_per_node": 0}
    nodes, tasks, per, per_node = (np.minimum(ints_of(jobs, name, none), MOST) for name, none in usual.items())
    cores = jobs["cores"].to_numpy()
    nodes = np.where(jobs["single_node"].to_numpy() & (nodes < 0), 1, nodes)
    of_nodes = np.where((nodes > 0) & (per_node > 0), nodes * per_node, -(-cores // per))
    tasks = np.where(tasks > 0, tasks, np.maximum(of_nodes, np.maximum(nodes, 1)))
    return Tasks(nodes, np.minimum(tasks, MOST), per, per_node)
