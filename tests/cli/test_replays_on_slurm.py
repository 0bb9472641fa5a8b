"""Verbs that replay one log many times, on Slurm: tasks begin the command again, what is written is that of other
engines, and nothing is lost. Beside a stand-in, and beside a real Slurm where one is installed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.engines import on_slurm
from tests.cli.program import Escala
from tests.cli.test_replays_on_engines import VERBS, _files, weeks
from tests.unit.campaigns.test_on_slurm import PAGE
from tests.unit.tuning.test_search import PROMISE
from tests.unit.tuning.test_search import _mixed as mixed

__all__ = ["weeks"]
MIXED = "mixed.csv"
"""Fourteen weeks, in which tune finds searched weights."""
ARRAYS = ".out.partial/arrays"
N_ARRAYS = {"compare": 1, "what-if": 1, "frontier": 3, "tune": 6}


@pytest.fixture
def asked(log: Path, weeks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """verb -> its command line, with relative paths."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    Path(weeks.name).symlink_to(weeks)
    mixed().jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user").write_csv(MIXED)
    logs = {"frontier": weeks.name, "tune": MIXED}
    return lambda verb: (
        verb,
        logs.get(verb, log.name),
        *VERBS[verb],
        *(("--promise", PROMISE) if verb == "tune" else ()),
    )


MARKED = [pytest.param(verb, marks=pytest.mark.long) if verb == "tune" else verb for verb in VERBS]


def _submitted(slurm: Path) -> int:
    return sum(line.startswith("sbatch ") for line in (slurm / "calls").read_text().splitlines())


