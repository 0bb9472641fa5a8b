"""Weighted resources: how they raise a job's priority (PriorityWeightTRES), and what use is billed by
(TRESBillingWeights)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.kernel.slurm import tables as t
from escala.kernel.slurm.shares import BY_CPUS, BY_MOST, BY_SUM
from escala.platform.limits import USAGE_FACTOR, USUAL_QOS
from escala.platform.site import GPU, MEMORY, Partition, Site
from escala.platform.tres_weights import weights_of
from escala.slurm.columns import Columns
from escala.slurm.settings import Settings
from escala.workload import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def priority_of_resources(site: Site, settings: Settings, shape: Ints, part: Ints) -> Floats:
    """What PriorityWeightTRES adds to each record: the weight times the share of its partition's resource that the job
    asks for (https://slurm.schedmd.com/priority_multifactor.html, TRES factors)."""
    added = np.zeros(len(shape))
    for name, weight in settings.weight_tres:
        totals = np.array([_total(site, one, name) for one in site.partitions], float)[part]
        asked = _asked(site, shape, name)
        added += np.where(totals > 0, weight * asked / np.maximum(totals, 1.0), 0.0)
    return added


def _asked(site: Site, shape: Ints, name: str) -> Floats:
    """How much of a resource jobs of these shapes ask for."""
    if name == "cpu":
        return shape[:, t.MIN_CORES].astype(float)
    if name == "node":
        return shape[:, t.MIN_NODES].astype(float)
    if name == "mem":
        of_nodes = np.maximum(shape[:, t.MEMORY_NODE], 0) * shape[:, t.MIN_NODES]
        return np.where(shape[:, t.MEMORY_CORE] > 0, shape[:, t.MEMORY_CORE] * shape[:, t.MIN_CORES], of_nodes).astype(
            float
        )
    by_node = np.maximum(shape[:, t.GPUS_NODE], 0) * shape[:, t.MIN_NODES]
    gpus = np.maximum(by_node, np.maximum(shape[:, t.GPUS_TASK], 0) * shape[:, t.TASKS])
    kind = name.partition(":")[2]
    if not kind:
        return gpus.astype(float)
    number = site.gpu_kinds.index(kind) if kind in site.gpu_kinds else t.FAR
    return np.where(shape[:, t.GPU_KIND] == number, gpus, 0).astype(float)


def _total(site: Site, part: Partition, name: str) -> int:
    """How much of a resource a partition has."""
    nodes = list(part.nodes)
    if name == "cpu":
        return int(site.cores[nodes].sum())
    if name == "node":
        return len(nodes)
    held = site.resources.get(MEMORY if name == "mem" else name if ":" in name else GPU)
    return 0 if held is None else int(held[nodes].sum())


def billing_of(site: Site, settings: Settings, kinds: int) -> tuple[Ints, Floats]:
    """(how each partition bills, of `escala.kernel.slurm.shares`; its weights by `BILL_...` and kind of GPU)."""
    how = np.full(len(site.partitions), BY_CPUS, np.int64)
    bill = np.zeros((len(site.partitions), t.BILL_KINDS + kinds))
    column = {"cpu": t.BILL_CPU, "mem": t.BILL_MEMORY, "node": t.BILL_NODE, "gpu": t.BILL_GPU}
    column |= {f"{GPU}:{kind}": t.BILL_KINDS + k for k, kind in enumerate(site.gpu_kinds)}
    for k, one in enumerate(site.partitions):
        if one.tres_billing_weights is None:
            continue
        how[k] = BY_MOST if settings.max_tres else BY_SUM
        for name, weight in weights_of(one.tres_billing_weights, f"partition {one.name}", []).items():
            if name in column:
                bill[k, column[name]] = weight
    return how, bill


def usage_factors(workload: Workload, site: Site) -> Floats:
    """By how much the use of each job counts, by its QOS."""
    factors = {name: float(told[USAGE_FACTOR]) for name, told in site.qos_limits.items() if USAGE_FACTOR in told}
    if not factors:
        return np.ones(len(workload))
    return np.array([factors.get(name or USUAL_QOS, 1.0) for name in Columns(workload.jobs).texts("qos")])
