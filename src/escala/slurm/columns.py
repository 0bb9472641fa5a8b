"""Columns of a workload that may not be there."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.kernel.slurm import tables as t
from escala.workload.tasks import ints_of

Ints = NDArray[np.int64]


class Columns:
    """Columns of the jobs as int64 with NONE for null."""

    def __init__(self, jobs: pl.DataFrame) -> None:
        self.jobs = jobs

    def ints(self, name: str, usual: int = t.NONE) -> Ints:
        """A column of whole numbers; `usual` where it is null or not there."""
        return ints_of(self.jobs, name, usual)

    def ranks(self, name: str) -> Ints:
        """Names of a column as numbers from 0, in the order in which they come; NONE for null."""
        number: dict[str, int] = {}
        return np.array(
            [t.NONE if one is None else number.setdefault(one, len(number)) for one in self.texts(name)], np.int64
        )

    def texts(self, name: str) -> list[str | None]:
        """A column of names."""
        return self.jobs[name].to_list() if name in self.jobs.columns else [None] * len(self.jobs)


def as_words(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sets of nodes as bits, 64 in each int64: [sets, words]."""
    sets, nodes = masks.shape
    words = max(1, -(-nodes // 64))
    padded = np.zeros((sets, words * 64), bool)
    padded[:, :nodes] = masks
    return np.packbits(padded, axis=1, bitorder="little").view("<i8").astype(np.int64).reshape(sets, words)
