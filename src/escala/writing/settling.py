"""Putting a finished folder in the place of an old one, and ending what a killed run began.

Nothing is deleted but what Escala wrote, as it was known before the work began: files that have the same inode, size
and times as then. All else is kept beside the target, and told.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.writing import moves
from escala.writing.files import write_whole
from escala.writing.places import free_name
from escala.writing.sealing import entries

JOURNAL, OLD, NEW = "journal.json", "old", "new"
Listing = dict[str, list[int]]
_log = logging.getLogger("escala")


def listing(folder: Path) -> Listing | None:
    """Each file below a folder: inode, size, and times of change. None where there is no folder."""
    if not folder.is_dir():
        return None
    return {name: _about(folder / name) for name in entries(folder)}


def _about(path: Path) -> list[int]:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def strange(folder: Path, known: Listing) -> str | None:
    """A file in the folder that is not as it was; None where there is none. Files that are gone do not count."""
    return next((name for name in entries(folder) if known.get(name) != _about(folder / name)), None)


def put(run: Path, work: Path, place: Path, before: Listing | None, goes: Listing) -> None:
    """The finished folder `work` takes the place. before: what stood there when the work began; goes: what of it may be
    deleted.

    Raises:
        EscalaError: something else stands there now; it stays, and the output is beside it.
    """
    if before is None:
        if not moves.move(work, place) and not _over_nothing(work, place):
            _beside(work, place, "appeared there meanwhile")
        return
    changed = strange(place, before) if place.is_dir() else "the folder itself"
    if changed is not None:
        _beside(work, place, f"holds {changed[:200]!r}, which was changed or appeared meanwhile")
    write_whole(run / JOURNAL, json.dumps({"new": _inode(work), "known": goes}))
    if not moves.exchange(work, place):
        _swap(run, work, place)
        _discard(run / OLD, goes, place)
        return
    if (changed := strange(work, before)) is not None:
        moves.exchange(work, place)
        (run / JOURNAL).unlink()
        _beside(work, place, f"holds {changed[:200]!r}, which was changed or appeared meanwhile")
    _discard(work, goes, place)


def _over_nothing(work: Path, place: Path) -> bool:
    """Take the place of an empty folder that appeared meanwhile."""
    if not place.is_dir() or place.is_symlink() or any(place.iterdir()):
        return False
    os.rename(work, place)  # the system refuses it where something has come in
    return True


def _beside(work: Path, place: Path, why: str) -> None:
    kept = free_name(place, "new")
    moves.move(work, kept)
    raise EscalaError(f"{place}: {why}, so it stays as it is; the output of this run is in {kept}")


def _swap(run: Path, work: Path, place: Path) -> None:
    """Two renames, where the system knows no exchange; a run that is killed between them is ended by `settle`."""
    os.rename(place, run / OLD)
    try:
        os.rename(work, place)
    except OSError:
        os.rename(run / OLD, place)
        (run / JOURNAL).unlink()
        raise


def _inode(path: Path) -> list[int]:
    found = os.lstat(path)
    return [found.st_dev, found.st_ino]


def _discard(old: Path, known: Listing, place: Path) -> None:
    """Delete what is as it was known; keep beside the target what is not."""
    if not old.is_dir():
        return
    for name in entries(old):
        if known.get(name) == _about(old / name):
            (old / name).unlink()
    for where, _, _ in os.walk(old, topdown=False):
        try:
            os.rmdir(where)
        except OSError:
            continue
    if old.exists():
        kept = free_name(place, "kept")
        moves.move(old, kept)
        _log.warning("%s: what stood there and Escala did not write, or somebody changed, is in %s", place, kept)


def journal(run: Path) -> dict[str, Any] | None:
    """What a killed run noted before it began to exchange folders; None where it had not, or the note is no such
    one."""
    try:
        found = json.loads((run / JOURNAL).read_text(encoding="utf-8"))
        return {"new": list(found["new"]), "known": dict(found["known"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def settle(run: Path, place: Path) -> None:
    """End what a killed run began: the old folder or the new one stands at `place`, and nothing that was not known
    goes."""
    noted = journal(run)
    if noted is None:
        return
    if not os.path.lexists(place) and (run / OLD).is_dir():  # killed between two renames
        os.rename(run / NEW if (run / NEW).is_dir() else run / OLD, place)
    for left in (run / OLD, run / NEW):
        if left.is_dir() and _inode(left) != noted["new"]:
            _discard(left, noted["known"], place)
    shutil.rmtree(run / NEW, ignore_errors=True)
    (run / JOURNAL).unlink()
