"""Random numbers of rules in compiled code: a generator that is one number of a game's memory, so that it is saved and
resumed with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.compile import inlined, lean


@inlined
def mixed(x: Any) -> int:
    """62 bits of a state that grows by 0x9E3779B97F4A7C15: SplitMix64 (Steele, Lea and Flood 2014)."""
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(2))


@lean
def drawn(m: Any) -> int:
    """A random number of 62 bits. m: a memory with the field rng."""
    m.rng = np.uint64(m.rng) + np.uint64(0x9E3779B97F4A7C15)
    return mixed(np.uint64(m.rng))


def rng_of(seed: int, n: int) -> NDArray[np.uint64]:
    """Where the random numbers of n games begin [n]; the first are the same for every n."""
    return np.random.default_rng([seed, 0xAC7]).integers(0, 1 << 63, n, np.uint64)
