"""Sets of nodes as rows of 64-bit words: the lowest free nodes are found a word at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, later

ZERO = np.uint64(0)
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


_population = later("escala.kernel.bits_code", "population")
_trailing = later("escala.kernel.bits_code", "trailing")
_below = later("escala.kernel.bits_code", "below")


@inlined
def below(row: Any, k: int, n: int, bound: int) -> Any:
    """Which of the first 64 numbers from `k` on (int32, side by side) are less than `bound`, as bits; none from
    position n on."""
    if k + 64 <= row.shape[0]:
        found: Any = _below(row, k, bound)
        return found if n - k >= 64 else found & ~(FULL << np.uint64(n - k))
    word: Any = ZERO
    for i in range(min(64, n - k)):
        word |= np.uint64(row[k + i] < bound) << np.uint64(i)
    return word


@inlined
def population(word: Any) -> int:
    """Number of set bits."""
    return np.int64(_population(word))


@inlined
def lowest(word: Any) -> int:
    """Index of the lowest set bit; 64 where there is none."""
    return np.int64(_trailing(word))


@inlined
def has(row: Any, i: int) -> bool:
    """Is bit `i` set?"""
    return (row[i >> 6] >> np.uint64(i & 63)) & ONE != ZERO


@inlined
def put(row: Any, i: int) -> None:
    """Set bit `i`."""
    row[i >> 6] |= ONE << np.uint64(i & 63)


@inlined
def drop(row: Any, i: int) -> None:
    """Clear bit `i`."""
    row[i >> 6] &= ~(ONE << np.uint64(i & 63))


@inlined
def span(low: int, high: int) -> Any:
    """Word with the bits low..high set (0 <= low <= high <= 63)."""
    return (FULL >> np.uint64(63 - (high - low))) << np.uint64(low)


@inlined
def put_range(row: Any, low: int, high: int) -> None:
    """Set the bits low..high."""
    first = low >> 6
    last = high >> 6
    if first == last:
        row[first] |= span(low & 63, high & 63)
        return
    row[first] |= span(low & 63, 63)
    for i in range(first + 1, last):
        row[i] = FULL
    row[last] |= span(0, high & 63)


@inlined
def lowest_bits(word: Any, n: int) -> Any:
    """The `n` lowest set bits of a word that has more than `n`."""
    rest = word
    for _ in range(n):
        rest &= rest - ONE
    return word ^ rest
