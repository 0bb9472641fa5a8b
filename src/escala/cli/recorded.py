"""The log's own waits beside those of its replays, and what a replay's figures leave out, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table


def shown_waits(waits: Mapping[str, Mapping[str, Any] | None], sentence: bool = True) -> list[RenderableType]:
    """Tables of both waits and, if asked for, the sentence on whether a replay resembles the log; nothing where the log
    recorded none.
    waits: policy -> `metrics.recorded.recorded_waits`."""
    from escala.report import recorded

    known = {name: found for name, found in waits.items() if found is not None}
    if not known:
        return []
    shown: list[RenderableType] = []
    for made in recorded.tables(known):
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for k, (name, _, _) in enumerate(made.headers):
            table.add_column(name, justify="right" if k else "left")
        for row in made.rows:
            table.add_row(*(_plain(f"{cell.text} ({cell.note})" if cell.note else cell.text) for cell in row))
        shown += [table, _plain(made.caption)]
    return [*shown, *filter(None, [_plain(recorded.verdict(known)) if sentence else ""])]


def _plain(text: str) -> str:
    """Without the narrow spaces of a page."""
    return text.replace("\u202f", " ")
