"""Recurrent layers of exported agents, compiled: a step's few hundred numbers stay near the processor, where numpy
passes over them a dozen times.

Shapes: what is given to each step, its weights applied [batch, steps, gates x units]; inner weights as torch keeps
them,
[gates x units, units]; out [batch, units]. All float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import summed

ONE, TWO, HALF, QUARTER = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.25)
FAR = np.float32(9.1)
"""From here on a float32 tanh is 1."""
ABOVE = tuple(np.float32(one) for one in (135135.0, 17325.0, 378.0))
BELOW = tuple(np.float32(one) for one in (135135.0, 62370.0, 3150.0, 28.0))
"""Lambert's continued fraction of tanh, cut at its seventh part: x (ABOVE by powers of x^2, and x^6) / (BELOW by powers
of x^2)."""


@summed
def _bend(x: Any) -> None:
    """tanh of each number, in place: the fraction of a quarter of it, where it is exact to float32, doubled twice."""
    for j in range(x.shape[0]):
        y = min(max(x[j], -FAR), FAR) * QUARTER
        s = y * y
        t = (
            y
            * (ABOVE[0] + s * (ABOVE[1] + s * (ABOVE[2] + s)))
            / (BELOW[0] + s * (BELOW[1] + s * (BELOW[2] + s * BELOW[3])))
        )
        t = TWO * t / (ONE + t * t)
        x[j] = TWO * t / (ONE + t * t)


@summed
def _onward(given: Any, h: Any, inner: Any, out: Any) -> None:
    """out = given + inner h, four rows at a time: sums of one row wait for each other."""
    rows = out.shape[0]
    fours = rows - rows % 4
    for j in range(0, fours, 4):
        first, second, third, fourth = inner[j], inner[j + 1], inner[j + 2], inner[j + 3]
        a, b, c, d = given[j], given[j + 1], given[j + 2], given[j + 3]
        for k in range(h.shape[0]):
            a += first[k] * h[k]
            b += second[k] * h[k]
            c += third[k] * h[k]
            d += fourth[k] * h[k]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
    for j in range(fours, rows):
        of_gate = given[j]
        row = inner[j]
        for k in range(h.shape[0]):
            of_gate += row[k] * h[k]
        out[j] = of_gate


@summed
def lstm(given: Any, inner: Any, room: Any, cell: Any, out: Any) -> None:
    """The last hidden state of an LSTM: gates input, forget, cell, output. room [4 units], cell [units]: what is worked
    with."""
    units = inner.shape[1]
    take, keep, new, show = room[:units], room[units : 2 * units], room[2 * units : 3 * units], room[3 * units :]
    for b in range(given.shape[0]):
        h = out[b]
        for k in range(units):
            h[k] = cell[k] = np.float32(0.0)
        for now in range(given.shape[1]):
            if now > 0:
                _onward(given[b, now], h, inner, room)
            else:
                for j in range(room.shape[0]):
                    room[j] = given[b, 0, j]
            for k in range(units):  # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2
                take[k] *= HALF
                keep[k] *= HALF
                show[k] *= HALF
            _bend(room)
            for k in range(units):
                cell[k] = (keep[k] * HALF + HALF) * cell[k] + (take[k] * HALF + HALF) * new[k]
                h[k] = cell[k]
            _bend(h)
            for k in range(units):
                h[k] *= show[k] * HALF + HALF


@summed
def gru(given: Any, inner: Any, own: Any, room: Any, out: Any) -> None:
    """The last hidden state of a GRU: gates reset, update, new. own [3 units]: the inner layer's bias. room [2, 3
    units]."""
    units = inner.shape[1]
    gates, back = room[0], room[1]
    both, again, hold, new = gates[: 2 * units], gates[:units], gates[units : 2 * units], gates[2 * units :]
    for b in range(given.shape[0]):
        h = out[b]
        for k in range(units):
            h[k] = np.float32(0.0)
        for now in range(given.shape[1]):
            seen = given[b, now]
            _onward(own, h, inner, back)
            for j in range(both.shape[0]):
                both[j] = (seen[j] + back[j]) * HALF
            _bend(both)
            for k in range(units):
                new[k] = seen[2 * units + k] + (again[k] * HALF + HALF) * back[2 * units + k]
            _bend(new)
            for k in range(units):
                h[k] = new[k] + (hold[k] * HALF + HALF) * (h[k] - new[k])
