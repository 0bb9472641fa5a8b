"""The journal: one line of JSON a look, only ever appended, so that whatever kills its writer loses the line at hand at most."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.reading import guarded
from escala.writing import locks

VERSION = 1
BEGIN, LOOK, MISS = "begin", "look", "miss"
LONGEST = 1 << 28  # characters of a line


class Journal:
    """Writes at the end of a file, which nobody else may write meanwhile.

    Raises:
        EscalaError: another process writes it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
        except OSError as error:
            raise EscalaError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()}): name another folder") from None
        self._lock = locks.take(path)
        if self._lock is None:
            os.close(self._file)
            raise EscalaError(f"{path}: another process writes this journal: end it, or name another folder")
        end = os.lseek(self._file, 0, os.SEEK_END)
        if end and os.pread(self._file, 1, end - 1) != b"\n":  # a line that its writer did not finish
            os.write(self._file, b"\n")

    def append(self, record: dict[str, Any]) -> None:
        """A record, as one line in one piece, on the disk when this returns."""
        line = json.dumps({"v": VERSION, **record}, separators=(",", ":")).encode() + b"\n"
        written = os.write(self._file, line)
        while written < len(line):
            written += os.write(self._file, line[written:])
        os.fsync(self._file)

    def close(self) -> None:
        """Give the file to others."""
        os.close(self._file)
        if self._lock is not None:
            os.close(self._lock)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal; lines that were not finished are left out. EscalaError for a file that is none, or of a later version."""
    if not path.is_file():
        raise EscalaError(f"{path}: no such file: give the folder of escala beside slurm, or its journal.jsonl")
    with guarded(path, "a journal of escala beside"):
        whole, broken = 0, 0
        with open(path, encoding="utf-8", errors="replace") as file:
            while line := file.readline(LONGEST):
                if not line.strip():
                    continue
                record = _record(line)
                if record is None:
                    broken += 1
                    if broken > 10 + whole:
                        break
                    continue
                whole += 1
                if record["v"] != VERSION:
                    raise EscalaError(
                        f"{path}: a journal of version {quoted(record['v'])}, this Escala reads {VERSION}: read it with its own"
                    )
                yield record
        if not whole:
            raise EscalaError(f"{path}: holds no record: give the journal.jsonl of escala beside slurm")


def _record(line: str) -> dict[str, Any] | None:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    good = isinstance(told, dict) and "v" in told and told.get("kind") in (BEGIN, LOOK, MISS) and isinstance(told.get("t"), int | float)
    return told if good else None
