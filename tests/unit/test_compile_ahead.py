"""A second process that translates what the first is about to need: from the other end, and into the same cache."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from escala.compile import machine, second, turns
from escala.compile.sources import ROOT
from tests.unit.translated import SEEN

MODULE = """
from escala.compile import compiled, lean

@lean
def low(a, i):
    return a[i] + 1

@lean
def first(a, i):
    return 2 * low(a, i)

@lean
def middle(a, i):
    return low(a, i) + max(i, 1) if i < 5 else first(a, i)

@lean
def last(a, i):
    x = 0.5
    return middle(a, i) + twice(x) + twice(i) + min(i, 9)

@lean
def twice(x):
    return x + x

@compiled
def one(a, i):
    return first(a, i) + last(a, int(middle(a, i)))
"""
USE = (
    """
import json, os, sys, time
import numpy as np
from escala import compile as front
import pieces

role, translated = sys.argv[1], []
if role == "ahead":
    from escala.compile import ahead, translation
    ahead.FEW = 0
    translation.make_ready()
    kind = front._whole_machine().kind_of((np.arange(9), 2))
    print("begun", flush=True)
    for name in ahead.translate(pieces.one, pieces.one.dispatcher(), tuple(map(ahead.type_of, kind))):
        translated.append(name)
        if "slow" in sys.argv:
            print("one", flush=True)
            time.sleep(60)
else:
"""
    + textwrap.indent(SEEN, "    ")
    + """
    print(float(pieces.one(np.arange(9), 2)))
print(json.dumps([name for name in translated if hasattr(pieces, name)]))
"""
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start USE in a new process; all are ended with the test."""
    (tmp_path / "pieces.py").write_text(MODULE)
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    begun: list[subprocess.Popen[str]] = []

    def one(*words: str, program: str = USE) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *words]
        both: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": os.environ | more}
        begun.append(subprocess.Popen(command, **both))
        return begun[-1]

    yield one
    for process in begun:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> tuple[float, list[str]]:
    """What the function returned, and what was translated for it."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    head, translated = out.splitlines()[-2:]
    return (0.0 if head == "begun" else float(head)), json.loads(translated)


@pytest.fixture(scope="module")
def answer() -> float:
    """By Python itself."""
    plain: dict[str, Any] = {}
    exec(MODULE.replace("from escala.compile import compiled, lean", "compiled = lean = lambda one: one"), plain)
    return float(plain["one"](np.arange(9), 2))


def test_it_begins_with_the_last_call_and_leaves_the_function_itself(
    start: Callable[..., Any], answer: float, tmp_path: Path
) -> None:
    """`last` is found once `middle`, on which its argument depends, is there; `twice` for numbers of both kinds."""
    _, ahead = said(start("ahead"))
    assert ahead == ["low", "first", "middle", "twice", "twice", "last"]
    assert said(start("first")) == (answer, ["one"])
    assert said(start("first")) == (answer, [])


def test_both_at_once_leave_a_sound_cache(start: Callable[..., Any], answer: float) -> None:
    both = start("ahead"), start("first")
    assert said(both[1])[0] == answer
    said(both[0])
    assert said(start("first")) == (answer, []) and said(start("ahead"))[1] == []


def test_one_that_is_killed_leaves_a_sound_cache(start: Callable[..., Any], answer: float) -> None:
    killed = start("ahead", "slow")
    assert [killed.stdout.readline() for _ in range(2)] == ["begun\n", "one\n"]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    returned, translated = said(start("first"))
    assert returned == answer and "low" not in translated and translated[0] == "one"


def test_what_was_kept_for_other_arguments_is_not_taken(
    start: Callable[..., Any], answer: float, tmp_path: Path
) -> None:
    """Each kind of arguments has a file of its own, which says whose it is."""
    said(start("first"))
    twice = sorted((tmp_path / "cache").rglob("*twice*.nbc"))
    assert len(twice) == 2
    twice[0].write_bytes(twice[1].read_bytes())
    for path in (tmp_path / "cache").rglob("*"):
        if path.suffix == ".machine" or "last" in path.name or ".one-" in path.name:
            path.unlink()
    assert said(start("first")) == (answer, ["one", "last", "twice"])


def test_types_are_those_of_the_arguments() -> None:
    from numba import typeof

    from escala.compile import ahead

    table, frozen = np.zeros((2, 3), np.float32), np.zeros(3)
    frozen.flags.writeable = False
    records = np.zeros(2, np.dtype([("a", "i4"), ("b", "f8", (2,))], align=True))
    for value in (table, table.T, table[:, ::2], frozen, records, np.zeros(1, [("c", "i8")]), 1, 1.5, True):
        (word,) = machine.kind_of((value,)) or ("",)
        assert ahead.type_of(word) == typeof(value), word


def test_it_ends_when_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from escala.compile import ahead

    monkeypatch.setattr(ahead, "IDLE_S", 0.01)
    asked = queue.SimpleQueue[list[Any]]()
    asked.put(["escala.kernel.bits", "population", ["i"]])
    ahead.work(asked)
    assert asked.empty()


def test_there_is_one_for_a_folder(tmp_path: Path) -> None:
    assert turns.only(tmp_path, "second")
    assert turns.only(tmp_path, "second") == (turns.fcntl is None)


ASKS = """
import os, sys, time
from pathlib import Path
from escala import compile as front
from escala.compile import second
second.ask("escala.kernel.drive", "drive_easy", ("C2<i8", "i", "i"), front.CACHE_FOLDER)
print(*(process.pid for process in second._begun), flush=True)
while "waits" in sys.argv:
    time.sleep(1)
"""


def ended(pid: int) -> bool:
    """Is there no such process, or only what says how it ended?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until(done: Callable[[], Any]) -> None:
    last = time.monotonic() + 200
    while not done():
        assert time.monotonic() < last, "not in time"
        time.sleep(0.05)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes are looked at by Linux's own files")
@pytest.mark.parametrize("killed", [True, False])
def test_it_ends_with_the_first(start: Callable[..., Any], tmp_path: Path, killed: bool) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is no processor for a second one")
    first = start(*(["waits"] if killed else []), program=ASKS)
    pid = int(first.stdout.readline())
    if killed:
        until(lambda: ended(pid) or list((tmp_path / "cache").rglob("*.nbc")))
        assert not ended(pid)
        first.kill()
    first.wait()
    until(lambda: ended(pid))


def test_none_begins_without_a_folder_a_processor_or_a_function_of_escala(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: begun.append(words))
    monkeypatch.setattr(second, "_begun", [])
    drive = "escala.kernel.drive", "drive_easy", ("C2<i8", "i", "i")
    second.ask(*drive, None)
    second.ask("pieces", "one", ("C1<i8", "i"), tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    second.ask(*drive, tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(sys, "executable", "/usr/bin/notebook")
    second.ask(*drive, tmp_path)
    assert begun == []


def test_a_cache_that_cannot_be_written_works_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code = """
import numpy as np
from escala.compile import CACHE_FOLDER
from escala.kernel.bits import population
from escala.compile import second
print(CACHE_FOLDER, int(population(5)), second._begun)
"""
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "file" / "cache"), "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=os.environ | more
    )
    assert done.stdout == "None 2 []\n", done.stderr
