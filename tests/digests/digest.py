"""From arrays, tables and weights to a few characters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

DIGITS = 16
NEAR = 1e-4
"""How far numbers that torch computed may lie apart on two machines, as a share of the largest of them."""


class Digest:
    """sha256 over dtype, shape and bytes of all that is taken in, in that order."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def take(self, *values: Any) -> None:
        """Arrays, numbers or texts."""
        for value in values:
            array = np.ascontiguousarray(value)
            if array.dtype == object:
                raise TypeError(f"{value!r:.60} has no bytes of its own")
            self._sha.update(f"{array.dtype.str}{array.shape}".encode())
            self._sha.update(array.tobytes())

    def take_table(self, table: pl.DataFrame) -> None:
        """Names, types and values of all columns."""
        for column in table:
            self.take(column.name, str(column.dtype), column.is_null().to_numpy())
            filled = column.fill_null("" if column.dtype == pl.String else 0)
            self.take("\n".join(filled.to_list()) if column.dtype == pl.String else filled.to_numpy())

    def take_result(self, result: Any) -> None:
        """Schedule, node states and joules."""
        self.take_table(result.jobs.select("job_id", "submit_s", "start_s", "finish_s", "wait_s", "state", "nodes"))
        self.take_table(result.nodes)
        self.take_table(result.power)

    def text(self) -> str:
        return self._sha.hexdigest()[:DIGITS]


def near(arrays: Iterable[Any]) -> dict[str, Any]:
    """The hash of float arrays, and what another machine must come near to: their norm, and three sums with signs of
    their own."""
    digest = Digest()
    flat = []
    for array in arrays:
        digest.take(np.asarray(array))
        flat.append(np.asarray(array, np.float64).ravel())
    whole = np.nan_to_num(np.concatenate(flat))
    signs = 2.0 * np.random.default_rng(0).integers(0, 2, (3, len(whole))) - 1.0
    return {"exact": digest.text(), "near": [float(f"{x:.9g}") for x in (np.linalg.norm(whole), *(signs @ whole))]}


def same(kept: Any, now: Any, exactly: bool = False) -> bool:
    """Is what is computed now what was kept? exactly: to the last bit also where torch computed it."""
    if isinstance(kept, dict) and "near" in kept and not exactly:
        return all(
            math.isclose(a, b, rel_tol=0.0, abs_tol=NEAR * max(kept["near"]))
            for a, b in zip(kept["near"], now["near"], strict=True)
        )
    return bool(kept == now)
