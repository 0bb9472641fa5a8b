"""A site from a log alone: the nodes on which jobs ran, each as large as what ran there at one time, and partitions as
sets of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from escala.calibration.measured import notes_of
from escala.errors import EscalaError, quoted
from escala.platform.hostlist import count_of, hosts_of, in_order
from escala.platform.site import Partition, Site
from escala.platform.site_entries import Nodes
from escala.policies.pairs import Begin
from escala.workload import Workload

MOST_PLACED = 30_000_000
"""Nodes on which jobs of a log ran, counted anew for each job: 5 GB, and a minute or two."""
CANNOT = (
    "Not known from a log, and left out: memory, threads, features and weights of nodes, nodes that ran nothing, "
    "limits and priorities of partitions, QOS, fair share, reservations and downtime, and the scheduler's own "
    "settings. A slurm.conf says most of it."
)


class Inferred(NamedTuple):
    """The site, and in sentences what of it is inferred and how, and what cannot be known."""

    site: Site
    notes: list[str]


def inferred(log: Workload, begin: Begin | None = None) -> Inferred:
    """The least site on which the log could have run. log: read with `shapes=True`, so that it has the column `hosts`.

    A job over several nodes is taken as spread evenly over them, or over their names where it names some several times.
    begin: called with each piece of the work, gives what to call with the share done.

    EscalaError where the log names no hosts, or all jobs together more than `MOST_PLACED`.
    """
    names, placed = placements(log, begin)
    if placed.is_empty():
        raise EscalaError(
            f"{log.name}: names no nodes on which jobs ran (NodeList of sacct, exec_host of PBS, addresses of OAR): "
            "give what the site says of itself"
        )
    if begin is not None:
        begin("inferring the site")
    cores, gpus = (_most_at_once(placed, name) for name in ("cores", "gpus"))
    kinds = placed.filter(pl.col("kind").is_not_null()).group_by("host").agg(pl.col("kind").mode().sort().first())
    kind_of = dict(kinds.iter_rows())
    members = {
        str(name): set(hosts)
        for name, hosts in placed.group_by("partition").agg(pl.col("host").unique()).iter_rows()
        if name is not None
    }
    of_partitions: dict[int, tuple[str, ...]] = {}
    for name in sorted(members):
        of_partitions |= {host: (*of_partitions.get(host, ()), name) for host in members[name]}
    place = {name: host for host, name in enumerate(names)}
    ordered = [place[name] for name in in_order(names)]
    kept = {one: (of_partitions.get(one, ()), cores[one], gpus[one], kind_of.get(one, "")) for one in ordered}
    nodes = Nodes()
    for told, same in groupby(sorted(ordered, key=kept.__getitem__), key=kept.__getitem__):
        _, of_node, of_gpus, kind = told
        nodes.add([names[one] for one in same], log.name, cores=of_node, gpus={kind: of_gpus} if of_gpus else {})
    partitions = [
        Partition(name, tuple(sorted(nodes.number[names[host]] for host in hosts)), default=len(members) == 1)
        for name, hosts in sorted(members.items())
    ]
    site = nodes.site(log.name, {}, partitions=tuple(partitions))
    return Inferred(site, [*_notes(log, placed, site), *notes_of(log, site)])


class Placed(NamedTuple):
    """Where jobs ran: the names of hosts, and a row for each job whose hosts and start are known and each of its hosts:
    host (its place in `names`), partition, kind, start_s, end_s, cores, gpus (Int64)."""

    names: list[str]
    rows: pl.DataFrame


def placements(log: Workload, begin: Begin | None = None) -> Placed:
    """Of all jobs. EscalaError where their host lists are broken, or stand for too many hosts in all."""
    jobs = log.jobs
    have = set(jobs.columns)
    if "hosts" not in have:
        return Placed([], pl.DataFrame())

    def column(name: str, dtype: pl.DataType) -> pl.Expr:
        return pl.col(name) if name in have else pl.lit(None, dtype=dtype)

    known = jobs.filter(pl.col("hosts").is_not_null() & pl.col("wait_s").is_not_null())
    named = known["hosts"].value_counts(sort=True, name="jobs")
    _refuse_many(log.name, named)
    number: dict[str, int] = {}
    table = _table(named["hosts"], log.name, number, None if begin is None else begin("reading where jobs ran"))
    start = pl.col("submit_s") + pl.col("wait_s")
    frame = known.select(
        "hosts",
        pl.coalesce(column("partition", pl.String()), pl.col("queue")).cast(pl.Categorical).alias("partition"),
        column("gpu_kind", pl.String()).cast(pl.Categorical).alias("kind"),
        start.alias("start_s"),
        (start + pl.col("runtime_s")).alias("end_s"),
        "cores",
        column("gpus_per_node", pl.Int64()).fill_null(0).alias("gpus"),
    )
    rows = frame.join(table, on="hosts", how="left", maintain_order="left").drop("hosts").explode("host", "share")
    share = (pl.col("cores") * pl.col("share") - 1e-9).ceil().cast(pl.Int64)
    rows = rows.select(pl.exclude("cores", "share"), share.alias("cores")).filter(pl.col("host").is_not_null())
    return Placed(list(number), rows)


def _refuse_many(log: str, named: pl.DataFrame) -> None:
    """EscalaError where the host lists of a log, and how many jobs have each, stand for too much; before any is
    made."""
    placed = 0
    for text, jobs in named.iter_rows():
        placed += count_of(text, f"{log}: hosts") * jobs
        if placed > MOST_PLACED:
            raise EscalaError(
                f"{log}: hosts: the lists of all jobs, e.g. {quoted(text)}, stand for more than {MOST_PLACED:,} hosts: "
                "export fewer days, or import what Slurm says of its nodes (scontrol show node)"
            )


def _table(texts: pl.Series, log: str, number: dict[str, int], told: Callable[[float], None] | None) -> pl.DataFrame:
    """Of each host list: hosts (the text), host (the number of each host in it, entered in `number`), share (of the
    job's cores)."""
    hosts, shares = list[pl.Series](), list[pl.Series]()
    for done, text in enumerate(texts):
        named = Counter(hosts_of(text, f"{log}: hosts"))
        hosts.append(pl.Series([number.setdefault(name, len(number)) for name in named], dtype=pl.UInt32))
        shares.append(pl.Series(named.values(), dtype=pl.Float64) / named.total())
        if told is not None:
            told((done + 1) / len(texts))
    schema = pl.Schema([("hosts", pl.String()), ("host", pl.List(pl.UInt32)), ("share", pl.List(pl.Float64))])
    return pl.DataFrame({"hosts": texts, "host": hosts, "share": shares}, schema=schema)


def _most_at_once(placed: pl.DataFrame, name: str) -> dict[int, int]:
    """Host -> the most of it that was in use at one time; what ends and what begins at one instant do not overlap."""
    if not (placed[name] > 0).any():
        return dict.fromkeys(placed["host"].unique(), 0)
    ends = placed.select("host", pl.col("end_s").alias("at"), (-pl.col(name)).alias("step"))
    starts = placed.select("host", pl.col("start_s").alias("at"), pl.col(name).alias("step"))
    used = (
        pl.concat([ends, starts])
        .lazy()
        .sort("host", "at", "step")
        .select("host", used=pl.col("step").cum_sum().over("host"))
        .group_by("host")
        .agg(pl.col("used").max())
        .collect()
    )
    return {host: max(int(most), 0) for host, most in used.iter_rows()}


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
