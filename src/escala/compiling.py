"""A word to whoever waits for code that is compiled: code from the cache is no compilation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

LINE = "compiling (once, up to about 30 s; with Slurm's rules some two minutes)"

_watchers: list[Callable[[], Any]] = []


def tell_when_compiling(watcher: Callable[[], Any] | None = None) -> None:
    """One line on stderr when code is compiled for the first time in this process; `watcher` is called whenever
    compilation begins.

    A watcher takes the place of the one before. Does nothing while no compiled part of Escala is imported.
    """
    if "escala.compile" not in sys.modules:
        return
    if not _watchers:
        sys.modules["escala.compile"].when_compiling(_begun)
    _watchers[:] = [watcher or _nothing]


def _nothing() -> None:
    """Watches nothing."""


_told: list[str] = []


def _begun() -> None:
    """Tell the first time, and pass all on."""
    if not _told and sys.stderr is not None:
        _told.append(LINE)
        sys.stderr.write(f"{LINE}\n")
        sys.stderr.flush()
    for watcher in _watchers:
        watcher()
