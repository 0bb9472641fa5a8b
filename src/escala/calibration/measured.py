"""What nodes drew, from the joules that accounting measured."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from escala.platform.hostlist import hosts_of
from escala.platform.site import Site
from escala.workload import Workload
from escala.workload.columns import MEASURED

LEAST_S = 60.0
"""Shorter jobs say little: nodes are asked for their watts some times a minute at most."""


def watts_of(log: Workload, site: Site) -> dict[int, list[float]]:
    """Cores of a node -> the mean watts of a node in each job that had nodes of this size whole. "Only in the case of
    an exclusive job allocation does this value reflect the job's real energy consumption"
    (https://slurm.schedmd.com/sacct.html, ConsumedEnergy)."""
    if not {MEASURED, "hosts"} <= set(log.jobs.columns):
        return {}
    cores = dict(zip(site.names, site.cores.tolist(), strict=True))

    @cache
    def sizes(text: str) -> tuple[int, int, int]:
        """Nodes, their cores, and those of the largest."""
        of_nodes = [cores[name] for name in set(hosts_of(text, f"{log.name}: hosts")) if name in cores]
        return len(of_nodes), sum(of_nodes), max(of_nodes, default=0)

    known = log.jobs.filter(
        pl.col(MEASURED).is_not_null() & pl.col("hosts").is_not_null() & (pl.col("runtime_s") >= LEAST_S)
    )
    found: dict[int, list[float]] = {}
    for joules, ran_s, used, text in known.select(MEASURED, "runtime_s", "cores", "hosts").iter_rows():
        nodes, every, size = sizes(text)
        if nodes and used >= every and every == nodes * size:
            found.setdefault(size, []).append(joules / ran_s / nodes)
    return dict(sorted(found.items()))


def notes_of(log: Workload, site: Site) -> list[str]:
    """In sentences, a kind of node each, and what it takes to make energy of it; none where nothing was measured."""
    found = watts_of(log, site)
    measured = {size: np.percentile(watts, (5, 50, 95)) for size, watts in found.items()}
    told = [
        f"Measured (ConsumedEnergyRaw): a node of {size} cores draws {middle:.0f} W while it computes, the median of "
        f"{len(found[size]):,} jobs that had such nodes whole (nine of ten: {low:.0f} to {high:.0f} W)."
        for size, (low, middle, high) in measured.items()
    ]
    if not told:
        return []
    first = next(iter(measured.values()))[1]
    return [
        *told,
        'What an idle node draws no accounting says. Measure it, and write power = "measured" under [[nodes]], and '
        f"[power.measured] with computing_w = {first:.0f}, idle_w = ... and can_switch = false.",
    ]
