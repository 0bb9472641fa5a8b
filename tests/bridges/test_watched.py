"""Services that are watched: figures at an address, and what systemd is told."""

from __future__ import annotations

import http.client
import os
import socket
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from escala.bridges.exposed import exposed
from escala.bridges.notify import Notify
from escala.cli.beside import _waiting
from escala.errors import EscalaError


def _asked_over(path: str, word: str = "/metrics") -> tuple[int, str]:
    """What a unix socket answers."""
    there = http.client.HTTPConnection("localhost", timeout=5)
    there.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    there.sock.connect(path)
    there.request("GET", word)
    answer = there.getresponse()
    return answer.status, answer.read().decode()


def test_figures_at_a_port() -> None:
    told = ["escala_beside_looks_total 1\n"]
    with exposed("127.0.0.1:0", lambda: told[0]) as address:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            assert answer.read().decode() == told[0] and answer.headers["Content-Type"].startswith(
                "text/plain; version=0.0.4"
            )
        told[0] = "escala_beside_looks_total 2\n"
        assert urllib.request.urlopen(f"http://{address}/metrics?x=1", timeout=5).read().decode() == told[0]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{address}/", timeout=5)
        with pytest.raises(EscalaError, match="cannot be listened at"), exposed(address, lambda: ""):
            pass
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=1)


def test_a_client_that_says_half_a_line_keeps_nobody_waiting() -> None:
    with exposed("localhost:0", lambda: "x 1\n") as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as slow:
            slow.sendall(b"GET /met")
            begun = time.monotonic()
            assert urllib.request.urlopen(f"http://{address}/metrics", timeout=5).read() == b"x 1\n"
            assert time.monotonic() - begun < 2


def test_figures_at_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "m.sock")
    with exposed(path, lambda: "x 1\n"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert _asked_over(path) == (200, "x 1\n") and _asked_over(path, "/other")[0] == 404
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("9464", "give HOST:PORT, as 127.0.0.1:9464, or the path of a socket"),
        ("0.0.0.0:9464", "others could ask there: give 127.0.0.1:9464"),
        ("192.0.2.7:9464", "others could ask there"),
        ("[::]:1", "others could ask there"),
        ("example.org:80", "example.org is no address"),
        ("127.0.0.1:99999", "cannot be listened at"),
        ("/nowhere/m.sock", "there is no folder /nowhere"),
    ],
)
def test_addresses_that_are_refused(where: str, said: str) -> None:
    with pytest.raises(EscalaError, match=said.replace("[", r"\[")) as raised, exposed(where, lambda: ""):
        pass
    assert "\n" not in str(raised.value)


@pytest.fixture(params=["path", "abstract"])
def systemd(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], list[str]]]:
    """A socket that hears what systemd would hear; gives the lines so far."""
    name = str(tmp_path / "n.sock") if request.param == "path" else f"@escala-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as here:
        here.bind(name if name[0] == "/" else "\0" + name[1:])
        here.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        heard: list[str] = []

        def lines() -> list[str]:
            while True:
                try:
                    heard.extend(here.recv(4096).decode().split("\n"))
                except BlockingIOError:
                    return heard

        yield lines


def test_what_systemd_hears(systemd: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    service = Notify()
    assert service.beat_s == 30.0
    service.ready("shadow")
    service.alive("looks 1,\nmissed 0")
    service.stopping()
    assert systemd() == ["READY=1", "STATUS=shadow", "WATCHDOG=1", "STATUS=looks 1, missed 0", "STOPPING=1"]
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert Notify().beat_s is None, "the watchdog of another process"


def test_nobody_listens_and_nobody_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("", "nonsense", str(tmp_path / "none.sock")):
        monkeypatch.setenv("NOTIFY_SOCKET", where)
        monkeypatch.setenv("WATCHDOG_USEC", "x")
        service = Notify()
        service.ready("shadow")
        assert service.beat_s is None


def test_it_is_alive_while_it_waits_for_the_next_look(
    systemd: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watchdog of .2 s, a wait of 1 s; and it ends at once when it is told to."""
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    here, there = socket.socketpair()
    with here, there:
        wait = _waiting(here, Notify())
        assert wait(1.0) is False
        assert 5 <= systemd().count("WATCHDOG=1") <= 10
        threading.Timer(0.1, there.send, [b"x"]).start()
        begun = time.monotonic()
        assert wait(30.0) is True and time.monotonic() - begun < 5
