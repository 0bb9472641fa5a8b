"""Records of arrays behind a pointer: how compiled functions receive a simulation, and a game of an environment.

A named tuple of eighteen arrays travels as some 150 machine words at every call: passing it cost more than an event, and compiling it
took three times as long (measured: 1 M jobs under EASY 7.5 s against about 1 s). So the arrays of many rows are listed in a *table* of
addresses and shapes, and inside compiled code a record is the address of a row. `w.job[j].cores` reads as with a tuple: an attribute
builds the array from its row. The addresses never change during a call, which LLVM is told, so they are loaded once. Nothing here owns
memory: whoever made the table keeps the arrays alive, and makes it anew when one is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, register_model
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np import numpy_support
from numpy.typing import NDArray

WORD = ir.IntType(64)


class PointerType(types.Type):
    """The address of one row of a table. fields: name -> (element type, dimensions of one row's array; 0: a single record).

    at: the word of a row where a field's address stands, its shape behind it; words: the width of a row.
    """

    def __init__(self, name: str, fields: Mapping[str, tuple[Any, int]]) -> None:
        super().__init__(name=name)
        self.fields = {field: (np.dtype(element), dimensions) for field, (element, dimensions) in fields.items()}
        self.at: dict[str, int] = {}
        self.words = 0
        for field, (_, dimensions) in self.fields.items():
            self.at[field] = self.words
            self.words += 1 + dimensions
        self._layout = name, repr(self.fields)

    @property
    def key(self) -> tuple[str, str]:
        """Numba's identity of the type: code compiled for another layout is none of its own."""
        return self._layout

    def type_of(self, field: str) -> Any:
        """Numba's type of a field, None where there is none of that name."""
        if field not in self.fields:
            return None
        element, dimensions = self.fields[field]
        plain = numpy_support.from_dtype(element)
        return types.Array(plain, dimensions, "C", aligned=True) if dimensions else plain


@register_model(PointerType)
class _PointerModel(models.OpaqueModel):
    """An opaque pointer."""


@infer_getattr
class _Attributes(AttributeTemplate):
    key = PointerType

    def generic_resolve(self, record: Any, name: str) -> Any:
        return record.type_of(name)


@lower_getattr_generic(PointerType)
def _field_of(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Build the array (or the address of the record) from the words of its row."""
    field_type = kind.type_of(name)
    row = builder.bitcast(value, WORD.as_pointer())
    constant = builder.module.add_metadata([])

    def load(k: int) -> Any:
        loaded = builder.load(builder.gep(row, [ir.Constant(ir.IntType(32), kind.at[name] + k)]))
        loaded.set_metadata("invariant.load", constant)
        return loaded

    if not isinstance(field_type, types.Array):
        return builder.inttoptr(load(0), context.get_value_type(field_type))
    array = context.make_array(field_type)(context, builder)
    itemsize = ir.Constant(WORD, context.get_abi_sizeof(context.get_data_type(field_type.dtype)))
    shape = [load(1 + d) for d in range(field_type.ndim)]
    strides, items = [itemsize], shape[0]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
        items = builder.mul(items, size)
    array.data = builder.inttoptr(load(0), array.data.type)
    array.nitems = items
    array.itemsize = itemsize
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)
    array.parent = cgutils.get_null_value(array.parent.type)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()


def row_of(kind: PointerType) -> Any:
    """`row(table, i)` for compiled code: the record in row `i` of a table."""

    @intrinsic
    def row(typing: Any, table: Any, i: Any) -> Any:

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            words = builder.extract_value(array.shape, 1)
            first = builder.gep(array.data, [builder.mul(words, arguments[1])])
            return builder.bitcast(first, context.get_value_type(kind))

        return kind(table, types.int64), generate

    return row


def table_of(kind: PointerType, rows: int, arrays: Mapping[str, Any]) -> NDArray[np.int64]:
    """int64 [rows, kind.words]: address and shape of each field's array in each row. An array without the leading axis [rows] is shared
    by all rows."""
    table = np.zeros((rows, kind.words), np.int64)
    for name, (element, dimensions) in kind.fields.items():
        array, at = arrays[name], kind.at[name]
        shared = array.ndim == dimensions
        shape = array.shape if shared else array.shape[1:]
        if array.dtype != element or len(shape) != dimensions or not (shared or len(array) == rows) or not array.flags.c_contiguous:
            raise TypeError(f"{kind.name}.{name} is {array.dtype} of shape {array.shape}: compiled code reads it otherwise")
        table[:, at] = array.ctypes.data + (0 if shared or not rows else np.arange(rows) * array.strides[0])
        table[:, at + 1 : at + 1 + dimensions] = shape
    return table
