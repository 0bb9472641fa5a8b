"""Beside a real Slurm of eight emulated nodes: choose these tests with -m slurm; they are skipped where Slurm is not
installed."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.cli.app import run
from tests.bridges.slurm.lab import WATTS, Lab, lab, once_watched, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("compiled")]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


def _beside(*options: str) -> None:
    assert run(["beside", "slurm", "--power", WATTS, "--period", "1", *options]) == 0


def test_shadow_changes_nothing_and_agrees_with_what_happens(
    real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    real.submit("-N8", "-t5", seconds=120)
    waiting = [real.submit("-N2", "-t1", "--exclusive") for _ in range(3)]
    time.sleep(3)
    before = real.state()
    folder, policies = tmp_path / "before", ("--scheduler", "fcfs", "--shutdown", "timeout:2")
    _beside(*policies, "--folder", str(folder), "--looks", "4")
    assert real.state() == before
    _changes_are_seen(real, waiting[0], before)
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


def _changes_are_seen(real: Lab, job: str, before: str) -> None:
    """The comparison can fail: each of what the other modes do differs, until it is taken back."""
    reservation = (
        "reservationname=escala_n1",
        "starttime=now",
        "duration=1",
        "nodes=n1",
        "user=root",
        "flags=ignore_jobs",
    )
    for there, back in (
        (("update", f"jobid={job}", "nice=3"), ("update", f"jobid={job}", "nice=0")),
        (("create", "reservation", *reservation), ("delete", "reservationname=escala_n1")),
        (("update", "nodename=n1", "state=power_down"), ()),
    ):
        real.run("scontrol", *there)
        assert real.state() != before, there
        if back:
            real.run("scontrol", *back)
            assert real.state() == before, back


def test_order_mode_makes_slurm_start_jobs_as_the_policy_wants(
    real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    assert until(lambda: "alloc" not in real.run("sinfo", "-h", "-o", "%T"), 30)
    full = real.submit("-N8", "-t5", seconds=200)
    jobs = {minutes: real.submit("-N8", f"-t{minutes}", seconds=1) for minutes in (7, 3, 8, 1, 6, 2, 5, 4)}
    time.sleep(2)
    with once_watched(tmp_path, lambda: real.run("scancel", full)):
        _beside("--mode", "order", "--i-am-root", "--scheduler", "sjf", "--folder", str(tmp_path), "--looks", "5")
    commands = [command for one in records(tmp_path / JOURNAL) for command, done in one.get("acted", ()) if done]
    assert 0 < len(commands) <= 8 and all(
        re.fullmatch(r"scontrol update jobid=\d+ nice=-?\d+", command) for command in commands
    )
    assert until(lambda: all(real.jobs().get(job, ("",))[0] == "COMPLETED" for job in jobs.values()), 60)
    started = real.jobs()
    assert sorted(jobs, key=lambda minutes: started[jobs[minutes]][1]) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_kill_9_loses_nothing(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own, killed without warning several times: every look is whole, and their numbers go on."""
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    command = [
        sys.executable,
        "-m",
        "escala",
        "beside",
        "slurm",
        "--power",
        WATTS,
        "--period",
        "0.5",
        "--folder",
        str(tmp_path),
    ]
    path = tmp_path / JOURNAL
    for k in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert until(lambda least=3 * (k + 1): path.exists() and path.read_text().count('"look"') >= least, 60)  # type: ignore[misc]
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
    looks = [one for one in records(path) if one["kind"] == "look"]
    numbers = [one["seq"] for one in looks]
    assert all(after - before in (0, 1) for before, after in itertools.pairwise(numbers)) and numbers[-1] >= 7
    assert sum(one["kind"] == "begin" for one in records(path)) == 3
    _beside("--folder", str(tmp_path), "--looks", "1")
    assert sum(one["lived"].get("watched_s", 0.0) for one in looks) > 0
