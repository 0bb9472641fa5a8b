"""A site from a log alone: the nodes on which jobs ran, each as large as what ran there at one time, and partitions as
sets of them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import polars as pl

from escala.errors import EscalaError
from escala.platform.hostlist import hosts_of, in_order
from escala.platform.site import Partition, Site
from escala.platform.site_entries import Nodes
from escala.workload import Workload

CANNOT = (
    "Not known from a log, and left out: memory, threads, features and weights of nodes, nodes that ran nothing, "
    "limits and priorities of partitions, QOS, fair share, reservations and downtime, and the scheduler's own "
    "settings. A slurm.conf says most of it."
)


class Inferred(NamedTuple):
    """The site, and in sentences what of it is inferred and how, and what cannot be known."""

    site: Site
    notes: list[str]


def inferred(log: Workload) -> Inferred:
    """The least site on which the log could have run. log: read with `shapes=True`, so that it has the column `hosts`.

    A job over several nodes is taken as spread evenly over them, or over their names where it names some several times.
    EscalaError where the log names no hosts.
    """
    placed = placements(log)
    if placed.is_empty():
        raise EscalaError(
            f"{log.name}: names no nodes on which jobs ran (NodeList of sacct, exec_host of PBS, addresses of OAR): "
            "give what the site says of itself"
        )
    sizes = {name: _most_at_once(placed, name) for name in ("cores", "gpus")}
    kinds = placed.filter(pl.col("kind").is_not_null()).group_by("host").agg(pl.col("kind").mode().sort().first())
    kind_of = dict(kinds.iter_rows())
    members = {
        str(name): set(hosts)
        for name, hosts in placed.group_by("partition").agg("host").iter_rows()
        if name is not None
    }
    belongs = {host: tuple(sorted(name for name, hosts in members.items() if host in hosts)) for host in sizes["cores"]}
    ordered = in_order(sizes["cores"])
    nodes = Nodes()
    kept = {one: (belongs[one], sizes["cores"][one], sizes["gpus"][one], kind_of.get(one, "")) for one in ordered}
    for host in sorted(ordered, key=kept.__getitem__):
        gpus = sizes["gpus"][host]
        nodes.add([host], log.name, cores=sizes["cores"][host], gpus={kind_of.get(host, ""): gpus} if gpus else {})
    partitions = [
        Partition(name, tuple(sorted(nodes.number[host] for host in hosts)), default=len(members) == 1)
        for name, hosts in sorted(members.items())
    ]
    site = nodes.site(log.name, {}, partitions=tuple(partitions))
    return Inferred(site, _notes(log, placed, site))


def placements(log: Workload) -> pl.DataFrame:
    """Of each job whose hosts and start are known, and each of its hosts: host, partition, kind, start_s, end_s, cores,
    gpus (Int64)."""
    jobs = log.jobs
    have = set(jobs.columns)
    if "hosts" not in have:
        return pl.DataFrame(schema={"host": pl.String})

    def column(name: str, dtype: pl.DataType) -> pl.Expr:
        return pl.col(name) if name in have else pl.lit(None, dtype=dtype)

    known = jobs.filter(pl.col("hosts").is_not_null() & pl.col("wait_s").is_not_null())
    texts = known["hosts"].unique()
    lists = [Counter(hosts_of(text, f"{log.name}: hosts")) for text in texts]
    columns = {
        "hosts": texts,
        "host": [list(one) for one in lists],
        "share": [[n / one.total() for n in one.values()] for one in lists],
    }
    table = pl.DataFrame(columns, schema={"hosts": pl.String, "host": pl.List(pl.String), "share": pl.List(pl.Float64)})
    partition = pl.coalesce(column("partition", pl.String()), pl.col("queue"))
    start = pl.col("submit_s") + pl.col("wait_s")
    frame = known.join(table, on="hosts", how="left", maintain_order="left").explode("host", "share")
    return frame.select(
        "host",
        partition.alias("partition"),
        column("gpu_kind", pl.String()).alias("kind"),
        start.alias("start_s"),
        (start + pl.col("runtime_s")).alias("end_s"),
        (pl.col("cores") * pl.col("share") - 1e-9).ceil().cast(pl.Int64).alias("cores"),
        column("gpus_per_node", pl.Int64()).fill_null(0).alias("gpus"),
    ).filter(pl.col("host").is_not_null())


def _most_at_once(placed: pl.DataFrame, name: str) -> dict[str, int]:
    """Host -> the most of it that was in use at one time; what ends and what begins at one instant do not overlap."""
    ends = placed.select("host", pl.col("end_s").alias("at"), (-pl.col(name)).alias("step"))
    starts = placed.select("host", pl.col("start_s").alias("at"), pl.col(name).alias("step"))
    events = (
        pl.concat([ends, starts]).sort("host", "at", "step").with_columns(used=pl.col("step").cum_sum().over("host"))
    )
    return {
        str(host): max(int(most), 0) for host, most in events.group_by("host").agg(pl.col("used").max()).iter_rows()
    }


def _notes(log: Workload, placed: pl.DataFrame, site: Site) -> list[str]:
    known = int((log.jobs["hosts"].is_not_null() & log.jobs["wait_s"].is_not_null()).sum())
    runs = np.sort(placed.group_by("host").len()["len"].to_numpy())
    few = int((runs < 10).sum())
    told = [
        f"Inferred from {known:,} of {len(log):,} jobs of {log.name}, which name {site.n_nodes:,} nodes.",
        "Cores and GPUs of a node are the most that ran there at one time, a job over several nodes spread evenly "
        "where the log does not say: it has at least these.",
    ]
    if few:
        told.append(f"{few:,} of the nodes ran fewer than 10 jobs, so they may well be larger: mend them by hand.")
    if len(site.partitions) > 1:
        told.append(
            "A partition has the nodes on which its jobs ran, and may have more. None is marked as the default."
        )
    return [*told, CANNOT]
