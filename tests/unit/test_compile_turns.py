"""Processes that need the same compiled code at the same time: one translates it, the others wait and load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from escala.compile import turns

pytestmark = pytest.mark.skipif(turns.fcntl is None, reason="no such locks on this system")

MODULE = """
from escala.compile import compiled, lean

@lean
def part(a, i):
    return a[i] + 1

@lean
def checked(a, i):
    if i < 0:
        raise ValueError("below 0")
    return part(a, i)

@compiled
def kept(a, i):
    return part(a, i)

@compiled
def raising(a, i):
    return checked(a, i)
"""
# The first writes `begun` when it begins to translate, and goes on once another one waits; that writes `waits`.
USE = """
import json, sys, time
from pathlib import Path
import numpy as np
from escala import compile as front
import pieces

here, role, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
translated = []

def watch():
    from numba.core import event

    class Seen(event.Listener):
        def on_start(self, event):
            translated.append(event.data["dispatcher"].py_func.__name__)
            if role == "first" and len(translated) == 1:
                (here / "begun").touch()
                while not (here / "waits").exists():
                    time.sleep(0.01)
        def on_end(self, event):
            pass

    event.register("numba:compile", Seen())

if role == "second":
    front.when_compiling((here / "waits").touch)
if role == "first" or name == "raising":
    watch()
found = int(getattr(pieces, name)(np.arange(3), 2))
print(json.dumps([found, translated, "numba" in sys.modules]))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start USE in a new process; all are ended with the test."""
    (tmp_path / "pieces.py").write_text(MODULE)
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    begun: list[subprocess.Popen[str]] = []

    def one(role: str, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", USE, str(tmp_path), role, name]
        begun.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | more)
        )
        return begun[-1]

    yield one
    for process in begun:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> Any:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out)


def seen(path: Path) -> None:
    until = time.monotonic() + 200
    while not path.exists():
        assert time.monotonic() < until, f"{path.name}: not in time"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "translated", "numba"),
    [("kept", ["kept", "part"], False), ("raising", ["raising", "checked", "part"], True)],
)
def test_one_of_two_translates(
    start: Callable[..., Any], tmp_path: Path, name: str, translated: list[str], numba: bool
) -> None:
    """Both what is kept as machine code and what is Numba's alone."""
    first = start("first", name)
    seen(tmp_path / "begun")
    second = start("second", name)
    assert said(first) == [3, translated, True]
    assert said(second) == [3, [], numba]


def test_a_lock_ends_with_its_process(start: Callable[..., Any], tmp_path: Path) -> None:
    first = start("first", "kept")
    seen(tmp_path / "begun")
    second = start("second", "kept")
    first.send_signal(signal.SIGSTOP)  # stands still while the other one waits
    seen(tmp_path / "waits")
    first.kill()
    assert said(second)[0] == 3


def test_whoever_cannot_lock_translates_alone(start: Callable[..., Any], tmp_path: Path) -> None:
    said(start("alone", "kept"))
    (lock,) = (tmp_path / "cache").rglob("kept.lock")
    for path in (*lock.parent.rglob("*.machine"), *lock.parent.rglob("*.nb?"), lock):
        path.unlink()
    lock.mkdir()
    assert said(start("alone", "kept"))[0] == 3 and list(lock.parent.rglob("*.machine"))


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a process that stands still: the limit, and what is said meanwhile."""
    told: list[None] = []
    monkeypatch.setattr(turns, "LIMIT_S", 0.2)
    handle = os.open(tmp_path / "f.lock", os.O_RDWR | os.O_CREAT)
    turns.fcntl.flock(handle, turns.fcntl.LOCK_EX)
    with turns.turn(tmp_path, "f", lambda: told.append(None)), turns.turn(tmp_path, "f", lambda: told.append(None)):
        assert len(told) == 1, "a thread that has a turn asks for no second one"
    os.close(handle)
    with turns.turn(tmp_path, "f", lambda: told.append(None)):
        pass
    assert len(told) == 1
