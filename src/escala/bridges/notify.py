"""Telling systemd how a service does, by the protocol of sd_notify: datagrams to the socket that NOTIFY_SOCKET
names."""

from __future__ import annotations

import contextlib
import os
import socket

MICRO = 1e-6


class Notify:
    """Says nothing where nobody asked. beat_s: how often `alive` is to be called at least, None: nobody watches."""

    def __init__(self) -> None:
        where = os.environ.get("NOTIFY_SOCKET", "") if hasattr(socket, "AF_UNIX") else ""
        self._where = where if where[:1] in ("/", "@") else ""
        self.beat_s = _half_of_watchdog() if self._where else None

    def ready(self, status: str) -> None:
        """The service does what it is for."""
        self._say("READY=1", f"STATUS={status}")

    def alive(self, status: str = "") -> None:
        """It does not hang."""
        self._say("WATCHDOG=1", *([f"STATUS={status}"] if status else []))

    def stopping(self) -> None:
        """It is about to end."""
        self._say("STOPPING=1")

    def _say(self, *lines: str) -> None:
        if not self._where:
            return
        address = f"\0{self._where[1:]}" if self._where.startswith("@") else self._where
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
            there.setblocking(False)
            there.sendto("\n".join(line.replace("\n", " ") for line in lines).encode(), address)


def _half_of_watchdog() -> float | None:
    """Half of the time after which systemd takes this process for hung."""
    span, whose = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not (span.isascii() and span.isdigit()) or int(span) == 0 or whose not in ("", str(os.getpid())):
        return None
    return int(span) * MICRO / 2
