"""Instructions of the machine on words of bits, see `kernel.bits`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def population(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def trailing(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


@intrinsic
def below(typing: Any, row: Any, k: Any, bound: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = lanes = ir.VectorType(ir.IntType(32), 64)
        place = builder.bitcast(builder.gep(line.data, [arguments[1]]), vector.as_pointer())
        less = builder.trunc(arguments[2], ir.IntType(32))
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), less, ir.Constant(ir.IntType(32), 0))
        bounds = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(lanes, None))
        return builder.bitcast(builder.icmp_signed("<", builder.load(place, align=4), bounds), ir.IntType(64))

    return types.uint64(row, types.int64, types.int64), generate
