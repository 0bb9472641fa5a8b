"""How the program begins and leaves: with no threads that it has no use for; at once, with its status, what it wrote,
and what others asked for at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AROUND = """
import atexit, sys
sys.argv = ["escala", *sys.argv[1:]]
{before}
class Taken:
    def __del__(self):
        print("taken apart")
kept = Taken()
atexit.register(print, "asked for")
from escala.cli import program
program()
"""


def _run(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = AROUND.format(before=before)
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [(["--version"], 0, "escala "), (["policies"], 0, "easy"), (["simulate", "no.swf"], 2, "")],
)
def test_nothing_is_taken_apart_and_all_that_was_asked_for_is_done(words: list[str], status: int, says: str) -> None:
    done = _run(*words)
    assert done.returncode == status and says in done.stdout
    assert done.stdout.splitlines()[-1] == "asked for", done.stdout + done.stderr


@pytest.mark.parametrize(
    "before",
    [
        "import types; sys.modules['torch'] = types.ModuleType('torch')",
        "import threading, time; threading.Thread(target=time.sleep, args=(0.5,)).start()",
    ],
)
def test_what_has_an_end_of_its_own_gets_it(before: str) -> None:
    assert _run("--version", before=before).stdout.splitlines()[-2:] == ["asked for", "taken apart"]


def test_output_that_nobody_reads_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m escala policies | true; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and done.stdout.strip() in ("0", "1"), done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_replay_begins_no_threads_for_matrices() -> None:
    before = "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None); os.environ['POLARS_MAX_THREADS'] = '1'\n"
    before += "atexit.register(lambda: (__import__('numpy'), print(len(os.listdir('/proc/self/task')), 'threads')))"
    assert "1 threads" in _run("simulate", "no.swf", before=before).stdout
