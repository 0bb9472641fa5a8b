"""Machine code of functions that are called from Python, kept in files and loaded without Numba.

Numba writes, for each function and kinds of arguments, an object file in which all callees are contained. It is kept beside Numba's own
cache where the function runs alone: no Python object, no memory of Numba's, no exception. Arguments are arrays and plain numbers, passed
word by word as Numba's own caller does.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import sys
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Kind = tuple[str, ...]  # one word an argument

BROUGHT = Path(__file__).parent / "brought"  # machine code that a wheel brings, see `make wheel`
FAMILIES = {"x86-64-v3": "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sse3 sse4.1 sse4.2 ssse3"}
"""Processors by name, and what each of them can."""

_C_ORDER, _F_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400  # bits of `ndarray.flags.num`
_FORMAT = 1
_LOCK = threading.Lock()
_NUMBERS = {int: "i", np.int64: "i", bool: "b", np.bool_: "b", float: "f", np.float64: "f"}
_WORDS = {"i": ctypes.c_int64, "b": ctypes.c_int64, "f": ctypes.c_double}
_at = ctypes.c_size_t.from_address


def _address() -> int:
    """Where in an array's object the address of its items stands, behind what every object has; 0: not there. Asked through
    `ndarray.ctypes` it takes as long as many a function that is called."""
    place, some = object.__basicsize__, (np.zeros(3), np.zeros((2, 2), np.int8)[1:], np.zeros(1, [("a", "i8"), ("b", "f8")])["b"])
    known = sys.implementation.name == "cpython" and all(_at(id(one) + place).value == one.ctypes.data for one in some)
    return place if known else 0


_ADDRESS = _address()


def words_of(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """What tells arguments of one kind from others at each call, in less time than their kinds; and the words that code is called with."""
    told: list[Any] = []
    words: list[Any] = []
    for value in arguments:
        if type(value) is np.ndarray:  # reference counts (none), items, bytes an item, address, shape, strides
            shape = value.shape
            told += (value.dtype, value.flags.num, len(shape))
            address = _at(id(value) + _ADDRESS).value if _ADDRESS else value.ctypes.data
            words += (None, None, value.size, value.itemsize, address, *shape, *value.strides)
        else:
            told.append(type(value))
            words.append(value)
    return tuple(told), words


def kind_of(arguments: tuple[Any, ...]) -> Kind | None:
    """The kinds of arguments; None where one is neither an array nor a plain number."""
    kinds = []
    for value in arguments:
        known = _NUMBERS.get(type(value))
        if known is None:
            known = _word(value.dtype, value.flags.num, value.ndim) if type(value) is np.ndarray else ""
            if not known:
                return None
        kinds.append(known)
    return tuple(kinds)


@functools.cache
def _word(element: np.dtype[Any], flags: int, dimensions: int) -> str:
    """The kind of an array, by what numpy says of it (flags: as one number); empty for one that compiled code does not take."""
    if not flags & _ALIGNED or element.hasobject:
        return ""
    order = "C" if flags & _C_ORDER else "F" if flags & _F_ORDER else "A"
    return f"{order}{dimensions}{'' if flags & _WRITEABLE else 'r'}{element.str if element.names is None else str(element)}"


@functools.cache
def _llvm() -> Any:
    """LLVM, ready for the machine that this is."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _made_for() -> tuple[str, str]:
    """The processor that code is made for, and what it can beyond its name: this one, or that of NUMBA_CPU_NAME, as Numba does."""
    named = os.environ.get("NUMBA_CPU_NAME")
    if named:
        return named, os.environ.get("NUMBA_CPU_FEATURES", "")
    llvm = _llvm()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _processor() -> str:
    """System and processor that code is made for."""
    name, features = _made_for()
    return f"{_llvm().get_process_triple()} {name} {'' if name in FAMILIES else features}".strip()


@functools.cache
def _run_here() -> set[str]:
    """Systems and processors whose code runs on this machine."""
    llvm = _llvm()
    here = llvm.get_host_cpu_features()
    families = [name for name, needs in FAMILIES.items() if all(here.get(feature) for feature in needs.split())]
    return {_processor(), *(f"{llvm.get_process_triple()} {name}" for name in families)}


