"""Machine code of functions that are called from Python, kept in files and loaded without Numba.

Numba writes, for each function and kinds of arguments, an object file in which all callees are contained. It is kept
beside Numba's own cache where the function runs alone: no Python object, no memory of Numba's, no exception. Arguments
are arrays and plain numbers. A few instructions before the function look into numpy's arrays as any extension does, so
that a call costs little.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import struct
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
_FORMAT = 2
_LOCK = threading.Lock()
_NUMBERS = {int: "i", np.int64: "i", bool: "b", np.bool_: "b", float: "f", np.float64: "f"}
_FORMS = {"i": "q", "b": "?7x", "f": "d"}  # of a word, for `struct`
_DIMENSIONS, _STRIDES = 16, 24  # bytes behind the address of an array's items, where those of shape and strides stand
_at = ctypes.c_size_t.from_address


def _behind() -> int:
    """Where in an array's object the address of its items stands, behind what every object has, and with it all that
    numpy's own macros read there; 0: not as they do."""
    place = object.__basicsize__

    def known(one: Any) -> bool:
        here = id(one) + place
        shape, strides = (
            tuple(_at(_at(here + where).value + 8 * k).value for k in range(one.ndim))
            for where in (_DIMENSIONS, _STRIDES)
        )
        return bool(_at(here).value == one.ctypes.data and shape == one.shape and strides == one.strides)

    some = (
        np.zeros(3),
        np.zeros((2, 2), np.int8)[1:],
        np.zeros((3, 5)).T,
        np.zeros(1, [("a", "i8"), ("b", "f8")])["b"],
    )
    return (
        place
        if sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8 and all(map(known, some))
        else 0
    )


_BEHIND = _behind()


def words_of(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """What tells arguments of one kind from others at each call, in less time than their kinds; and the words that code
    is called with: numbers, and of an array where its object has the address of its items."""
    told: list[Any] = []
    words: list[Any] = []
    for value in arguments:
        if type(value) is np.ndarray:
            told += (value.dtype, value.flags.num, value.ndim)
            words.append(id(value) + _BEHIND)
        else:
            told.append(type(value))
            words.append(value)
    return tuple(told), words


def kind_of(arguments: tuple[Any, ...]) -> Kind | None:
    """The kinds of arguments; None where one is neither an array nor a plain number, or arrays are not as expected."""
    kinds = []
    if not _BEHIND:
        return None
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
    """The kind of an array, by what numpy says of it (flags: as one number); empty for one that compiled code does not
    take."""
    if not flags & _ALIGNED or element.hasobject:
        return ""
    order = "C" if flags & _C_ORDER else "F" if flags & _F_ORDER else "A"
    named = element.str if element.names is None else str(element)
    return f"{order}{dimensions}{'' if flags & _WRITEABLE else 'r'}{named}"


@functools.cache
def _llvm() -> Any:
    """LLVM, ready for the machine that this is."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _made_for() -> tuple[str, str]:
    """The processor that code is made for, and what it can beyond its name: this one, or that of NUMBA_CPU_NAME, as
    Numba does."""
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
        self._packed = struct.Struct("".join(_FORMS.get(part, "q") for part in kind)).pack
        self._code = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(address)
        self._results = ctypes.c_double if result == "f" else ctypes.c_int64 * max(len(result), 1)
        self._raised = ctypes.c_void_p()  # no code that is kept raises
        self._where = ctypes.addressof(self._raised)

    def __call__(self, words: list[Any]) -> Any:
        """words: the arguments, as `words_of` gives them; arrays have to live until it returns."""
        result: Any = self._results()
        status = self._code(ctypes.addressof(result), self._where, self._packed(*words))
        if status not in (0, -2):  # -2: it returned None
            raise RuntimeError(f"compiled code ended with status {status}")
        if self._result == "f":
            return result.value
        if self._result == "b":
            return bool(result[0] & 1)
        return tuple(result) if len(self._result) > 1 else result[0] if self._result else None


def load(folders: Iterable[Path], name: str, kind: Kind) -> Machine | None:
    """The kept machine code of a function, from the first of the folders that has it; None where there is none for this
    machine."""
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


def _unpacked(module: Any, symbol: str, kind: Kind, item_bytes: list[int]) -> Any:
    """LLVM's form of `symbol.words`, which calls a function of a module with what `Machine` packs: of arrays no
    reference counts, how many items, bytes an item, where they are, shape and strides. item_bytes: of each argument
    that is an array."""
    expected = [str(one.type) for one in module.get_function(symbol).arguments]
    lines: list[str] = []

    def line(what: str) -> str:
        lines.append(f"%v{len(lines)} = {what}")
        return f"%v{len(lines) - 1}"

    def read(where: str, offset: int, of: str = "i64") -> str:
        at = line(f"inttoptr i64 {line(f'add i64 {where}, {offset}')} to ptr")
        return line(f"load {of}, ptr {at}")

    def put(value: str) -> None:
        """The next argument, from a word."""
        wanted = expected[len(given)]
        given.append(
            value
            if wanted == "i64"
            else line(f"{'trunc' if wanted.startswith('i') else 'inttoptr'} i64 {value} to {wanted}")
        )

    given = [
        line(f"inttoptr i64 {name} to {wanted}") for name, wanted in zip(("%result", "%raised"), expected, strict=False)
    ]
    for k, part in enumerate(kind):
        if part == "f":
            given.append(read("%words", 8 * k, "double"))
            continue
        word = read("%words", 8 * k)
        if part in _NUMBERS.values():
            put(word)
            continue
        sizes, steps = read(word, _DIMENSIONS), read(word, _STRIDES)
        shape, strides = ([read(where, 8 * d) for d in range(int(part[1]))] for where in (sizes, steps))
        items = functools.reduce(lambda a, b: line(f"mul i64 {a}, {b}"), shape, "1")
        for value in ("0", "0", items, str(item_bytes[k]), read(word, 0), *shape, *strides):
            put(value)
    passed = ", ".join(f"{wanted} {value}" for wanted, value in zip(expected, given, strict=True))
    lines.append(f'%status = call i32 @"{symbol}"({passed})')
    body = "\n  ".join(lines)
    text = (
        f'declare i32 @"{symbol}"({", ".join(expected)})\ndefine i32 @"{symbol}.words"(i64 %result, i64 %raised, '
        f"i64 %words) {{\n  {body}\n"
    )
    made = _llvm().parse_assembly(f"{text}  ret i32 %status\n}}\n")
    made.triple, made.data_layout = module.triple, module.data_layout
    return made


def keep(folder: Path, name: str, kind: Kind, item_bytes: list[int], module: Any, symbol: str, result: str) -> None:
    """Keep the machine code of a function, if it runs alone. module: LLVM's form of it and of its callees, which is not
    changed; symbol: its name there; item_bytes: of each argument that is an array; result: "", f, b, or an i for each
    number returned."""
    llvm = _llvm()
    passes: Any = getattr(llvm, "create_new_module_pass_manager", lambda: None)()
    if not hasattr(passes, "add_global_dead_code_eliminate_pass"):
        return  # an older LLVM
    module, target = module.clone(), _target()
    module.link_in(_unpacked(module, symbol, kind, item_bytes))
    symbol = f"{symbol}.words"
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
    # with the rights that others need to read a shared folder
    part_of = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    with contextlib.suppress(OSError):
        try:
            part_of.write_bytes(json.dumps(said).encode() + b"\n" + code)
            os.replace(part_of, path)
        finally:
            part_of.unlink(missing_ok=True)
