"""Beside a real Slurm: what acts is killed within its commands, begun again, and taken back: choose these tests with -m
slurm."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from escala.bridges.slurm.shape import BEGIN
from escala.cli.app import run
from tests.bridges.slurm.lab import Acting, Lab, acting, lab, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("compiled")]
ENDLESS = "PartitionName=endless Nodes=n[1-4] MaxTime=INFINITE State=UP"
GUARDS = ("--allow", "n[1-4]", "--spare", "0", "--switches", "60", "--min-on", "0", "--min-off", "0")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), 4, partitions=ENDLESS) as found:
        yield found


def _whole(acts: Acting, begun: int) -> None:
    """Every look is in the journal, in its turn; one that was written and not yet remembered may be there twice."""
    numbers = [one["seq"] for one in acts.looks]
    assert numbers[0] == 1 and all(after - before in (0, 1) for before, after in itertools.pairwise(numbers))
    assert sum(one["kind"] == BEGIN for one in acts.records) == begun
    assert all(done for one in acts.looks for _, done in one.get("acted", ())), (
        "Slurm refused none, as what is done already"
    )


def _order(real: Lab, jobs: dict[int, str]) -> list[int]:
    """The limits, in the order in which Slurm would start the jobs."""
    lines = real.run("squeue", "-h", "-p", "batch", "-t", "PD", "-o", "%i %Q").splitlines()
    priority = {number: int(value) for number, value in (line.split() for line in lines)}
    return sorted(jobs, key=lambda limit: (-priority[jobs[limit]], int(jobs[limit])))


def test_order_mode_killed_within_its_commands_goes_on_and_is_undone(
    real: Lab, tmp_path: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_CONF", real.environment["SLURM_CONF"])
    full = real.submit("-N4", "-t5", seconds=250)
    jobs = {
        limit: real.submit("-N4", f"-t{limit}", *(["--nice=7"] if limit == 8 else []), seconds=1)
        for limit in (7, 3, 8, 1)
    }
    real.run(
        "scontrol",
        "create",
        "reservation",
        "reservationname=escala_meeting",
        "starttime=now+9000",
        "duration=1",
        "nodes=n1",
        "user=root",
    )
    assert until(lambda: real.began(full), 20)
    before = real.state()
    with acting(
        real, tmp_path, state_home, "--partition", "batch", "--mode", "order", "--scheduler", "sjf", "--lease", "20"
    ) as acts:
        acts.begin(when="after nice=")
        assert acts.died() and len(_nices(acts)) == 1, "the first nice was given, and is in no journal"
        acts.begin(when="before nice=")
        assert acts.died() and len(_nices(acts)) == 1, "it was written down, and never given"
        acts.begin()
        assert until(lambda: _order(real, jobs) == [1, 3, 7, 8], 60), acts.said
        looks = len(acts.looks)
        _others_are_refused(tmp_path, monkeypatch, capsys)
        monkeypatch.setenv("XDG_STATE_HOME", str(state_home))
        assert until(lambda: len(acts.looks) > looks + 2, 30), "it goes on"
        nices = _nices(acts)
        assert len(nices) == len(set(nices)) <= 6, "no order is given twice, and none while the order stands"
        acts.end(signal.SIGKILL)
        _whole(acts, 3)
        assert real.state() != before
        assert run(["beside", "undo", str(acts.folder)]) == 0
        after, said = real.state(), capsys.readouterr().out
        assert after == before, "nices as they were, the user's own among them, and no reservation but that of another"
        assert "escala_meeting" in said and "left alone" in said
    real.run("scontrol", "delete", "reservationname=escala_meeting")
    real.run("scancel", full, *jobs.values())


def _nices(acts: Acting) -> list[str]:
    return [line for line in acts.given if "nice=" in line]


def _others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As another user, or another machine, would: with a lock of its own and another folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    options = [
        "--partition",
        "batch",
        "--mode",
        "order",
        "--i-am-root",
        "--looks",
        "1",
        "--period",
        "1",
        "--lease",
        "20",
    ]
    assert run(["beside", "slurm", "--folder", str(tmp_path / "other"), *options]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(
        r"error: partition batch: a process of \w+ acts on it, as reservation escala_acts_batch says: .* \(in \d+ s\)",
        told,
    ), told


def test_full_mode_killed_within_its_commands_goes_on_and_leaves_nothing(
    real: Lab, tmp_path: Path, state_home: Path
) -> None:
    """Nodes go off under leases and come on for a job, through a death at each kind of command; the last one leaves
    Slurm its nodes."""
    options = ("--partition", "batch", "--mode", "full", "--shutdown", "timeout:1", "--lease", "25", *GUARDS)
    with acting(real, tmp_path, state_home, *options) as acts:
        acts.begin(when="after create reservation reservationname=escala_n1")
        assert acts.died() and list(real.leases()) == ["n1"] and not _switched(acts, "n1"), (
            "a node with a lease, that nobody switched"
        )
        acts.begin(when="after nodename=n2 state=power_down")
        assert acts.died() and "n2" in real.leases()
        acts.begin()
        assert until(lambda: set(real.nodes().values()) == {"idle~"}, 60), (real.nodes(), acts.said)
        assert until(lambda: set(real.leases()) == {"n1", "n2", "n3", "n4"}, 20), "every node that is off has its lease"
        acts.end(signal.SIGKILL)
        assert all(_switched(acts, f"n{k}") == ["power_down"] for k in range(1, 5)), acts.given
        job = real.submit("-p", "batch", "-N2", "-t1", seconds=2)
        acts.begin(when="before state=power_up")
        assert acts.died() and not any("power_up" in line for line in acts.given)
        acts.begin(when="before delete reservationname=escala_n")
        assert acts.died(), "a node is on, and still has its lease"
        acts.begin()
        assert until(lambda: real.began(job), 60), acts.said
        acts.end(signal.SIGKILL)
        woken = [node for node in ("n1", "n2", "n3", "n4") if "power_up" in _switched(acts, node)]
        assert len(woken) == 2 and all(_switched(acts, node)[:2] == ["power_down", "power_up"] for node in woken), (
            acts.given
        )
        assert " Restarts=0 " in real.run("scontrol", "--oneliner", "show", "job", job)
        _whole(acts, 6)
        later = real.submit("-p", "endless", "-N4", "-t", "UNLIMITED", seconds=1)
        assert until(lambda: not real.leases(), 80), "Slurm looks at reservations that have run out every half minute"
        assert until(lambda: real.began(later), 60), (
            "no node is lost, and the mark that is left holds back no job, even without a limit"
        )
        assert "escala_acts_batch" in real.run("scontrol", "--oneliner", "show", "reservations")
        assert not [state for state in real.nodes().values() if "down" in state]


def _switched(acts: Acting, node: str) -> list[str]:
    """How a node was switched, in turn."""
    return [line.rpartition("=")[2] for line in acts.given if line.startswith(f"update nodename={node} state=")]
