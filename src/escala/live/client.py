"""Asking a desk in another process: one line of JSON over a unix socket, one line back. Only the standard library is
needed."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.live.orders import Orders

PIECE_BYTES = 1 << 16
AGAIN_S = 0.01


def ask(path: str | Path, snapshot: Any, timeout_s: float = 60.0) -> Orders:
    """What the desk that `escala serve --socket PATH` keeps wants done now. A snapshot that is asked again gets the
    same orders.

    snapshot: a `Snapshot`, or its plain data (`schema`, `now_s`, `jobs`, `nodes`, ...). timeout_s: for all of it.
    EscalaError where nobody answers in time, and with the server's own line where it refuses.
    """
    told = snapshot if isinstance(snapshot, Mapping) else json.loads(snapshot.to_json())
    return Orders.read(request(path, {"decide": told}, timeout_s))


def request(path: str | Path, told: Mapping[str, Any], timeout_s: float = 60.0) -> dict[str, Any]:
    """The answer to any request, as plain data: {"decide": ...}, {"plan": ..., "first": K} or {"status": true}."""
    line = json.dumps(told, separators=(",", ":")).encode() + b"\n"
    try:
        answer = json.loads(_exchanged(str(path), line, timeout_s))
    except TimeoutError:
        raise EscalaError(
            f"{path}: no answer within {timeout_s:g} s: see what the server does, or give it more time"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EscalaError(
            f"{path}: nobody can be asked there ({reason}): start escala serve, or name its socket"
        ) from None
    except (ValueError, RecursionError):
        raise EscalaError(f"{path}: what answered there is no line of JSON: name the socket of escala serve") from None
    if not isinstance(answer, dict):
        raise EscalaError(f"{path}: what answered there is {quoted(answer)}: name the socket of escala serve")
    if "error" in answer:
        raise EscalaError(f"{path}: {answer['error']}")
    return answer


def _exchanged(path: str, line: bytes, timeout_s: float) -> bytes:
    """Send a line, and take the one that comes back."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no unix sockets")
    end = time.monotonic() + timeout_s
    heard = bytearray()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.settimeout(timeout_s)
        _connected(there, path, end)
        # it does not want the line, and may have said why
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            there.sendall(line)
        while not heard.endswith(b"\n"):
            there.settimeout(max(end - time.monotonic(), 1e-3))
            piece = there.recv(PIECE_BYTES)
            if not piece:
                raise ConnectionResetError("the server has left")
            heard += piece
    return bytes(heard)


def _connected(there: socket.socket, path: str, end: float) -> None:
    """Tried again while too many others wait to be heard, which a socket with a time limit says at once."""
    while True:
        try:
            return there.connect(path)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError from None
            time.sleep(AGAIN_S)
