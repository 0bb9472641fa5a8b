"""Translation by Numba: the part of `escala.compile` that imports it."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import bytecode, event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from escala import compile as front
from escala.compile import machine, whole


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


# Numba numbers what it translates, in each process from 1, and the numbers are in the names of code: of functions made
# within functions, two processes would give one name to two of them, which here are linked.
bytecode.FunctionIdentity._unique_ids = itertools.count(secrets.randbits(40))

BLAS = "scipy.linalg.cython_blas"


@functools.cache
def _spare_blas() -> None:
    """Numba imports scipy's linear algebra when it first loads or compiles a function, to know whether it is there: 16
    MB and a sixth of a second, for what nothing here uses. Compiled code that multiplies matrices imports it when it
    needs it."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]
    try:
        from numba.np import arraymath
    finally:
        del sys.modules[BLAS]
    vars(arraymath)["_HAVE_BLAS"] = True


_meet: Callable[[Any, tuple[Any, ...]], None] | None = None


@contextlib.contextmanager
def meeting(meet: Callable[[Any, tuple[Any, ...]], None]) -> Iterator[None]:
    """Meanwhile `meet` is called with each function of which Numba finds a call, and with the types of its
    arguments."""
    global _meet
    _meet = meet
    try:
        yield
    finally:
        _meet = None


def is_kept(dispatcher: Any, given: tuple[Any, ...]) -> bool:
    """Is a function that compiled code calls translated for these types of arguments, here or on disk?"""
    return given in dispatcher.overloads or (
        isinstance(dispatcher._cache, whole.Cache) and dispatcher._cache.has(given)
    )


def _one_specialisation(dispatcher: Any) -> Any:
    """Numba compiles a callee anew for each mix of int32, int64 and literal arguments: the kernel then compiled four
    times as long. Widen them at each call."""
    template, load = dispatcher.get_call_template, dispatcher.compile

    def loaded(signature: Any) -> Any:
        _spare_blas()
        return load(signature)

    def widened(args: Any, kws: Any) -> Any:
        args, kws = tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kws.items()}
        if _meet is not None:
            _meet(dispatcher, tuple(dispatcher.fold_argument_types(args, kws)[1]))
        return template(args, kws)

    dispatcher.get_call_template, dispatcher.compile = widened, loaded
    return dispatcher


def _decorated(code: front.Compiled, cache: type[whole.EntryCache | whole.Cache], **options: Any) -> Any:
    """Numba's dispatcher of a function, which keeps what it makes where the folder of the function can be written."""
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **code.options}
    dispatcher: Any = numba.njit(**options)(code.function)
    folder = code.folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        with contextlib.suppress(RuntimeError):  # nowhere at all
            kept: Any = cache(code.function)
            if Path(kept.cache_path).is_relative_to(folder):  # Numba tries other folders where it cannot write there
                dispatcher._cache = kept
    return _one_specialisation(dispatcher)


def dispatcher_of(code: front.Compiled) -> Any:
    """Numba's dispatcher of a function, for who calls it from Python."""
    dispatcher = _decorated(code, whole.EntryCache, pipeline_class=whole.ENTRY)
    load = dispatcher.compile

    def in_turn(signature: Any) -> Any:
        with code.turn():
            return load(signature)

    dispatcher.compile = in_turn
    return dispatcher


def inner_of(code: front.Compiled) -> Any:
    """Numba's dispatcher of a function, for compiled code that calls it."""
    return _decorated(code, whole.Cache, no_cpython_wrapper=True, pipeline_class=whole.INNER)


def make_ready() -> None:
    """Make all that compiled code may name, before Numba begins: it looks for new names only then."""
    _spare_blas()
    for part in front.Later.known:
        part.made()


def type_of(made: Any) -> Any:
    """Numba's type of an intrinsic."""
    return cpu_target.typing_context.resolve_value_type(made)


OBJECTS = 2_000_000
"""New objects after which Python looks for circles that nobody reaches where Numba translates: there it took a tenth of
the time."""


@contextlib.contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Meanwhile Python looks for such circles after `OBJECTS`, if at all."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _result(returned: Any) -> str | None:
    """What a function returns, as `machine.keep` takes it; None where that is nothing plain."""
    if isinstance(returned, types.UniTuple) and returned.dtype == types.int64:
        return "i" * returned.count
    return {types.none: "", types.int64: "i", types.float64: "f", types.boolean: "b"}.get(returned)


def keep(code: front.Compiled, arguments: tuple[Any, ...], kind: machine.Kind) -> machine.Machine | None:
    """Translate a function, and keep its machine code where that needs nothing of Numba's while it runs; None where it
    does."""
    make_ready()
    folder, dispatcher = code.folder(), code.dispatcher()
    item_bytes = [getattr(one, "itemsize", 0) for one in arguments]
    given = tuple(dispatcher.typeof_pyval(one) for one in arguments)
    found: machine.Machine | None = None
    tried = False

    def alone(module: Any, symbol: str, returned: Any) -> bool:
        nonlocal found, tried
        tried, result = True, _result(returned)
        if folder is not None and result is not None:
            machine.keep(folder, code.__name__, kind, item_bytes, module, symbol, result)
            found = machine.load([folder], code.__name__, kind)
        return found is not None

    with global_compiler_lock, _seldom_collecting():  # another thread may translate too
        whole.Entry.keeping = staticmethod(alone)
        try:
            dispatcher.compile(given)
            known = dispatcher.overloads.get(given)
            if not tried and known is not None:  # it lay in Numba's own cache
                alone(known.library._get_module_for_linking(), known.fndesc.llvm_func_name, known.signature.return_type)
        except Exception:  # `whole.Kept`, or what Numba is set to make of it
            if found is None:
                raise
        finally:
            whole.Entry.keeping = None
    return found


class _Begun(event.Listener):
    """Calls a function whenever Numba begins to compile."""

    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun

    def on_start(self, event: Any) -> None:
        """Compilation begins."""
        self._begun()

    def on_end(self, event: Any) -> None:
        """It ends: nobody is told."""


def tell(begun: Callable[[], None]) -> None:
    """Call `begun` whenever code is compiled that is not in the cache."""
    event.register("numba:compile", _Begun(begun))  # type: ignore[no-untyped-call]


for watcher in front._told:
    tell(watcher)
