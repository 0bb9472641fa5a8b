"""Renames that replace nothing, and exchanges of two names in one step, where the system offers them."""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

NOREPLACE, EXCHANGE = 1, 2
AT_FDCWD = -100
UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


@functools.cache
def _renameat2() -> Callable[[Path, Path, int], int] | None:
    """The system's own rename with flags; gives the number of the error, 0 for none."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if found is None:
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def rename(source: Path, target: Path, flag: int) -> int:
        failed = found(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flag)
        return ctypes.get_errno() if failed else 0

    return rename


def _special(source: Path, target: Path, flag: int) -> bool:
    """False where the system, or this file system, cannot do it. OSError where it fails."""
    rename = _renameat2()
    if rename is None:
        return False
    number = rename(source, target, flag)
    if number == 0:
        return True
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(target))


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step. False where that cannot be done; then nothing has changed."""
    return _special(one, other, EXCHANGE)


def move(source: Path, target: Path) -> bool:
    """Rename where nothing has the target's name. False where something has; then nothing has changed."""
    try:
        if _special(source, target, NOREPLACE):
            return True
    except FileExistsError:
        return False
    if os.path.lexists(target):
        return False
    os.rename(source, target)
    return True
