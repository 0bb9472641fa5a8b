"""What `escala evaluate --window weeks` and `escala compare --after` say: policies on the later weeks of one continuous
replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli.tables import rows_table
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.tuning.weekly import Weekly

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
After = Annotated[
    str | None,
    typer.Option(
        "--after",
        metavar="SHARE",
        help="waits on the weeks after this share of the log's time too, such as 60%, with intervals over weeks",
        show_default=False,
    ),
]
LATER = "later_weeks.json"


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


def check_after(after: str | None, log: Any, options: Mapping[str, Any]) -> None:
    """EscalaError, before the replays, where there are no later weeks to compare on."""
    if after is not None:
        from escala.tuning.weekly import later_weeks_of

        later_weeks_of(log, after, **options)


def later(after: str | None, comparison: Any, log: Any, machine: Any, options: Mapping[str, Any]) -> Weekly | None:
    """The runs of a comparison on the later weeks, where they are asked for."""
    from escala.tuning.weekly import later_weeks

    return None if after is None else later_weeks(comparison.results, log, machine, after, **options)


def save(found: Weekly | None, folder: Path) -> None:
    """Beside the table of a comparison."""
    if found is not None:
        (folder / LATER).write_text(json.dumps(found.as_dict(), indent=1) + "\n", encoding="utf-8")


def told(found: Weekly | None, policy: str) -> dict[str, Any]:
    """What a comparison's document says of a policy on the later weeks."""
    if found is None:
        return {}
    about = {"days": found.days, "weeks": found.weeks, **found.figures[policy]}
    return {"later": about | ({"ratio": found.ratios[policy]} if policy in found.ratios else {})}


def title(found: Weekly) -> str:
    """Above the tables of a comparison."""
    return f"Waits of the jobs submitted in the last {found.days:.0f} days, in the same replays:"


def shown(found: Weekly, knows: Mapping[str, str] | None = None) -> list[Any]:
    """Tables for the terminal. knows: of each policy, so that clairvoyant ones are marked."""
    from escala.report import marks
    from escala.report.tuned import few_weeks

    first = next(iter(found.figures))
    waits = [{"scheduler": marks.shown(name, knows or {}), **figures} for name, figures in found.figures.items()]
    rows = [
        {"scheduler": marks.shown(name, knows or {}), **{figure: _text(ratio) for figure, ratio in each.items()}}
        for name, each in found.ratios.items()
    ]
    beside = f"Ratios to {first}, with 95 % intervals over {found.weeks} weeks (below 1: better):"
    ratios = [beside, rows_table(rows, text="right"), *few_weeks(found.weeks)] if rows else []
    return [rows_table(waits), *ratios]


def _text(ratio: Any) -> str:
    value, low, high = ratio
    return "-" if value is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
