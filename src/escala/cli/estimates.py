"""The options of what jobs are expected to run."""

from __future__ import annotations

from typing import Annotated

import typer

from escala.errors import EscalaError

Estimate = Annotated[
    str,
    typer.Option(
        "--estimate",
        metavar="WHAT",
        help="how long jobs are expected to run: walltime (the request), runtime (what no machine knows), last2 (mean "
        "of the user's last two runs), a column estimate_..., or model:DIR (escala predict)",
        rich_help_panel="Rules",
    ),
]
OrderEstimate = Annotated[
    str | None,
    typer.Option(
        "--order-estimate",
        metavar="WHAT",
        help="the same for the order of the queue alone [as --estimate]",
        show_default=False,
        rich_help_panel="Rules",
    ),
]
Corrections = Annotated[
    str | None,
    typer.Option(
        "--corrections",
        metavar="S,S,...",
        help="by how many seconds a planned end moves each time it is outlived; then to the end of the request "
        "[60,300,900,1800,3600,7200,... up to 360000]",
        show_default=False,
        rich_help_panel="Rules",
    ),
]


def spans(text: str) -> list[float]:
    """Seconds between commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise EscalaError(f"--corrections is {text!r}: give seconds between commas, such as 60,300,900") from None
