"""Sets of nodes as rows of 64-bit words: the lowest free nodes are found a word at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from escala.compile import inlined

ZERO = np.uint64(0)
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
SIX = np.uint64(6)
LOW6 = np.uint64(63)


@intrinsic
def _population(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _trailing(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


@intrinsic
def _below(typing: Any, row: Any, k: Any, bound: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector, lanes = ir.VectorType(ir.IntType(64), 64), ir.VectorType(ir.IntType(32), 64)
        place = builder.bitcast(builder.gep(line.data, [arguments[1]]), vector.as_pointer())
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.Constant(ir.IntType(32), 0))
        bounds = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(lanes, None))
        return builder.bitcast(builder.icmp_signed("<", builder.load(place, align=8), bounds), ir.IntType(64))

    return types.uint64(row, types.int64, types.int64), generate


@inlined
def below(row: Any, k: int, n: int, bound: int) -> Any:
    """Which of the first 64 numbers from `k` on (int64, side by side) are less than `bound`, as bits; none from position n on."""
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
