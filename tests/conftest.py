"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real logs and reference outputs, beside the repository; tests that need it are skipped where it is absent."""
    if not _TRACES.is_dir():
        pytest.skip(f"no trace folder at {_TRACES} (set ESCALA_TRACES to point to one)")
    return _TRACES
