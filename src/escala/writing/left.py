"""What a process that is stopped leaves behind, in words: asked of the file system at the end, for a signal may come
between any two steps.

`watch` begins to note what is on its way: outputs that are about to take their place, work folders that keep finished
pieces, folders that grow. Without it nothing is noted.
"""

from __future__ import annotations

import os
from pathlib import Path

from escala.writing.sealing import entries

PARTIAL = ".partial"  # how the names of work folders end
NOTHING = "nothing was written"
Identity = tuple[int, int]
Listing = dict[str, tuple[int, ...]]


class _Noted:
    """place -> (name for the user, what tells whether it was written)."""

    def __init__(self) -> None:
        self.whole: dict[Path, tuple[Path, Identity]] = {}
        self.beside: dict[Path, Path] = {}
        self.growing: dict[Path, tuple[Path, Listing]] = {}


_noted: _Noted | None = None


def watch() -> None:
    """Begin to note, with nothing noted."""
    global _noted
    _noted = _Noted()


def arrives(finished: Path, place: Path, told: Path) -> None:
    """A finished file or folder is about to be moved to its place. told: its name for the user. Parts of an output
    count with it."""
    inside = any(one.name.startswith(".") and one.name.endswith(PARTIAL) for one in place.parents)
    if _noted is not None and not inside and (found := _identity(finished)) is not None:
        _noted.whole[place] = told, found


def keeps(pieces: Path, told: Path) -> None:
    """A folder of finished pieces beside an output, for the next run of the same command."""
    if _noted is not None:
        _noted.beside[pieces] = told


def grows(folder: Path, told: Path) -> None:
    """A folder that is written to bit by bit."""
    if _noted is not None:
        _noted.growing.setdefault(folder, (told, _listing(folder)))


def whole() -> str | None:
    """Which outputs stand in their places; None where none does."""
    found = (
        [] if _noted is None else [told for place, (told, known) in _noted.whole.items() if _identity(place) == known]
    )
    return f"{', '.join(map(str, found))}: written before that, and whole" if found else None


def left() -> str:
    """What stands on the disk of all that was noted."""
    if (found := whole()) is not None:
        return found
    for pieces, told in ({} if _noted is None else _noted.beside).items():
        if holds(pieces):
            return f"what was finished is kept beside {told}: the same command goes on"
    for folder, (told, before) in ({} if _noted is None else _noted.growing).items():
        if _listing(folder) != before:
            return f"{told} holds what was written until then"
    return NOTHING


def _identity(path: Path) -> Identity | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _listing(folder: Path) -> Listing:
    """What tells whether a file below the folder was written: inode, size, time."""
    found: Listing = {}
    for name in entries(folder):
        try:
            about = os.lstat(folder / name)
        except OSError:
            continue
        found[name] = about.st_ino, about.st_size, about.st_mtime_ns
    return found


def holds(folder: Path) -> bool:
    """Is there a folder with anything in it?"""
    try:
        return any(os.scandir(folder))
    except OSError:
        return False
