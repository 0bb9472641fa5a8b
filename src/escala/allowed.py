"""On which nodes of a platform jobs may lie: by the partitions that take them, the features that they need, and the
nodes that they name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted, said_of
from escala.partitions import PARTITION, Parted, alike, codes_of
from escala.platform import Platform
from escala.platform.constraints import (
    Mask,
    features_mask,
    has_features,
    named_mask,
    places_of,
    refuse_others,
    strange_in,
)
from escala.platform.sharers import amounts_of
from escala.workload.shapes import EXCLUDED, FEATURES, PLACES, REQUIRED

Ints = NDArray[np.int64]
MOST_WORDS = 20_000_000  # 160 MB of sets


@dataclass(frozen=True)
class Allowed:
    """which: int64 [jobs], the set of each job; sets: uint64 [sets, words], a bit a node as in the kernel, the first of
    all nodes; required: int64 [jobs], how many nodes a job names on which it lies, 0: none."""

    which: Ints
    sets: NDArray[np.uint64]
    required: Ints

    def mask(self, which: int, n_nodes: int) -> Mask:
        """bool [nodes]: the nodes of a set."""
        return np.unpackbits(self.sets[which].view(np.uint8), count=n_nodes, bitorder="little").astype(bool)

    def of(self, rows: Ints) -> Allowed:
        """Of these jobs alone."""
        return Allowed(self.which[rows], self.sets, self.required[rows])

    def by_set(self, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """(a set, those of these jobs that have it)."""
        order = rows[np.argsort(self.which[rows], kind="stable")]
        sets, first = np.unique(self.which[order], return_index=True)
        yield from zip(sets.tolist(), np.split(order, first[1:]), strict=True)


def by_nodes(
    allowed: Allowed | None, rows: Ints, platform: Platform, kinds: list[str]
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """(cores and these further kinds of the different nodes of a platform, int64 [shapes, 1 + kinds], how many there
    are of each, those of these jobs that may lie on them and on no others)."""
    none = np.zeros(platform.n_nodes, np.int64)
    amounts = amounts_of(platform)
    columns = [platform.cores, *(amounts.get(kind, none) for kind in kinds)]
    shapes, of_node, counts = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True)
    if allowed is None:
        yield shapes, counts, rows
        return
    for which, mine in allowed.by_set(rows) if len(rows) else ():
        counts = np.bincount(of_node.ravel()[allowed.mask(which, platform.n_nodes)], minlength=len(shapes))
        yield shapes[counts > 0], counts[counts > 0], mine


def told_by(job: Mapping[str, Any]) -> str:
    """What a job asks for by these columns, in words; "" where that is nothing."""
    return ", ".join(f"{name} {quoted(job[name])}" for name in PLACES if job.get(name))


def strange_feature(job: Mapping[str, Any], platform: Platform) -> str | None:
    """The first feature that a job asks for and no node has; None where there is none, or features do not count."""
    return strange_in(platform, job.get(FEATURES)) if has_features(platform) else None


def allowed_of(
    jobs: pl.DataFrame, platform: Platform, columns: list[str], parted: Parted | None = None
) -> Allowed | None:
    """By the partitions that take jobs, and those of `PLACES` that are among `columns`; None where all jobs may lie on
    all nodes. EscalaError for a node that is not there, for another number of required nodes than a job asks for, and
    for too many different sets."""
    names = [name for name in PLACES if name in columns]
    if not names and parted is None:
        return None
    by = [] if parted is None else [parted.kind]
    first, kind = alike(len(jobs), [*by, *(codes_of(jobs[name]) for name in names)])
    made = _Sets(jobs, platform, names, parted)
    found = np.array([made.add(int(row)) for row in first], np.int64)[kind]
    if not found.any():
        return None
    sets = np.frombuffer(b"".join(made.sets), np.uint64).reshape(len(made.sets), -1)
    allowed = Allowed(found[:, 0], sets, found[:, 1])
    _check_required(jobs, allowed.required)
    return allowed


class _Sets:
    """The different sets of nodes, as bits; the first is of all."""

    def __init__(self, jobs: pl.DataFrame, platform: Platform, names: list[str], parted: Parted | None) -> None:
        self.jobs, self.platform, self.names, self.parted = jobs, platform, names, parted
        self.places = places_of(platform)
        self.words = -(-platform.n_nodes // 64)
        self.sets = {self._packed(np.ones(platform.n_nodes, bool)): 0}
        self.of_features = functools.lru_cache(256)(self._of_features)

    def _of_features(self, text: str) -> Mask:
        """No node where one of the features is of no node."""
        return features_mask(self.platform, text) & (strange_in(self.platform, text) is None)

    def _packed(self, mask: Mask) -> bytes:
        return np.packbits(np.pad(mask, (0, 64 * self.words - len(mask))), bitorder="little").tobytes()

    def add(self, row: int) -> tuple[int, int]:
        """The number of the set of a job, and how many nodes it requires."""
        n, required = self.platform.n_nodes, 0
        mask = np.ones(n, bool) if self.parted is None else self.parted.masks[self.parted.kind[row]].copy()
        for name in self.names:
            text = self.jobs[name][row]
            if not text:
                continue
            with said_of(f"job {quoted(self.jobs['job_id'][row])}"):
                one = self.of_features(text) if name == FEATURES else named_mask(self.platform, self.places, text)
            mask &= ~one if name == EXCLUDED else one
            required = int(one.sum()) if name == REQUIRED else required
        number = self.sets.setdefault(self._packed(mask), len(self.sets))
        if len(self.sets) * self.words > MOST_WORDS:
            names = [*([] if self.parted is None else [PARTITION]), *self.names]
            raise EscalaError(
                f"jobs ask for more than {MOST_WORDS // self.words:,} different sets of the {n:,} nodes of platform "
                f"{quoted(self.platform.name)}: leave out columns ({', '.join(names)}), or jobs"
            )
        return number, required


def _check_required(jobs: pl.DataFrame, required: Ints) -> None:
    nodes = jobs["nodes"].fill_null(1).to_numpy() if "nodes" in jobs.columns else np.ones(len(jobs), np.int64)
    wrong = np.flatnonzero((required > 0) & (required != nodes))
    if len(wrong):
        row = int(wrong[0])
        with said_of(f"job {quoted(jobs['job_id'][row])}"):
            refuse_others(int(required[row]), int(nodes[row]))
