"""How figures look, and how they leave: colours that colour-blind readers can tell apart, and files that read the same
everywhere."""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from escala.errors import EscalaError
from escala.report import readable

P = ParamSpec("P")

INK = "#1b1f24"
"""The colour of text and axes. In a page it becomes the page's own text colour, so that figures are readable on light
and on dark."""

POLICY_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C6D31", "#8A3FFC"),
    *("#544860", "#C0B460", "#9084FC", "#783C30"),
)
"""Okabe and Ito (2008) without black and yellow, which vanish on one of the two backgrounds, and six more."""
LINES, LINE_EACH = ("-", "--", ":", "-."), 8
"""Line styles, and how many policies share one: the last colours are near others, and their lines differ."""
DPI = 150
"""Pixels an inch of saved figures."""

STATE_COLOURS = {
    "computing": "#0072B2",
    "idle": "#F3E27A",
    "switching_on": "#E69F00",
    "switching_off": "#8E3B74",
    "off": "#999999",
}
"""Colour of each node state, in the order in which they are stacked."""
STATE_NAMES = {state: state.replace("_", " ") for state in STATE_COLOURS}

_RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "path.simplify": True,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A figure function that draws with Escala's settings whatever the caller's are, and leaves the caller's alone."""

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.rc_context(_RC):
            return draw(*args, **kwargs)

    return wrapper


def policy_colour(index: int) -> str:
    """The colour of the policy at this place of a comparison."""
    return POLICY_COLOURS[index % len(POLICY_COLOURS)]


def policy_line(index: int) -> str:
    """The line style of the policy at this place."""
    return LINES[index // LINE_EACH % len(LINES)]


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same bytes for the same figure."""
    with matplotlib.rc_context(_RC | {"svg.hashsalt": "escala"}):
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return out.getvalue()


def inline_svg(figure: Figure, key: str) -> str:
    """The figure as an `<svg>` element for a page: no prologue, ids of its own (prefixed with `key`), ink in the page's
    text colour."""
    lines = readable.marked(figure)
    text = _inlined(svg(figure), key)
    return text.replace("<svg ", f'<svg data-axes="{escape(readable.places(figure, lines, key), quote=True)}" ', 1)


def inline_file(path: Path, key: str) -> str:
    """A figure that `save` wrote as an element for a page: SVG as `inline_svg` gives it, PNG as an image that holds its
    bytes."""
    if path.suffix == ".svg":
        return _inlined(path.read_text(encoding="utf-8"), key)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}">'


def _inlined(text: str, key: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\sid="|xlink:href="#|url\(#)', rf"\g<1>{key}-", text)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', _opening, text, count=1, flags=re.DOTALL)
    # a hundredth of a point halves the file
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag.group()), text)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'", r"font: \1var(--figure-font, sans-serif)", text)
    return text.replace(INK, "currentColor").strip()


def _opening(match: re.Match[str]) -> str:
    width = float(match.group(1).split()[2])
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {names} viewBox="{match.group(1)}" role="img" style="max-width:{width * 1.6:.0f}px">'


def save(figure: Figure, path: Path | str) -> list[Path]:
    """Write PATH.png (`DPI`, white) and PATH.svg; a suffix given in `path` is dropped. Returns the two paths."""
    stem = Path(path)
    stem = stem.with_suffix("") if stem.suffix in (".png", ".svg") else stem
    if not stem.parent.is_dir():
        raise EscalaError(f"cannot save a figure to {stem}: the folder {stem.parent} does not exist; create it first")
    png, vector = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".svg")
    FigureCanvasAgg(figure)
    with matplotlib.rc_context(_RC):
        figure.savefig(png, dpi=DPI, facecolor="white", metadata={"Software": None})
    vector.write_text(svg(figure), encoding="utf-8")
    return [png, vector]
