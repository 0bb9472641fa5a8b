"""How compiled functions receive a simulation: as one pointer.

A named tuple of eighteen arrays travels as some 150 machine words at every call: passing it cost more than an event, and compiling it
took three times as long (measured: 1 M jobs under EASY 7.5 s against about 1 s). So the arrays of a batch are listed in a *table* of
addresses and shapes, one row a simulation, and inside compiled code a `World` is the address of a row. `w.job[j].cores` reads as before:
an attribute builds the array from its row. The addresses never change during a call, which LLVM is told, so they are loaded once. Nothing
here owns memory: `Simulation` keeps the arrays alive, and makes the table anew when it enlarges one.
"""

from __future__ import annotations

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

from escala.kernel import state

WORDS = 3  # words an array: address, first dimension, second dimension


class WorldType(types.Type):
    """The address of one row of the table."""

    def __init__(self) -> None:
        super().__init__(name="World")


world_type = WorldType()


@register_model(WorldType)
class _WorldModel(models.OpaqueModel):
    """An opaque pointer."""


def _array_type(name: str) -> Any:
    dtype, dimensions = state.FIELDS[name]
    return types.Array(numpy_support.from_dtype(np.dtype(dtype)), dimensions, "C", aligned=True)


ARRAYS = {name: _array_type(name) for name in state.FIELDS}
PLACE = {name: k for k, name in enumerate(state.FIELDS)}


@infer_getattr
class _WorldAttributes(AttributeTemplate):
    key = WorldType

    def generic_resolve(self, world: Any, name: str) -> Any:
        return ARRAYS.get(name)


@lower_getattr_generic(WorldType)
def _array_of(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Build the array from its three words."""
    array_type = ARRAYS[name]
    word = ir.IntType(64)
    row = builder.bitcast(value, word.as_pointer())
    constant = builder.module.add_metadata([])

    def load(k: int) -> Any:
        loaded = builder.load(builder.gep(row, [ir.Constant(ir.IntType(32), WORDS * PLACE[name] + k)]))
        loaded.set_metadata("invariant.load", constant)
        return loaded

    array = context.make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    itemsize = ir.Constant(word, size)
    shape = [load(1 + d) for d in range(array_type.ndim)]
    strides = [itemsize] if array_type.ndim == 1 else [builder.mul(itemsize, shape[1]), itemsize]
    items = shape[0] if array_type.ndim == 1 else builder.mul(shape[0], shape[1])
    array.data = builder.inttoptr(load(0), array.data.type)
    array.nitems = items
    array.itemsize = itemsize
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)
    array.parent = cgutils.get_null_value(array.parent.type)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()


@intrinsic
def _row(typing: Any, table: Any, i: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        words = builder.extract_value(array.shape, 1)
        first = builder.gep(array.data, [builder.mul(words, arguments[1])])
        return builder.bitcast(first, context.get_value_type(world_type))

    return world_type(table, types.int64), generate


one: Any = _row
"""`one(table, i)`: simulation `i` of a batch, inside compiled code."""


def table_of(world: state.World) -> NDArray[np.int64]:
    """int64 [N, arrays x 3]: address, first and second dimension of each array of each simulation."""
    n = world.o.shape[0]
    table = np.zeros((n, WORDS * len(PLACE)), np.int64)
    for name, k in PLACE.items():
        array = getattr(world, name)
        dtype, dimensions = state.FIELDS[name]
        if array.dtype != np.dtype(dtype) or array.ndim != dimensions + 1 or not array.flags.c_contiguous:
            raise TypeError(f"world.{name} is {array.dtype} with {array.ndim} dimensions: the kernel's tables are laid out otherwise")
        table[:, WORDS * k] = array.ctypes.data + np.arange(n) * (array.strides[0] if n else 0)
        for d in range(dimensions):
            table[:, WORDS * k + 1 + d] = array.shape[1 + d]
    return table
