"""When a claim holds: the whole interval decides, else it cannot be told."""

from __future__ import annotations

import pytest

from escala.studies.lab.claims import Claim, at_least, at_most


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
def test_the_whole_interval_decides(
    value: float, low: float | None, high: float | None, most: bool | None, least: bool | None
) -> None:
    assert at_most(0.0, slack=0.0)(value, low, high) is most
    assert at_least(0.0)(value, low, high) is least


@pytest.mark.parametrize(
    "paper, ours, low, high, reproduces",
    [
        # better than the rule that it is held against, and far from the paper's figure
        (-0.45, -0.13, -0.19, -0.08, False),
        (-0.45, -0.5, -0.6, -0.46, True),
        (-0.45, -0.45, -0.6, -0.3, None),
        (None, -0.5, -0.6, -0.4, None),
        (-0.45, None, None, None, None),
    ],
)
def test_what_meets_our_aim_need_not_reproduce_the_paper(
    paper: float | None, ours: float | None, low: float | None, high: float | None, reproduces: bool | None
) -> None:
    found = Claim("x", "a claim", paper, ours, low, high, "relative change", 5, 300, True)
    assert (found.reproduces, found.meets_aim) == (reproduces, True)