def _target() -> Any:
    """For LLVM: what code is made for, with Numba's own choices."""
    llvm, (name, features) = _llvm(), _made_for()
    known = llvm.Target.from_triple(llvm.get_process_triple())
    where = "static" if known.name.startswith("x86") else "default"
    return known.create_target_machine(cpu=name, features=features, opt=3, reloc=where, codemodel="jitdefault")


def _file(folder: Path, name: str, kind: Kind) -> Path:
    return folder / f"{name}-{hashlib.sha256(repr(kind).encode()).hexdigest()[:16]}.machine"


class Machine:
    """One function for one kind of arguments. engine: what holds its code."""

    def __init__(self, engine: Any, address: int, kind: Kind, result: str) -> None:
        self._engine, self._result = engine, result
        words: list[Any] = []
        for part in kind:
            words += [_WORDS[part]] if part in _WORDS else [ctypes.c_void_p] * (5 + 2 * int(part[1]))
        self._code = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(address)

        self._results = ctypes.c_double if result == "f" else ctypes.c_int64 * max(len(result), 1)
        self._raised = ctypes.c_void_p()  # no code that is kept raises
        self._where = ctypes.addressof(self._raised)

    def __call__(self, words: list[Any]) -> Any:
        """words: the arguments, as `words_of` gives them."""
        result: Any = self._results()
        status = self._code(ctypes.addressof(result), self._where, *words)
        if status not in (0, -2):  # -2: it returned None
            raise RuntimeError(f"compiled code ended with status {status}")
        if self._result == "f":
            return result.value
        if self._result == "b":
            return bool(result[0] & 1)
        return tuple(result) if len(self._result) > 1 else result[0] if self._result else None


def load(folders: Iterable[Path], name: str, kind: Kind) -> Machine | None:
    """The kept machine code of a function, from the first of the folders that has it; None where there is none for this machine."""
    for folder in folders:
        try:
            head, _, code = _file(folder, name, kind).read_bytes().partition(b"\n")
            said = json.loads(head)
            if said["format"] == _FORMAT and said["sum"] == zlib.crc32(code) and said["processor"] in _run_here():
                return _loaded(code, kind, said["symbol"], said["result"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _loaded(code: bytes, kind: Kind, symbol: str, result: str) -> Machine:
    """A function of an object file."""
    llvm = _llvm()
    with _LOCK:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Machine(engine, engine.get_function_address(symbol), kind, result)


def keep(folder: Path, name: str, kind: Kind, module: Any, symbol: str, result: str) -> None:
    """Keep the machine code of a function, if it runs alone. module: LLVM's form of it and of its callees, which is not changed; symbol:
    its name there; result: "", f, b, or an i for each number returned."""
    llvm = _llvm()
    passes: Any = getattr(llvm, "create_new_module_pass_manager", lambda: None)()
    if not hasattr(passes, "add_global_dead_code_eliminate_pass"):
        return  # an older LLVM
    module, target = module.clone(), _target()
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration:
            part.linkage = llvm.Linkage.external if part.name == symbol else llvm.Linkage.internal
    passes.add_global_dead_code_eliminate_pass()  # Numba's own way of calling it goes
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    needed = [part.name for part in module.functions if part.is_declaration and not part.name.startswith("llvm.")]
    mathematics = all(not part.startswith(("Py", "_Py")) and hasattr(ctypes.CDLL(None), part) for part in needed)
    if not mathematics or any(part.is_declaration for part in module.global_variables):
        return
    code = target.emit_object(module)
    said = {"format": _FORMAT, "processor": _processor(), "sum": zlib.crc32(code), "symbol": symbol, "result": result}
    path = _file(folder, name, kind)
    part_of = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")  # with the rights that others need to read a shared folder
    with contextlib.suppress(OSError):
        try:
            part_of.write_bytes(json.dumps(said).encode() + b"\n" + code)
            os.replace(part_of, path)
        finally:
            part_of.unlink(missing_ok=True)
