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
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from escala.compile import later

NUMBER = -1
"""As dimensions of a field: a number, which stands in the row itself."""


class PointerType:
    """The address of one row of a table. fields: name -> (element type, dimensions of one row's array; 0: a single
    record; NUMBER: int64 or float64), or (another PointerType, 0): that record's words stand within the row.

    at: the word of a row where a field's address stands, its shape behind it, or the first of its own words; words: the
    width of a row.
    """

    def __init__(self, name: str, fields: Mapping[str, tuple[Any, int]]) -> None:
        self.name = name
        self.fields = {
            field: (element if isinstance(element, PointerType) else np.dtype(element), dimensions)
            for field, (element, dimensions) in fields.items()
        }
        self.at: dict[str, int] = {}
        self.words = 0
        for field, (element, dimensions) in self.fields.items():
            self.at[field] = self.words
            self.words += element.words if isinstance(element, PointerType) else 1 + max(dimensions, 0)

    def __repr__(self) -> str:
        return f"{self.name}({self.fields})"


def kind_of(group: type[Any]) -> PointerType:
    """A named tuple as a record, by its annotations: NDArray[element] of one dimension, Annotated[NDArray[element],
    dimensions], int, float, or another named tuple."""
    hints = get_type_hints(group, include_extras=True)
    return PointerType(group.__name__, {name: _form_of(hint) for name, hint in hints.items()})


def _form_of(hint: Any) -> tuple[Any, int]:
    """Element type and dimensions of a field."""
    if hint in (int, float):
        return (np.int64 if hint is int else np.float64), NUMBER
    if isinstance(hint, type) and issubclass(hint, tuple):
        return kind_of(hint), 0
    array, dimensions = get_args(hint) if get_origin(hint) is Annotated else (hint, 1)
    return get_args(get_args(array)[1])[0], dimensions


def row_of(kind: PointerType) -> Any:
    """`row(table, i)` for compiled code: the record in row `i` of a table."""
    return later("escala.compile.pointer_code", "row_of", kind)


def table_of(kind: PointerType, rows: int, arrays: Any) -> NDArray[np.int64]:
    """int64 [rows, kind.words]: address and shape of each field's array in each row. An array without the leading axis
    [rows] is shared by all rows. arrays: by name, a mapping or a named tuple; so are those of a record within the row.
    """
    table = np.zeros((rows, kind.words), np.int64)
    _fill(table, kind, arrays)
    return table


def _fill(table: NDArray[np.int64], kind: PointerType, arrays: Any) -> None:
    """The words of a record, in all rows."""
    named = arrays if isinstance(arrays, Mapping) else arrays._asdict()
    for name, (element, dimensions) in kind.fields.items():
        at, given = kind.at[name], named[name]
        if isinstance(element, PointerType):
            _fill(table[:, at : at + element.words], element, given)
        elif dimensions == NUMBER:
            table[:, at] = np.array(given, element).view(np.int64)
        else:
            _put(table, at, given, element, dimensions, f"{kind.name}.{name}")


def _put(table: NDArray[np.int64], at: int, array: NDArray[Any], element: Any, dimensions: int, name: str) -> None:
    """Where an array lies for each row, and its shape there, into the table from word `at` on."""
    rows, shape, shared = len(table), array.shape, array.ndim == dimensions
    if not shared:
        shape = shape[1:]
    if (
        array.dtype != element
        or len(shape) != dimensions
        or not (shared or len(array) == rows)
        or not array.flags.c_contiguous
    ):
        raise TypeError(f"{name} is {array.dtype} of shape {array.shape}: compiled code reads it otherwise")
    table[:, at] = array.ctypes.data + (0 if shared or not rows else np.arange(rows) * array.strides[0])
    for d in range(dimensions):
        table[:, at + 1 + d] = shape[d]