@pytest.mark.parametrize("verb", MARKED)
def test_what_is_written_is_that_of_local(verb: str, asked: Any, escala_: Escala, slurm: Path, tmp_path: Path) -> None:
    (page,) = re.findall(r"^escala compare .*--on (slurm\S+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for on in ("local:1", page.replace("tasks=16", "tasks=3")):
        done = escala_(*asked(verb), "--out", "out", "--on", on)
        assert done.status == 0 and "kept from" not in done.err, done.err
        assert not (tmp_path / ".out.partial").exists()
        (tmp_path / "out").rename(tmp_path / f"{on.partition(':')[0]}-out")  # pages name the folder
    assert _files(tmp_path / "local-out") == _files(tmp_path / "slurm-out")
    assert _submitted(slurm) == N_ARRAYS[verb]


def test_policies_outside_the_kernel_are_one_by_one_in_a_task_of_several_processors(
    asked: Any, escala_: Escala, slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    for on in ("local:2", "slurm:tasks=1"):
        assert escala_(*asked("compare"), "--out", on, "--on", on).status == 0
    assert _files(tmp_path / "local:2") == _files(tmp_path / "slurm:tasks=1")


def test_a_pair_that_ends_its_task_is_named(asked: Any, escala_: Escala, slurm: Path, tmp_path: Path) -> None:
    (slurm / "deadly").write_text("random")
    done = escala_(*asked("compare"), "--out", "out", "--on", "slurm:tasks=2")
    assert done.status == 2 and f"error: random + never: {on_slurm.ENDED}: out of memory" in done.err, done.err
    assert not (tmp_path / "out").exists() and _submitted(slurm) > 1, "it was tried once more"
    (slurm / "deadly").unlink()
    again = escala_(*asked("compare"), "--out", "out", "--on", "local:1")
    assert again.status == 0 and "runs were kept from an interrupted comparison" in again.err


def _begun(words: Any, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "escala", *words, *more], stderr=subprocess.PIPE)


ENDS = [
    ("compare", signal.SIGKILL),
    ("compare", signal.SIGINT),
    pytest.param("tune", signal.SIGKILL, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("verb", "how"), ENDS)
def test_an_array_outlives_the_command_and_is_taken_up(
    verb: str, how: signal.Signals, asked: Any, escala_: Escala, slurm: Path, tmp_path: Path
) -> None:
    assert escala_(*asked(verb), "--out", "out", "--on", "local:1").status == 0
    (tmp_path / "out").rename(tmp_path / "whole")
    ended = _begun(asked(verb), "--out", "out", "--on", "slurm:tasks=2")
    begin = time.monotonic()
    while not any((tmp_path / ARRAYS).glob(f"{on_slurm.Array.PREFIX}*/keys")):
        assert ended.poll() is None and time.monotonic() - begin < 60
        time.sleep(0.02)
    ended.send_signal(how)
    said = ended.communicate(timeout=20)[1].decode()
    assert not (tmp_path / "out").exists() and (
        how == signal.SIGKILL or "the same command takes it up; scancel --name=escala-" in said
    ), said
    n = _submitted(slurm)
    done = escala_(*asked(verb), "--out", "out", "--on", "local:1" if how == signal.SIGINT else "slurm:tasks=2")
    assert done.status == 0, done.err
    assert _files(tmp_path / "out") == _files(tmp_path / "whole") and not (tmp_path / ".out.partial").exists()
    assert n == 1 and _submitted(slurm) == N_ARRAYS[verb], "nothing is asked for twice"
    assert how == signal.SIGKILL or "scancel --name=escala-" in (slurm / "calls").read_text(), (
        "another engine ends the array"
    )


def test_a_node_that_finds_another_log_is_named_and_forgets_nothing(
    asked: Any, escala_: Escala, slurm: Path, tmp_path: Path
) -> None:
    (slurm / "deadly").write_text("random")
    assert escala_(*asked("compare"), "--out", "out", "--on", "slurm:tasks=4").status == 2
    (slurm / "deadly").unlink()
    own, other = (slurm / "sbatch").read_text(), slurm / "own"
    other.mkdir()
    (other / "sbatch").write_text(own)
    (other / "sbatch").chmod(0o755)
    (slurm / "sbatch").write_text(
        f"#!/bin/sh\necho '5 500 -1 30 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1' >>small.swf\nexec {other}/sbatch \"$@\"\n"
    )
    log = Path("small.swf").read_text()
    done = escala_(*asked("compare"), "--out", "out", "--on", "slurm:tasks=2")
    assert (
        done.status == 2 and "finds another log, policy or model there" in done.err and done.err.count("error: ") == 1
    ), done.err
    Path("small.swf").write_text(log)
    (slurm / "sbatch").write_text(own)
    again = escala_(*asked("compare"), "--out", "out", "--on", "slurm:tasks=2")
    assert again.status == 0 and "6 of 8 runs were kept from an interrupted comparison" in again.err, again.err


def test_bad_input_is_one_line_and_leaves_nothing(
    asked: Any, escala_: Escala, slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = sorted(tmp_path.iterdir())

    def refused(said: str, *words: str) -> None:
        done = escala_(*asked("compare"), *words)
        assert done.status == 2 and said in done.err and done.err.count("\n") == 1, done.err
        assert sorted(tmp_path.iterdir()) == there

    refused("--on slurm needs --out DIR, which every node sees", "--on", "slurm")
    refused("--jobs 2 is --on local:2", "--on", "slurm", "--jobs", "2", "--out", "out")
    (slurm / "refuse").write_text("invalid partition specified: shrt")
    refused(
        "sbatch refuses the array (--on slurm): sbatch: error: invalid partition specified: shrt",
        "--on",
        "slurm:partition=shrt",
        "--out",
        "out",
    )
    (slurm / "refuse").unlink()
    with monkeypatch.context() as other:
        # as where a node sees neither the folder nor the program
        other.setattr(on_slurm.sys, "executable", "/bin/false")
        refused("no task of the array has begun to work (--on slurm)", "--on", "slurm", "--out", "out")
    with pytest.raises(escala.EscalaError, match=r"Slurm takes this as a command alone") as told:
        escala.compare("small.swf", "4x1", on="slurm")
    assert "\n" not in str(told.value)
    monkeypatch.setenv("PATH", "/nowhere")
    refused("sbatch is not on the PATH", "--on", "slurm", "--out", "out")


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.parametrize("verb", MARKED)
def test_beside_a_real_slurm(verb: str, asked: Any, escala_: Escala, tmp_path: Path, on_real_slurm: None) -> None:
    for on in ("local:1", "slurm:tasks=3:cpus-per-task=2"):
        done = escala_(*asked(verb), "--out", "out", "--on", on)
        assert done.status == 0, done.err
        (tmp_path / "out").rename(tmp_path / on)
    assert _files(tmp_path / "local:1") == _files(tmp_path / "slurm:tasks=3:cpus-per-task=2")
    done = escala_(*asked(verb), "--out", "other", "--on", "slurm:partition=none")
    assert (
        done.status == 2
        and "sbatch refuses the array" in done.err
        and "partition" in done.err
        and not Path("other").exists()
    )
