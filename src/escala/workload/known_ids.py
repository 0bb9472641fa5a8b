"""The ids of all jobs of a log that comes in pieces, in little memory: whole numbers in a row as one range, 16 bytes for any other."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
TEXT = np.uint64(1 << 63)  # above all whole numbers


class KnownIds:
    """Ids that have been, and how often those that came again. Ranges lie in several tables, each at least twice as large as the next: so
    no range is merged into another table more often than there are tables."""

    def __init__(self) -> None:
        self._tables: list[tuple[Keys, Keys]] = []  # first and last of ranges, in order
        self._times: dict[str, int] = {}

    def earlier(self, ids: pl.Series) -> pl.Series:
        """How often each was there in earlier pieces; it is known from now on."""
        keys = _keys(ids)
        known = np.zeros(len(keys), bool)
        for first, last in self._tables:
            place = np.searchsorted(first, keys, side="right")
            known |= (place > 0) & (keys <= last[np.maximum(place, 1) - 1])
        before = np.zeros(len(keys), np.int64)
        if known.any() or ids.n_unique() < len(ids):
            came = ids.filter(pl.Series(known) | ids.is_duplicated()).value_counts()
            again = dict(came.iter_rows())
            old = set(ids.filter(pl.Series(known)).to_list())
            past = {name: self._times.get(name, 1) if name in old else 0 for name in again}
            before = np.array([past.get(name, 0) for name in ids.to_list()], np.int64)
            self._times |= {name: past[name] + count for name, count in again.items()}
        if len(keys):
            each = np.unique(keys)
            self._tables.append(_joined(each, each))
        while len(self._tables) > 1 and len(self._tables[-2][0]) <= 2 * len(self._tables[-1][0]):
            both = zip(self._tables.pop(), self._tables.pop(), strict=True)
            self._tables.append(_joined(*map(np.concatenate, both)))
        return pl.Series(before)


def _joined(first: Keys, last: Keys) -> tuple[Keys, Keys]:
    """Ranges in order, neighbours as one."""
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    fresh = np.ones(len(first), bool)
    fresh[1:] = (first[1:] > last[:-1]) & (first[1:] - last[:-1] > 1)
    return first[fresh], last[np.append(np.flatnonzero(fresh)[1:] - 1, len(last) - 1)]


def _keys(ids: pl.Series) -> Keys:
    """A number for each id: its own where it is a plain whole number."""
    plain = ids.str.contains(r"^(0|[1-9]\d{0,17})$")
    numbers = ids.to_frame("id").select(pl.when(plain).then(pl.col("id")).cast(pl.UInt64, strict=False))["id"]
    texts = ids.hash(seed=0).to_numpy() | TEXT
    return np.where(plain.to_numpy(), numbers.fill_null(0).to_numpy(), texts)
