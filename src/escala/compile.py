"""How Escala compiles: the only module that names Numba's decorator.

`compiled` turns a function of plain loops over arrays into machine code. The code is cached on disk; where no cache folder can be written
Numba would raise at import (numba#5566), so the cache is then left out and each process compiles anew. Numba keys its cache by the file
of the function alone: editing a callee in another file would leave callers stale. The cache folder therefore carries a hash of all of
Escala's compiled sources.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import types

F = TypeVar("F", bound=Callable[..., Any])


def _source_hash() -> str:
    """Hash of every source file below this package that is compiled: the kernel, and whatever else imports this module."""
    root = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        if b"escala.compile" in text or path.parent.name == "kernel":
            digest.update(text)
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """A writable folder for compiled code, or None."""
    given = os.environ.get("ESCALA_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "escala"
    folder = home / f"compiled-{_source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


CACHE_FOLDER: Path | None = _cache_folder()
if CACHE_FOLDER is not None:
    numba.config.CACHE_DIR = str(CACHE_FOLDER)  # type: ignore[attr-defined]


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


def _one_specialisation(dispatcher: Any) -> Any:
    """Numba compiles a callee anew for each mix of int32, int64 and literal arguments: the kernel then compiled four times as long. Widen
    them at each call."""
    template = dispatcher.get_call_template

    def widened(args: Any, kws: Any) -> Any:
        return template(tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kws.items()})

    dispatcher.get_call_template = widened
    return dispatcher


def _compile(function: Any, **more: Any) -> Any:
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
