"""What a page needs to read values off a figure: where its axes lie in the drawing, their ranges, and which lines are
drawn in them."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.category
import matplotlib.colors
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

_SCALES = ("linear", "log")
_PRECISION = 6


def marked(figure: Figure) -> list[list[tuple[str, Any]]]:
    """The lines of each axes by name; each gets an id for the drawing, such as line-0-1. To be called before the figure
    is drawn."""
    out = []
    for i, axes in enumerate(figure.axes):
        lines = [(str(a.get_label()), a) for a in (*axes.lines, *axes.patches) if _is_line(a)]
        for j, (_, artist) in enumerate(lines):
            artist.set_gid(f"line-{i}-{j}")
        out.append(lines)
    return out


def _is_line(artist: Any) -> bool:
    """Lines and outlines of steps that have a name; no markers alone, no filled areas."""
    if str(artist.get_label()).startswith("_") or not artist.get_visible():
        return False
    if isinstance(artist, StepPatch):
        return not artist.get_fill()
    return isinstance(artist, Line2D) and artist.get_linestyle() != "None"


def places(figure: Figure, lines: list[list[tuple[str, Any]]], key: str) -> str:
    """JSON of the axes, in the drawing's units (points, y downwards). To be called after the figure was drawn. key:
    before each id."""
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    told = []
    for axes, drawn in zip(figure.axes, lines):
        if not axes.get_visible() or not axes.axison or {axes.get_xscale(), axes.get_yscale()} - set(_SCALES):
            continue
        at = axes.get_position()
        told.append(
            {
                "box": [
                    round(v, 2) for v in (at.x0 * width, (1.0 - at.y1) * height, at.x1 * width, (1.0 - at.y0) * height)
                ],
                "x": _axis(figure, axes, "x"),
                "y": _axis(figure, axes, "y"),
                "lines": [{"id": f"{key}-{a.get_gid()}", "name": name, "colour": _colour(a)} for name, a in drawn],
            }
        )
    numbered = [panel for panel in told if panel["x"] and panel["y"]]
    return json.dumps(numbered, ensure_ascii=False)


def _axis(figure: Figure, axes: Axes, which: str) -> dict[str, Any] | None:
    """Name, range and scale; None for an axis of names in place of numbers. A name that panels share stands at one of
    them."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if isinstance(axis.get_major_locator(), matplotlib.ticker.FixedLocator | matplotlib.category.StrCategoryLocator):
        return None
    others = [(other.xaxis if which == "x" else other.yaxis).get_label_text() for other in figure.axes]
    name = axis.get_label_text() or next((text for text in others if text), "")
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    return {
        "name": name,
        "range": [float(f"{low:.{_PRECISION}g}"), float(f"{high:.{_PRECISION}g}")],
        "log": axis.get_scale() == "log",
    }


def _colour(artist: Any) -> str:
    value = artist.get_color() if isinstance(artist, Line2D) else artist.get_edgecolor()
    return str(matplotlib.colors.to_hex(value))
