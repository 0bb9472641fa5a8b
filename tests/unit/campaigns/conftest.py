"""A small campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import LOG
from tests.unit.campaigns.small import GENERATED


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """Two logs, a machine with watts, fourteen runs."""
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return {
        "logs": [str(path), GENERATED],
        "platforms": ["16x1:grid5000"],
        "schedulers": ["easy", "random"],
        "shutdowns": ["never", "timeout:0"],
        "seeds": [0, 1],
        "options": {"oversized": "drop"},
    }
