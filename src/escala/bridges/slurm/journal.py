"""The journal: one line of JSON a look, only ever appended, so that whatever kills its writer loses the line at hand at
most."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from escala.bridges.slurm.shape import BEGIN, wrong
from escala.errors import EscalaError, quoted
from escala.reading import guarded
from escala.writing import locks

VERSION = 1
MODE = 0o640
"""Of all files of a folder: they name users."""
LONGEST = 1 << 28  # bytes of a line
MOST_BROKEN, MOST_UNFINISHED = 10, 2
"""Lines that are no records: at the head of a file that is none, and at the end of one whose writer was killed."""


class Mark(NamedTuple):
    """A place in a journal up to which it was read or written. end: the byte behind its last line. last, total: where
    that line begins, and its sum. lines: so many stand before the end. begun: where the last record of who began
    stands; -1: nowhere."""

    end: int = 0
    last: int = 0
    total: str = ""
    lines: int = 0
    begun: int = -1


class Journal:
    """Writes at the end of a file, which nobody else may write meanwhile. mark: where that is, once `goes_on` has read
    what is there.

    Raises:
        EscalaError: another process writes it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, MODE)
        except OSError as error:
            raise EscalaError(
                f"{path}: cannot be written ({(error.strerror or str(error)).lower()}): name another folder"
            ) from None
        self._lock = locks.take(path)
        if self._lock is None:
            os.close(self._file)
            raise EscalaError(f"{path}: another process writes this journal: end it, or name another folder")
        end = os.lseek(self._file, 0, os.SEEK_END)
        # a line that its writer did not finish
        self._unfinished = end > 0 and os.pread(self._file, 1, end - 1) != b"\n"
        self.mark = Mark()
        self._broken = 0  # lines behind it that are no records

    def append(self, record: dict[str, Any]) -> None:
        """A record, as one line in one piece, on the disk when this returns."""
        if self._unfinished:
            os.write(self._file, b"\n")
            self._unfinished = False
        line = json.dumps({"v": VERSION, **record}, separators=(",", ":")).encode() + b"\n"
        written = os.write(self._file, line)
        while written < len(line):
            written += os.write(self._file, line[written:])
        os.fsync(self._file)
        last = os.lseek(self._file, 0, os.SEEK_END) - len(line)
        begun = last if record["kind"] == BEGIN else self.mark.begun
        self.mark = Mark(last + len(line), last, _sum(line), self.mark.lines + self._broken + 1, begun)
        self._broken = 0

    def goes_on(self, mark: Any) -> dict[str, Any] | None:
        """The last record of who began, where somebody goes on with the journal; None where there is none. mark: as it
        was after some look, as a list; what stands before it was read then, and is not read again. EscalaError where
        the rest could not be read later: that is better known before weeks are written behind it."""
        begun = _begun_before(self.path, mark)
        if begun is not None:
            self.mark = Mark(*mark)
        try:
            for number, at, line, record in _told(self.path, MOST_UNFINISHED, self.mark):
                begun, where = (record, at) if record["kind"] == BEGIN else (begun, self.mark.begun)
                self.mark = Mark(at + len(line), at, _sum(line), number, where)
        except EscalaError as error:
            raise EscalaError(f"{error}; or give another --folder") from None
        rest = os.lseek(self._file, 0, os.SEEK_END) - self.mark.end
        self._broken = len(os.pread(self._file, rest, self.mark.end).strip(b"\n").splitlines())
        return begun

    def close(self) -> None:
        """Give the file to others."""
        os.close(self._file)
        if self._lock is not None:
            os.close(self._lock)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal, as `numbered` gives them."""
    return (record for _, record in numbered(path))


def _sum(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


def _begun_before(path: Path, mark: Any) -> dict[str, Any] | None:
    """The record of who began that a mark tells of; None where the journal is not as the mark says, or there is
    none."""
    try:
        told = Mark(*mark)
        with open(path, "rb") as file:
            file.seek(told.last)
            line = file.read(told.end - told.last)
            if (
                not 0 <= told.begun <= told.last
                or told.lines < 1
                or _sum(line) != told.total
                or not line.endswith(b"\n")
            ):
                return None
            file.seek(told.begun)
            record = _parsed(file.readline(LONGEST))
    except (OSError, TypeError, ValueError):
        return None
    return record if not wrong(record) and record["kind"] == BEGIN and record.get("v") == VERSION else None


def numbered(path: Path, spared: int = -1) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a journal, with the numbers of their lines. A line that its writer did not finish is left out: the
    last one, or one behind which somebody begins. spared: lines that are none, of a file that holds no record yet; -1:
    there has to be one.

    Raises:
        EscalaError: the file is no journal, of a later version, or a line of it is damaged.
    """
    return ((number, record) for number, _, _, record in _told(path, spared, Mark()))


def _told(path: Path, spared: int, since: Mark) -> Iterator[tuple[int, int, bytes, dict[str, Any]]]:
    """As `numbered`, the records behind a mark, with the byte at which each line begins, and the line."""
    if not path.is_file():
        raise EscalaError(f"{path}: no such file: give the folder of escala beside slurm, or its journal.jsonl")
    with guarded(path, "a journal of escala beside"), open(path, "rb") as file:
        good, broken, at = since.lines, list[int](), since.end
        file.seek(at)
        for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), since.lines + 1):
            begins, at = at, at + len(line)
            if not line.strip():
                continue
            record = _parsed(line)
            if record is None:
                broken.append(number)
            else:
                _refuse(path, number, record)
                if broken and record["kind"] != BEGIN:
                    raise damaged(path, broken[0], "it is no record")
                good += 1
                broken.clear()
                yield number, begins, line, record
            if not good and len(broken) > MOST_BROKEN:
                break
    if not good and len(broken) > spared:
        raise EscalaError(f"{path}: holds no record: give the journal.jsonl of escala beside slurm")
    if len(broken) > MOST_UNFINISHED:
        raise damaged(path, broken[0], "it is no record")


def _parsed(line: bytes) -> Any:
    """What a line of JSON says; None for one that is none."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _refuse(path: Path, number: int, record: Any) -> None:
    """EscalaError for a record that is damaged, or of another version."""
    version = record.get("v") if isinstance(record, dict) else VERSION
    if isinstance(version, int) and version != VERSION:
        raise EscalaError(
            f"{path}, line {number}: a journal of version {quoted(version)}, this Escala reads {VERSION}: read it "
            "with its own"
        )
    why = wrong(record) or ("" if version == VERSION else f"v is {quoted(version)}")
    if why:
        raise damaged(path, number, why)


def damaged(path: Path, number: int, why: str) -> EscalaError:
    """What a journal's line is refused with."""
    return EscalaError(
        f"{path}, line {number}: damaged ({why}): take it out, as by sed -i {number}d, and go on without what it says"
    )
