"""How Escala compiles: the only part that names Numba's decorator.

`compiled` turns a function of plain loops over arrays into machine code, cached on disk. Numba itself is imported where
something must be translated: it takes half of a short run. What a process calls from Python is kept as machine code of
its own (`machine`), which is loaded without Numba. Where no cache folder can be written, or its disk is full, each
process compiles anew. Numba keys its cache by the file of the function alone: editing a callee in another file would
leave callers stale. Each module therefore has a cache folder of its own, which carries a hash of its source and of
every module of Escala that it imports, directly or not (`sources`): an edit recompiles what may call it.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from escala.compile.sources import source_hash
from escala.compile.turns import turn

if TYPE_CHECKING:
    from escala.compile.machine import Machine

F = TypeVar("F", bound=Callable[..., Any])

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "") not in ("", "0")
OFTEN = 20_000  # calls after which Numba's quicker way of calling is worth its import
# between two calls: calls that are as rare gain nothing by it, and a process that lives for weeks makes many of them
RARE_S = 1e-3
SOON = 100  # calls after which it is worth loading the function, where Numba is there already


def cache_home() -> Path:
    """The folder of all that is kept for later processes of this user, whether it is there or not."""
    given = os.environ.get("ESCALA_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "escala"


def _cache_folder() -> Path | None:
    """A writable folder for compiled code, or None."""
    folder = cache_home() / f"compiled-numba-{version('numba')}{'-checked' if CHECKED else ''}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


CACHE_FOLDER: Path | None = _cache_folder()


class Compiled:
    """A function that is machine code once it is called. Inside compiled code it is what Numba makes of it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self._dispatcher: Any = None
        self._inner: Any = None
        self._machines: dict[Any, Machine | None] = {}
        self._ready: dict[tuple[Any, ...], Machine] = {}  # the same by what is seen of arguments at a call
        self._calls = 0 if CHECKED else OFTEN
        self._since_s = time.monotonic()

    def folder(self) -> Path | None:
        """Where code of this function is kept; None: nowhere."""
        return None if CACHE_FOLDER is None else CACHE_FOLDER / self._place()

    def _place(self) -> str:
        path = Path(self.function.__code__.co_filename)
        return f"{path.stem}-{source_hash(path)}"

    def _folders(self) -> Iterator[Path]:
        """Where machine code of this function may lie."""
        from escala.compile.machine import BROUGHT

        for folder in (CACHE_FOLDER, BROUGHT):
            if folder is not None and folder.is_dir():
                yield folder / self._place()

    def _known(self) -> bool:
        """Has Numba's own cache the function? A wheel brings machine code alone."""
        folder = self.folder()
        return folder is not None and any(folder.rglob(f"*.{self.__name__}-*.nbi"))

    def dispatcher(self) -> Any:
        """What Numba makes of the function."""
        if self._dispatcher is None:
            from escala.compile.translation import dispatcher_of

            self._dispatcher = dispatcher_of(self)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """Numba asks a value that it does not know for its type."""
        if self._inner is None:
            from escala.compile.translation import inner_of

            self._inner = inner_of(self)
        return self._inner._numba_type_

    def __reduce__(self) -> str:
        return self.__name__  # copies, and other processes, take the one of the module

    def __call__(self, *arguments: Any) -> Any:
        if self._calls <= 0:
            return self._dispatcher(*arguments) if self._dispatcher is not None else self._translated(arguments)
        self._calls -= 1
        if self._calls == OFTEN - SOON and "numba" in sys.modules and self._known():
            self._calls = 0
        if self._calls == 0 and "numba" not in sys.modules and time.monotonic() - self._since_s > OFTEN * RARE_S:
            self._calls, self._since_s = OFTEN, time.monotonic()
        machine = _machine or _whole_machine()
        told, words = machine.words_of(arguments)
        if told in self._ready:
            return self._ready[told](words)
        kind = machine.kind_of(arguments)
        if kind is None:
            self._calls = 0  # Numba's from now on
            return self._translated(arguments)
        if kind not in self._machines:
            found = machine.load(self._folders(), self.__name__, kind)
            if found is None:
                found = self._in_turn(arguments, kind)
            self._machines[kind] = found
        ready = self._machines[kind]
        if ready is None:
            return self.dispatcher()(*arguments)
        self._ready[told] = ready
        return ready(words)

    def turn(self) -> AbstractContextManager[None]:
        """For one process at a time: the others find what it kept."""
        return turn(self.folder(), self.__name__, _wait)

    def _in_turn(self, arguments: tuple[Any, ...], kind: Any) -> Machine | None:
        """Machine code that another process has made by the time this one's turn comes, or that this one makes; None:
        the function needs Numba, which has translated it."""
        with self.turn():
            found = _machine.load(self._folders(), self.__name__, kind)
            if found is None:
                from escala.compile import second

                second.ask(self.__module__, self.__name__, kind, CACHE_FOLDER)  # it begins while Numba is imported
                from escala.compile import translation

                found = translation.keep(self, arguments, kind)
        return found

    def _translated(self, arguments: tuple[Any, ...]) -> Any:
        """Call by Numba, for the first time."""
        from escala.compile import translation

        translation.make_ready()
        return self.dispatcher()(*arguments)


