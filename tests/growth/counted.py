"""Compiled code that counts its own steps: the body of every loop adds one to a counter before it does anything else.
What a View hands over to a policy in Python counts too: who asks for the whole queue each time is slower than who walks
it.

Nothing in Escala knows of it. `install()` puts a step in front of the compiler, before any compiled module is imported:
the syntax tree of each function gets a call at the head of each of its loops, so that no loop, written or yet to be
written, can forget to count. The counters, one a function, are numbers of this process that compiled code finds by
name. What is compiled this way lies in a cache folder of its own.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

SYMBOL = "escala_steps_counted"
SLOTS = 1 << 14
ROW = 100  # steps that a row made in Python counts for: about a microsecond
_steps = np.zeros(SLOTS, np.int64)
_names: dict[int, str] = {}
llvm.add_symbol(SYMBOL, _steps.ctypes.data)


@intrinsic(prefer_literal=True)
def count_step(typing: Any, slot: Any) -> Any:
    """Add one to a counter."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        known = builder.module.globals
        counters = (
            known[SYMBOL] if SYMBOL in known else ir.GlobalVariable(builder.module, ir.ArrayType(word, SLOTS), SYMBOL)
        )
        counter = builder.gep(
            counters, [ir.Constant(ir.IntType(32), 0), ir.Constant(ir.IntType(32), slot.literal_value)]
        )
        builder.store(builder.add(builder.load(counter), ir.Constant(word, 1)), counter)
        return context.get_dummy_value()

    return types.void(slot), generate


class _Loops(ast.NodeTransformer):
    def __init__(self, slot: int) -> None:
        self.slot = slot

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.parse(f"count_step({self.slot})").body[0])
        return node

    visit_For = _loop
    visit_While = _loop


def counting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a step counted in each round of each of its loops."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    slot = zlib.crc32(name.encode()) % SLOTS  # the same in every process: it is part of what is cached
    _names[slot] = name
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    tree = ast.fix_missing_locations(_Loops(slot).visit(tree))
    ast.increment_lineno(tree, first - 1)
    names = function.__globals__
    names["count_step"] = count_step
    made: dict[str, Any] = {}
    exec(
        compile(
            tree, function.__code__.co_filename, "exec", dont_inherit=True, flags=function.__code__.co_flags & 0x1000000
        ),
        names,
        made,
    )
    return made[function.__name__]


def install() -> None:
    """From here on all compiled code counts. Call it before a module with compiled code is imported."""
    assert "escala.kernel.state" not in sys.modules, "the kernel is imported already"
    from escala import compile as compiler

    plain = compiler.Compiled.__init__

    def counted(self: compiler.Compiled, function: Callable[..., Any], options: dict[str, Any]) -> None:
        plain(self, counting(function), options)

    compiler.Compiled.__init__ = counted  # type: ignore[method-assign]
    if compiler.CACHE_FOLDER is not None:
        mark = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
        compiler.CACHE_FOLDER = compiler.CACHE_FOLDER.with_name(f"{compiler.CACHE_FOLDER.name}-counted-{mark}")
    _count_rows()


def _count_rows() -> None:
    """Answers of a View are counted by their rows."""
    from escala import sealed  # imports the kernel

    for answers in (sealed.QUESTIONS, sealed.OF_JOBS):
        for question, answer in answers.items():
            answers[question] = _noting(f"View.{question}", answer)
    sealed._ended = _noting("History.ended", sealed._ended)


def _noting(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    slot = zlib.crc32(name.encode()) % SLOTS
    _names[slot] = name

    def asked(*arguments: Any) -> Any:
        found = answer(*arguments)
        _steps[slot] += ROW * len(found) if isinstance(found, list) else 1
        return found

    return asked


def steps_of(work: Callable[[], Any]) -> dict[str, int]:
    """Steps that compiled code takes for `work`, by function."""
    before = _steps.copy()
    work()
    return {_names[slot]: int(steps) for slot, steps in enumerate(_steps - before) if steps > 0}
