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
from importlib.metadata import version
from pathlib import Path

from escala.errors import EscalaError

MARK = "manifest.json"
PAGE = "report.html"


def _entries(folder: Path) -> list[str]:
    """All files below a folder, by their relative paths."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def foreign(folder: Path, verb: str) -> str | None:
    """Why the folder is not an untouched output of this verb; None if it is."""
    try:
        manifest = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "holds files that Escala did not write"
    if not isinstance(manifest, dict) or "escala" not in manifest or not isinstance(manifest.get("files"), list):
        return "holds files that Escala did not write"
    added = [name for name in _entries(folder) if name not in manifest["files"] and not _own_page(folder / name, folder)]
    if added:
        return f"holds {added[0]!r}, which escala {manifest.get('verb')} did not write there"
    return None if manifest.get("verb") == verb else f"holds what escala {manifest.get('verb')} wrote"


def _own_page(path: Path, folder: Path) -> bool:
    """Is this the page that `escala report` puts beside the results? It can be written again."""
    return path == folder / PAGE and '<meta name="generator" content="escala">' in path.read_text(encoding="utf-8", errors="replace")[:2000]


def check_target(target: Path, verb: str, force: bool) -> None:
    """Refuse a target that may not be replaced.

    Raises:
        EscalaError: it is a file, or a folder with anything but an untouched output of the same verb (unless `force`).
    """
    if target.exists() and not target.is_dir():
        raise EscalaError(f"{target}: is a file; name a folder for the output")
    if target.is_dir() and not force and any(target.iterdir()):
        reason = foreign(target, verb)
        if reason is not None:
            raise EscalaError(f"{target}: {reason}; name another folder, or replace it with --force")


def _sign(work: Path, verb: str) -> None:
    """Note in the manifest what was written, so that a later run knows its own output from what was put beside it."""
    path = work / MARK
    manifest = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"escala": version("escala")}
    manifest |= {"verb": verb, "files": sorted({*_entries(work), MARK})}
    path.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def partial_sibling(target: Path) -> Iterator[Path]:
    """A fresh temporary folder beside the target, on the same file system, so that a rename is enough. It goes at the end, and so do the
    folders above the target that were made for it and are still empty.

    Raises:
        EscalaError: the place cannot be written.
    """
    absent = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]  # the deepest first
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        except OSError as error:
            raise EscalaError(f"{target}: cannot be written ({(error.strerror or str(error)).lower()}); name another folder") from None
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
    finally:
        with contextlib.suppress(OSError):  # one that holds something stays, and those above it
            for folder in absent:
                folder.rmdir()


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
def output_folder(target: Path | None, verb: str, *, force: bool = False) -> Iterator[Path | None]:
    """A folder to write into, which becomes `target` if the block ends well; None stays None. verb: which verb writes it.

    Raises:
        EscalaError: see `check_target` and `partial_sibling`; raised on entering, before the work.
    """
    if target is None:
        yield None
        return
    target = Path(os.path.abspath(target))
    check_target(target, verb, force)
    with partial_sibling(target) as work:
        yield work
        _sign(work, verb)
        put_in_place(work, target)


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
    with partial_sibling(target) as folder:
        yield folder / target.name
        os.replace(folder / target.name, target)
