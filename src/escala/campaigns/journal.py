"""The journal of a campaign: one line a finished run, added in one write, so that a run that was killed loses at most
the last line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from escala.engines.by_text import entry_of, line_of
from escala.errors import EscalaError
from escala.writing import claimed, unwritable

FILE = "runs.journal"
HEAD = b"escala campaign 1\n"
ANY = b"escala campaign "
ASIDE = ".part-"
"""How the names of files begin that a killed run has left half-written; their next writer removes them."""


class Journal:
    """What is finished: key -> its entry, a dictionary that JSON keeps. Of several lines with one key the last
    counts."""

    def __init__(self, path: Path, handle: int, found: dict[str, dict[str, Any]]) -> None:
        self._path, self._handle, self.found = path, handle, found

    def add(self, key: str, entry: dict[str, Any]) -> None:
        """Note a finished run; EscalaError where that cannot be written."""
        self.write(line_of(key, entry))
        self.found[key] = entry

    def write(self, line: bytes) -> None:
        """Add a line."""
        try:
            while line:
                line = line[os.write(self._handle, line) :]
        except OSError as error:
            raise unwritable(self._path, error) from error


@contextmanager
def opened(folder: Path) -> Iterator[Journal]:
    """The journal in a folder, which is made where it is not there, and kept to this run. One that holds nothing and
    lies alone goes again.

    Raises:
        EscalaError: the folder cannot be written to, another run writes there now, or it holds files that no campaign
        wrote.
    """
    with claimed(folder):
        path = folder / FILE
        try:
            data = path.read_bytes() if path.exists() else b""
            others = [name for name in os.listdir(folder) if name != FILE and not name.startswith(ASIDE)]
            begun = data.startswith(HEAD)
            if not begun and data.startswith(ANY):
                raise EscalaError(f"{path}: of another version of Escala: go on with that one, or name another folder")
            begun = begun or any(map(entry_of, data.splitlines()[1:]))  # only its first line is damaged
            if not begun and (others or not HEAD.startswith(data)):
                raise EscalaError(f"{folder}: holds files that no campaign wrote: name another folder")
            whole = data[: data.rfind(b"\n") + 1]
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise unwritable(folder, error) from error
        try:
            os.ftruncate(handle, len(whole))  # a torn last line
            found = dict(filter(None, map(entry_of, whole.splitlines()[1:])))
            journal = Journal(path, handle, found)
            if not begun:
                journal.write(HEAD)
            yield journal
        finally:
            os.close(handle)
            if not found and os.listdir(folder) == [FILE]:
                path.unlink()
