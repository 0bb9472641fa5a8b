"""How Escala compiles: the only module that names Numba's decorator.

`compiled` turns a function of plain loops over arrays into machine code. The code is cached on disk; where no cache folder can be written
Numba would raise at import (numba#5566), so the cache is then left out and each process compiles anew. Numba keys its cache by the file
of the function alone: editing a callee in another file would leave callers stale. Each module therefore has a cache folder of its own,
which carries a hash of its source and of every module of Escala that it imports, directly or not: an edit recompiles what may call it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event, types

F = TypeVar("F", bound=Callable[..., Any])


ROOT = Path(__file__).parent
STATE, WORLD = ROOT / "kernel" / "state.py", ROOT / "kernel" / "world.py"
# Imports at the top of a file alone: compiled code sees nothing else.
_IMPORT = re.compile(r"^(?:from (escala[\w.]*) import (\([^)]*\)|[^\n#]*)|import (escala[\w.]*))", re.MULTILINE)


def _file_of(module: str) -> Path | None:
    """The source file of a module of Escala; None if there is none of that name."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of Escala that a file imports at its top."""
    found = []
    for package, names, plain in _IMPORT.findall(path.read_text(encoding="utf-8")):
        parts = [f"{package}.{name}" for name in re.findall(r"\w+", names)] if package else []
        found += [package or plain, *parts]
    return tuple(f for f in map(_file_of, found) if f is not None)


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
def _source_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for source in sources_of(path):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """A writable folder for compiled code, or None."""
    given = os.environ.get("ESCALA_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "escala"
    checked = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "") not in ("", "0") else ""
    folder = home / f"compiled-numba-{numba.__version__}{checked}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


CACHE_FOLDER: Path | None = _cache_folder()


def _plain(kind: Any) -> Any:
    """The one type in which an argument is passed: int64, float64 or boolean for numbers, anything else as it is."""
    kind = types.unliteral(kind)  # type: ignore[no-untyped-call]
    if isinstance(kind, types.Boolean):
        return types.boolean
    if isinstance(kind, types.Integer) and kind != types.uint64:
        return types.int64
    if isinstance(kind, types.Float):
        return types.float64
    return kind


BLAS = "scipy.linalg.cython_blas"


@functools.cache
def _spare_blas() -> None:
    """Numba imports scipy's linear algebra when it first loads or compiles a function, to know whether it is there: 16 MB and a sixth of a
    second, for what nothing here uses. Compiled code that multiplies matrices imports it when it needs it."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]
    try:
        from numba.np import arraymath
    finally:
        del sys.modules[BLAS]
    vars(arraymath)["_HAVE_BLAS"] = True


def _one_specialisation(dispatcher: Any) -> Any:
    """Numba compiles a callee anew for each mix of int32, int64 and literal arguments: the kernel then compiled four times as long. Widen
    them at each call."""
    template, load = dispatcher.get_call_template, dispatcher.compile

    def loaded(signature: Any) -> Any:
        _spare_blas()
        return load(signature)

    def widened(args: Any, kws: Any) -> Any:
        return template(tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kws.items()})

    dispatcher.get_call_template, dispatcher.compile = widened, loaded
    return dispatcher


def _compile(function: Any, **more: Any) -> Any:
    if CACHE_FOLDER is not None:  # Numba asks for the folder while it decorates
        path = Path(function.__code__.co_filename)
        numba.config.CACHE_DIR = str(CACHE_FOLDER / f"{path.stem}-{_source_hash(path)}")  # type: ignore[attr-defined]
    return _one_specialisation(numba.njit(cache=CACHE_FOLDER is not None, nogil=True, error_model="numpy", **more)(function))


def compiled(function: F) -> F:
    """Compile `function` (no Python objects inside, the interpreter lock released), cached on disk where possible."""
    return _compile(function)


def lean(function: F) -> F:
    """Like `compiled`, for functions that make no arrays: without reference counts they compile faster and run faster."""
    return _compile(function, _nrt=False)


def inlined(function: F) -> F:
    """Like `lean`, for small functions called in inner loops: LLVM is told to inline them."""
    return _compile(function, _nrt=False, forceinline=True)


def summed(function: F) -> F:
    """Like `lean`, where sums may be reordered and multiplied in one step: for networks, whose sums no schedule depends on to the bit."""
    return _compile(function, _nrt=False, fastmath={"reassoc", "contract", "nsz"})


class _Begun(event.Listener):
    """Calls a function whenever Numba begins to compile."""

    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun

    def on_start(self, event: Any) -> None:
        """Compilation begins."""
        self._begun()

    def on_end(self, event: Any) -> None:
        """It ends: nobody is told."""


def when_compiling(begun: Callable[[], None]) -> None:
    """From now on `begun` is called whenever code is compiled that is not in the cache."""
    event.register("numba:compile", _Begun(begun))  # type: ignore[no-untyped-call]
