"""The socket of a server: its owner's alone, taken over from the dead, and never somebody else's."""

from __future__ import annotations

import contextlib
import signal
import socket
import stat
from pathlib import Path

import pytest

import escala
from escala.bridges.answers import Answers
from escala.bridges.place import listening
from escala.live import Desk, ask, request
from tests.bridges.served import Process, served
from tests.live.asked import desk_of, state_at


def test_the_socket_is_its_owners_and_that_of_a_dead_server_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    assert path.exists()
    with served(path, Answers(desk_of())):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_ISSOCK(path.stat().st_mode)
        with pytest.raises(escala.EscalaError, match="a server that lives listens there"), listening(path):
            pass
        assert ask(path, state_at()).starts, "and goes on"
    path.write_text("precious")
    with pytest.raises(escala.EscalaError, match="is no socket: name another one"), listening(path):
        pass
    assert path.read_text() == "precious"
    for wrong, words in (
        (tmp_path / "none" / "s", "there is no folder"),
        (tmp_path / ("s" * 120), "more than 107 bytes"),
    ):
        with pytest.raises(escala.EscalaError, match=words), listening(wrong):
            pass


def test_a_socket_that_somebody_else_put_there_stays(tmp_path: Path) -> None:
    with listening(tmp_path / "s"):
        (tmp_path / "s").unlink()
        (tmp_path / "s").write_text("another")
    assert (tmp_path / "s").read_text() == "another"


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(escala.EscalaError, match=r"s: nobody can be asked there \(no such file"):
        ask(tmp_path / "s", state_at())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen(1)
        with pytest.raises(escala.EscalaError, match=r"no answer within 0\.2 s"):
            ask(tmp_path / "s", state_at(), timeout_s=0.2)


def test_two_servers_do_not_share_a_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even at two sockets; one that was killed keeps nobody out."""
    from escala.bridges.place import alone_with
    from escala.cli.app import run

    state = tmp_path / "state.json"
    begun = Process(tmp_path / "first", "--platform", "4x1:grid5000", "--state", str(state))
    assert (
        run(["serve", "--platform", "4x1:grid5000", "--socket", str(tmp_path / "second"), "--state", str(state)]) == 2
    )
    assert f"{state}: another server keeps its state there: end it, or name another file" in capsys.readouterr().err
    begun.end(signal.SIGKILL)
    with alone_with(state):
        assert Desk("4x1:grid5000").restore(state) is not None
    assert [path.name for path in tmp_path.iterdir()].count("state.json.lock") == 0


def test_who_asks_waits_where_too_many_are_waiting(tmp_path: Path) -> None:
    """A full backlog is said at once to a socket with a time limit; it is no absence."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, contextlib.ExitStack() as others:
        listener.bind(path)
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                one = others.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.setblocking(False)
                one.connect(path)
        with pytest.raises(escala.EscalaError, match=r"no answer within 0\.2 s"):
            request(path, {"status": True}, timeout_s=0.2)
