"""Where something may be written: links are followed, and what must be refused is refused before the work."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from escala.errors import EscalaError
from escala.reading import READ, is_full
from escala.writing import locks
from escala.writing.sealing import MARK

ASIDE = ".part-"  # .part-PID-NAME: the ending of the name is kept, since writers choose the format by it


def real(path: Path | str) -> Path:
    """The place itself, links followed. EscalaError for a link that leads nowhere, and for a name that is no text."""
    if os.fsencode(path).decode("utf-8", errors="replace").encode() != os.fsencode(path):
        raise EscalaError(f"{path}: is not UTF-8, which names of outputs must be: give another name")
    for place in (Path(path), *Path(path).parents):  # what lies behind a link may be a disk that is not mounted
        if place.is_symlink() and not os.path.exists(found := os.path.realpath(place)):
            raise EscalaError(f"{place}: is a link to {found}, which is not there: make it, or name another place")
    return Path(os.path.realpath(path))


def check_replaceable(target: Path) -> None:
    """EscalaError for folders that no output may ever replace: the root and what lies right in it, the home, the
    current folder, Python and Escala themselves, what these lie in, mount points, repositories."""
    if not target.exists():
        return
    precious = {
        "the folder that you are in": Path.cwd(),
        "your home": Path(os.path.realpath(Path.home())),
        "the Python that runs this": Path(os.path.realpath(sys.prefix)),
        "Escala itself": Path(os.path.realpath(__file__)).parents[1],
    }
    for what, place in precious.items():
        if target == place:
            raise EscalaError(f"{target}: is {what}, which is never replaced: name a folder in it")
        if target in place.parents:
            raise EscalaError(f"{target}: holds {what}, and is never replaced: name a folder in it")
    if (
        target.parent == target.parent.parent
        and target.is_dir()
        and any(target.iterdir())
        and not (target / MARK).is_file()
    ):
        raise EscalaError(f"{target}: lies right below {target.parent}, and is never replaced: name a folder in it")
    for mark in (".git", ".hg", ".svn"):
        if os.path.lexists(target / mark):
            raise EscalaError(
                f"{target}: is a repository (it has {mark}), which is never replaced: name a folder in it"
            )
    if os.path.ismount(target):
        raise EscalaError(f"{target}: is a mount point, which cannot be replaced: name a folder in it")


def check_not_read(target: Path) -> None:
    """EscalaError where a file that was read lies in the target, which would go with it."""
    for name in READ:
        path = Path(os.path.realpath(name))
        if target in path.parents and path.exists():
            raise EscalaError(
                f"{target}: holds {path.name}, which this run reads, so it stays as it is: name another folder"
            )


def check_not_input(target: Path) -> None:
    """EscalaError where a file to be written is one that was read: nobody asks for a log, or a part of a saved run, to
    be lost."""
    if target.exists() and any(os.path.realpath(name) == str(target) for name in READ):
        raise EscalaError(f"{target}: is a file that this run reads, so it stays as it is: name another file")


def check_nobody_works(target: Path) -> None:
    """EscalaError where another run has its work in a folder that is to be replaced: it would go with it."""
    for where, _, files in os.walk(target):
        for path in (Path(where), *(Path(where, name) for name in files if name.startswith(ASIDE))):
            if not path.is_symlink() and not locks.free(path):
                raise EscalaError(
                    f"{target}: another run writes in it now ({path.name[:200]!r}): wait for it, or name another folder"
                )


@contextlib.contextmanager
def written_to(target: Path, work: Path) -> Iterator[None]:
    """While `work` is written, which becomes the target: where that fails, or the disk is full, the error names the
    target."""
    real_target = Path(os.path.realpath(target))
    try:
        yield
    except Exception as error:
        named = getattr(error, "filename", None)
        place = None if named is None else Path(os.path.abspath(os.fsdecode(named)))
        ours = place is not None and (place == real_target or work in (place, *place.parents))
        if is_full(error) if place is None else isinstance(error, OSError) and ours:
            raise unwritable(target, error) from error
        raise


def unwritable(target: Path, error: Exception) -> EscalaError:
    """The error for a place where nothing can be written."""
    full = "no space left on device" if is_full(error) else ""  # what polars says of it is longer
    reason = full or str(getattr(error, "strerror", None) or error).splitlines()[0].lower()
    room = "make room on the disk, or " if full else ""
    return EscalaError(f"{target}: cannot be written ({reason}): {room}name a folder where you may write")


def free_name(target: Path, word: str) -> Path:
    """A name beside the target that nothing has yet: NAME.word-1, -2, ..."""
    for k in range(1, 10_000):
        path = target.with_name(f"{target.name}.{word}-{k}")
        if not os.path.lexists(path):
            return path
    raise EscalaError(f"{target}: ten thousand {word} lie beside it: remove some")
