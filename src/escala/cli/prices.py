"""Prices of a kWh on the command line: one for good, or a file of those that change over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli.options import MOST_PRICE
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.metrics import Series

OF_KWH = "or a CSV file with the columns time_s (s on the log's clock) and per_kwh"


def price_of(given: str | None, flag: str) -> float | Series | None:
    """One price, or those of a file."""
    from escala.metrics import read_series

    if given is None:
        return None
    try:
        value = float(given)
    except ValueError:
        if not Path(given).is_file():
            raise EscalaError(
                f"{flag} {given}: is neither a number nor a file: give a price of a kWh, {OF_KWH}"
            ) from None
        return read_series(given)
    if not 0.0 <= value <= MOST_PRICE:
        raise EscalaError(f"{flag} {given}: give a number from 0 to {MOST_PRICE:g}, {OF_KWH}")
    return value


Price = Annotated[
    str | None, typer.Option("--price", metavar="X", help=f"price of a kWh, {OF_KWH}", show_default=False)
]
Carbon = Annotated[
    str | None, typer.Option("--carbon", metavar="G", help=f"g CO2 of a kWh, {OF_KWH}", show_default=False)
]
"""As `options.Price` and `options.Carbon`, which the site's file may say too, and files beside; see `price_of`."""
