"""Labels stand at their own points, or have a line to them."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from escala.report import labels


def test_a_label_is_nearest_to_its_own_point_or_has_a_line_to_it() -> None:
    figure = Figure(figsize=(6, 4))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    points = [(0.0, 0.02), (0.0, -0.25), (-2.3, 0.04), (-1.2, 0.05), (1.46, 0.66), (-13.4, 0.3)]
    names = ["easy", "first-fit", "saf", "easy-sjf", "conservative", "sjf-fit"]
    axes.plot(*zip(*points, strict=True), "s")
    axes.set(xlim=(-22, 90), ylim=(-20, 3))
    labels.beside(axes, points, names, ["k"] * len(points), size=7.0)
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    at = axes.transData.transform(points)
    for k, text in enumerate(axes.texts):
        box = text.get_window_extent(renderer).extents
        if text.arrow_patch is not None:  # type: ignore[attr-defined]
            box = np.asarray(text.arrow_patch.get_window_extent(renderer).extents)  # type: ignore[attr-defined]
            beyond = np.maximum(np.maximum(box[:2] - at[k], at[k] - box[2:]), 0.0)
            assert np.hypot(*beyond) < 12.0, names[k]
            continue
        beyond = np.maximum(np.maximum(box[:2] - at, at - box[2:]), 0.0)
        assert np.hypot(beyond[:, 0], beyond[:, 1]).argmin() == k, names[k]
    assert [text.get_text() for text in axes.texts] == names
