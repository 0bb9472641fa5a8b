"""Ctrl-C that works while compiled code runs.

Python notices a signal only between two of its own instructions; a compiled loop of a minute is one instruction. Long compiled work
therefore runs in a second thread (it releases the interpreter's lock), and the main thread only waits, ready to be interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

T = TypeVar("T")
INTERRUPTED = 130  # exit status
AGAIN_S = 0.2
CHECKPOINTS = ("checkpoint.npz", "search.npz")


class Stopped(BaseException):
    """The work was ended from outside: what to tell, and the exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _raise_terminated(*_: object) -> NoReturn:
    raise Stopped("terminated; nothing was written", 143)


def listen_for_termination() -> None:
    """Let SIGTERM unwind like Ctrl-C, so that half-written output is removed; lose neither."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_terminated)
        sys.unraisablehook = _unraisable


_lost: list[BaseException] = []


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    """Python prints and forgets what a signal raised inside a callback of a compiled library, such as a compiler's. It is noted here, and
    sent again."""
    error = told.exc_value
    if not isinstance(error, KeyboardInterrupt | Stopped):
        sys.__unraisablehook__(told)
        return
    _lost.append(error)
    number = signal.SIGTERM if isinstance(error, Stopped) else signal.SIGINT
    again = threading.Timer(AGAIN_S, lambda: os.kill(os.getpid(), number) if _lost else None)
    again.daemon = True
    again.start()


def lost() -> BaseException | None:
    """What a signal raised that was lost, taken; None where nothing was. Whatever fails next may have failed by it."""
    found = _lost[0] if _lost else None
    _lost.clear()
    return found


@contextmanager
def keeping(hint: str | Callable[[], str]) -> Iterator[None]:
    """Work that keeps what it has done when it is ended from outside (Ctrl-C, SIGTERM): `hint` says what is kept, and how to go on."""

    def told() -> str:
        return hint if isinstance(hint, str) else hint()

    try:
        yield
    except (Exception, KeyboardInterrupt, Stopped) as error:
        ended = lost() or error
        if isinstance(ended, Stopped):
            raise Stopped(f"terminated; {told()}", ended.status) from None
        if isinstance(ended, KeyboardInterrupt):
            raise Stopped(f"interrupted; {told()}", INTERRUPTED) from None
        raise


def learnt(out: Path) -> str:
    """What is kept of a training that was ended from outside."""
    if not any((out / name).is_file() for name in CHECKPOINTS):
        return "nothing was written"
    return f"{out} keeps what was learnt until the last checkpoint: go on with --resume"


def interruptible(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return its result (or raise its error); KeyboardInterrupt reaches the caller at once.

    The thread is left behind on an interrupt: it must only compute, and the caller must end the process (as `main` does).
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="escala-work", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if failure:
        raise failure[0]
    return outcome[0]
