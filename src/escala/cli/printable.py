"""What a log, a folder or a user named, as a terminal may show it: nothing moves the cursor or clears the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment

from escala.errors import one_line

MOST_SIGNS = 10  # of the escape of one sign


class Printable(RenderHook):
    """Signs that no terminal shows become escapes; colours are Rich's own, and stay."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """What is printed, each in its place."""
        return [_Shown(one) for one in renderables]


class _Shown:
    def __init__(self, what: ConsoleRenderable) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        for part in console.render(self._what, options):
            lines = part.text.split("\n")
            if part.control or all(line.isprintable() for line in lines):
                yield part
            else:
                yield Segment("\n".join(one_line(line, MOST_SIGNS * len(line)) for line in lines), part.style)
