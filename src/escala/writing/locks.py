"""Locks that the system takes away from a process that ends, however it ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from escala.errors import EscalaError

try:
    import fcntl
except ImportError:  # no such locks on this system: nobody is kept out
    fcntl = None  # type: ignore[assignment]

REAL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Of what is opened by a name that Escala chose: no link is followed, no pipe waited for."""


def take(path: Path) -> int | None:
    """Open a file or folder and lock it. The descriptor, to be closed by `os.close`; None where another process holds
    the lock, or the path stands for something else by now. File systems without locks keep nobody out."""
    try:
        handle = os.open(path, os.O_RDONLY | REAL)
    except FileNotFoundError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if same(os.fstat(handle), path):
            return handle
    except BlockingIOError:
        pass
    except OSError:  # no locks here
        return handle
    os.close(handle)
    return None


def free(path: Path) -> bool:
    """Does no run hold the file or folder?"""
    handle = take(path)
    if handle is not None:
        os.close(handle)
    return handle is not None or not path.exists()


def same(known: os.stat_result, path: Path) -> bool:
    """Does the path still stand for the file or folder that was opened?"""
    try:
        now = os.stat(path)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (known.st_dev, known.st_ino)


@contextlib.contextmanager
def locked(folder: Path, told: Path) -> Iterator[None]:
    """Keep other runs out of a folder that exists. told: its name for the user.

    Raises:
        EscalaError: another run writes there now.
    """
    handle = take(folder)
    if handle is None:
        raise EscalaError(f"{told}: another run writes there now: wait for it, or name another folder")
    try:
        yield
    finally:
        os.close(handle)
