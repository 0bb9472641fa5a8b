"""Beside a real Slurm with two partitions and priorities by weights: choose these tests with -m slurm."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from escala.bridges.slurm import guard
from escala.bridges.slurm.commands import Clients
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.bridges.slurm.reader import Reader
from escala.cli.app import run
from tests.bridges.slurm.lab import Lab, lab, once_watched

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("compiled")]
WEIGHTS = (
    "PriorityType=priority/multifactor\nPriorityWeightJobSize=400\nPriorityWeightPartition=1000\nPriorityCalcPeriod=1"
)
PARTITIONS = (
    "PartitionName=small Nodes=n[1-2] PriorityJobFactor=1 State=UP\nPartitionName=big Nodes=n[3-6] "
    "PriorityJobFactor=5 State=UP"
)
UNMET_S = 15.0
"""How long, in place of a minute, a job may wait before nodes that are kept off get the blame."""


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), 6, 1, WEIGHTS, PARTITIONS) as found:
        yield found


def _queued(real: Lab, partition: str, nodes: int, minutes: tuple[int, ...]) -> tuple[str, dict[int, str]]:
    """A job that fills a partition, and those that wait for it to end: by their limits."""
    full = real.submit(f"-p{partition}", f"-N{nodes}", "-t9", seconds=300)
    return full, {limit: real.submit(f"-p{partition}", f"-N{nodes}", f"-t{limit}", seconds=1) for limit in minutes}


def _order(real: Lab, jobs: dict[int, str]) -> list[int]:
    """The limits, in the order in which their jobs started; waits until all have."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        lines = (line.split("|") for line in real.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%S").splitlines())
        told = {number: int(start) for number, state, start in lines if state == "COMPLETED"}
        if set(jobs.values()) <= set(told):
            return sorted(jobs, key=lambda limit: told[jobs[limit]])
        time.sleep(0.5)
    raise AssertionError("not all jobs have started")


def test_order_is_set_in_one_partition_and_left_alone_in_the_other(
    weighted: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_CONF", weighted.environment["SLURM_CONF"])
    assert run(["beside", "slurm", "--folder", str(tmp_path / "none"), "--looks", "1"]) == 2
    assert "there are several partitions: give --partition, one of batch, big, small" in capsys.readouterr().err
    small, mine = _queued(weighted, "small", 2, (4, 1, 3, 2))
    big, others = _queued(weighted, "big", 4, (3, 1, 2))
    time.sleep(2)
    seen = Reader(Clients()).read()
    assert {seen.jobs[job].priority for job in mine.values()} != {seen.jobs[job].priority for job in others.values()}, (
        "weights count"
    )
    options = [
        "--partition",
        "small",
        "--mode",
        "order",
        "--i-am-root",
        "--scheduler",
        "sjf",
        "--period",
        "1",
        "--looks",
        "5",
    ]
    with once_watched(tmp_path, lambda: weighted.run("scancel", small, big)):
        assert run(["beside", "slurm", "--folder", str(tmp_path), *options]) == 0
    told = [command for one in records(tmp_path / JOURNAL) for command, done in one.get("acted", ()) if done]
    changed = {
        match[1] for command in told if (match := re.fullmatch(r"scontrol update jobid=(\d+) nice=-?\d+", command))
    }
    assert len(told) > 0 and changed <= set(mine.values()), "jobs of the other partition are not ours"
    assert _order(weighted, mine) == [1, 2, 3, 4] and _order(weighted, others) == [3, 1, 2]


def test_nodes_of_one_partition_go_off_and_those_of_the_other_stay(
    weighted: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", weighted.environment["SLURM_CONF"])
    watts = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=3,switch_on_s=5"
    guards = ["--allow", "n[1-2]", "--spare", "0", "--min-on", "0", "--lease", "20", "--i-am-root"]
    options = [
        "--partition",
        "small",
        "--mode",
        "power",
        "--shutdown",
        "timeout:1",
        "--power",
        watts,
        "--period",
        "1",
        "--looks",
        "12",
    ]
    assert run(["beside", "slurm", "--folder", str(tmp_path), *options, *guards]) == 0
    states = dict(
        line.split("|") for line in weighted.run("sinfo", "-h", "-N", "-p", "batch", "-o", "%N|%T").splitlines()
    )
    assert [states[f"n{k}"][-1] in "~%" for k in range(1, 7)] == [True, True, False, False, False, False], states
    assert run(["beside", "undo", str(tmp_path)]) == 0
    assert "No reservations" in weighted.run("scontrol", "-o", "show", "reservations")


def test_nobody_is_kept_waiting_for_nodes_that_are_kept_off(
    weighted: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job of another partition that has the nodes too gets them at once; one that needs a node by name, after a
    minute, of which a quarter is waited here."""
    monkeypatch.setenv("SLURM_CONF", weighted.environment["SLURM_CONF"])
    monkeypatch.setattr(guard, "UNMET_S", UNMET_S)
    watts = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=3,switch_on_s=5"
    guards = ["--allow", "n[1-2]", "--spare", "0", "--min-on", "0", "--lease", "30", "--i-am-root"]
    asked = [
        "beside",
        "slurm",
        "--folder",
        str(tmp_path),
        "--partition",
        "small",
        "--mode",
        "full",
        "--period",
        "1",
        *guards,
    ]
    assert run(asked) == 2 and "say by --power what that takes" in capsys.readouterr().err
    asked += ["--shutdown", "timeout:1", "--power", watts]
    assert run([*asked, "--looks", "12"]) == 0
    assert set(Reader(Clients()).read().reservations) >= {"escala_n1", "escala_n2"}
    other, named = (
        weighted.submit("-pbatch", "-N1", "-wn1", seconds=1),
        weighted.submit("-psmall", "-N1", "-wn2", seconds=1),
    )
    waits: dict[str, int] = {}
    for _ in range(11):
        assert run([*asked, "--looks", "10"]) == 0
        waits = _waits(weighted, (other, named))
        if len(waits) == 2:
            break
    assert len(waits) == 2 and waits[other] < 45 and UNMET_S <= waits[named] < UNMET_S + 60, waits
    assert run(["beside", "undo", str(tmp_path)]) == 0


def _waits(real: Lab, jobs: tuple[str, ...]) -> dict[str, int]:
    """Job -> how long it waited, of those that have ended well."""
    lines = (line.split("|") for line in real.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%V|%S").splitlines())
    return {
        number: int(start) - int(submit)
        for number, state, submit, start in lines
        if number in jobs and state == "COMPLETED"
    }
