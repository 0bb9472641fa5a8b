"""Reports from saved Results: tables, figures, and one self-contained HTML page. The only part of Escala that plots.

What plots is loaded when first used, so that the names and units of `quantities` cost nothing and work without the
plotting packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from escala.extras import missing

if TYPE_CHECKING:
    from escala.report.curves import Training
    from escala.report.operator import JudgedDays
    from escala.report.page import render, write_report
    from escala.report.parts import Section
    from escala.report.style import save

__all__ = ["JudgedDays", "Section", "Training", "render", "save", "write_report"]

_HOME = {
    "JudgedDays": "operator",
    "Section": "page",
    "Training": "curves",
    "render": "page",
    "save": "style",
    "write_report": "page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'escala.report' has no attribute {name!r}")
    try:
        return getattr(import_module(f"escala.report.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing(error) or error from error
