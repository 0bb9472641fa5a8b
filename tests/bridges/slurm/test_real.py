"""Beside a real Slurm of eight emulated nodes: choose these tests with -m slurm; they are skipped where Slurm is not installed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.cli.app import run
from tests.bridges.slurm.lab import Lab, lab

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=3,switch_on_s=5"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


def _beside(*options: str) -> None:
    assert run(["beside", "slurm", "--power", WATTS, "--period", "1", *options]) == 0


@contextmanager
def _once_watched(folder: Path, act: Callable[[], object], looks: int = 2) -> Iterator[None]:
    """Do something in a thread when a journal has so many looks."""

    def wait() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and not (path.exists() and path.read_text().count('"look"') >= looks):
            time.sleep(0.1)
        act()

    path = folder / JOURNAL
    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join(90)


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
    with _once_watched(folder, lambda: real.run("scancel", "1")):
        _beside(*policies, "--folder", str(folder), "--looks", "14")
    looks = [one for one in records(folder / JOURNAL) if one["kind"] == "look"]
    assert not [one for one in records(folder / JOURNAL) if one["kind"] == "miss"]
    started = {row[0]: row[4] for one in looks for row in one.get("started", ())}
    assert started == dict.fromkeys(waiting, "same")
    assert sum(one["lived"].get("off_s", 0.0) for one in looks) > 0, "idle nodes would have gone off"
    assert all("DOWN" not in line for line in real.run("sinfo", "-h", "-N", "-o", "%N %T").upper().splitlines())
