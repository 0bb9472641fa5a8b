"""The line of a program that is ended by a signal tells what stands on the disk, wherever the signal comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import LOG

PROGRAM = """
import os, signal, sys
from escala.cli import app, interrupt, terminal
from escala.writing import files, folder, moves, settling

def hit(*given, **named):
    os.kill(os.getpid(), signal.{signal})

def after(step):
    def stepped(*given, **named):
        found = step(*given, **named)
        if os.path.basename(given[1]) == "out":
            hit()
        return found
    return stepped

{change}
interrupt.listen_for_termination()
sys.exit(app.run(sys.argv[1:]))
"""
BEFORE = "folder.sign = hit"
SWAPPED = "settling.moves.move = after(moves.move)"
EXCHANGED = "settling.moves.exchange = after(moves.exchange)"
TOLD = "sys.stdout.write = hit"
SIMULATE = ["simulate", "small.swf", "--platform", "4x1", "--out", "out", "--json"]
WHOLE = "out: written before that, and whole"


def ended(folder: Path, change: str, arguments: list[str], by: str = "SIGTERM") -> tuple[int, str]:
    """(exit status, stderr) of the program with a signal where `change` puts it."""
    (folder / "small.swf").write_text(LOG)
    asked = [sys.executable, "-c", PROGRAM.format(signal=by, change=change), *arguments]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr.splitlines()[-1]


BY_CTRL_C = pytest.param("SIGINT", "interrupted", 130, marks=pytest.mark.long)


@pytest.mark.parametrize(("by", "word", "status"), [("SIGTERM", "terminated", 143), BY_CTRL_C])
def test_an_output_that_is_in_its_place_is_said_to_be_there(tmp_path: Path, by: str, word: str, status: int) -> None:
    assert ended(tmp_path, BEFORE, SIMULATE, by) == (status, f"error: {word}; nothing was written")
    assert not (tmp_path / "out").exists()
    assert ended(tmp_path, SWAPPED, SIMULATE, by) == (status, f"error: {word}; {WHOLE}")
    assert (tmp_path / "out" / "summary.json").is_file()
    assert ended(tmp_path, BEFORE, SIMULATE, by) == (status, f"error: {word}; nothing was written")
    assert ended(tmp_path, EXCHANGED, SIMULATE, by) == (status, f"error: {word}; {WHOLE}")
    assert ended(tmp_path, TOLD, SIMULATE, by) == (status, f"error: {word}; {WHOLE}")
    assert [path.name for path in tmp_path.iterdir() if path.name != "small.swf"] == ["out"]


def test_an_output_file_likewise(tmp_path: Path) -> None:
    arguments = ["workload", "convert", "small.swf", "--out", "other.swf", "--json"]
    assert ended(tmp_path, "files.moves.move = hit", arguments) == (143, "error: terminated; nothing was written")
    assert ended(tmp_path, TOLD, arguments) == (143, "error: terminated; other.swf: written before that, and whole")


def test_pieces_that_are_kept_are_told_also_behind_the_replays(tmp_path: Path) -> None:
    arguments = [
        "compare",
        "small.swf",
        "--platform",
        "4x1",
        "--schedulers",
        "fcfs,easy",
        "--jobs",
        "1",
        "--out",
        "out",
    ]
    kept = "error: terminated; what was finished is kept beside out: the same command goes on"
    behind = "import escala.studies.lab.saving as saving; saving.save_runs = hit"
    assert ended(tmp_path, behind, arguments) == (143, kept)
    assert ended(tmp_path, "import escala.cli.replay as replay; replay.read_log = hit", arguments) == (143, kept), (
        "of an earlier run"
    )
    assert ended(tmp_path, "pass", arguments)[0] == 0


def test_a_folder_that_grows_is_told_where_it_has_grown(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'logs = ["small.swf"]\nplatforms = ["4x1"]\nschedulers = ["easy"]\nshutdowns = ["never"]\n'
    )
    arguments = ["campaign", "c.toml", "--on", "local:1", "--out", "out", "--json"]
    assert ended(tmp_path, TOLD, arguments) == (143, "error: terminated; out holds what was written until then")


def test_when_all_is_told_a_signal_ends_the_program_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "small.swf").write_text(LOG)
    change = "import escala.cli.app as app_; app_.sys.stdout.flush = hit; sys.argv[0] = 'escala'"
    program = PROGRAM.format(signal="SIGTERM", change=change).replace("sys.exit(app.run(sys.argv[1:]))", "app.main()")
    done = subprocess.run(
        [sys.executable, "-c", program, *SIMULATE], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == -signal.SIGTERM and "Traceback" not in done.stderr and "nothing" not in done.stderr


def test_python_says_nothing_of_what_an_ended_verb_leaves_to_its_helper() -> None:
    """A verb that works in processes and is ended leaves semaphores, which Python's helper removes, and of which it
    would warn."""
    code = (
        "import contextlib, os, sys\n"
        "from multiprocessing import get_context\n"
        "from escala.cli.app import main\n"
        "sys.argv = ['escala', '--version']\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "kept = get_context('spawn').Semaphore()\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout
