"""Translation by Numba: the part of `escala.compile` that imports it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event, types
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


def _one_specialisation(dispatcher: Any) -> Any:
    """Numba compiles a callee anew for each mix of int32, int64 and literal arguments: the kernel then compiled four
    times as long. Widen them at each call."""
    template, load = dispatcher.get_call_template, dispatcher.compile

    def loaded(signature: Any) -> Any:
        _spare_blas()
        return load(signature)

    def widened(args: Any, kws: Any) -> Any:
        return template(tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kws.items()})

    dispatcher.get_call_template, dispatcher.compile = widened, loaded
    return dispatcher


def _options(code: front.Compiled) -> dict[str, Any]:
    """How Numba compiles a function."""
    folder = code.folder()
    if folder is not None:  # Numba asks for the folder while it decorates
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return {
        "cache": folder is not None,
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        **code.options,
    }


def dispatcher_of(code: front.Compiled) -> Any:
    """Numba's dispatcher of a function, for who calls it from Python."""
    options = {**_options(code), "pipeline_class": whole.ENTRY}
    dispatcher = _one_specialisation(numba.njit(**options)(code.function))
    load = dispatcher.compile

    def in_turn(signature: Any) -> Any:
        with code.turn():
            return load(signature)

    dispatcher.compile = in_turn
    return dispatcher


def inner_of(code: front.Compiled) -> Any:
    """Numba's dispatcher of a function, for compiled code that calls it."""
    options = {**_options(code), "no_cpython_wrapper": True, "pipeline_class": whole.INNER}
    dispatcher = numba.njit(**options)(code.function)
    if options["cache"]:
        dispatcher._cache = whole.Cache(code.function)  # type: ignore[no-untyped-call]
    return _one_specialisation(dispatcher)


def make_ready() -> None:
    """Make all that compiled code may name, before Numba begins: it looks for new names only then."""
    for part in front.Later.known:
        part.made()


def type_of(made: Any) -> Any:
    """Numba's type of an intrinsic."""
    return cpu_target.typing_context.resolve_value_type(made)


def keep(code: front.Compiled, arguments: tuple[Any, ...], kind: machine.Kind) -> None:
    """Translate a function, and keep its machine code where that needs nothing of Numba's while it runs."""
    make_ready()
    folder, dispatcher = code.folder(), code.dispatcher()
    given = tuple(dispatcher.typeof_pyval(a) for a in arguments)
    dispatcher.compile(given)
    found = dispatcher.overloads.get(given)
    if found is None or folder is None:
        return
    returned = found.signature.return_type
    result = {types.none: "", types.int64: "i", types.float64: "f", types.boolean: "b"}.get(returned)
    if isinstance(returned, types.UniTuple) and returned.dtype == types.int64:
        result = "i" * returned.count
    if result is None:
        return
    module = found.library._get_module_for_linking()
    item_bytes = [getattr(one, "itemsize", 0) for one in arguments]
    machine.keep(folder, code.__name__, kind, item_bytes, module, found.fndesc.llvm_func_name, result)


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
