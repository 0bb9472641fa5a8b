"""Output folders that appear whole or not at all: written beside the target, then renamed into place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from escala.errors import EscalaError


@contextmanager
def whole_folder(target: Path, ours: Callable[[Path], bool], what: str) -> Iterator[Path]:
    """A scratch folder that becomes `target` if the block ends well; else the target stays as it was.

    ours: True for a folder that `what` ("Escala result", ...) may replace; any other folder that is not empty is refused. Raises
    EscalaError: the target is a file, holds something else, or cannot be written.
    """
    if target.exists() and not target.is_dir():
        raise EscalaError(f"{target} is a file: name a folder")
    target = Path(os.path.abspath(target))
    try:
        if target.is_dir() and any(target.iterdir()) and not ours(target):
            raise EscalaError(f"{target} is not empty and holds no {what}: name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        yield scratch
        os.chmod(scratch, 0o777 & ~_umask())
        _swap(scratch, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unwritable(target, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _swap(scratch: Path, target: Path) -> None:
    """Rename into place; what stood there goes only after the new folder stands."""
    if not target.exists():
        scratch.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    target.rename(old / target.name)
    try:
        scratch.rename(target)
    except OSError:
        (old / target.name).rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _unwritable(target: Path, error: Exception) -> EscalaError:
    reason = str(getattr(error, "strerror", None) or error).splitlines()[0]
    return EscalaError(f"{target} cannot be written ({reason}): name a folder where you may write, on a disk with room")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
