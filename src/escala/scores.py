"""Scores: one number a job, the smallest first, ties in queue order. A combinator (`compose`) makes a scheduler of a
score.

r = walltime in seconds, n = cores, s = submission in seconds. The scores here are fixed when a job arrives. `wfp3`,
`unicep` and `xfactor` grow while it waits and are computed in the kernel (`escala.kernel.urgency`), which needs alike
jobs side by side; `packer` and `tetris` depend on what is free, and only where all jobs may be given the same cores is
the order of `packer` a fixed one (else `escala.kernel.scores`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel import codes

Numbers = NDArray[Any]
Score = Callable[[Numbers, Numbers, Numbers], Numbers]  # (submit_us, walltime_us, cores) -> keys


def sjf(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Shortest job first: r."""
    return walltime_us


def ljf(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Longest job first: -r."""
    return -walltime_us


def saf(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Smallest area first: r n (R3 eq. 5.3)."""
    return walltime_us * cores


def sqrt_area(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Shortest first, wide jobs later: r sqrt(n)."""
    return walltime_us * np.sqrt(cores)


def smallest(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Fewest cores first: n."""
    return cores


def _seconds(submit_us: Numbers, walltime_us: Numbers) -> tuple[Numbers, Numbers]:
    return np.maximum(submit_us / 1e6, 1.0), walltime_us / 1e6


def f1(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """F1: log10(r) n + 8.70e2 log10(s), s at least 1 (Carastan-Santos and de Camargo 2017, table 3)."""
    s, r = _seconds(submit_us, walltime_us)
    return np.log10(r) * cores + 8.70e2 * np.log10(s)


def f2(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """F2: sqrt(r) n + 2.56e4 log10(s) (same source)."""
    s, r = _seconds(submit_us, walltime_us)
    return np.sqrt(r) * cores + 2.56e4 * np.log10(s)


def f3(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """F3: r n + 6.86e6 log10(s) (same source)."""
    s, r = _seconds(submit_us, walltime_us)
    return r * cores + 6.86e6 * np.log10(s)


def f4(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """F4: r sqrt(n) + 5.30e5 log10(s) (same source)."""
    s, r = _seconds(submit_us, walltime_us)
    return r * np.sqrt(cores) + 5.30e5 * np.log10(s)


def packer(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Packer (Grandl et al. 2014): most cores first, -n."""
    return -cores


def tetris(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """Tetris (same source): -(n / 2 + 1 / (2 r))."""
    return -(0.5 * cores + 0.5 / (walltime_us / 1e6))


def by_size(submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """By cores, then walltime: alike jobs side by side."""
    span = int(walltime_us.max(initial=0)) + 1
    if walltime_us.dtype == np.int64 and int(cores.max(initial=0)) < 2**62 // span:
        return cores * span + walltime_us  # both in one number
    return places_of(walltime_us, cores)


def by_user(users: NDArray[np.int64], submit_us: Numbers, walltime_us: Numbers, cores: Numbers) -> Numbers:
    """By user, then by size: all jobs of one side by side. users: numbers, -1 for nobody's."""
    size = by_size(submit_us, walltime_us, cores)
    span = int(size.max(initial=0)) + 1
    if int(users.max(initial=0)) + 1 < 2**62 // span:
        return (users + 1) * span + size
    return places_of(size, users)


def places_of(*columns: Numbers) -> NDArray[np.int64]:
    """The place of each job in the order of these columns, of the last first."""
    keys = np.empty(len(columns[0]), np.int64)
    keys[np.lexsort(columns)] = np.arange(len(keys))
    return keys


FIXED: dict[str, Score] = {
    "sjf": sjf,
    "ljf": ljf,
    "saf": saf,
    "sqrt-area": sqrt_area,
    "smallest": smallest,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
}
KEYS: dict[Score, int] = {
    sjf: codes.KEY_SJF,
    ljf: codes.KEY_LJF,
    saf: codes.KEY_SAF,
    sqrt_area: codes.KEY_SQRT_AREA,
    f1: codes.KEY_F1,
    f2: codes.KEY_F2,
    f3: codes.KEY_F3,
    f4: codes.KEY_F4,
}
"""The fixed scores that use r, which the kernel knows too, for lengths that become known at submission."""
CHANGING = {"wfp3": codes.BY_WFP3, "unicep": codes.BY_UNICEP, "xfactor": codes.BY_XFACTOR}
PACKING: dict[str, tuple[int, Score]] = {"packer": (codes.BY_PACKER, packer), "tetris": (codes.BY_TETRIS, tetris)}
