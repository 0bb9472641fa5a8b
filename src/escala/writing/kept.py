"""Finished pieces of a long run: each stands in the output folder as a whole, and is found again after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from escala.writing.files import write_whole


class Kept:
    """The pieces in the work folder of an `output_folder(..., keeps=True)`. A piece is a file or folder of some name, made for a request
    (all that it depends on, as JSON keeps it)."""

    def __init__(self, work: Path) -> None:
        self._work, self._notes = work, work.parent / "kept"
        self._notes.mkdir(exist_ok=True)

    def only(self, requests: Mapping[str, Any]) -> list[str]:
        """Forget every piece but those of these requests (name -> request); the names of those that are there."""
        wanted = {name: _key(name, request) for name, request in requests.items()}
        for note in list(self._notes.iterdir()):
            if note.name not in wanted.values():
                note.unlink()
        there = [name for name, key in wanted.items() if (self._notes / key).is_file() and (self._work / name).exists()]
        for piece in list(self._work.iterdir()):
            if piece.name not in there:
                shutil.rmtree(piece) if piece.is_dir() and not piece.is_symlink() else piece.unlink()
        return there

    def keep(self, name: str, request: Any, make: Callable[[Path], object]) -> Path:
        """Let `make` write the piece at the path that it is given, and note that it is whole. Its place in the output folder."""
        half = self._work.parent / f"half-{os.getpid()}-{_key(name, request)[:16]}"
        make(half)
        piece = self._work / name
        os.rename(half, piece)
        write_whole(self._notes / _key(name, request), name + "\n")
        return piece


def _key(name: str, request: Any) -> str:
    return hashlib.sha256(json.dumps([name, request], sort_keys=True, default=str).encode()).hexdigest()
