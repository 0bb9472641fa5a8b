"""Labels beside points that do not lie on one another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

_MARKER = 4.0  # half of a marker's side, in points
_NEAR, _FAR = 5.0, 13.0  # distances from a point that are tried, in points
_AROUND = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
Points = Sequence[tuple[float, float]]
Boxes = NDArray[np.float64]
"""[n, 4]: left, lower, right and upper end, in pixels."""


def beside(
    axes: Axes,
    points: Points,
    labels: Sequence[str],
    colours: Sequence[str],
    size: float = 8.0,
    lines: Sequence[Points] = (),
) -> None:
    """Write a label beside each point, in the first place around it that is free of markers, of labels and of these
    lines; where none is, in the place that covers least. Places nearer to another point are taken last, and a label
    that stands off has a line to its point. An empty label is left out. To be called when all else of the figure is
    drawn and its limits are
    set."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    figure.draw_without_rendering()  # places the axes, for the transform below
    dot = figure.dpi / 72.0
    at = _pixels(axes, points)
    taken = np.concatenate([_around(at, _MARKER * dot), *(_along(_pixels(axes, line), dot) for line in lines)])
    for (x, y), point, label, colour in zip(at, points, labels, colours, strict=True):
        if not label:
            continue
        text = axes.text(0.5, 0.5, label, transform=axes.transAxes, fontsize=size)
        wide, high = text.get_window_extent(renderer).width, size * dot
        text.remove()
        places = np.array([_box((x, y), (wide, high), side, far * dot) for far in (_NEAR, _FAR) for side in _AROUND])
        others = at[(at != (x, y)).any(axis=1)]
        costs = [
            _covered(box, taken, axes.bbox.extents) + wide * high * _foreign(box, (x, y), others) for box in places
        ]
        chosen = int(np.argmin(costs))
        best = places[chosen]
        led = chosen >= len(_AROUND) or _foreign(best, (x, y), others)
        taken = np.concatenate([taken, best[None]])
        offset = ((best[0] - x) / dot, (best[1] - y) / dot)
        line = (
            {"arrowstyle": "-", "linewidth": 0.6, "color": colour, "shrinkA": 0.0, "shrinkB": _MARKER} if led else None
        )
        told = axes.annotate(
            label, point, xytext=offset, textcoords="offset points", fontsize=size, color=colour, arrowprops=line
        )
        told.set_in_layout(False)


def _pixels(axes: Axes, points: Points) -> NDArray[np.float64]:
    return np.asarray(axes.transData.transform(np.asarray(points, np.float64).reshape(-1, 2)))


def _around(at: NDArray[np.float64], half: float) -> Boxes:
    return np.concatenate([at - half, at + half], axis=1)


def _along(line: NDArray[np.float64], dot: float) -> Boxes:
    """Small boxes along a broken line."""
    parts = [np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / (3.0 * dot))) for a, b in pairwise(line)]
    return _around(np.concatenate(parts) if parts else line, dot)


def _box(
    at: tuple[float, float], size: tuple[float, float], side: tuple[int, int], far: float
) -> tuple[float, float, float, float]:
    """The box of a label of this size on a side of a point."""
    x = at[0] + side[0] * far - (1 - side[0]) / 2 * size[0]
    y = at[1] + side[1] * 0.7 * far - (1 - side[1]) / 2 * size[1]
    return x, y, x + size[0], y + size[1]


def _covered(box: Boxes, taken: Boxes, within: Any) -> float:
    """The area of a box that is taken or lies outside."""
    outside = (box[2] - box[0]) * (box[3] - box[1]) - _common(box, np.asarray(within)[None])
    return float(outside + _common(box, taken))


def _foreign(box: Boxes, own: tuple[float, float], others: NDArray[np.float64]) -> bool:
    """Whether a label would stand nearer to another point than to its own."""
    return bool(len(others)) and _apart(box, others).min() < _apart(box, np.array([own])).min()


def _apart(box: Boxes, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance of a box from points."""
    beyond = np.maximum(np.maximum(box[:2] - points, points - box[2:]), 0.0)
    return np.hypot(beyond[:, 0], beyond[:, 1])


def _common(box: Boxes, others: Boxes) -> float:
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return float(np.prod(np.maximum(sides, 0.0), axis=1).sum())
