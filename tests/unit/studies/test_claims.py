"""When a claim holds: the whole interval decides, else it cannot be told."""

from __future__ import annotations

import pytest

from escala.studies.claims import at_least, at_most


@pytest.mark.parametrize(
    "value, low, high, most, least",
    [
        (-0.1, -0.2, -0.01, True, False),
        (-0.1, -0.2, 0.05, None, None),
        (0.1, -0.05, 0.2, None, None),
        (0.1, 0.01, 0.2, False, True),
        (-0.1, None, None, True, False),
        (0.1, None, None, False, True),
    ],
)
def test_the_whole_interval_decides(value: float, low: float | None, high: float | None, most: bool | None, least: bool | None) -> None:
    assert at_most(0.0, slack=0.0)(value, low, high) is most
    assert at_least(0.0)(value, low, high) is least
