"""A small campaign, and a count of its simulations."""

from __future__ import annotations

from typing import Any

import pytest

from escala.campaigns import work

GENERATED = {"generator": "lublin", "jobs": 60, "cores": 16, "load": 0.9}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every simulation that is made in this process."""
    made: list[Any] = []
    own = work.simulate

    def simulate(*given: Any, **options: Any) -> Any:
        made.append(given[2:])
        return own(*given, **options)

    monkeypatch.setattr(work, "simulate", simulate)
    return made
