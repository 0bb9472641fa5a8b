"""Jobs that take whole nodes, all alike, as jobs of hosts: a node is a host that holds one job at a time."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, number_of, quoted
from escala.workload.shapes import EXCLUSIVE, KIND, OF_GPUS, OF_MEMORY, OF_NODES, PLACES
from escala.workload.table import Workload
from escala.workload.tasks import ints_of, tasks_of

OF_ROOM = (*OF_MEMORY, *OF_GPUS, KIND)
"""Where the number of nodes is given, these change nothing for jobs of whole nodes: all nodes have it, or none."""


def on_hosts(workload: Workload, node_cores: int) -> Workload:
    """The workload on hosts that are nodes of `node_cores` cores each: `cores` are hosts, `load` is of all cores of
    these, and no job asks for nodes any more.

    Raises:
        EscalaError: a job that may share a node with another, or that fits no nodes.
    """
    if node_cores < 1:
        raise EscalaError(f"node_cores is {node_cores}: give the cores of a node, 1 or more")
    jobs = workload.jobs
    named = [name for name in jobs.columns if name.startswith("demand_")]
    named += [name for name in PLACES if name in jobs.columns and jobs[name].null_count() < len(jobs)]
    if named:
        raise EscalaError(
            f"workload {workload.name!r}: Batsim's hosts know no {named[0]}: write Parquet "
            "(workload.jobs.write_parquet) instead"
        )
    hosts = _hosts(jobs, node_cores)
    cores = jobs["cores"].to_numpy()
    wrong = np.flatnonzero(hosts == 0)
    if len(wrong):
        row = int(wrong[0])
        more = f" (and {number_of(len(wrong) - 1, 'more job')})" if len(wrong) > 1 else ""
        raise EscalaError(
            f"workload {workload.name!r}: job {quoted(jobs['job_id'][row])}, of {number_of(int(cores[row]), 'core')}, "
            f"does not take whole nodes of {number_of(node_cores, 'core')} for certain{more}: only such jobs can be "
            "jobs of hosts; write Parquet (workload.jobs.write_parquet) instead"
        )
    partly = np.flatnonzero((cores < hosts * node_cores) & workload.needs_speed())
    if len(partly):
        raise EscalaError(
            f"workload {workload.name!r}: job {quoted(jobs['job_id'][int(partly[0])])} leaves cores of its nodes idle, "
            "and runtimes are flops: give the flop/s of a core first, workload.at_speed(1e9)"
        )
    load = jobs["load"].to_numpy() * np.minimum(cores / (hosts * node_cores), 1.0)
    most = None if workload.max_cores is None else max(workload.max_cores // node_cores, int(hosts.max(initial=1)))
    changed = jobs.drop(OF_NODES, strict=False).with_columns(
        cores=pl.Series(hosts), load=pl.Series(load), single_node=pl.lit(False)
    )
    return workload.with_jobs(changed, max_cores=most)


def _hosts(jobs: pl.DataFrame, node_cores: int) -> NDArray[np.int64]:
    """How many whole nodes each job takes, int64 [jobs]; 0: it may leave some cores of a node to others, or fits
    none."""
    nodes, tasks, per, per_node = tasks_of(jobs)
    cores, exclusive = jobs["cores"].to_numpy(), ints_of(jobs, EXCLUSIVE, 0) > 0
    roomy = np.zeros(len(jobs), bool)
    for name in OF_ROOM:
        if name in jobs.columns:
            roomy |= jobs[name].is_not_null().to_numpy()
    a_node = np.minimum(node_cores // per, np.where(per_node > 0, per_node, node_cores))
    fewest = np.where(a_node > 0, -(-tasks // np.maximum(a_node, 1)), 0)
    given = nodes > 0
    spreads = (per == 1) & (per_node == 0)
    tasks = np.where(spreads & ~given & ~exclusive, cores, tasks)
    each = np.where(cores == tasks * per, per, -(-cores // tasks))  # of tasks that pack
    several = np.where(per_node > 0, np.minimum(node_cores // each, per_node), node_cores // each)
    filled = (several * each == node_cores) & (tasks % np.maximum(several, 1) == 0)
    unasked = np.where(exclusive, fewest, np.where(filled, tasks // np.maximum(several, 1), 0))
    found = np.where(given, nodes, np.where(roomy, 0, unasked))
    parts = np.maximum(found, 1)
    grain = np.where((cores == tasks * per) & (tasks >= parts), per, 1)  # cores are dealt out by whole tasks
    largest = grain * -(-np.maximum(cores, parts * grain) // (grain * parts))
    whole = (exclusive & (largest <= node_cores)) | ((cores == found * node_cores) & (largest == node_cores))
    return np.where(whole | (filled & ~given), found, 0)
