"""What a person at a terminal sees, and what a program that reads along does not: progress with the time left, and
colours."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from escala.compiling import LINE

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
ESCAPE, TIME_LEFT = "\x1b[", re.compile(r"\d:\d\d:\d\d.*left", re.DOTALL)


def _at_a_terminal(arguments: list[str], stream: str) -> tuple[str, str]:
    """(what the terminal on `stream` got, what came through a pipe on the other of stdout and stderr)."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end was closed
            while part := os.read(ours, 65536):
                seen.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs}
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        "COLUMNS": "120",
    }
    try:
        done = subprocess.run([sys.executable, "-m", "escala", *arguments], env=environment, timeout=240, **streams)  # type: ignore[call-overload]
    finally:  # else the reader waits for ever
        os.close(theirs)
        reader.join(20)
        os.close(ours)
    piped = done.stderr if stream == "stdout" else done.stdout
    assert done.returncode == 0, piped
    return b"".join(seen).decode(), piped.decode()


def _compare(log: Path) -> list[str]:
    return [
        "compare",
        str(log),
        "--platform",
        "4x1:grid5000",
        "--schedulers",
        "fcfs,easy,saf",
        "--shutdowns",
        "never,timeout:0",
    ]


def test_progress_and_its_time_left_go_to_the_terminal_alone(log: Path) -> None:
    seen, piped = _at_a_terminal([*_compare(log), "--json"], "stderr")
    assert TIME_LEFT.search(seen) and f"reading {log.name}" in seen.replace(f"{log.parent}/", "")
    assert len(json.loads(piped)) == 6, "stdout has the document and nothing else"


def test_a_pipe_gets_no_colours_and_no_progress(log: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "escala", *_compare(log)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr in ("", f"{LINE}\n") and ESCAPE not in done.stdout
    assert "saf + timeout:0" in done.stdout


def test_a_terminal_gets_them(log: Path) -> None:
    seen, piped = _at_a_terminal(_compare(log), "stdout")
    assert ESCAPE in seen and "saf + timeout:0" in seen and piped == ""
