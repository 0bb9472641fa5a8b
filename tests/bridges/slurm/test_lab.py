"""What the tests beside a real Slurm rely on; none of it needs one."""

from __future__ import annotations

from pathlib import Path

import pytest

from escala.bridges.slurm.loop import JOURNAL
from tests.bridges.slurm.lab import once_watched


def test_nothing_is_done_where_nobody_watches_in_time(tmp_path: Path) -> None:
    done: list[int] = []
    refused = pytest.raises(AssertionError, match=r"fewer than 2 looks within 0\.5 s: nothing was done")
    with refused, once_watched(tmp_path, lambda: done.append(1), limit_s=0.5):
        (tmp_path / JOURNAL).write_text('{"kind":"look"}\n')
    assert done == []
    with once_watched(tmp_path, lambda: done.append(1), looks=1, limit_s=5):
        pass
    assert done == [1]


def test_what_is_tried_beside_a_real_slurm_is_compiled_before() -> None:
    """On a cold cache that takes longer than the jobs of those tests last."""
    for path in Path(__file__).parent.glob("test_real*.py"):
        assert 'pytest.mark.usefixtures("compiled")' in path.read_text(encoding="utf-8"), path.name
