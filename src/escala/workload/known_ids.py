"""The ids of all jobs of a log that comes in pieces, in little memory: a bit for each whole number where they lie close
together, whatever gaps there are; 8 bytes for a text, 16 for any other number."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
TEXT = np.uint64(1 << 63)  # above all whole numbers
PARTS = 64
"""Of the texts by their first bits: while tables of one are merged, both are there and the new one."""
BITS = 16  # of a number within its block
CLOSE = 512  # numbers of one block that come at once: as many bytes as in a table, and more of them will come


class KnownIds:
    """Ids that have been, and how often those that came again. Ranges, and each part of the texts, lie in several
    tables, each at least twice as large as the next: so none is merged more often than there are tables."""

    def __init__(self) -> None:
        self._blocks: dict[int, Keys] = {}  # a bit for each number of a block
        self._texts: list[list[Keys]] = [[] for _ in range(PARTS)]  # in order
        self._tables: list[tuple[Keys, Keys]] = []  # first and last of ranges, in order
        self._times: dict[str, int] = {}

    def earlier(self, ids: pl.Series) -> pl.Series:
        """How often each was there in earlier pieces; it is known from now on."""
        keys = _keys(ids)
        known = self._in_blocks(keys) | self._in_texts(keys)
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
        each = self._into_blocks(np.unique(keys))
        texts = int(np.searchsorted(each, TEXT))
        self._note_texts(each[texts:])
        if texts:
            each = each[:texts]
            self._tables.append(_joined(each, each))
        while len(self._tables) > 1 and len(self._tables[-2][0]) <= 2 * len(self._tables[-1][0]):
            both = zip(self._tables.pop(), self._tables.pop(), strict=True)
            self._tables.append(_joined(*map(np.concatenate, both)))
        return pl.Series(before)

    def _note_texts(self, each: Keys) -> None:
        """Ids from now on; in order."""
        for tables, rows in zip(self._texts, _by_part(each), strict=True):
            if len(each[rows]):
                tables.append(_together(each[rows]))
            while len(tables) > 1 and len(tables[-2]) <= 2 * len(tables[-1]):
                tables.append(_together(tables.pop(), tables.pop()))

    def _in_texts(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of these are texts that have been?"""
        known, order = np.zeros(len(keys), bool), np.argsort(keys)
        for tables, rows in zip(self._texts, _by_part(keys[order]), strict=True):
            some = order[rows]
            for table in tables:
                known[some] |= table[np.minimum(np.searchsorted(table, keys[some]), len(table) - 1)] == keys[some]
        return known

    def _in_blocks(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of these numbers have their bit set?"""
        known = np.zeros(len(keys), bool)
        for block, rows in _by_block(keys) if self._blocks else ():
            if block in self._blocks:
                word, bit = _places(keys[rows])
                known[rows] = self._blocks[block][word] >> bit & np.uint64(1) == 1
        return known

    def _into_blocks(self, each: Keys) -> Keys:
        """Set the bits of numbers that lie close together, or beside those that do; the others."""
        left = np.ones(len(each), bool)
        for block, rows in _by_block(each):
            if block in self._blocks or len(rows) >= CLOSE:
                bits = self._blocks.setdefault(block, np.zeros(1 << (BITS - 6), np.uint64))
                word, bit = _places(each[rows])
                np.bitwise_or.at(bits, word, np.uint64(1) << bit)
                left[rows] = False
        return each[left]


def _together(*tables: Keys) -> Keys:
    """Tables as one, in order, in memory of its own, which goes back to the system as soon as it is let go."""
    both: Keys = np.frombuffer(mmap.mmap(-1, sum(table.nbytes for table in tables)), np.uint64)
    np.concatenate(tables, out=both)
    both.sort()
    return both


def _by_part(keys: Keys) -> list[slice]:
    """Where the texts of each part stand among keys in order."""
    ends = np.searchsorted(keys, [int(TEXT) + part * (int(TEXT) // PARTS) for part in range(PARTS)]).tolist()
    return [slice(begin, end) for begin, end in zip(ends, [*ends[1:], len(keys)], strict=True)]


def _by_block(keys: Keys) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The blocks of whole numbers, and where those of each stand."""
    order = np.argsort(keys, kind="stable")
    order = order[: int(np.searchsorted(keys[order], TEXT))]
    block = keys[order] >> np.uint64(BITS)
    ends = np.append(np.flatnonzero(block[1:] != block[:-1]) + 1, len(block))
    begin = 0
    for end in ends.tolist() if len(block) else ():
        yield int(block[begin]), order[begin:end]
        begin = end


def _places(keys: Keys) -> tuple[Keys, Keys]:
    """Word and bit of each within its block."""
    low = keys & np.uint64((1 << BITS) - 1)
    return low >> np.uint64(6), low & np.uint64(63)


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
