"""Reports from saved Results: tables, figures, and one self-contained HTML page. The only part of Escala that plots."""

from escala.report.curves import Training
from escala.report.page import Section, render, write_report
from escala.report.style import save

__all__ = ["Section", "Training", "render", "save", "write_report"]
