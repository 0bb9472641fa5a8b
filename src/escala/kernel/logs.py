"""Logarithms by the C library: those of numpy may differ in the last bit from machine to machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from escala.compile import compiled


@compiled
def logs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of each of these positive numbers."""
    out = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        out[i] = math.log(values[i])
    return out
