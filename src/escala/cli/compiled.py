"""The folder of compiled code: what lies in it, and what of it no source of this installation needs.

Each module has a folder of its own there, named by a hash of all sources that its code depends on (`escala.compile`):
every change of a source leaves the folder of before.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from escala.compile import CACHE_FOLDER
from escala.compile.sources import ROOT, source_hash

GOING = ".going"
OF_MODULE = re.compile(rf"(\w+)-[0-9a-f]{{16}}({re.escape(GOING)})?")
RECENT_S = 3600.0
"""A folder into which something was written so lately may be that of a process that compiles."""


@dataclass(frozen=True)
class Kept:
    """Compiled code on disk. others: folders of sources that are not those of this installation; others_mb: what is in
    them; versions: how many states of the sources they are of, at least."""

    files: int = 0
    mb: float = 0.0
    others: tuple[Path, ...] = ()
    others_mb: float = 0.0
    versions: int = 0


def kept() -> Kept:
    """What lies in the folder of compiled code and, of other versions of Numba, in those beside it."""
    if CACHE_FOLDER is None:
        return Kept()
    files, size, others, others_size = 0, 0, list[Path](), 0
    here = CACHE_FOLDER.name.removesuffix("-checked")
    for folder in sorted(CACHE_FOLDER.parent.glob("compiled-numba-*")):
        entries = _entries(folder)
        same = folder.name == here or folder.name.startswith(f"{here}-")
        mine = _needed({one.name.partition("-")[0] for one in entries}) if same else frozenset[str]()
        for one in entries:
            count, taken = _size(one)
            files, size = files + count, size + taken
            if OF_MODULE.fullmatch(one.name) and one.name not in mine and _is_folder(one):
                others.append(one)
                others_size += taken
    times = Counter((one.parent, one.name.partition("-")[0]) for one in others)
    return Kept(files, size / 1e6, tuple(others), others_size / 1e6, max(times.values(), default=0))


def remove_others(found: Kept) -> list[Path]:
    """Remove the code of other sources, but for what was written lately; those folders that went. A process that still
    runs such sources, and loses code that it has not loaded, compiles it again."""
    gone = []
    for folder in found.others:
        with suppress(OSError):
            if not folder.name.endswith(GOING):
                if time.time() - max(os.stat(place).st_mtime for place, _, _ in os.walk(folder)) < RECENT_S:
                    continue
                folder = folder.rename(folder.with_name(folder.name + GOING))  # nobody finds half of it
            shutil.rmtree(folder)
            gone.append(folder)
    return gone


def _is_folder(path: Path) -> bool:
    """Is it a folder itself, and does not only point to one?"""
    return path.is_dir() and not path.is_symlink()


def _entries(folder: Path) -> list[Path]:
    """What stands in a folder; nothing where it cannot be read."""
    with suppress(OSError):
        return sorted(folder.iterdir()) if _is_folder(folder) else []
    return []


def _needed(modules: set[str]) -> frozenset[str]:
    """The names of folders of the sources that are here, of modules of these names."""
    return frozenset(f"{path.stem}-{source_hash(path)}" for path in ROOT.rglob("*.py") if path.stem in modules)


def _size(path: Path) -> tuple[int, int]:
    """Number and bytes of the files of a folder, or of a file."""
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    sizes = []
    for file in files:
        with suppress(OSError):  # another process has removed it
            sizes.append(file.lstat().st_size)
    return len(sizes), sum(sizes)
