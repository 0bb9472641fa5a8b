"""Fixtures of the tests of streams."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that these tests wrote are not read in another process first, half a second each;
    tests/unit/result/test_damaged_results.py shows that it is done, and why."""
    for name in ("refuse_damaged", "refuse_damaged_file"):
        monkeypatch.setattr(f"escala.workload.table_files.{name}", lambda *_: None)
