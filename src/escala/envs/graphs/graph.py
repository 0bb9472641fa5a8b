"""An ONNX graph as it is put together: operators by name, of values by name and of constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = str | NDArray[Any] | np.generic
"""The name of a value, or a constant."""


class Graph:
    """Operators in the order in which they are worked out. Every method gives the name of what it adds."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._held: dict[str, NDArray[Any]] = {}

    def constants(self) -> list[Any]:
        """What ONNX calls initializers."""
        from onnx import numpy_helper

        return [numpy_helper.from_array(value, name) for name, value in self._held.items()]

    def called(self, name: str, operator: str, *given: Value, **attributes: Any) -> str:
        """An operator whose value has a name of one's own."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, [self._named(one) for one in given], [name], **attributes))
        return name

    def __call__(self, operator: str, *given: Value, **attributes: Any) -> str:
        """An operator of one value."""
        return self.called(f"v{len(self.nodes)}", operator, *given, **attributes)

    def last(self, operator: str, *given: Value, **attributes: Any) -> str:
        """The last hidden states [batch, units] of a recurrent operator, the second of its values."""
        from onnx import helper

        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, [self._named(one) for one in given], ["", name], **attributes))
        return self("Squeeze", name, axes(0))

    def dense(self, x: str, weight: NDArray[Any], bias: NDArray[Any] | None = None) -> str:
        """weight [out, in], as torch keeps it, on the last axis of x."""
        product = self("MatMul", x, np.ascontiguousarray(weight.T))
        return product if bias is None else self("Add", product, bias)

    def part(self, x: str, axis: int, begin: int, end: int) -> str:
        """x[..., begin:end] of an axis, which stays."""
        return self("Slice", x, axes(begin), axes(end), axes(axis))

    def shaped(self, x: str, *shape: int) -> str:
        """x of another shape, -1 for what is left."""
        return self("Reshape", x, np.array(shape, np.int64))

    def joined(self, parts: list[str], axis: int) -> str:
        """Parts behind each other."""
        return self("Concat", *parts, axis=axis)

    def _named(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        name = f"c{len(self._held)}"
        self._held[name] = np.asarray(value)
        return name


def axes(*numbers: int) -> NDArray[np.int64]:
    """Axes, or bounds, as operators take them."""
    return np.array(numbers, np.int64)
