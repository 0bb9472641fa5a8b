"""Where the jobs of a log ran: hosts taken together where the same jobs ran on neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.platform.hostlist import count_of, hosts_of, in_order
from escala.platform.platform import check_size
from escala.policies.pairs import Begin
from escala.workload import Workload

MOST_PLACED = 30_000_000
"""Nodes on which jobs of a log ran, counted anew for each job: 1 GB at the most, and a minute or two."""
ROWS = 1_000_000
"""Of jobs on stretches that are in memory at one time, some more where one stretch ran more jobs."""

Ints = NDArray[np.int64]
Numbers = NDArray[np.uint32]


class Placed(NamedTuple):
    """The jobs whose hosts and start are known.

    names: of the hosts, as people count them. edges: Int64 [stretches + 1], the first host of each stretch of
    neighbours on which the same jobs ran, then the number of all hosts. jobs: part, partition, kind, start_s, end_s,
    cores, gpus (of each host of the part, Int64). spans: UInt32 [spans, 3], a part, its first stretch and the one
    behind its last.
    """

    names: list[str]
    edges: Ints
    jobs: pl.DataFrame
    spans: Numbers

    def counts(self) -> Ints:
        """How many jobs ran on each stretch: Int64 [stretches]."""
        ran = np.bincount(self.jobs["part"].to_numpy())[self.spans[:, 0]]
        steps = [np.bincount(self.spans[:, k], weights=ran, minlength=len(self.edges)) for k in (1, 2)]
        return np.cumsum(steps[0] - steps[1]).astype(np.int64)[:-1]

    def rows(self) -> Iterator[pl.DataFrame]:
        """`jobs` with a column `stretch`: a row for each stretch on which a job ran, some `ROWS` at a time. All rows of
        a stretch are in one table."""
        turns = np.cumsum(self.counts()) // ROWS
        cuts = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(turns)]
        for first, end in pairwise(cuts):
            part, *bounds = self.spans[(self.spans[:, 1] < end) & (self.spans[:, 2] > first)].T
            inside = [pl.lit(pl.Series(one.clip(first, end))) for one in bounds]
            spans = pl.DataFrame({"part": part}).with_columns(stretch=pl.int_ranges(*inside, dtype=pl.UInt32))
            yield spans.explode("stretch").join(self.jobs, on="part", how="inner")


def placements(log: Workload, begin: Begin | None = None) -> Placed | None:
    """Of all jobs; None where none names its hosts. EscalaError where their host lists are broken, stand for more than
    `MOST_PLACED` hosts in all, or name more hosts than a platform may have."""
    jobs = log.jobs
    have = set(jobs.columns)
    if "hosts" not in have:
        return None

    def column(name: str, dtype: pl.DataType) -> pl.Expr:
        return pl.col(name) if name in have else pl.lit(None, dtype=dtype)

    known = jobs.filter(pl.col("hosts").is_not_null() & pl.col("wait_s").is_not_null())
    named = known["hosts"].value_counts(sort=True, name="jobs")
    _refuse_many(log.name, named)
    number = defaultdict[str, int]()
    number.default_factory = number.__len__  # the next one
    lists = [*_lists(named["hosts"], log.name, number, None if begin is None else begin("reading where jobs ran"))]
    if not number:
        return None
    names = in_order(number)
    places = np.empty(len(names), np.uint32)
    places[[number[name] for name in names]] = np.arange(len(names), dtype=np.uint32)
    spans = _spans([one.hosts for one in lists], places)
    edges = np.unique(spans[:, 1:])
    spans[:, 1:] = np.searchsorted(edges, spans[:, 1:])
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
    parts = pl.DataFrame(
        {
            "hosts": [one.text for one in lists],
            "part": np.arange(len(lists), dtype=np.uint32),
            "share": [one.share for one in lists],
        }
    )
    share = (pl.col("cores") * pl.col("share") - 1e-9).ceil().cast(pl.Int64)
    ran = frame.join(parts, on="hosts", how="inner").select(pl.exclude("hosts", "cores", "share"), share.alias("cores"))
    return Placed(names, edges.astype(np.int64), ran, spans)


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


class _Part(NamedTuple):
    """Hosts of a list, the text, that have the same share of a job's cores each."""

    text: str
    hosts: Numbers
    share: float


def _lists(
    texts: pl.Series, log: str, number: defaultdict[str, int], told: Callable[[float], None] | None
) -> Iterator[_Part]:
    """The parts of each host list: one, where it names no host more often than another. number: gives each host
    its own."""
    for done, text in enumerate(texts):
        names = hosts_of(text, f"{log}: hosts")
        every = np.fromiter(map(number.__getitem__, names), np.uint32, len(names))
        check_size(log, len(number), 1)
        hosts, times = np.unique(every, return_counts=True)
        for often in np.unique(times):
            yield _Part(text, hosts[times == often], float(often) / len(every))
        if told is not None:
            told((done + 1) / len(texts))


def _spans(parts: list[Numbers], places: Numbers) -> Numbers:
    """A part, the place of its first host, and the one behind its last: a row for each row of neighbours. The parts are
    sorted by place."""
    begins = list[NDArray[np.intp]]()
    for one in parts:
        one[:] = np.sort(places[one])
        begins.append(np.flatnonzero(np.diff(one) != 1))
    spans = np.empty((sum(len(one) + 1 for one in begins), 3), np.uint32)
    at = 0
    for k, (one, gaps) in enumerate(zip(parts, begins, strict=True)):
        here = spans[at : at + len(gaps) + 1]
        here[:, 0] = k
        here[0, 1], here[1:, 1] = one[0], one[gaps + 1]
        here[-1, 2], here[:-1, 2] = one[-1] + 1, one[gaps] + 1
        at += len(here)
    return spans
