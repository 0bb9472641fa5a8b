"""How the program begins and leaves: with no threads that it has no use for; with its status, what it wrote, what code
from outside left open, and what others asked for at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AROUND = """
import atexit, sys
sys.argv = ["escala", *sys.argv[1:]]
atexit.register(print, "asked for")
{before}
from escala.cli import program
program()
"""

ELSEWHERE = """
import tempfile
LOG = open("decisions.txt", "w")
LOG.write("one decision")
LEFT = tempfile.NamedTemporaryFile(dir=".", prefix="left")
def decide(view, act):
    return LOG
"""
"""A module as a policy's package may have it: its functions and what it holds are a circle."""


def _run(*words: str, before: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    code = AROUND.format(before=before)
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, cwd=folder)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [(["--version"], 0, "escala "), (["policies"], 0, "easy"), (["simulate", "no.swf"], 2, "")],
)
def test_what_was_left_open_is_closed_and_what_was_asked_for_is_done(
    words: list[str], status: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "narrow.py").write_text(ELSEWHERE)
    done = _run(*words, before="sys.path.insert(0, '.'); import narrow", folder=tmp_path)
    assert done.returncode == status and says in done.stdout
    assert done.stdout.splitlines()[-1] == "asked for", done.stdout + done.stderr
    assert {file.name for file in tmp_path.iterdir()} - {"__pycache__"} == {"narrow.py", "decisions.txt"}
    assert (tmp_path / "decisions.txt").read_text() == "one decision"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "escala", "--version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "error: no space left on device\n")


def test_a_profile_of_the_program_is_written(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "cProfile", "-o", tmp_path / "profile", "-m", "escala", "--version"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert (tmp_path / "profile").stat().st_size > 1000


def test_output_that_nobody_reads_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m escala policies | true; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and done.stdout.strip() in ("0", "1"), done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_replay_begins_no_threads_for_matrices(tmp_path: Path) -> None:
    before = "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None); os.environ['POLARS_MAX_THREADS'] = '1'\n"
    before += "atexit.register(lambda: (__import__('numpy'), print(len(os.listdir('/proc/self/task')), 'threads')))"
    assert "1 threads" in _run("simulate", "no.swf", before=before, folder=tmp_path).stdout
