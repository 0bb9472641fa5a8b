"""Ctrl-C that works while compiled code runs.

Python notices a signal only between two of its own instructions; a compiled loop of a minute is one instruction. Long compiled work
therefore runs in a second thread (it releases the interpreter's lock), and the main thread only waits, ready to be interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

T = TypeVar("T")
INTERRUPTED = 130  # exit status
KEPT = "{out} keeps what was learnt until the last checkpoint: go on with --resume"


class Stopped(BaseException):
    """The work was ended from outside: what to tell, and the exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _raise_terminated(*_: object) -> NoReturn:
    raise Stopped("terminated; nothing was written", 143)


def listen_for_termination() -> None:
    """Let SIGTERM unwind like Ctrl-C, so that half-written output is removed."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_terminated)


@contextmanager
def keeping(hint: str | Callable[[], str]) -> Iterator[None]:
    """Work that keeps what it has done when it is ended from outside (Ctrl-C, SIGTERM): `hint` says what is kept, and how to go on."""

    def told() -> str:
        return hint if isinstance(hint, str) else hint()

    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; {told()}", INTERRUPTED) from None
    except Stopped as stopped:
        raise Stopped(f"terminated; {told()}", stopped.status) from None


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
