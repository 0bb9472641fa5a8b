"""Single files: written beside the target, then renamed, so that the target is the old file or the new one, never a
half."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.writing import left, locks, moves
from escala.writing.places import ASIDE, check_not_input, free_name, real, unwritable, written_to


@contextlib.contextmanager
def whole_file(path: Path | str, mode: int = 0o666) -> Iterator[Path]:
    """A file to write, which takes the place of `path` if the block ends well. mode: its permissions, less the umask.
    OSError where that cannot be."""
    target = real(path)
    if target.name.startswith(ASIDE):  # within `output_file`: beside its target already
        yield target
        return
    with _aside(target, mode) as aside:
        yield aside
        os.replace(aside, target)


def write_whole(path: Path | str, content: str | bytes, mode: int = 0o666) -> None:
    """Write a text (UTF-8) or bytes as the whole of a file. mode: its permissions, less the umask."""
    with whole_file(path, mode) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


def finite(value: Any) -> Any:
    """JSON has no NaN: what has no value is null."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, value: Any) -> None:
    """Plain values as a JSON file of a folder that is being written (`output_folder`); what is not finite is null."""
    path.write_text(json.dumps(finite(value), indent=1) + "\n", encoding="utf-8")


def remove(path: Path) -> None:
    """Remove a file that `whole_file` wrote, if it is there, and what killed runs left of it."""
    path.unlink(missing_ok=True)
    _clear(path)


@contextlib.contextmanager
def _aside(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """An empty, locked file beside the target, which goes at the end; so do those of runs that are over."""
    _clear(target)
    aside = target.with_name(f"{ASIDE}{os.getpid()}-{target.name}")
    os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | locks.REAL, mode))
    handle = locks.take(aside)
    try:
        yield aside
    finally:
        aside.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def left_behind(target: Path) -> list[Path]:
    """Half-written files of a target whose writers are over."""
    pattern = f"-{target.name}"
    try:
        names = [name for name in os.listdir(target.parent) if name.startswith(ASIDE) and name.endswith(pattern)]
    except OSError:
        return []
    found = [target.with_name(name) for name in names if name[len(ASIDE) : -len(pattern)].isdigit()]
    return [path for path in found if path.is_file() and not path.is_symlink() and locks.free(path)]


def _clear(target: Path) -> None:
    for path in left_behind(target):
        path.unlink(missing_ok=True)


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells whether a file was changed or replaced; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def output_file(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A file to write, which becomes `target` if the block ends well. The ending of the name is kept: writers choose
    the format by it.

    Raises:
        EscalaError: the file exists already (unless `force`), or the place cannot be written: on entering, before the
            work; at the end, where something else has come to stand there meanwhile: what was written is then kept
            beside it.
    """
    place = real(target)
    if place.is_dir():
        raise EscalaError(f"{target}: is a folder; name a file")
    if os.path.lexists(place) and not force:
        raise EscalaError(f"{target}: exists already; name another file, or replace it with --force")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(made(place.parent))
            before = _state(place)
            if before is not None and not os.access(place, os.W_OK):
                raise EscalaError(f"{target}: is a file that you may not write; name another file")
            aside = stack.enter_context(_aside(place))
        except OSError as error:
            raise unwritable(target, error) from None
        check_not_input(place)
        stack.enter_context(written_to(target, aside))
        yield aside
        check_not_input(place)
        left.arrives(aside, place, target)
        if not _put(aside, place, before):
            kept = free_name(place, "new")
            moves.move(aside, kept)
            raise EscalaError(f"{target}: was written by somebody else meanwhile, and stays; the output is in {kept}")


def _put(aside: Path, place: Path, before: tuple[int, ...] | None) -> bool:
    """Put a file in its place, unless what stands there is not what stood there before."""
    if before is None:
        return moves.move(aside, place)
    if _state(place) != before:
        return False
    if moves.exchange(aside, place):
        if _state(aside) == before:
            return True
        moves.exchange(aside, place)
        return False
    os.replace(aside, place)
    return True


@contextlib.contextmanager
def made(folder: Path) -> Iterator[None]:
    """A folder, made with all above it; those made that are empty at the end go again."""
    absent = [one for one in (folder, *folder.parents) if not one.exists()]  # the deepest first
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        with contextlib.suppress(OSError):  # one that holds something stays, and those above it
            for one in absent:
                one.rmdir()
