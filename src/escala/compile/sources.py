"""What compiled code depends on: a file, all files of Escala that it imports, and how Escala compiles."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "__init__.py"
COMPILE = ROOT / "compile"
STATE, WORLD = ROOT / "kernel" / "state.py", ROOT / "kernel" / "world.py"
# Imports at the top of a file, and modules named to `later`: compiled code sees nothing else.
_IMPORT = re.compile(r"^(?:from (escala[\w.]*) import (\([^)]*\)|[^\n#]*)|import (escala[\w.]*))", re.MULTILINE)
_LATER = re.compile(r"""\blater\("(escala[\w.]*)\"""")


@functools.cache
def _file_of(module: str) -> str | None:
    """The source file of a module of Escala; None if there is none of that name."""
    path = os.path.join(ROOT, *module.split(".")[1:])
    return next((file for file in (f"{path}.py", os.path.join(path, PACKAGE)) if os.path.isfile(file)), None)


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of Escala that a file imports at its top."""
    text = path.read_text(encoding="utf-8")
    modules = _LATER.findall(text)
    for package, names, plain in _IMPORT.findall(text):
        modules.append(package or plain)
        if package and (_file_of(package) or "").endswith(PACKAGE):  # names may be modules
            modules += [f"{package}.{name}" for name in re.findall(r"\w+", names)]
    return tuple(Path(file) for file in map(_file_of, modules) if file is not None)


def sources_of(path: Path) -> list[Path]:
    """A file and all files of Escala that it imports, directly or not, sorted; of what compiles, all."""
    seen = {path}
    waiting = [path]
    while waiting:
        for other in _imports(waiting.pop()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
        # how a simulation is passed: code that names no more than its type depends on it
        if STATE in seen and WORLD not in seen:
            seen.add(WORLD)
            waiting.append(WORLD)
    if COMPILE / PACKAGE in seen:
        seen.update(COMPILE.glob("*.py"))
    return sorted(seen)


@functools.cache
def source_hash(path: Path) -> str:
    """Of a file and all that it imports: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for source in sources_of(path):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
