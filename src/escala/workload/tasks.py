"""How many nodes and tasks jobs ask for, by the columns of `shapes`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NONE = -1


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
    nodes, tasks, cores = ints_of(jobs, "nodes", NONE), ints_of(jobs, "tasks", NONE), jobs["cores"].to_numpy()
    per, per_node = ints_of(jobs, "cores_per_task", 1), ints_of(jobs, "tasks_per_node", 0)
    nodes = np.where(jobs["single_node"].to_numpy() & (nodes < 0), 1, nodes)
    of_nodes = np.where((nodes > 0) & (per_node > 0), nodes * per_node, -(-cores // per))
    tasks = np.where(tasks > 0, tasks, np.maximum(of_nodes, np.maximum(nodes, 1)))
    return Tasks(nodes, tasks, per, per_node)
