"""Work as plain text, for processes that no object reaches: JSON, never a pickle, so that reading it can run
nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable


@runtime_checkable
class ByText(Protocol):
    """Work that a process can do from text alone: called with a piece, it gives what a job gives.

    module: `python -m` this does the pieces of a text, see `escala.engines.task`. key: of a piece, the hash of all that
    its result depends on. written: the work and some pieces.
    """

    module: ClassVar[str]

    def __call__(self, piece: Any, /) -> dict[str, Any]: ...

    def key(self, piece: Any, /) -> str: ...

    def written(self, pieces: Sequence[Any], /) -> str: ...


Read = Callable[[str], tuple[ByText, list[Any]]]
"""Gives the work and the pieces that were written."""


def line_of(key: str, entry: dict[str, Any]) -> bytes:
    """What was found of a piece as a line, with a sum over it."""
    text = json.dumps([key, entry])
    return f"{_sum(text)} {text}\n".encode()


def entry_of(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """(key, entry) of a line; None for one that is not as it was written: its piece is done again."""
    told, _, text = line.decode(errors="replace").partition(" ")
    if told != _sum(text):
        return None
    key, entry = json.loads(text)
    return key, entry


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
