"""Figures for a monitoring system at an address: GET /metrics over HTTP, on the loopback address or at a unix
socket."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseServer, TCPServer, ThreadingMixIn

from escala.bridges.place import cleared, listening
from escala.errors import EscalaError

PATIENCE_S = 5.0
_ADDRESS = re.compile(r"\[?([^\[\]/]+?)\]?:(\d{1,5})")
FORM = "text/plain; version=0.0.4; charset=utf-8"


def address_of(where: str) -> tuple[str, int] | None:
    """HOST:PORT of this machine; None for the path of a socket. EscalaError for anything else, and where others could
    ask."""
    found = _ADDRESS.fullmatch(where)
    if found is None:
        if "/" not in where:
            raise EscalaError(
                f"--metrics {where}: give HOST:PORT, as 127.0.0.1:9464, or the path of a socket with a / in it"
            )
        return None
    host, port = found.groups()
    try:
        local = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise EscalaError(f"--metrics {where}: {host} is no address: give 127.0.0.1:{port}, or [::1]:{port}") from None
    if not local.is_loopback:
        raise EscalaError(
            f"--metrics {where}: others could ask there: give 127.0.0.1:{port}, and let a proxy or the collector "
            "reach it"
        )
    return str(local), int(port)


def check_free(where: str) -> None:
    """EscalaError for no address, and for the path of anything but the socket of a server that has died."""
    if address_of(where) is None:
        cleared(Path(where))


@contextmanager
def exposed(where: str, text: Callable[[], str]) -> Iterator[str]:
    """Answers as long as it is entered, from a thread of its own. where: HOST:PORT, with port 0 for any that is free,
    or the path of a unix socket (mode 0600). text: what GET /metrics gets. Gives the address. EscalaError where it
    cannot listen there."""
    address = address_of(where)
    if address is None:
        with listening(Path(where)) as listener, _served(listener, text):
            yield where
        return
    with _bound(where, address) as listener, _served(listener, text):
        yield "{}:{}".format(*listener.getsockname()[:2])


@contextmanager
def _served(listener: socket.socket, text: Callable[[], str]) -> Iterator[None]:
    server = _Server(listener, text)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def _bound(where: str, address: tuple[str, int]) -> socket.socket:
    here = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        here.bind(address)
        here.listen(8)
    except (OSError, OverflowError) as error:
        here.close()
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise EscalaError(f"--metrics {where}: cannot be listened at ({reason}): name another port") from None
    return here


class _Server(ThreadingMixIn, TCPServer):
    """On a socket that is bound already."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, text: Callable[[], str]) -> None:
        BaseServer.__init__(self, listener.getsockname(), _Answer)
        self.socket, self.text = listener, text

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has left is no news."""


class _Answer(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        known = self.path.split("?")[0] == "/metrics"
        body = (self.server.text() if known else "what there is: /metrics\n").encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", FORM if known else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""
