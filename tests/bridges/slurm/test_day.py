"""Hours beside a Slurm that replays a log: every start is seen once, looks stay fast, and nothing piles up.

A whole day: `python -m bench.beside`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.beside import Replayed, day, log
from escala.bridges.slurm.loop import STATE

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def test_hours_beside_a_slurm_that_replays_a_log(tmp_path: Path) -> None:
    """The pace is that of 20 000 jobs a day, on a fifth of the nodes."""
    hours, period = 2.0, 10
    slurm = Replayed(log(1667, 200, hours), 200)
    found = day(slurm, tmp_path, int(hours * 3600), period)
    assert found.misses == 0 and len(found.look_s) == 720
    assert set(Counter(found.starts).values()) == {1} and len(found.starts) == slurm.started > 1500
    assert np.percentile(found.look_s, 99) < 1.0
    assert found.mebibytes[-1] - found.mebibytes[len(found.mebibytes) // 4] < 4.0
    assert (tmp_path / STATE).stat().st_size < 100 * max(found.queue) + 50 * 200, "what has ended is forgotten"
