"""A second process, which translates what the first is about to need, and keeps it where the first looks.

The first start is Numba's: finding types and writing code, function by function, in one thread. The first process takes
the calls of a function from the first to the last, each with all that it calls; this one from the last to the first.
What one has kept the other loads, and about half-way they meet. Neither waits for the other: without this one all is as
with it, only later.

`escala.compile.second` runs it. It reads lines of JSON: module, function and kinds of arguments of what the first one
translates; the latest counts. It ends with its input, and when nothing was asked for a while.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import compiler, errors, typed_passes, types
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.registry import cpu_target
from numba.np import numpy_support

from escala import compile as front
from escala.compile import machine, translation, turns
from escala.compile.second import DONE

IDLE_S = 5.0
FEW = 16  # functions, of which it takes less time to translate them than to look which is the last

Call = tuple[Any, tuple[Any, ...]]
"""Numba's dispatcher of a function that compiled code calls, and the types of its arguments."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _Look(AnalysisPass):
    """Find types, as far as they can be known."""

    _name = "escala_look"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Nothing of the function changes."""
        known = state.typingctx, state.targetctx, state.func_ir, state.args, None
        state.cr = typed_passes.type_inference_stage(*known, raise_errors=False)
        return False


class _Looking(compiler.CompilerBase):
    """Numba's pipeline up to the types."""

    def define_pipelines(self) -> list[Any]:
        """One."""
        passes = compiler.DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.add_pass(_Look, "look at types")
        passes.finalize()
        return [passes]


def _named(code: front.Compiled) -> set[front.Compiled]:
    """The functions that a function names."""
    function = code.function
    known = [function.__globals__.get(name) for name in function.__code__.co_names]
    return {one for one in known if isinstance(one, front.Compiled)}


@functools.cache
def _reached(code: front.Compiled) -> int:
    """How many functions it calls, directly or not."""
    reached, waiting = set[front.Compiled](), [code]
    while waiting:
        new = _named(waiting.pop()) - reached
        reached |= new
        waiting += new
    return len(reached)


def _look(dispatcher: Any, given: tuple[Any, ...]) -> tuple[list[Call], int]:
    """What a function calls that is not yet kept, in the order in which it stands there, and how many it calls. Calls
    whose arguments depend on what those return are not found."""
    missing: dict[Call, None] = {}
    met = set[Any]()

    def meet(callee: Any, arguments: tuple[Any, ...]) -> None:
        met.add(callee)
        if not translation.is_kept(callee, arguments):
            missing[callee, arguments] = None
            raise errors.TypingError("later")  # Numba goes on with what does not depend on it

    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, dispatcher.targetoptions)
    contexts = cpu_target.typing_context, cpu_target.target_context
    with translation.meeting(meet), contextlib.suppress(errors.NumbaError):
        compiler.compile_extra(*contexts, dispatcher.py_func, given, None, flags, {}, pipeline_class=_Looking)
    return list(missing), len(met)


def translate(code: front.Compiled, dispatcher: Any, given: tuple[Any, ...]) -> Iterator[str]:
    """Translate what a function calls, directly or not, from the last to the first; after each the name of what was
    translated, with what was missing of its own callees. dispatcher: of the function, as it is called here."""
    named = {one.function: one for one in _named(code)}
    seen, more = set[Call](), bool(named)
    while more:
        missing, met = _look(dispatcher, given)
        new = [call for call in missing if call not in seen]
        for callee, arguments in reversed(new):
            one = named.get(callee.py_func)
            if one is not None and _reached(one) > FEW:
                yield from translate(one, callee, arguments)
            if not translation.is_kept(callee, arguments):
                callee.compile(arguments)
                yield callee.py_func.__name__
        seen.update(new)
        more = bool(new) and met < len(named)


def type_of(word: str) -> Any:
    """Numba's type of an argument, from the word for its kind (`machine.kind_of`)."""
    plain = {"i": types.int64, "b": types.boolean, "f": types.float64}
    if word in plain:
        return plain[word]
    locked = word[2] == "r"
    element = word[3 if locked else 2 :]
    known = np.dtype(ast.literal_eval(element) if element[0] in "[{" else element)
    of: Any = numpy_support.from_dtype(known)
    order: Any = word[0]
    return types.Array(of, int(word[1]), order, readonly=locked, aligned=True)


def work(asked: queue.SimpleQueue[list[Any]]) -> None:
    """Do what is asked, until nothing was for a while."""
    while True:
        try:
            module, name, kind = asked.get(timeout=IDLE_S)
        except queue.Empty:
            return
        code = getattr(importlib.import_module(module), name)
        translation.make_ready()
        for _ in translate(code, code.dispatcher(), tuple(map(type_of, kind))):
            if not asked.empty():
                break


def _listen(asked: queue.SimpleQueue[list[Any]]) -> None:
    """Take in what is asked; the process ends with the one that asks."""
    for line in sys.stdin:
        asked.put(json.loads(line))
    os._exit(DONE)


def main() -> int:
    """The program; returns its exit status. It works for the same sources and the same folder alone, and one at a
    time."""
    if sys.argv[1:] != [str(machine.BROUGHT.parent), str(front.CACHE_FOLDER)]:
        return DONE + 1
    if front.CACHE_FOLDER is None or not turns.only(front.CACHE_FOLDER, "second"):
        return DONE + 1
    gc.set_threshold(translation.OBJECTS)
    asked = queue.SimpleQueue[list[Any]]()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    work(asked)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
