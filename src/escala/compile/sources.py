"""What compiled code depends on: a file, and all files of Escala that it imports."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATE, WORLD = ROOT / "kernel" / "state.py", ROOT / "kernel" / "world.py"
# Imports at the top of a file, and modules named to `later`: compiled code sees nothing else.
_IMPORT = re.compile(r"^(?:from (escala[\w.]*) import (\([^)]*\)|[^\n#]*)|import (escala[\w.]*))", re.MULTILINE)
_LATER = re.compile(r"""\blater\("(escala[\w.]*)\"""")


def _file_of(module: str) -> Path | None:
    """The source file of a module of Escala; None if there is none of that name."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of Escala that a file imports at its top."""
    found = []
    text = path.read_text(encoding="utf-8")
    for package, names, plain in _IMPORT.findall(text):
        parts = [f"{package}.{name}" for name in re.findall(r"\w+", names)] if package else []
        found += [package or plain, *parts]
    return tuple(f for f in map(_file_of, found + _LATER.findall(text)) if f is not None)


def sources_of(path: Path) -> list[Path]:
    """A file and all files of Escala that it imports, directly or not, sorted."""
    seen = {path}
    waiting = [path]
    while waiting:
        for other in _imports(waiting.pop()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
        if STATE in seen and WORLD not in seen:  # how a simulation is passed: code that names no more than its type depends on it
            seen.add(WORLD)
            waiting.append(WORLD)
    return sorted(seen)


@functools.cache
def source_hash(path: Path) -> str:
    """Of a file and all that it imports: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for source in sources_of(path):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
