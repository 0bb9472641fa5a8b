"""Sphinx: `make docs` builds these pages, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generated  # noqa: E402

import escala  # noqa: E402

generated.write(HERE / "_build" / "generated")

project = "Escala"
author = "The Escala developers"
copyright = "The Escala developers"
version = release = escala.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
highlight_language = "text"
smartquotes = False  # options begin with two hyphens
html_theme = "furo"
html_title = f"Escala {release}"
SIDEBAR = (
    "sidebar/brand",
    "sidebar/search",
    "sidebar/scroll-start",
    "sidebar/navigation",
    "sidebar/scroll-end",
    "versions",
)
html_sidebars = {"**": [f"{part}.html" for part in SIDEBAR]}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = ["toc.not_included"]


def _as_rst(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: `names` in single backticks, ## headings, and names that end with an underscore."""
    text = re.sub(r"^( *)#+ (.*)$", r"\1**\2**", "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(r"(?<![`:])`([^`]+)`(?![`_])", r"``\1``", text)
    pieces = re.split(r"(``[^`]*``)", text)
    kept = (piece if piece.startswith("``") else re.sub(r"(\w)_(?!\w)", r"\1\\_", piece) for piece in pieces)
    lines[:] = "".join(kept).split("\n")


def setup(app: Any) -> None:
    """Read docstrings as they are written."""
    app.connect("autodoc-process-docstring", _as_rst)
