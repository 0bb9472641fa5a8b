"""Logarithms by the C library: those of numpy may differ in the last bit from machine to machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import lean


def logs(values: Any) -> NDArray[np.float64]:
    """The natural logarithm of each of these positive numbers."""
    given = np.ascontiguousarray(values, np.float64)
    out = np.empty(len(given))
    _fill(given, out)
    return out


@lean
def _fill(values: Any, out: Any) -> None:
    for k in range(values.shape[0]):
        out[k] = math.log(values[k])
