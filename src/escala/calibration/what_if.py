"""A log on its site as it is, and on the site with more or fewer nodes, or another longest run time of a partition."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from escala.calibration.changes import Change, limit_changes, qos_changes
from escala.calibration.warm import warm_start
from escala.engines import replays_on
from escala.engines.engine import Where
from escala.errors import EscalaError, quoted
from escala.metrics.jobs import size_classes
from escala.platform import Platform, Site, read_platform
from escala.platform.site import site_of
from escala.policies.kept_pieces import KeptPieces
from escala.policies.pairs import Named, play
from escala.policies.run import simulate
from escala.result import Result
from escala.slurm.named import is_slurm
from escala.workload import Workload
from escala.writing import Pieces

AS_IT_IS = "as it is"
STEPS = 5
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)(%?)")


@dataclass(frozen=True)
class WhatIf:
    """rows: a row for each world and scheduler (change, scheduler, partition, by, nodes, cores, refused, mean_wait_s,
    median_wait_s, p95_wait_s, utilisation, and energy_j where watts are known); waits over jobs that ran in all worlds.
    sizes: their mean wait by cores of the job. jobs: how many these are."""

    rows: pl.DataFrame
    sizes: pl.DataFrame
    jobs: int
    about: dict[str, Any] = field(repr=False)

    @property
    def knows(self) -> dict[str, str]:
        """What each scheduler knows of the future, "" for an honest one; see `escala.foresight`."""
        return dict(self.about["knows"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.about,
            "jobs_in_all": self.jobs,
            "worlds": self.rows.to_dicts(),
            "by_size": self.sizes.to_dicts(),
        }


def what_if(
    log: Workload,
    platform: Platform | str,
    *,
    nodes: Sequence[str] = (),
    limits: Sequence[str] = (),
    qos: Sequence[str] = (),
    schedulers: Sequence[Any] = ("slurm",),
    progress: Callable[[float], None] | None = None,
    jobs: int | None = None,
    on: Where = None,
    keep: Pieces | None = None,
    **options: Any,
) -> WhatIf:
    """Replay a log, from a warm start where it records waits, on the site and on each change of it.

    nodes: `PARTITION=-10%..+10%` (five steps), `PARTITION=-10,+5%`, or without a partition of all nodes. limits:
    `PARTITION=TIME,TIME`, its longest run time, as Slurm writes spans, or `ACCOUNT:LIMIT=VALUE,VALUE` (see
    `changes.account_changes`). qos: `QOS:LIMIT=VALUE,VALUE`. Nodes that are added are like most of the partition's; the
    last ones of it go, from all partitions. on: where replays are made, see `compare`; the results are the same for
    any; jobs: N is "local:N". keep: where replays go, and are taken from. EscalaError for what is none of these.
    """
    site = site_of(read_platform(platform))
    kinds = ((node_changes, nodes), (limit_changes, limits), (qos_changes, qos))
    worlds = [
        Change(AS_IT_IS, site),
        *(one for changes, texts in kinds for text in texts for one in changes(site, text)),
    ]
    blind = [str(name) for name in schedulers if not is_slurm(name)]
    unknown = [one for one in limits if ":" in one.partition("=")[0]] + list(qos)
    if unknown and blind:
        raise EscalaError(
            f"what-if: {blind[0]} knows no limits of accounts and QOS ({unknown[0]}): give scheduler slurm alone, or "
            "leave the limit out"
        )
    if len(worlds) == 1:
        raise EscalaError(
            "what-if: nothing changes: give nodes, such as batch=-10%..+10%, a limit, such as batch=12:00:00, or a qos"
        )
    recorded = log.jobs["wait_s"].null_count() < len(log)
    warm = warm_start(log) if recorded else None
    begun = log if warm is None else warm.log
    sites = {f"{k} {s}": world.site for k, world in enumerate(worlds) for s in range(len(schedulers))}
    pairs = [Named(name, schedulers[int(name.split()[1])], "never") for name in sites]

    def run(pair: Named) -> Result:
        return simulate(begun, sites[pair.name], pair.scheduler, pair.shutdown, oversized="drop", **options)

    kept = (
        None if keep is None else KeptPieces[Result](keep, "run ", lambda path, result: result.save(path), Result.load)
    )
    with replays_on(on, jobs) as each:
        runs = play(pairs, run, kept, None if progress is None else lambda _, share: progress(share), each)
    judged = log.jobs if warm is None else log.jobs.filter(pl.col("job_id").is_in(warm.measured.implode()))
    return _collected(log, judged, worlds, runs)


def _collected(log: Workload, judged: pl.DataFrame, worlds: Sequence[Change], runs: dict[str, Result]) -> WhatIf:
    """The waits of the jobs that ran in all worlds, and each world's own figures."""
    table = judged.select(
        "job_id", "submit_s", size=size_classes(judged["cores"].cast(pl.Float64).to_numpy()).cast(pl.String)
    )
    for place, result in runs.items():
        starts = result.jobs.select("job_id", pl.col("start_s").alias(place))
        table = table.join(starts, on="job_id", how="left", maintain_order="left")
    common = table.drop_nulls()
    if common.is_empty():
        raise EscalaError(f"{log.name}: no job runs in all of these worlds: check the platform")
    sizes = sorted(common["size"].unique(), key=lambda text: int(text.split("-")[0].rstrip("+")))
    rows, by_size, unseen, knows = [], [], dict[str, Any](), dict[str, str]()
    for place, result in runs.items():
        world, name = worlds[int(place.split()[0])], str(result.manifest["scheduler"])
        unseen[name], knows[name] = unseen.get(name, {}) | result.unseen, result.knows
        waits = common[place] - common["submit_s"]
        summary = result.summary()
        row: dict[str, Any] = {"change": world.name, "scheduler": name, "partition": world.partition, "by": world.by}
        row |= {"nodes": world.site.n_nodes, "cores": world.site.total_cores, "refused": int(summary["n_rejected"])}
        row |= {
            "mean_wait_s": waits.mean(),
            "median_wait_s": waits.median(),
            "p95_wait_s": waits.quantile(0.95, "linear"),
        }
        row |= {name: summary[name] for name in ("utilisation", "energy_j") if name in summary}
        rows.append(row)
        means = common.with_columns(wait=waits).group_by("size").agg(pl.col("wait").mean())
        found = dict(means.iter_rows())
        by_size.append({"change": world.name, "scheduler": name, **{size: found.get(size) for size in sizes}})
    about = {"log": log.name, "jobs": len(log), "platform": worlds[0].site.name, "judged": judged.height}
    about |= {"unseen": unseen, "knows": knows}
    return WhatIf(pl.DataFrame(rows), pl.DataFrame(by_size), common.height, about)


