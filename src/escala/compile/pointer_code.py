"""What Numba needs to know of a record behind a pointer, see `compile.pointer`: its type, its attributes, and how to
reach a row."""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, register_model
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np import numpy_support

from escala.compile.pointer import NUMBER, PointerType

WORD = ir.IntType(64)
_TYPES: dict[tuple[str, str, str], Any] = {}
"""Types of fields, by layout and name: Numba asks at each use of one."""


class Pointer(types.Type):
    """Numba's type of the address of a row. at: the word of a row where a field's address stands."""

    def __init__(self, kind: PointerType) -> None:
        super().__init__(name=kind.name)
        self.fields, self.at = kind.fields, kind.at
        self._layout = kind.name, repr(kind.fields)

    @property
    def key(self) -> tuple[str, str]:
        """Numba's identity of the type: code compiled for another layout is none of its own."""
        return self._layout

    def type_of(self, field: str) -> Any:
        """Numba's type of a field, None where there is none of that name."""
        if field not in self.fields:
            return None
        asked = (*self._layout, field)
        if asked not in _TYPES:
            _TYPES[asked] = _type_of(*self.fields[field])
        return _TYPES[asked]


def _type_of(element: Any, dimensions: int) -> Any:
    """Numba's type of what a row has: another record, an array, or a number."""
    if isinstance(element, PointerType):
        return Pointer(element)
    plain = numpy_support.from_dtype(element)
    return types.Array(plain, dimensions, "C", aligned=True) if dimensions > 0 else plain


@register_model(Pointer)
class _PointerModel(models.OpaqueModel):
    """An opaque pointer."""


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Pointer

    def generic_resolve(self, record: Any, name: str) -> Any:  # type: ignore[override]
        return record.type_of(name)


@lower_getattr_generic(Pointer)
def _field_of(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Build the array (or the address of the record, or the number) from the words of its row."""
    field_type = kind.type_of(name)
    row = builder.bitcast(value, WORD.as_pointer())
    constant = builder.module.add_metadata([])

    def word(k: int) -> Any:
        return builder.gep(row, [ir.Constant(ir.IntType(32), kind.at[name] + k)])

    def load(k: int) -> Any:
        loaded = builder.load(word(k))
        loaded.set_metadata("invariant.load", constant)
        return loaded

    if isinstance(field_type, Pointer):
        return builder.bitcast(word(0), context.get_value_type(field_type))
    if kind.fields[name][1] == NUMBER:
        return builder.bitcast(load(0), context.get_value_type(field_type))
    if not isinstance(field_type, types.Array):
        return builder.inttoptr(load(0), context.get_value_type(field_type))
    array = context.make_array(field_type)(context, builder)
    itemsize = ir.Constant(WORD, kind.fields[name][0].itemsize)
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
    pointer = Pointer(kind)

    @intrinsic
    def row(typing: Any, table: Any, i: Any) -> Any:

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            words = builder.extract_value(array.shape, 1)
            first = builder.gep(array.data, [builder.mul(words, arguments[1])])
            return builder.bitcast(first, context.get_value_type(pointer))

        return pointer(table, types.int64), generate

    return row
