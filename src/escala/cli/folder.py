"""Output folders that appear whole or not at all.

Work goes into a temporary sibling of the target, which is renamed into place at the end. A run that fails, is interrupted or is killed
leaves the target as it was. What must be refused (a folder that holds something else, a place that cannot be written) is refused before
the work begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from escala.errors import EscalaError

MARK = "manifest.json"


def is_ours(folder: Path) -> bool:
    """True if the folder holds an Escala output: its manifest names the version of Escala that wrote it."""
    try:
        manifest = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and "escala" in manifest


def check_target(target: Path, force: bool) -> None:
    """Refuse a target that may not be replaced.

    Raises:
        EscalaError: it is a file, or a folder with content that Escala did not write (unless `force`).
    """
    if target.exists() and not target.is_dir():
        raise EscalaError(f"{target}: is a file; name a folder for the output")
    if target.is_dir() and not force and any(target.iterdir()) and not is_ours(target):
        raise EscalaError(f"{target}: holds files that Escala did not write; name another folder, or replace it with --force")


def partial_sibling(target: Path) -> Path:
    """A fresh temporary folder beside the target, on the same file system, so that a rename is enough.

    Raises:
        EscalaError: the place cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    except OSError as error:
        raise EscalaError(f"{target}: cannot be written ({(error.strerror or str(error)).lower()}); name another folder") from None


def put_in_place(work: Path, target: Path) -> None:
    """Rename `work` to `target`; what stood there goes only after the new folder stands."""
    os.chmod(work, 0o777 & ~_umask())
    if not target.exists():
        work.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    target.rename(old / target.name)
    work.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def output_folder(target: Path | None, *, force: bool = False) -> Iterator[Path | None]:
    """A folder to write into, which becomes `target` if the block ends well; None stays None.

    Raises:
        EscalaError: see `check_target` and `partial_sibling`; raised on entering, before the work.
    """
    if target is None:
        yield None
        return
    target = Path(os.path.abspath(target))
    check_target(target, force)
    work = partial_sibling(target)
    try:
        yield work
        put_in_place(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def output_file(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A file to write, which becomes `target` if the block ends well. The suffix is kept: writers choose the format by it.

    Raises:
        EscalaError: the file exists already (unless `force`), or the place cannot be written.
    """
    target = Path(os.path.abspath(target))
    if target.is_dir():
        raise EscalaError(f"{target}: is a folder; name a file")
    if target.exists() and not force:
        raise EscalaError(f"{target}: exists already; name another file, or replace it with --force")
    folder = partial_sibling(target)
    try:
        yield folder / target.name
        os.replace(folder / target.name, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
