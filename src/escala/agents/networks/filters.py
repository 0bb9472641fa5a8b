"""3 x 3 filters with a border of zeros, ReLU and a linear layer on top, as one: outputs, and gradients of all weights.

Nine of ten places of an image have nothing but zeros around them: their filters give relu(bias), whatever the image.
What the linear layer makes of that is worked out once a batch, and only the other places one by one. The same sums as
layer by layer, in another order.

Shapes, all float32 but for mark and places: images [batch, rows, columns], kernel [filters, 9], bias [filters], linear
[outputs, filters, places], where places = rows x columns. Scratch: mark uint8 [places], zeros; places int64 [places];
around [9, places]; found, back [filters, places].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from escala.compile import lean, summed

NONE = np.float32(0.0)


class Scratch(NamedTuple):
    """What an image is worked out in."""

    mark: Any
    places: Any
    around: Any
    found: Any
    back: Any


def scratch_of(filters: int, places: int) -> Scratch:
    """For images of so many places."""
    around, found, back = (np.zeros((rows, places), np.float32) for rows in (9, filters, filters))
    return Scratch(np.zeros(places, np.uint8), np.zeros(places, np.int64), around, found, back)


@lean
def touched(image: Any, mark: Any, places: Any) -> int:
    """How many places have a number other than 0 at or beside them; `places` holds them."""
    rows, columns = image.shape
    n = 0
    for i in range(rows):
        for j in range(columns):
            if image[i, j] != NONE:
                for a in range(max(i - 1, 0), min(i + 2, rows)):
                    for b in range(max(j - 1, 0), min(j + 2, columns)):
                        p = a * columns + b
                        if mark[p] == 0:
                            mark[p] = 1
                            places[n] = p
                            n += 1
    for k in range(n):
        mark[places[k]] = 0
    return n


@summed
def _see(image: Any, kernel: Any, bias: Any, scratch: Scratch) -> int:
    """How many places are touched; what lies around them, and what the filters make of it, before ReLU."""
    rows, columns = image.shape
    around, found, n = scratch.around, scratch.found, touched(image, scratch.mark, scratch.places)
    for t in range(n):
        i, j = scratch.places[t] // columns, scratch.places[t] % columns
        for k in range(9):
            a, b = i + k // 3 - 1, j + k % 3 - 1
            around[k, t] = image[a, b] if a >= 0 and b >= 0 and a < rows and b < columns else NONE
    for f in range(found.shape[0]):
        row = found[f]
        for t in range(n):
            row[t] = bias[f]
        for k in range(9):
            weight, seen = kernel[f, k], around[k]
            for t in range(n):
                row[t] += weight * seen[t]
    return n


@summed
def _sum_over(values: Any, weights: Any, places: Any, n: int) -> Any:
    """Sum of values x the weights at their places."""
    total = NONE
    for t in range(n):
        total += values[t] * weights[places[t]]
    return total


@summed
def _sum_of(first: Any, second: Any, n: int) -> Any:
    """Sum of the products of two rows."""
    total = NONE
    for t in range(n):
        total += first[t] * second[t]
    return total


@summed
def add_outputs(images: Any, kernel: Any, bias: Any, linear: Any, out: Any, scratch: Scratch) -> None:
    """Add to out [batch, outputs] what each image has beyond an empty one."""
    for b in range(images.shape[0]):
        n = _see(images[b], kernel, bias, scratch)
        for f in range(bias.shape[0]):
            row, level = scratch.found[f], max(bias[f], NONE)
            for t in range(n):
                row[t] = max(row[t], NONE) - level
            for a in range(linear.shape[0]):
                out[b, a] += _sum_over(row, linear[a, f], scratch.places, n)


@summed
def _add_below(row: Any, back: Any, f: int, n: int, bias: Any, around: Any, of_kernel: Any, of_bias: Any) -> None:
    """Add the gradients of one filter. row [places]: what it made; back: the gradients of that."""
    total = NONE
    for t in range(n):
        if bias[f] > NONE:  # as a place of an empty image it was counted
            total -= back[t]
        back[t] = back[t] if row[t] > NONE else NONE
        total += back[t]
    of_bias[f] += total
    for k in range(9):
        of_kernel[f, k] += _sum_of(back, around[k], n)


@summed
def add_gradients(images: Any, kernel: Any, bias: Any, linear: Any, given: Any, into: Any, scratch: Scratch) -> None:
    """Add the gradients that each image has beyond an empty one. given [batch, outputs]: of the outputs; into: those of
    kernel, bias and linear."""
    of_kernel, of_bias, of_linear = into
    places = scratch.places
    for b in range(images.shape[0]):
        n = _see(images[b], kernel, bias, scratch)
        for f in range(bias.shape[0]):
            row, back, level = scratch.found[f], scratch.back[f], max(bias[f], NONE)
            for t in range(n):
                back[t] = NONE
            for a in range(linear.shape[0]):
                gradient, weights, added = given[b, a], linear[a, f], of_linear[a, f]
                for t in range(n):
                    back[t] += gradient * weights[places[t]]
                    added[places[t]] += gradient * (max(row[t], NONE) - level)
            _add_below(row, back, f, n, bias, scratch.around, of_kernel, of_bias)
