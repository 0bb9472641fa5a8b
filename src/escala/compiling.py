"""A word to whoever waits for code that is compiled: code from the cache is no compilation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

LINE = "compiling (once, up to about 40 s)"

_watchers: list[Callable[[], Any]] = []


def tell_when_compiling(watcher: Callable[[], Any] | None = None) -> None:
    """One line on stderr when Numba begins to compile for the first time in this process; `watcher` is called whenever it begins.

    A watcher takes the place of the one before. Does nothing while Numba is not imported.
    """
    if "numba.core.dispatcher" not in sys.modules:
        return
    if not _watchers:
        _listen()
    _watchers[:] = [watcher or _nothing]


def _nothing() -> None:
    """Watches nothing."""


def _listen() -> None:
    from numba.core import event

    class Told(event.Listener):
        """Tells the first, and passes all on."""

        told = False

        def on_start(self, event: Any) -> None:
            """Compilation begins."""
            if not self.told and sys.stderr is not None:
                self.told = True
                sys.stderr.write(f"{LINE}\n")
                sys.stderr.flush()
            for watcher in _watchers:
                watcher()

        def on_end(self, event: Any) -> None:
            """It ends: nobody is told."""

    event.register("numba:compile", Told())  # type: ignore[no-untyped-call]
