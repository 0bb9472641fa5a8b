"""Processes that need the same code: one translates it, the others wait and load what it kept."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: each process translates
    fcntl = None  # type: ignore[assignment]

LIMIT_S = 900.0  # a process that stands still keeps others waiting no longer
_LOOK_S = 0.05
_mine = threading.local()


@contextlib.contextmanager
def turn(folder: Path | None, name: str, waits: Callable[[], None]) -> Iterator[None]:
    """Alone, among processes that keep code in `folder`, with the function `name`: by a lock that ends with its
    process. `waits` is called once where another one has it. Without a folder, or without such locks, nobody waits. A
    thread that has a turn asks for no second one, so that none waits for another that waits for it."""
    handle = (
        None if fcntl is None or folder is None or getattr(_mine, "taken", False) else _opened(folder / f"{name}.lock")
    )
    if handle is None:
        yield
        return
    _mine.taken = True
    try:
        _take(handle, waits)
        yield
    finally:
        _mine.taken = False
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked meanwhile has the file open too
        os.close(handle)


def only(folder: Path, name: str) -> bool:
    """Is this the only process that asked so for `name` in `folder`, of those that have not ended? Without such locks
    it is."""
    handle = None if fcntl is None else _opened(folder / f"{name}.lock")
    if handle is not None:  # open until the process ends
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _opened(path: Path) -> int | None:
    """The file to lock; None where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError:
        return None


def _take(handle: int, waits: Callable[[], None]) -> None:
    """Lock the file, or give up waiting."""
    begun_s = time.monotonic()
    told = False
    while time.monotonic() - begun_s < LIMIT_S:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                waits()
            told = True
            time.sleep(_LOOK_S)
        except OSError:  # a file system without locks
            return
        else:
            return
