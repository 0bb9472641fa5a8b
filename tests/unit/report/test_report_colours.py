"""Colours that must be told apart are, by everybody, and show on the page's light and dark paper."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import escala.report
from escala.report.style import POLICY_COLOURS, STATE_COLOURS

SEEN_BY = {
    "everybody": np.eye(3),
    "protanopes": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopes": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopes": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""What linear RGB becomes: Machado, Oliveira and Fernandes (2009), severity 1."""
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)
APART = 15.0  # CIE 1976 difference; about 2 is just noticeable side by side
SHOWS = 2.0  # WCAG contrast against the paper


def _linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ np.clip(linear, 0.0, 1.0) / WHITE
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16.0 / 116.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


def _contrast(a: str, b: str) -> float:
    high, low = sorted((float(TO_XYZ[1] @ _linear(colour)) for colour in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("who", SEEN_BY)
@pytest.mark.parametrize("colours", [tuple(STATE_COLOURS.values()), POLICY_COLOURS], ids=["states", "policies"])
def test_colours_are_told_apart(colours: tuple[str, ...], who: str) -> None:
    for a, b in combinations(colours, 2):
        assert np.linalg.norm(_lab(SEEN_BY[who] @ _linear(a)) - _lab(SEEN_BY[who] @ _linear(b))) > APART, f"{a} and {b}"


def test_lines_show_on_both_papers() -> None:
    style = (Path(escala.report.__file__).parent / "page.css").read_text(encoding="utf-8")
    papers = set(re.findall(r"--paper: (#[0-9a-f]+)", style))
    papers = {paper if len(paper) == 7 else "#" + "".join(2 * c for c in paper[1:]) for paper in papers}
    assert len(papers) >= 2
    assert all(_contrast(colour, paper) > SHOWS for colour in POLICY_COLOURS for paper in papers)