def compiled(function: F) -> F:
    """Compile `function` (no Python objects inside, the interpreter lock released), cached on disk where possible."""
    return Compiled(function, {})  # type: ignore[return-value]


def lean(function: F) -> F:
    """Like `compiled`, for functions that make no arrays: without reference counts they compile faster and run
    faster."""
    return Compiled(function, {"_nrt": False})  # type: ignore[return-value]


def inlined(function: F) -> F:
    """Like `lean`, for small functions called in inner loops: LLVM is told to inline them."""
    return Compiled(function, {"_nrt": False, "forceinline": True})  # type: ignore[return-value]


def summed(function: F) -> F:
    """Like `lean`, where sums may be reordered and multiplied in one step: for networks, whose sums no schedule depends
    on to the bit."""
    return Compiled(function, {"_nrt": False, "fastmath": {"reassoc", "contract", "nsz"}})  # type: ignore[return-value]


class Later:
    """Something of Numba's that compiled code names, made when Numba first asks."""

    known: list[Later] = []  # noqa: RUF012

    def __init__(self, module: str, name: str, arguments: tuple[Any, ...]) -> None:
        self._named = module, name, arguments
        self._made: Any = None
        self.known.append(self)

    def made(self) -> Any:
        """The thing itself."""
        if self._made is None:
            module, name, arguments = self._named
            found = getattr(importlib.import_module(module), name)
            self._made = found(*arguments) if arguments else found
        return self._made

    @property
    def _numba_type_(self) -> Any:
        from escala.compile.translation import type_of

        return type_of(self.made())


def later(module: str, name: str, *arguments: Any) -> Any:
    """`name` of a module that imports Numba, or what it returns for `arguments`, for compiled code to use."""
    return Later(module, name, arguments)


_machine: Any = None  # escala.compile.machine, once it is loaded whole


def _whole_machine() -> Any:
    """escala.compile.machine. Another thread may be loading it: `sys.modules` has it by then, half made, and only an
    import waits."""
    global _machine
    _machine = importlib.import_module("escala.compile.machine")
    return _machine


_told: list[Callable[[], None]] = []


def _wait() -> None:
    """Another process compiles what this one needs."""
    for begun in _told:
        begun()


def when_compiling(begun: Callable[[], None]) -> None:
    """From now on `begun` is called whenever code is compiled that is not in the cache, here or by another process that
    is waited for."""
    _told.append(begun)
    if "escala.compile.translation" in sys.modules:
        sys.modules["escala.compile.translation"].tell(begun)
