"""Finished runs as pieces of something longer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from escala.policies.pairs import T
from escala.result import Result
from escala.writing import Pieces, write_whole

Keep = Callable[[str, Callable[[], Result]], Result]
"""Given the name of a run and how to run it: its Result, perhaps one that was kept."""


def play_anew(_: str, run: Callable[[], Result]) -> Result:
    """Keep nothing."""
    return run()


def keep_runs(pieces: Pieces) -> Keep:
    """Each run is a piece of something longer."""
    return lambda name, run: pieces.file(f"run {name}", run, lambda path, result: result.save(path), Result.load)


@dataclass(frozen=True)
class KeptPieces(Generic[T]):
    """Finished runs as pieces of something longer. of: what stands before their names; write, read: a run into a file,
    and out of it."""

    pieces: Pieces
    of: str
    write: Callable[[Path, T], object]
    read: Callable[[Path], T]

    def has(self, name: str) -> bool:
        """Was this one finished before?"""
        return self.pieces.has(self.of + name)

    def load(self, name: str) -> T:
        """A run that was kept."""
        return self.pieces.file(self.of + name, _gone, self.write, self.read)

    def keep(self, name: str, result: T) -> None:
        """Keep a run that is finished."""
        self.pieces.file(self.of + name, lambda: result, self.write, self.read)

    def taken(self, name: str) -> T:
        """A run that a task has kept."""
        self.pieces.wait(self.of + name)
        result = self.load(name)
        self.pieces.found.discard(self.of + name)
        return result

    def key(self, name: str) -> str:
        """The hash of all that a run depends on."""
        return self.pieces.key(self.of + name)


def _gone() -> Any:
    raise AssertionError("a piece that was there is gone")


def kept_values(pieces: Pieces | None, of: str = "") -> KeptPieces[Any] | None:
    """Runs whose results are values that JSON keeps."""
    if pieces is None:
        return None
    return KeptPieces(
        pieces,
        of,
        lambda path, value: write_whole(path, json.dumps(value)),
        lambda path: json.loads(path.read_text(encoding="utf-8")),
    )
