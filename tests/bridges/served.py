"""Servers for tests: in a thread of this process, or as a process of their own; all end after a time."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from escala.bridges.answers import Answers
from escala.bridges.serve import Limits, serve
from escala.compiling import LINE
from escala.live import Orders, Snapshot, ask

PATIENCE_S = 60.0


def errors(err: str) -> str:
    """What stands on standard error, without the line about code that is compiled for the first time."""
    return "".join(line for line in err.splitlines(keepends=True) if line.rstrip("\n") != LINE)


@contextmanager
def served(path: Path, answers: Answers, limits: Limits | None = None) -> Iterator[None]:
    """A server in a thread; it has ended, and its socket is gone, at the end."""
    here, there = socket.socketpair()
    ready = threading.Event()
    thread = threading.Thread(target=serve, args=(path, answers, here, ready.set, limits), daemon=True)
    with here, there:
        thread.start()
        assert ready.wait(PATIENCE_S)
        try:
            yield
        finally:
            there.send(b"x")
            thread.join(PATIENCE_S)
            assert not thread.is_alive() and not path.exists()


class Process:
    """`escala serve` as users call it."""

    def __init__(self, socket_path: Path, *options: str) -> None:
        self.socket = socket_path
        command = [sys.executable, "-m", "escala", "serve", "--socket", str(socket_path), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.watch = threading.Timer(2 * PATIENCE_S, self.process.kill)
        self.watch.start()
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal. Status, the rest of what it printed, and errors."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        self.watch.cancel()
        return self.process.returncode, out, errors(err)


class Asking:
    """A desk as `tests.live.machine` knows one, behind a socket. A save is a death without warning: a new server goes
    on."""

    def __init__(self, path: Path, killed: Any = None) -> None:
        self.path, self.killed, self.asked = path, killed, 0

    def decide(self, snapshot: Snapshot) -> Orders:
        self.asked += 1
        return ask(self.path, snapshot, PATIENCE_S)

    def save(self, _: Path) -> None:
        self.killed()

    def restore(self, _: Path) -> None:
        pass


def talk(path: Path, data: bytes, *, close: bool = False, answers: int = 1, timeout_s: float = PATIENCE_S) -> list[Any]:
    """Send raw bytes. The answers, until so many have come or the server has left. close: say no more, after that."""
    end = time.monotonic() + timeout_s
    heard = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.settimeout(timeout_s)
        there.connect(os.fspath(path))
        there.sendall(data)
        if close:
            there.shutdown(socket.SHUT_WR)
        while heard.count(b"\n") < answers or close:
            there.settimeout(max(end - time.monotonic(), 1e-3))
            try:
                piece = there.recv(1 << 16)
            except ConnectionResetError:
                break
            if not piece:
                break
            heard += piece
    return [json.loads(line) for line in heard.splitlines()]
