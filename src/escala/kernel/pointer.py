"""Records of arrays behind a pointer: how compiled functions receive a simulation, and a game of an environment.

A named tuple of eighteen arrays travels as some 150 machine words at every call: passing it cost more than an event,
and compiling it took three times as long (measured: 1 M jobs under EASY 7.5 s against about 1 s). So the arrays of many
rows are listed in a *table* of addresses and shapes, and inside compiled code a record is the address of a row.
`w.job[j].cores` reads as with a tuple: an attribute builds the array from its row. The addresses never change during a
call, which LLVM is told, so they are loaded once. Nothing here owns memory: whoever made the table keeps the arrays
alive, and makes it anew when one is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import later


class PointerType:
    """The address of one row of a table. fields: name -> (element type, dimensions of one row's array; 0: a single
    record).

    at: the word of a row where a field's address stands, its shape behind it; words: the width of a row.
    """

    def __init__(self, name: str, fields: Mapping[str, tuple[Any, int]]) -> None:
        self.name = name
        self.fields = {field: (np.dtype(element), dimensions) for field, (element, dimensions) in fields.items()}
        self.at: dict[str, int] = {}
        self.words = 0
        for field, (_, dimensions) in self.fields.items():
            self.at[field] = self.words
            self.words += 1 + dimensions


def row_of(kind: PointerType) -> Any:
    """`row(table, i)` for compiled code: the record in row `i` of a table."""
    return later("escala.kernel.pointer_code", "row_of", kind)


def table_of(kind: PointerType, rows: int, arrays: Mapping[str, Any]) -> NDArray[np.int64]:
    """int64 [rows, kind.words]: address and shape of each field's array in each row. An array without the leading axis
    [rows] is shared by all rows."""
    table = np.zeros((rows, kind.words), np.int64)
    for name, (element, dimensions) in kind.fields.items():
        array, at = arrays[name], kind.at[name]
        shared = array.ndim == dimensions
        shape = array.shape if shared else array.shape[1:]
        if (
            array.dtype != element
            or len(shape) != dimensions
            or not (shared or len(array) == rows)
            or not array.flags.c_contiguous
        ):
            raise TypeError(
                f"{kind.name}.{name} is {array.dtype} of shape {array.shape}: compiled code reads it otherwise"
            )
        table[:, at] = array.ctypes.data + (0 if shared or not rows else np.arange(rows) * array.strides[0])
        table[:, at + 1 : at + 1 + dimensions] = shape
    return table
