"""Beside a real Slurm of eight emulated nodes: choose these tests with -m slurm; they are skipped where Slurm is not installed."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.cli.app import run
from tests.bridges.slurm.lab import Lab, lab, once_watched

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=3,switch_on_s=5"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


def _beside(*options: str) -> None:
    assert run(["beside", "slurm", "--power", WATTS, "--period", "1", *options]) == 0


def _state(real: Lab) -> str:
    """All that the controller keeps of jobs, nodes and reservations, without what changes by itself."""
    told = "".join(
        real.run("scontrol", "--oneliner", "--details", "show", what) for what in ("jobs", "nodes", "reservations", "partitions")
    )
    moving = r"(RunTime|CPULoad|FreeMem|LastSchedEval|Scheduler|StartTime|EndTime|Reason|Priority)=\S*|\+PLANNED"
    return re.sub(moving, "", told)


def test_shadow_changes_nothing_and_agrees_with_what_happens(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    real.submit("-N8", "-t5", seconds=120)
    waiting = [real.submit("-N2", "-t1", "--exclusive") for _ in range(3)]
    time.sleep(3)
    before = _state(real)
    folder, policies = tmp_path / "before", ("--scheduler", "fcfs", "--shutdown", "timeout:2")
    _beside(*policies, "--folder", str(folder), "--looks", "4")
    assert _state(real) == before
    assert not [job for one in records(folder / JOURNAL) for job in one.get("starts", ())], "the machine is full"
    folder = tmp_path / "after"
    with once_watched(folder, lambda: real.run("scancel", "1")):
        _beside(*policies, "--folder", str(folder), "--looks", "14")
    looks = [one for one in records(folder / JOURNAL) if one["kind"] == "look"]
    assert not [one for one in records(folder / JOURNAL) if one["kind"] == "miss"]
    started = {row[0]: row[4] for one in looks for row in one.get("started", ())}
    assert started == dict.fromkeys(waiting, "same")
    assert sum(one["lived"].get("off_s", 0.0) for one in looks) > 0, "idle nodes would have gone off"
    assert all("DOWN" not in line for line in real.run("sinfo", "-h", "-N", "-o", "%N %T").upper().splitlines())


def _beside_until(what: Callable[[], bool], *options: str) -> None:
    """Looks, until something has come true."""
    end = time.monotonic() + 90
    while not what():
        assert time.monotonic() < end
        _beside(*options, "--looks", "4")


def _jobs(real: Lab) -> dict[str, tuple[str, int]]:
    """Job -> state and start, those that have ended included."""
    lines = real.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%S").splitlines()
    return {number: (state, int(start)) for number, state, start in (line.split("|") for line in lines) if start.isdigit()}


def _until(what: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.5)
    return False


def test_order_mode_makes_slurm_start_jobs_as_the_policy_wants(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    assert _until(lambda: "alloc" not in real.run("sinfo", "-h", "-o", "%T"), 30)
    full = real.submit("-N8", "-t5", seconds=200)
    jobs = {minutes: real.submit("-N8", f"-t{minutes}", seconds=1) for minutes in (7, 3, 8, 1, 6, 2, 5, 4)}
    time.sleep(2)
    with once_watched(tmp_path, lambda: real.run("scancel", full)):
        _beside("--mode", "order", "--i-am-root", "--scheduler", "sjf", "--folder", str(tmp_path), "--looks", "5")
    commands = [command for one in records(tmp_path / JOURNAL) for command, done in one.get("acted", ()) if done]
    assert 0 < len(commands) <= 8 and all(re.fullmatch(r"scontrol update jobid=\d+ nice=-?\d+", command) for command in commands)
    assert _until(lambda: all(_jobs(real).get(job, ("",))[0] == "COMPLETED" for job in jobs.values()), 60)
    started = _jobs(real)
    assert sorted(jobs, key=lambda minutes: started[jobs[minutes]][1]) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_power_mode_leaves_nothing_behind(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes go off under leases; a job wakes what it needs; the process ends without a word, and Slurm has its nodes back."""
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    guards = ("--allow", "n[1-8]", "--spare", "0", "--switches", "60", "--min-on", "0", "--min-off", "0", "--lease", "20", "--i-am-root")
    common = ("--mode", "full", "--shutdown", "timeout:1", "--folder", str(tmp_path), *guards)
    _beside_until(lambda: real.run("scontrol", "--oneliner", "show", "nodes").count("POWERED_DOWN") == 8, *common)
    assert real.run("scontrol", "-o", "show", "reservations").count("escala_n") == 8
    job = real.submit("-N2", "-t1", seconds=2)
    _beside_until(lambda: _jobs(real).get(job, ("",))[0] in ("RUNNING", "COMPLETED"), *common)
    told = [command for one in records(tmp_path / JOURNAL) for command, done in one.get("acted", ()) if done]
    assert sum("state=power_up" in command for command in told) >= 2
    later = real.submit("-N8", "-t1", seconds=1)
    ended = _until(lambda: "No reservations" in real.run("scontrol", "-o", "show", "reservations"), 80)
    assert ended, "Slurm looks at reservations that have run out every half minute"
    assert _until(lambda: _jobs(real).get(later, ("",))[0] in ("RUNNING", "COMPLETED"), 60), "no node is lost"
    assert run(["beside", "undo", str(tmp_path)]) == 0


def test_kill_9_loses_nothing(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own, killed without warning several times: every look is whole, and their numbers go on."""
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    command = [sys.executable, "-m", "escala", "beside", "slurm", "--power", WATTS, "--period", "0.5", "--folder", str(tmp_path)]
    path = tmp_path / JOURNAL
    for k in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert _until(lambda least=3 * (k + 1): path.exists() and path.read_text().count('"look"') >= least, 60)  # type: ignore[misc]
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
    looks = [one for one in records(path) if one["kind"] == "look"]
    numbers = [one["seq"] for one in looks]
    assert all(after - before in (0, 1) for before, after in itertools.pairwise(numbers)) and numbers[-1] >= 7
    assert sum(one["kind"] == "begin" for one in records(path)) == 3
    _beside("--folder", str(tmp_path), "--looks", "1")
    assert sum(one["lived"].get("watched_s", 0.0) for one in looks) > 0
