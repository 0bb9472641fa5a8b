"""What killed runs left in a folder: found, and removed when asked for. What a live run holds is left alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from escala.writing import locks
from escala.writing.folder import NOTE, clear, stranger
from escala.writing.left import PARTIAL as ENDING
from escala.writing.places import ASIDE

HALF = re.compile(re.escape(ASIDE) + r"\d+-.")


def stale(folder: Path) -> list[Path]:
    """Work folders and half-written files in a folder whose runs are over."""
    found = [path for path in sorted(folder.glob(f"{ASIDE}*")) if _half(path) and locks.free(path)]
    for path in sorted(folder.glob(f".*{ENDING}")):
        with _held(path) as ours:
            if ours:
                found.append(path)
    return found


def remove_stale(folder: Path) -> list[Path]:
    """Remove them, and end what they had begun: what stood at their targets stays. Those that went."""
    gone = []
    for path in stale(folder):
        if _half(path):
            path.unlink(missing_ok=True)
            gone.append(path)
            continue
        with _held(path) as ours:
            if ours:
                clear(path, path.with_name(path.name.removeprefix(".").removesuffix(ENDING)))
                gone.append(path)
    return gone


def _half(path: Path) -> bool:
    """Has it the name of a half-written file of `whole_file` or `output_file`, and is it one?"""
    return HALF.match(path.name) is not None and path.is_file() and not path.is_symlink()


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Is it a work folder that `output_folder` made, whose run is over? Then it is locked meanwhile."""
    handle = locks.take(path) if stranger(path) is None and (path / NOTE).exists() else None
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)
