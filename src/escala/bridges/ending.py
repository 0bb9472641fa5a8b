"""A process that stays until it is told to end: what it is at is done first, and nothing is left behind."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_end() -> Iterator[socket.socket]:
    """A socket that can be read from once the process is told to end, by SIGTERM or Ctrl-C. Told a second time, it ends
    at once.

    In another thread than the main one, which signals do not reach, nothing comes.
    """
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        if threading.current_thread() is not threading.main_thread():
            yield here
            return
        before: dict[signal.Signals, Any] = {}

        def told(number: int, _: object) -> None:
            signal.signal(number, before[signal.Signals(number)])

        for number in SIGNALS:
            before[number] = signal.signal(number, told)
        woken = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        try:
            yield here
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
