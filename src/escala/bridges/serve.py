"""A server on a unix socket: a line asks, a line answers, in the order in which lines come, whatever clients do.

One process, one thread: a desk is one machine's. Lines are bounded, one by one and together, clients are few, and those
that say half a line or do not take their answer are left after a while.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from escala.bridges.answers import Answers
from escala.bridges.place import listening

PIECE_BYTES = 1 << 18


@dataclass(frozen=True)
class Limits:
    """line_bytes: of a request. heard_bytes: of what all clients together have said and is not answered. clients: at a
    time. half_s: how long half a line, or an answer that nobody takes, is waited for. silent_s: how long a client may
    say nothing."""

    line_bytes: int = 1 << 24
    heard_bytes: int = 1 << 25
    clients: int = 16
    half_s: float = 30.0
    silent_s: float = 600.0


class Client:
    """A connection: what was heard and is no line yet, and what is to be said."""

    def __init__(self, there: socket.socket, limits: Limits) -> None:
        self.there, self.limits = there, limits
        self.heard, self.saying = bytearray(), bytearray()
        self.looked, self.skipping, self.leaving = 0, False, False
        self.since = time.monotonic()

    @property
    def due(self) -> float:
        """When it is left unless something happens."""
        half = bool(self.heard or self.saying or self.skipping)
        return self.since + (self.limits.half_s if half else self.limits.silent_s)

    def line(self) -> bytes | None:
        """The next whole line; None where there is none yet. OverflowError, once, for a line that is too long; what is
        left of it is passed over."""
        while True:
            at = self.heard.find(b"\n", self.looked)
            if at < 0 and self.skipping:
                self.heard.clear()
                return None
            if at < 0:
                self.looked = len(self.heard)
                if self.looked <= self.limits.line_bytes:
                    return None
                self.pass_over()
                raise OverflowError
            with memoryview(self.heard) as heard:
                line = bytes(heard[:at])
            del self.heard[: at + 1]
            self.looked = 0
            if self.skipping:
                self.skipping = False
            elif at > self.limits.line_bytes:
                raise OverflowError
            else:
                return line

    def pass_over(self) -> None:
        """Forget half a line, and what comes of it."""
        self.heard, self.looked, self.skipping = bytearray(), 0, True

    def say(self, line: bytes) -> None:
        """Send a line as far as it goes at once; OSError where the client has left."""
        self.saying += line + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what is to be said."""
        with contextlib.suppress(BlockingIOError):
            while self.saying:
                del self.saying[: self.there.send(self.saying)]
                self.since = time.monotonic()


class Server:
    """listener: bound, not blocking. ending: can be read from when the server shall end."""

    def __init__(self, listener: socket.socket, answers: Answers, ending: socket.socket, limits: Limits) -> None:
        self._listener, self._answers, self._limits = listener, answers, limits
        self._ending = ending
        self._selector = selectors.DefaultSelector()
        self._clients: set[Client] = set()

    def run(self) -> None:
        """Until it shall end; answers that were begun are sent as far as clients take them at once."""
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._ending, selectors.EVENT_READ)
        with self._selector:
            try:
                while True:
                    due = min((client.due for client in self._clients), default=None)
                    wait = None if due is None else max(due - time.monotonic(), 0.0)
                    ready = [key for key, _ in self._selector.select(wait)]
                    if any(key.fileobj is self._ending for key in ready):
                        return
                    for key in ready:
                        if key.data is not None:
                            self._attend(key.data)
                    if any(key.fileobj is self._listener for key in ready):  # after those who left
                        self._welcome()
                    self._leave_the_late()
            finally:
                for client in list(self._clients):
                    self._leave(client)

    def _welcome(self) -> None:
        try:
            there, _ = self._listener.accept()
        except OSError:  # it has left already
            return
        there.setblocking(False)
        client = Client(there, self._limits)
        if len(self._clients) >= self._limits.clients:
            with contextlib.suppress(OSError):
                client.say(
                    self._answers.refuse(
                        f"{self._limits.clients} clients are connected, as many as may be: close one, ask again"
                    )
                )
            there.close()
            return
        self._clients.add(client)
        self._selector.register(there, selectors.EVENT_READ, client)

    def _attend(self, client: Client) -> None:
        """Something can be heard from a client, or said to it."""
        try:
            if client.saying:
                client.flush()
            else:
                self._hear(client)
            self._answer(client)
        except OSError:
            self._leave(client)
            return
        if client.leaving and not client.saying:
            self._leave(client)
        else:
            self._listen(client)
        self._bound()

    def _listen(self, client: Client) -> None:
        self._selector.modify(client.there, selectors.EVENT_WRITE if client.saying else selectors.EVENT_READ, client)

    def _bound(self) -> None:
        """Together clients have said so much that is not answered: the longest of it is refused, so that short requests
        always pass."""
        while sum(len(client.heard) for client in self._clients) > self._limits.heard_bytes:
            longest = max(self._clients, key=lambda client: len(client.heard))
            if longest.saying:  # whole lines, of one that takes no answers
                self._leave(longest)
                continue
            longest.pass_over()
            most = self._limits.heard_bytes
            try:
                longest.say(
                    self._answers.refuse(
                        f"request: all clients have sent more than {most} bytes of half lines: ask again later"
                    )
                )
                self._listen(longest)
            except OSError:
                self._leave(longest)

    def _hear(self, client: Client) -> None:
        try:
            piece = client.there.recv(PIECE_BYTES)
        except BlockingIOError:
            return
        client.since = time.monotonic()
        client.heard += piece
        client.leaving = not piece

    def _answer(self, client: Client) -> None:
        """Answer the lines of a client, as long as it takes the answers."""
        while not client.saying:
            try:
                line = client.line()
            except OverflowError:
                client.say(
                    self._answers.refuse(
                        f"request: a line of more than {self._limits.line_bytes} bytes: send a smaller snapshot"
                    )
                )
                continue
            if line is None:
                break
            client.say(self._answers.answer(line))
        if client.leaving and not client.saying and client.heard:
            client.heard.clear()
            client.say(
                self._answers.refuse("request: half a line, and then the end: end each request with a line break")
            )

    def _leave_the_late(self) -> None:
        now = time.monotonic()
        for client in [client for client in self._clients if client.due <= now]:
            if client.heard and not client.saying:
                with contextlib.suppress(OSError):
                    client.say(
                        self._answers.refuse(f"request: half a line for {self._limits.half_s:g} s: send it whole")
                    )
            self._leave(client)

    def _leave(self, client: Client) -> None:
        self._clients.discard(client)
        self._selector.unregister(client.there)
        client.there.close()


def serve(
    path: Path, answers: Answers, ending: socket.socket, ready: Callable[[], None], limits: Limits | None = None
) -> None:
    """Answer at a unix socket until `ending` can be read from. ready: called once clients may come. EscalaError where
    it cannot listen."""
    with listening(path) as listener:
        server = Server(listener, answers, ending, limits or Limits())
        ready()
        server.run()