def node_changes(site: Site, text: str) -> list[Change]:
    """The worlds of `PARTITION=-10%..+10%`."""
    name, equals, wanted = text.rpartition("=")
    if equals:
        members = site.partition(name).nodes
    else:
        name, members = "", tuple(range(site.n_nodes))
    found = []
    for by in _steps(wanted, len(members), text):
        if by:
            shown = f"{name} {by:+d} node{'s' if abs(by) != 1 else ''}".strip()
            found.append(Change(shown, resized(site, members, by), by, name))
    return found


def _steps(text: str, size: int, whole: str) -> list[int]:
    """Numbers of nodes that are added, or taken away, without those that are twice."""
    low, dots, high = text.partition("..")
    if dots:
        first, last = _count(low, size, whole), _count(high, size, whole)
        wanted = [round(one) for one in np.linspace(first, last, STEPS)]
    else:
        wanted = [_count(part, size, whole) for part in text.split(",")]
    return list(dict.fromkeys(wanted))


def _count(text: str, size: int, whole: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise EscalaError(
            f"nodes {quoted(whole)}: {quoted(text)} is no change of a number of nodes; write -10%..+10%, or -2,+4"
        )
    value = float(match[1]) * (size / 100 if match[2] else 1.0)
    count = int(math.copysign(max(round(abs(value)), 1), value)) if value else 0
    if count <= -size:
        raise EscalaError(f"nodes {quoted(whole)}: takes all {size} nodes away; leave one at least")
    if count > 1_000_000:
        raise EscalaError(f"nodes {quoted(whole)}: adds {count} nodes; that is more than any site has")
    return count


def resized(site: Site, members: Sequence[int], by: int) -> Site:
    """The site with `by` more nodes of a set (like most of it, in the same partitions), or without its last ones,
    numbered anew."""
    if by < 0:
        gone = set(members[by:])
        kept = [k for k in range(site.n_nodes) if k not in gone]
        return _taken(site, kept, [site.names[k] for k in kept], str(by))
    speed = np.ones(site.n_nodes) if site.node_speed is None else site.node_speed
    amounts = [tuple(int(v[k]) for v in (site.cores, *site.resources.values())) for k in members]
    kinds = [(told, site.features[k], float(speed[k])) for told, k in zip(amounts, members, strict=True)]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    like = members[len(kinds) - 1 - kinds[::-1].index(usual)]
    taken = set(site.names)
    fresh = [name for name in (f"added{k}" for k in range(1, by + len(taken) + 1)) if name not in taken][:by]
    return _taken(site, [*range(site.n_nodes), *[like] * by], [*site.names, *fresh], f"+{by}")


def _taken(site: Site, rows: Sequence[int], names: Sequence[str], how: str) -> Site:
    """A site of these nodes of another, some several times; each in the partitions of the node that it is like."""
    assert site.weights is not None and site.threads is not None
    at = np.array(rows, np.int64)
    partitions = []
    for one in site.partitions:
        inside = set(one.nodes)
        nodes = tuple(k for k, row in enumerate(rows) if row in inside)
        if nodes:
            partitions.append(replace(one, nodes=nodes))
    closed = [
        one._replace(nodes=tuple(k for k, row in enumerate(rows) if row in set(one.nodes))) for one in site.closed
    ]
    return replace(
        site, closed=tuple(one for one in closed if one.nodes),
        name=f"{site.name} {how}", cores=site.cores[at], profile_of=site.profile_of[at], names=tuple(names),
        resources={kind: values[at] for kind, values in site.resources.items()}, partitions=tuple(partitions),
        features=tuple(site.features[k] for k in rows), weights=site.weights[at], threads=site.threads[at],
        node_speed=None if site.node_speed is None else site.node_speed[at],
    )  # fmt: skip
