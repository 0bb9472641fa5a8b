"""What a forked process has of its parent: its memory, and none of its threads.

polars waits for ever for the threads that its parent had. So a child of a process that has used it is told in one line,
in place of that.
"""

from __future__ import annotations

import os

from escala.errors import EscalaError

_used = False
_forked = False


def note_use() -> None:
    """polars has been used in this process."""
    global _used
    _used = True


def forked() -> bool:
    """Was this process forked from one that had used polars?"""
    return _forked


def check_fork() -> None:
    """EscalaError where polars would wait for ever."""
    if _forked:
        raise EscalaError(
            "this process was forked from one that had used Escala, and polars' threads are not forked: begin it by "
            "spawn (multiprocessing.get_context('spawn'); of gymnasium.make_vec: vector_kwargs={'context': 'spawn'})"
        )


def _in_child() -> None:
    global _forked
    _forked = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
