"""Labels beside points that do not lie on one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

_MARKER = 4.0  # half of a marker's side, in points
_NEAR, _FAR = 5.0, 13.0  # distances from a point that are tried, in points
_AROUND = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))


def beside(axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str], colours: Sequence[Any], size: float = 8.0) -> None:
    """Write a label beside each point, in the first place around it that is free of markers and of labels; where none is, in the place
    that covers least. An empty label is left out. To be called when all else of the figure is drawn, and its limits are set."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    renderer: Any = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # places the axes, for the transform below
    dot = figure.dpi / 72.0
    at = axes.transData.transform(np.asarray(points, np.float64).reshape(-1, 2))
    taken = [Bbox.from_extents(x - _MARKER * dot, y - _MARKER * dot, x + _MARKER * dot, y + _MARKER * dot) for x, y in at]
    for (x, y), label, colour in zip(at, labels, colours, strict=True):
        if not label:
            continue
        text = axes.text(0.5, 0.5, label, transform=axes.transAxes, fontsize=size)
        box = text.get_window_extent(renderer)
        text.remove()
        wide, high = box.width, size * dot
        best = min(
            ((side, far) for far in (_NEAR, _FAR) for side in _AROUND),
            key=lambda place: _covered(_box((x, y), (wide, high), *place, dot), taken, axes.bbox),
        )
        box = _box((x, y), (wide, high), *best, dot)
        taken.append(box)
        offset = ((box.x0 - x) / dot, (box.y0 - y) / dot)
        place = axes.transData.inverted().transform((x, y))
        told = axes.annotate(label, tuple(place), xytext=offset, textcoords="offset points", fontsize=size, color=colour)
        told.set_in_layout(False)


def _box(at: tuple[float, float], size: tuple[float, float], side: tuple[int, int], far: float, dot: float) -> Bbox:
    """The box of a label of this size on a side of a point."""
    (x, y), (wide, high) = at, size
    x += side[0] * far * dot - (1 - side[0]) / 2 * wide
    y += side[1] * 0.7 * far * dot - (1 - side[1]) / 2 * high
    return Bbox.from_extents(x, y, x + wide, y + high)


def _covered(box: Bbox, taken: Sequence[Bbox], within: Any) -> float:
    """The area of a box that is taken or lies outside."""
    inside = Bbox.intersection(box, within)
    area = box.width * box.height - (inside.width * inside.height if inside is not None else 0.0)
    for other in taken:
        common = Bbox.intersection(box, other)
        area += common.width * common.height if common is not None else 0.0
    return float(area)
