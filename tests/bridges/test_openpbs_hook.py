"""The hook of OpenPBS in the examples, against a stand-in for the module `pbs` and a real server: what it reads, asks
and would run."""

from __future__ import annotations

import json
import runpy
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import escala
from escala.bridges.answers import Answers
from escala.live import Desk
from tests.bridges.served import served
from tests.live.asked import WATTS

HOOK = Path(__file__).resolve().parents[2] / "examples" / "openpbs" / "escala_hook.py"
QUEUED, RUNNING, HELD = "Q", "R", "H"


def _job(number: int, state: str, ncpus: int, walltime: int | None, **more: Any) -> SimpleNamespace:
    told = {"stime": None, "exec_vnode": None, "Job_Owner": "ann@login", **more}
    resources = {"ncpus": ncpus, "walltime": walltime}
    return SimpleNamespace(id=f"{number}.pbs", job_state=state, qtime=1_700_000_000, Resource_List=resources, **told)


def _pbs(jobs: list[SimpleNamespace], vnodes: list[SimpleNamespace], config: Path) -> tuple[Any, list[str]]:
    """A module like PBS's own, and the lines that it logs."""
    log: list[str] = []
    server = SimpleNamespace(jobs=lambda: iter(jobs), vnodes=lambda: iter(vnodes))
    numbers = {"ND_FREE": 0, "ND_OFFLINE": 1, "ND_DOWN": 2, "ND_BUSY": 8, "ND_JOBBUSY": 16, "ND_JOB_EXCLUSIVE": 32}
    states = {"JOB_STATE_QUEUED": QUEUED, "JOB_STATE_RUNNING": RUNNING, "LOG_DEBUG": 4}
    event = SimpleNamespace(accept=lambda: log.append("accepted"))
    more = {
        "server": lambda: server,
        "event": lambda: event,
        "hook_config_filename": str(config),
        "logmsg": lambda _, line: log.append(line),
    }
    return SimpleNamespace(**numbers, **states, **more), log


def _run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    jobs: list[SimpleNamespace],
    vnodes: list[SimpleNamespace],
    **more: Any,
) -> list[str]:
    config = tmp_path / "hook.json"
    config.write_text(json.dumps({"socket": str(tmp_path / "s"), "nodes": ["n1", "n2", "n3", "n4"], **more}))
    pbs, log = _pbs(jobs, vnodes, config)
    monkeypatch.setitem(sys.modules, "pbs", pbs)
    runpy.run_path(str(HOOK))
    return log


def _desk() -> Desk:
    return Desk(escala.read_platform("4x2", WATTS), "easy", "timeout:300")


def _vnodes(**states: int) -> list[SimpleNamespace]:
    """n4 before n1, and one that is not ours; all unused for long."""
    return [
        SimpleNamespace(name=f"n{k}", state=states.get(f"n{k}", 0), last_used_time=1_700_000_000)
        for k in (4, 1, 2, 3, 9)
    ]


JOBS = [
    _job(10, QUEUED, 1, None),  # passes 8 on n3, the core that 8 leaves alone: no, it has no walltime, and 8 needs all
    _job(7, RUNNING, 4, 3600, stime=1_700_000_100, exec_vnode="(n1:mem=4gb:ncpus=2)+(n2:ncpus=2)"),
    _job(8, QUEUED, 8, 600),
    _job(9, QUEUED, 2, 60),
    _job(11, HELD, 1, 60),
    _job(12, RUNNING, 2, 60, stime=1_700_000_100, exec_vnode="(n9:ncpus=2)"),  # on a vnode of others
]


def test_it_says_what_would_be_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Job 8 needs all cores and waits for job 7, which has outlived its walltime; job 9 may or may not pass it. By
    hand: 8 can start at once in plans, as 7 should be over, so nobody with 60 s may pass it, and the idle nodes have
    waited too long to stay on."""
    with served(tmp_path / "s", Answers(_desk())):
        log = _run(monkeypatch, tmp_path, JOBS, _vnodes(n1=16, n2=16))
    assert log == ["escala: would switch off: n3 n4", "accepted"]


def test_it_says_which_jobs_can_never_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with served(tmp_path / "s", Answers(Desk("4x2", "fcfs"))):
        log = _run(monkeypatch, tmp_path, [_job(3, QUEUED, 9, 60), _job(4, QUEUED, 8, 60)], _vnodes())
    assert log[0].startswith("escala: would start: ") and log[0].endswith(" 4.pbs")
    assert log[1] == "escala: job 3.pbs can never start: it needs 9 cores, and platform '4x2' has 8"


def test_it_starts_jobs_where_it_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    qrun = tmp_path / "qrun"
    qrun.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/ran\n')
    qrun.chmod(qrun.stat().st_mode | stat.S_IXUSR)
    jobs = [_job(3, QUEUED, 3, 60), _job(5, QUEUED, 2, 60), _job(4, QUEUED, 2, 60)]
    states = _vnodes(n2=2, n3=1 + 16)  # down; offline
    with served(tmp_path / "s", Answers(_desk())):
        log = _run(monkeypatch, tmp_path, jobs, states)
        assert (
            log[0] == "escala: would start: qrun -a -H (n1:ncpus=2)+(n4:ncpus=1) 3.pbs"
            and not (tmp_path / "ran").exists()
        )
    with served(tmp_path / "s", Answers(_desk())):
        log = _run(monkeypatch, tmp_path, jobs, states, mode="run", qrun=str(qrun))
    assert (tmp_path / "ran").read_text() == "-a -H (n1:ncpus=2)+(n4:ncpus=1) 3.pbs\n", (
        "jobs 4 and 5 wait: one core is left"
    )
    assert log == [f"escala: started: {qrun} -a -H (n1:ncpus=2)+(n4:ncpus=1) 3.pbs: status 0", "accepted"]


def test_whatever_fails_is_said_and_pbs_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = _run(monkeypatch, tmp_path, JOBS, _vnodes())
    assert len(log) == 2 and "nothing was done: FileNotFoundError" in log[0] and log[1] == "accepted"
    with served(tmp_path / "s", Answers(Desk("2x1"))):
        log = _run(monkeypatch, tmp_path, JOBS, _vnodes())
    assert "refused: snapshot: 4 nodes, platform '2x1' has 2" in log[0] and log[1] == "accepted"
    log = _run(monkeypatch, tmp_path, JOBS, _vnodes(), nodes=["n1; rm -rf"])
    assert "a vnode in the configuration has a strange name" in log[0] and log[1] == "accepted"
