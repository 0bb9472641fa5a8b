"""Ctrl-C that works while compiled code runs.

Python notices a signal only between two of its own instructions; a compiled loop of a minute is one instruction. Long
compiled work therefore runs in a second thread (it releases the interpreter's lock), and the main thread only waits,
ready to be interrupted.
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

from escala.writing import left

T = TypeVar("T")
INTERRUPTED, TERMINATED = 130, 143  # exit statuses
WORDS = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}
AGAIN_S = 0.2
CHECKPOINTS = ("checkpoint.npz", "search.npz")


class Stopped(BaseException):
    """The work was ended from outside: the exit status, and what to tell (None: what is left, see `ended`)."""

    def __init__(self, message: str | None, status: int) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def _raise_terminated(*_: object) -> NoReturn:
    raise Stopped(None, TERMINATED)


def ended(status: int, hint: str | None = None) -> str:
    """The line of a process that was ended by a signal: what stands on the disk. hint: what its verb says of that; a
    whole output is said before it."""
    return f"{WORDS[status]}; {left.whole() or hint or left.left()}"


def work_is_over() -> None:
    """From here on signals end the process as they end any other: what it had to do is done and told. One that was lost
    is not sent again: it has been heard."""
    _lost.clear()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)


def listen_for_termination() -> None:
    """Let SIGTERM unwind like Ctrl-C, so that half-written output is removed; lose neither."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_terminated)
        sys.unraisablehook = _unraisable


_lost: list[BaseException] = []


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    """Python prints and forgets what a signal raised inside a callback of a compiled library, such as a compiler's. It
    is noted here, and sent again."""
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
def keeping(hint: str | Callable[[], str | None]) -> Iterator[None]:
    """Work that keeps what it has done when it is ended from outside (Ctrl-C, SIGTERM): `hint` says what is kept, and
    how to go on; None where it kept nothing."""

    def told() -> str | None:
        return hint if isinstance(hint, str) else hint()

    try:
        yield
    except (Exception, KeyboardInterrupt, Stopped) as error:
        signal_ = lost() or error
        if isinstance(signal_, Stopped):
            raise Stopped(signal_.message or ended(signal_.status, told()), signal_.status) from None
        if isinstance(signal_, KeyboardInterrupt):
            raise Stopped(ended(INTERRUPTED, told()), INTERRUPTED) from None
        raise


def grown(folder: Path, hint: str) -> str | None:
    """The hint, where there is anything in a folder that is written to bit by bit."""
    return hint if folder.is_dir() and any(folder.iterdir()) else None


def learnt(out: Path) -> str | None:
    """What is kept of a training that was ended from outside."""
    if not any((out / name).is_file() for name in CHECKPOINTS):
        return None
    return f"{out} keeps what was learnt until the last checkpoint: go on with --resume"


def interruptible(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return its result (or raise its error); KeyboardInterrupt reaches the caller at once.

    The thread is left behind on an interrupt: it must only compute, and the caller must end the process (as `main`
    does).
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
