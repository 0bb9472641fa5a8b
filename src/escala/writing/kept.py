"""Finished pieces of a long run: each is whole, and is found again after an interruption.

`Kept`: pieces that stand in the output folder. `Pieces`: pieces beside it, from which the output is made at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from escala.errors import EscalaError
from escala.reading import own
from escala.writing.files import write_whole

T = TypeVar("T")
HALF = "half-"  # how the names of pieces begin that are being written
SEEN_S = 90.0
"""Until what another machine has written is seen here: file systems remember what is not there for a minute."""


class Kept:
    """The pieces in the work folder of an `output_folder(..., keeps=True)`. A piece is a file or folder of some name,
    made for a request (all that it depends on, as JSON keeps it). shared: the folder is another process's, and nothing
    in it is forgotten."""

    def __init__(self, work: Path, shared: bool = False) -> None:
        self._work, self._notes, self._shared = work, work.parent / "kept", shared
        self._notes.mkdir(exist_ok=True)

    def only(self, requests: Mapping[str, Any]) -> list[str]:
        """Forget every piece but those of these requests (name -> request); the names of those that are there."""
        wanted = {name: self.key(name, request) for name, request in requests.items()}
        there = [name for name, key in wanted.items() if (self._notes / key).is_file() and (self._work / name).exists()]
        if self._shared:
            return there
        for note in list(self._notes.iterdir()):
            if note.name not in wanted.values():
                note.unlink()
        for piece in list(self._work.iterdir()):
            if piece.name not in there:
                shutil.rmtree(piece) if piece.is_dir() and not piece.is_symlink() else piece.unlink()
        return there

    @staticmethod
    def key(name: str, request: Any) -> str:
        """By which a piece is known: the hash of both."""
        return _key(name, request)

    def wait(self, name: str, request: Any) -> None:
        """Until a piece is there that another process has kept."""
        _wait(self._notes / _key(name, request))

    def keep(self, name: str, request: Any, make: Callable[[Path], object]) -> Path:
        """Let `make` write the piece at the path that it is given, and note that it is whole. Its place in the output
        folder."""
        half = self._work.parent / f"{HALF}{os.getpid()}-{_key(name, request)[:16]}"
        make(half)
        piece = self._work / name
        _put(half, piece)
        write_whole(self._notes / _key(name, request), name + "\n")
        return piece


class Pieces:
    """Pieces of the run of one request, beside the work folder of an `output_folder(..., keeps=True)`; those of another
    request go.

    work: the folder; without one nothing is kept. request: all that the run depends on, as JSON keeps it. shared: the
    folder is another process's, and nothing in it is forgotten. name: of a piece.
    """

    def __init__(self, work: Path | None, request: Any, shared: bool = False) -> None:
        self._run = None if work is None else work.parent
        self._folder = None if work is None else work.parent / "kept" / _key("", request)[:32]
        self.found: set[str] = set()
        """Pieces that an interrupted run had finished."""
        self.done: set[str] = set()
        if work is not None and not shared:
            for old in (*(work.parent / "kept").glob("*"), *work.iterdir()):
                if old != self._folder:
                    shutil.rmtree(
                        out_of_sight(old, work.parent)
                    ) if old.is_dir() and not old.is_symlink() else old.unlink()

    def has(self, name: str) -> bool:
        """Was this piece finished, now or before?"""
        return self._folder is not None and (self._folder / _key(name, None)[:32]).exists()

    def key(self, name: str) -> str:
        """By which a piece is known: the hash of its name and of the request."""
        return _key(name, None if self._folder is None else self._folder.name)

    def wait(self, name: str) -> None:
        """Until a piece is there that another process has kept."""
        assert self._folder is not None
        _wait(self._folder / _key(name, None)[:32])

    def value(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, here or before an interruption; JSON must keep it as it is."""
        return self.file(
            name,
            make,
            lambda path, value: write_whole(path, json.dumps(value)),
            lambda path: json.loads(path.read_text(encoding="utf-8")),
        )

    def file(
        self, name: str, make: Callable[[], T], write: Callable[[Path, T], object], read: Callable[[Path], T]
    ) -> T:
        """The same of what `write` puts into a file or folder, and `read` reads."""
        if self._folder is None or self._run is None:
            return make()
        piece = self._folder / _key(name, None)[:32]
        if piece.exists():
            self.found.add(name)
            self.done.add(name)
            with own(piece, "piece of an interrupted run", f"remove {self._run} and begin anew"):
                return read(piece)
        made = make()
        half = self._run / f"{HALF}{os.getpid()}-{piece.name}"
        write(half, made)
        self._folder.mkdir(parents=True, exist_ok=True)
        _put(half, piece)
        self.done.add(name)
        return made

    def growing(self, name: str) -> Path | None:
        """The folder of a piece that is written bit by bit, by something that goes on with it by itself; None where
        nothing is kept."""
        return None if self._folder is None else self._folder / name


def out_of_sight(folder: Path, run: Path) -> Path:
    """Name a folder as one that is half written, before it is removed: a run that is killed meanwhile leaves no half of
    it behind as whole. Its new place."""
    aside = run / f"{HALF}{os.getpid()}-{folder.name}"
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(folder, aside)
    return aside


def _put(half: Path, piece: Path) -> None:
    """A finished piece takes its place, unless another process has finished the same meanwhile."""
    try:
        os.rename(half, piece)
    except OSError:
        if not piece.is_dir():
            raise
        shutil.rmtree(half)


def _wait(path: Path) -> None:
    end = time.monotonic() + SEEN_S
    while not path.exists():
        if time.monotonic() > end:
            raise EscalaError(
                f"{path}: a task has kept a piece there, and it is not seen here: name an --out that every node sees"
            )
        time.sleep(0.1)


def _key(name: str, request: Any) -> str:
    return hashlib.sha256(json.dumps([name, request], sort_keys=True, default=str).encode()).hexdigest()
