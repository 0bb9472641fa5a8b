"""Comparing 64 numbers at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import compiled
from escala.kernel import bits


@compiled
def below(row: Any, k: int, n: int, bound: int) -> Any:
    """Python cannot call what is inlined."""
    return bits.below(row, k, n, bound)


def test_each_bit_is_a_comparison() -> None:
    chance = np.random.default_rng(0)
    for _ in range(3000):
        row = chance.integers(-5, 5, int(chance.integers(1, 200)), np.int32)
        n = int(chance.integers(1, len(row) + 1))
        k, bound = int(chance.integers(0, n)), int(chance.integers(-6, 7))
        assert int(below(row, k, n, bound)) == sum(1 << i for i in range(min(64, n - k)) if row[k + i] < bound)
