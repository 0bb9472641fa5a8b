"""Recurrent layers of exported agents against their formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escala.envs.recurrent import gru, lstm


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def drawn(units: int, gates: int, scale: float) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(units)
    given = scale * draw.standard_normal((3, 12, gates * units))
    # with larger ones a rounding grows from step to step
    inner = draw.standard_normal((gates * units, units)) / np.sqrt(units)
    return given.astype(np.float32), inner.astype(np.float32), draw


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("units", [1, 7, 64])
def test_lstm(units: int, scale: float) -> None:
    given, inner, _ = drawn(units, 4, scale)
    out = np.empty((3, units), np.float32)
    lstm(given, inner, np.empty(4 * units, np.float32), np.empty(units, np.float32), out)
    h = c = np.zeros((3, units))
    for now in given.astype(float).swapaxes(0, 1):
        take, keep, new, show = np.split(now + h @ inner.T.astype(float), 4, axis=1)
        c = sigmoid(keep) * c + sigmoid(take) * np.tanh(new)
        h = sigmoid(show) * np.tanh(c)
    assert np.abs(out - h).max() < 2e-5


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("units", [1, 7, 64])
def test_gru(units: int, scale: float) -> None:
    given, inner, draw = drawn(units, 3, scale)
    own = draw.standard_normal(3 * units).astype(np.float32)
    out = np.empty((3, units), np.float32)
    gru(given, inner, own, np.empty((2, 3 * units), np.float32), out)
    h = np.zeros((3, units))
    for now in given.astype(float).swapaxes(0, 1):
        (r, z, n), (again, keep, new) = np.split(now, 3, axis=1), np.split(h @ inner.T.astype(float) + own, 3, axis=1)
        held = sigmoid(z + keep)
        h = (1.0 - held) * np.tanh(n + sigmoid(r + again) * new) + held * h
    assert np.abs(out - h).max() < 2e-5
