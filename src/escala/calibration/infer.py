"""A site from a log alone: the nodes on which jobs ran, each as large as what ran there at one time, and partitions as
sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from escala.calibration.measured import notes_of
from escala.calibration.placed import Ints, Placed, placements
from escala.errors import EscalaError
from escala.platform.site import Partition, Site
from escala.platform.site_entries import MOST_LISTED, Nodes
from escala.policies.pairs import Begin
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


def inferred(log: Workload, begin: Begin | None = None) -> Inferred:
    """The least site on which the log could have run. log: read with `shapes=True`, so that it has the column `hosts`.

    A job over several nodes is taken as spread evenly over them, or over their names where it names some several times.
    begin: called with each piece of the work, gives what to call with the share done.

    EscalaError where the log names no hosts, or more of them than `placements` takes.
    """
    placed = placements(log, begin)
    if placed is None:
        raise EscalaError(
            f"{log.name}: names no nodes on which jobs ran (NodeList of sacct, exec_host of PBS, addresses of OAR): "
            "give what the site says of itself"
        )
    if begin is not None:
        begin("inferring the site")
    sizes: list[tuple[int, int, str]] = [(0, 0, "")] * (len(placed.edges) - 1)
    found: dict[str, list[Ints]] = {}
    for rows in placed.rows():
        for stretch, *of_node in _sizes(rows).iter_rows():
            sizes[stretch] = tuple(of_node)
        for name, some in rows.group_by("partition").agg(pl.col("stretch").unique()).iter_rows():
            found.setdefault(name, []).append(np.array(some, np.int64))
    members = _members(log.name, placed, {name: found[name] for name in sorted(found.keys() - {None})})
    nodes = _nodes(log.name, placed, members, sizes)
    numbers: dict[bytes, tuple[int, ...]] = {}
    for some in members.values():
        if some.tobytes() not in numbers:
            numbers[some.tobytes()] = tuple(sorted(nodes.number[name] for name in _hosts(placed, some)))
    partitions = [Partition(name, numbers[some.tobytes()], default=len(members) == 1) for name, some in members.items()]
    site = nodes.site(log.name, {}, partitions=tuple(partitions))
    return Inferred(site, [*_notes(log, placed, site), *notes_of(log, site)])


def _members(log: str, placed: Placed, found: Mapping[str, list[Ints]]) -> dict[str, Ints]:
    """The stretches of each partition, rising. EscalaError where those that differ have more nodes than the partitions
    of a site may have."""
    members = {name: np.sort(np.concatenate(some)) for name, some in found.items()}
    lengths = np.diff(placed.edges)
    listed = sum(int(lengths[some].sum()) for some in {one.tobytes(): one for one in members.values()}.values())
    if listed > MOST_LISTED:
        raise EscalaError(
            f"{log}: hosts: the partitions have more than {MOST_LISTED:,} nodes together: leave some out (--partition)"
        )
    return members


def _hosts(placed: Placed, stretches: Iterable[int]) -> Iterator[str]:
    for one in stretches:
        yield from placed.names[placed.edges[one] : placed.edges[one + 1]]


def _nodes(log: str, placed: Placed, members: Mapping[str, Ints], sizes: list[tuple[int, int, str]]) -> Nodes:
    """The hosts, those that have the same partitions and sizes together."""
    of_partitions = [list[str]() for _ in sizes]
    for name, some in members.items():
        for stretch in some:
            of_partitions[stretch].append(name)
    nodes = Nodes()

    def kept(stretch: int) -> tuple[list[str], tuple[int, int, str]]:
        return of_partitions[stretch], sizes[stretch]

    for (_, (cores, gpus, kind)), same in groupby(sorted(range(len(sizes)), key=kept), key=kept):
        nodes.add([*_hosts(placed, same)], log, cores=cores, gpus={kind: gpus} if gpus else {})
    return nodes


def _sizes(rows: pl.DataFrame) -> pl.DataFrame:
    """stretch, cores and gpus (of a node: the most that ran there at one time), kind (the most frequent, or "")."""
    kinds = rows.lazy().filter(pl.col("kind").is_not_null()).group_by("stretch")
    used = [_most_at_once(rows, name) for name in ("cores", "gpus")]
    found = (
        used[0]
        .join(used[1], on="stretch")
        .join(kinds.agg(pl.col("kind").mode().sort().first()).collect(), on="stretch", how="left")
    )
    return found.select("stretch", "cores", "gpus", pl.col("kind").cast(pl.String()).fill_null(""))


def _most_at_once(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """stretch, and under `name` the most of it that was in use at one time on each of its hosts; what ends and what
    begins at one instant do not overlap."""
    if not (rows[name] > 0).any():
        return rows.select(pl.col("stretch").unique(), pl.lit(0).alias(name))
    ends = rows.select("stretch", pl.col("end_s").alias("at"), (-pl.col(name)).alias("step"))
    starts = rows.select("stretch", pl.col("start_s").alias("at"), pl.col(name).alias("step"))
    return (
        pl.concat([ends, starts])
        .lazy()
        .sort("stretch", "at", "step")
        .select("stretch", used=pl.col("step").cum_sum().over("stretch"))
        .group_by("stretch")
        .agg(pl.col("used").max().clip(lower_bound=0).alias(name))
        .collect()
    )


def _notes(log: Workload, placed: Placed, site: Site) -> list[str]:
    known = int((log.jobs["hosts"].is_not_null() & log.jobs["wait_s"].is_not_null()).sum())
    few = int(np.diff(placed.edges)[placed.counts() < 10].sum())
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
