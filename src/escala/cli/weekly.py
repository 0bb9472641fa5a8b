"""What `escala evaluate --window weeks` tells: an agent on the later weeks of one continuous replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli.tables import rows_table
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.agents.weeks import Weekly

WEEKS = "weeks"
WINDOWS = ("drain", "cut", WEEKS)
Window = Annotated[
    str,
    typer.Option(
        "--window",
        metavar="WHAT",
        help="drain: run each day to its last job; cut: end it at midnight; weeks: the later weeks of one replay of "
        "the log (Scheduling)",
    ),
]


def check(window: str, **by_days: Any) -> None:
    """EscalaError for another window than there is, or for an option that goes by days beside weeks. by_days: option ->
    what was given, None for nothing."""
    if window not in WINDOWS:
        raise EscalaError(f"unknown window {window!r}; known: {', '.join(WINDOWS)}")
    for name, value in by_days.items():
        if window == WEEKS and value is not None:
            raise EscalaError(f"--{name} goes by days, --window {WEEKS} by one continuous replay: give one of them")


def first_s(log: Any, days: list[Any], after: int) -> float:
    """When the days begin that are judged, s on the log's clock. days: those with at least two jobs."""
    if after >= len(days):
        raise EscalaError(
            f"--after {after}: the log has {len(days)} days with at least two jobs; give a smaller number"
        )
    return float(days[after].origin_s - log.origin_s)


def shown(found: Weekly) -> list[Any]:
    """Tables for the terminal."""
    first = next(iter(found.figures))
    rows = [
        {"scheduler": name, **{figure: _text(ratio) for figure, ratio in each.items()}}
        for name, each in found.ratios.items()
    ]
    return [
        rows_table([{"scheduler": name, **figures} for name, figures in found.figures.items()]),
        f"Ratios to {first}, with 95 % intervals over {found.weeks} weeks (below 1: better):",
        rows_table(rows, text="right"),
    ]


def _text(ratio: Any) -> str:
    value, low, high = ratio
    return "-" if value is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
