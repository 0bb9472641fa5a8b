"""A desk behind a socket decides as the desk itself, whatever clients say and however often it dies."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import escala
from escala.bridges.answers import Answers
from escala.bridges.ending import told_to_end
from escala.bridges.serve import Limits
from escala.live import Desk, Snapshot, ask, request
from tests.bridges.served import Asking, Process, errors, served, talk
from tests.live.asked import desk_of, line_of, state_at
from tests.live.machine import Machine
from tests.live.twin import Case, case_of, platform_of


def _direct(case: Case) -> tuple[Any, int]:
    """The tables of a machine that asks a desk in this process, and how often it asked."""
    options = {name: value for name, value in case.options.items() if name != "start_off"}
    machine = Machine(case.platform, case.jobs)
    machine.run(lambda: Desk(platform_of(case), **options), Path("unused"), 0)
    return machine.tables(), machine.asked


@pytest.mark.parametrize(
    ("scheduler", "shutdown", "kind"), [("easy", "hold:0.5", "multi-core"), ("easy-fast", "inertial", "one-core")]
)
def test_orders_are_those_of_the_desk(tmp_path: Path, scheduler: str, shutdown: str, kind: str) -> None:
    case = case_of(scheduler, shutdown, kind, 60)
    expected, asked = _direct(case)
    options = {name: value for name, value in case.options.items() if name != "start_off"}
    for state in (None, tmp_path / "state.json"):
        answers = Answers(Desk(platform_of(case), **options), state)
        machine = Machine(case.platform, case.jobs)
        with served(tmp_path / "s", answers):
            machine.run(lambda: Asking(tmp_path / "s"), tmp_path / "unused", 0)  # type: ignore[arg-type,return-value]
        assert machine.tables() == expected and answers.decisions == asked > 50 and answers.errors == 0


def test_killed_and_begun_anew_it_gives_the_same_orders(tmp_path: Path) -> None:
    case = case_of("easy++", "off-reservation:1", "multi-core", 40)
    expected, asked = _direct(case)
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(platform_of(case).spec()))
    options = [
        *("--platform", str(tmp_path / "platform.yaml"), "--scheduler", "easy++", "--shutdown", "off-reservation:1"),
        *("--state", str(tmp_path / "state.json")),
    ]
    running = [Process(tmp_path / "s", *options)]
    assert "listening at" in running[0].first and "easy++ + off-reservation:1, 6 nodes" in running[0].first

    def killed() -> None:
        status, _, _ = running[-1].end(signal.SIGKILL)
        assert status == -signal.SIGKILL and (tmp_path / "s").exists()
        running.append(Process(tmp_path / "s", *options))

    machine = Machine(case.platform, case.jobs)
    machine.run(lambda: Asking(tmp_path / "s", killed), tmp_path / "unused", asked // 3)  # type: ignore[arg-type,return-value]
    status, out, err = running[-1].end()
    assert (status, err) == (0, "") and "ended: decisions" in out and not (tmp_path / "s").exists()
    assert machine.tables() == expected and machine.asked == asked and len(running) > 2


def test_what_was_decided_is_not_decided_twice(tmp_path: Path) -> None:
    """The answer was lost: the same line is asked again, of the same server and of the one after it."""
    state = tmp_path / "state.json"
    answers = Answers(desk_of("easy", "inertial"), state)
    line = line_of({"decide": state_at()})
    orders = answers.answer(line)
    assert answers.answer(line) == orders and answers.decisions == 1 and b"starts" in orders
    after = Answers(desk_of("easy", "inertial"), state)
    assert after.answer(line) == orders and after.decisions == 0
    assert after.answer(line_of({"decide": state_at(1001.0)})) == answers.answer(line_of({"decide": state_at(1001.0)}))


def test_a_job_that_could_never_run_is_refused_in_the_answer(tmp_path: Path) -> None:
    """Nothing would ever start behind it under fcfs; another server gives the same answer again."""
    told = state_at(cores=[2, 5, 1])
    for _ in range(2):
        with served(tmp_path / "s", Answers(desk_of("fcfs"), tmp_path / "state.json")):
            orders = ask(tmp_path / "s", told)
            assert request(tmp_path / "s", {"plan": told, "first": 5})["planned"] == [
                {"job_id": "c", "start_s": 1000.0}
            ]
        assert [one.job_id for one in orders.starts] == ["c"]
        assert orders.refused == (("b", "it needs 5 cores, and platform '4x1' has 4"),)


def test_no_orders_without_a_state_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of()
    answers = Answers(desk, tmp_path / "state.json")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(desk, "save", full)
        told = json.loads(answers.answer(line_of({"decide": state_at()})))
    assert "state.json: cannot be written (no space left on device), so no orders are given" in told["error"]
    told = json.loads(answers.answer(line_of({"decide": state_at()})))
    assert [one["job_id"] for one in told["starts"]] == ["c"] and answers.decisions == 1


GARBAGE = [
    (b"\n", "request: an empty line: send one request a line"),
    (b" \r\n", "request: an empty line"),
    (b"nonsense\n", "request: not valid JSON"),
    (b"\xff\xfe\x00\n", "request: not valid JSON"),
    (b"[" * 100_000 + b"\n", "request: not valid JSON"),
    (b"[]\n", "request: [] is no request"),
    (b"{}\n", "request: it asks nothing: name one of decide, plan, status"),
    (b'{"decide": 1, "plan": 2}\n', "it asks for decide and plan"),
    (b'{"decide": null}\n', "schema None is not 1"),
    (b'{"status": false}\n', "request: status is False: ask for it by true"),
    (b'{"status": true, "first": 3}\n', "'first' does not belong to status"),
    (line_of({"decide": {**state_at(), "schema": 2}}), "schema 2 is not 1"),
    (line_of({"decide": {**state_at(), "nodes": {"power": ["on"]}}}), "there are 1 nodes"),
    (line_of({"decide": state_at(cores=[2, 4, 9.5])}), "jobs.cores[2] is 9.5"),
    (
        line_of(
            {"decide": state_at(cores=[9, 4, 1]) | {"placed": {"job": [0], "first": [0], "last": [0], "cores": [9]}}}
        ),
        "more cores in placed",
    ),
    (line_of({"plan": state_at(), "first": True}), "first is True: give a whole number"),
    (line_of({"plan": state_at(), "first": 0}), "first=0"),
]


def test_garbage_is_one_line_each_and_the_server_goes_on(tmp_path: Path) -> None:
    answers = Answers(desk_of())
    with served(tmp_path / "s", answers):
        for data, words in GARBAGE:
            (told,) = talk(tmp_path / "s", data)
            assert list(told) == ["error"] and words in told["error"] and "\n" not in told["error"], words
        everything = talk(tmp_path / "s", b"".join(data for data, _ in GARBAGE), answers=len(GARBAGE))
        assert len(everything) == len(GARBAGE) and all("error" in told for told in everything)
        assert ask(tmp_path / "s", state_at()) == desk_of().decide(Snapshot.from_plain(state_at()))
        status = request(tmp_path / "s", {"status": True})["status"]
    assert (status["decisions"], status["errors"], status["nodes"], status["now_s"]) == (1, 2 * len(GARBAGE), 4, 1000.0)


def test_half_lines_and_long_lines(tmp_path: Path) -> None:
    limits = Limits(line_bytes=5000, half_s=0.3)
    with served(tmp_path / "s", Answers(desk_of()), limits):
        (told,) = talk(tmp_path / "s", b'{"status": tr', close=True)
        assert "half a line, and then the end" in told["error"]
        begin = time.monotonic()
        (told,) = talk(tmp_path / "s", b'{"status": tr', answers=2)
        assert "half a line for 0.3 s" in told["error"] and 0.25 < time.monotonic() - begin < 20
        good = line_of({"status": True})
        told, after = talk(tmp_path / "s", b" " * 2_000_000 + b"\n" + good, answers=2)
        assert "a line of more than 5000 bytes" in told["error"] and after["status"]["errors"] == 3
        told, after = talk(tmp_path / "s", b" " * 5001 + b"\n" + good, answers=2)
        assert "a line of more than 5000 bytes" in told["error"] and "status" in after
        (told,) = talk(tmp_path / "s", good[:-1] + b" " * (5000 - len(good)) + b"\n")
        assert "status" in told, "a line of that length is allowed"
        assert ask(tmp_path / "s", state_at()).starts


def test_half_lines_of_all_clients_together_are_bounded(tmp_path: Path) -> None:
    """The longest is refused, once; the others, and whoever asks meanwhile, are answered."""
    limits, good = Limits(line_bytes=5000, heard_bytes=8000), line_of({"status": True})
    with served(tmp_path / "s", Answers(desk_of()), limits), contextlib.ExitStack() as clients:
        talking = [clients.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) for _ in range(3)]
        for one, size in zip(talking, (2000, 4500, 3000), strict=True):
            one.settimeout(20)
            one.connect(str(tmp_path / "s"))
            one.sendall(b" " * size)
            assert ask(tmp_path / "s", state_at()).starts
        told = json.loads(talking[1].recv(1 << 16))
        assert told["error"] == "request: all clients have sent more than 8000 bytes of half lines: ask again later"
        talking[1].sendall(b" " * 20_000 + b"\n")
        for one in talking:
            one.sendall(good)
            assert json.loads(one.recv(1 << 16))["status"]["errors"] == 1


def test_clients_that_are_too_many_or_too_slow(tmp_path: Path) -> None:
    """Nobody waits for those who do not take their answers."""
    limits = Limits(clients=3, half_s=1.0, silent_s=30.0)
    with served(tmp_path / "s", Answers(desk_of()), limits):
        silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3)]
        for one in silent:
            one.connect(str(tmp_path / "s"))
        with pytest.raises(escala.EscalaError, match="3 clients are connected, as many as may be"):
            ask(tmp_path / "s", state_at())
        for one in silent[:2]:
            one.close()
        greedy = silent[2]
        greedy.setblocking(False)
        asked, line = 0, line_of({"status": True}) * 100
        try:
            while asked < 100_000_000:
                asked += greedy.send(line)
        except BlockingIOError:
            pass
        begin = time.monotonic()
        assert ask(tmp_path / "s", state_at()).starts
        assert time.monotonic() - begin < 10, "another client is answered meanwhile"
        time.sleep(1.2)
        assert request(tmp_path / "s", {"status": True})["status"]["decisions"] == 1
        greedy.settimeout(20)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(1000):
                greedy.sendall(line)
                time.sleep(0.01)
        greedy.close()


def test_a_refused_snapshot_leaves_no_trace() -> None:
    """Whatever was refused, and whatever was planned: the next decisions are those of a desk that never saw it."""
    rng = random.Random(7)
    for scheduler, shutdown in (("easy++", "hold:0.5"), ("easy-fast", "inertial")):
        plain, asked = Answers(desk_of(scheduler, shutdown)), Answers(desk_of(scheduler, shutdown))
        refused = 0
        for now in range(1000, 1030):
            ended = {"job_id": [f"b{now - 1}"], "start_s": [float(now - 9)], "end_s": [now - 9 + rng.random() * 8]}
            names, users = ["a", f"b{now}", "c"], rng.choice([["u", "v", "w"], ["x", "v", None]])
            told = state_at(float(now), job_id=names, user=users) | {"ended": ended}
            wrong = json.loads(json.dumps(told))
            wrong["nodes"]["power"][0] = "off"  # jobs run on it: found after all was loaded
            good = line_of({"decide": told})
            for more in (
                line_of({"decide": wrong}),
                line_of({"plan": told, "first": 2}),
                good[: rng.randrange(len(good))] + b"}",
            ):
                refused += b"error" in asked.answer(more)
            assert asked.answer(good) == plain.answer(good)
            assert asked._desk._carried == plain._desk._carried
        assert refused > 50 and (scheduler != "easy++" or plain._desk._carried.recent["v"][1] > 0)


def test_damaged_requests_are_answered() -> None:
    rng, answers = random.Random(3), Answers(desk_of())
    whole = line_of({"decide": state_at()})
    for _ in range(600):
        k = rng.randrange(len(whole))
        line = whole[:k] + bytes([rng.randrange(256)]) * rng.randint(0, 2) + whole[k + rng.randint(0, 3) :]
        told = answers.answer(line.replace(b"\n", b" "))
        assert b"\n" not in told and isinstance(json.loads(told), dict)
    assert answers.errors > 300


def test_faults_are_told_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of()
    with served(tmp_path / "s", Answers(desk)):
        with monkeypatch.context() as patched:
            patched.setattr(desk, "decide", lambda _: [][1])
            with pytest.raises(escala.EscalaError, match=r"IndexError: list index out of range \(a fault of Escala"):
                ask(tmp_path / "s", state_at())
        assert ask(tmp_path / "s", state_at()).starts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_after_the_decision_at_hand(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with told_to_end() as ending:
        with pytest.raises(BlockingIOError):
            ending.recv(1)
        signal.raise_signal(number)
        assert ending.recv(1)
    assert signal.getsignal(number) is before


def test_bad_calls_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from escala.cli.app import run

    verb = ["serve", "--platform", "4x1:grid5000", "--socket", str(tmp_path / "s")]
    state = tmp_path / "state.json"
    Desk("4x1:grid5000", "saf").save(state)
    (tmp_path / "file").write_text("")
    (tmp_path / "torn").write_text(state.read_text()[:30])
    for more, words in (
        (["--state", str(state)], "policies 'saf + never', this desk has 'easy + never'"),
        (["--state", str(tmp_path / "none" / "state.json")], "there is no folder"),
        (["--scheduler", "nonsense"], "unknown scheduler"),
        (["--scheduler", "conservative"], "give rebuild=True (--rebuild)"),
        (["--socket", str(tmp_path / "file")], "is no socket"),
        (["--state", str(tmp_path / "." / "s")], "is the path of --socket too: name another file"),
        (
            ["--state", str(tmp_path / "torn")],
            "not valid JSON (Expecting ',' delimiter): remove it, and begin anew: what the policies remember",
        ),
    ):
        assert run([*verb, *more]) == 2
        out, err = capsys.readouterr()
        assert words in err and errors(err).count("\n") == 1 and out == "" and not (tmp_path / "s").exists()


def test_asking_compiles_nothing() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from escala.live import ask; print([m for m in ('numpy', 'numba', 'polars') if m in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert outcome.stdout == "[]\n", outcome.stderr[-2000:]
