"""The SWF reader."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import escala
from bench.measure import Case, seconds


def swf_lines_per_s(lines: int = 1_000_000) -> tuple[float, str]:
    """A plain SWF file of a million whole-number lines, as the archive's logs are."""
    random = np.random.default_rng(1)
    columns = np.full((lines, 18), -1, np.int64)
    columns[:, 0] = np.arange(1, lines + 1)
    columns[:, 1] = np.cumsum(random.integers(0, 60, lines))
    columns[:, 2] = random.integers(0, 10_000, lines)
    columns[:, 3] = random.integers(1, 86_400, lines)
    columns[:, 4] = columns[:, 7] = random.integers(1, 512, lines)
    columns[:, 8] = columns[:, 3] + random.integers(0, 86_400, lines)
    columns[:, 10] = 1
    columns[:, 11] = random.integers(1, 500, lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.swf"
        np.savetxt(path, columns, fmt="%d", header="MaxProcs: 512", comments="; ")
        return lines / seconds(lambda: escala.read_workload(path), 3), "lines/s"


CASES = [Case("reading SWF", "≥ 1 M lines/s", swf_lines_per_s)]
