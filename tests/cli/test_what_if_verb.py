"""`escala what-if`: tables, JSON and a page; a change that is none is one line."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from escala.policies.run import simulate
from tests.cli.program import Escala


def test_the_verb(escala_: Escala, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ["what-if", log, "--platform", "4x1", "--nodes", "+1,+100%", "--schedulers", "easy,fcfs"]
    done = escala_(*asked, "--out", out)
    assert done.status == 0, done.err
    assert (
        "+4 nodes" in done.out
        and "nodes +4 nodes" not in done.out
        and "Mean wait by cores of the job" in done.out
        and (out / "report.html").exists()
    )
    told = json.loads(escala_(*asked, "--json").out)
    assert len(told["worlds"]) == 6 and told["jobs_in_all"] == 4
    assert json.loads((out / "what-if.json").read_text())["worlds"] == told["worlds"]


def test_an_interrupted_one_goes_on(
    escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [
        "what-if",
        log,
        "--platform",
        "4x1",
        "--nodes",
        "+1,+100%",
        "--schedulers",
        "slurm,fcfs",
        "--jobs",
        "1",
        "--json",
        "--out",
    ]
    whole = escala_(*asked, tmp_path / "whole")
    assert whole.status == 0, whole.err
    begun: list[Any] = []

    def counted(log: Any, site: Any, scheduler: Any, shutdown: Any, **options: Any) -> Any:
        begun.append(scheduler)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return simulate(log, site, scheduler, shutdown, **options)

    monkeypatch.setattr(import_module("escala.calibration.what_if"), "simulate", counted)
    stopped = escala_(*asked, tmp_path / "out")
    assert stopped.status == 130 and "pieces: 3) is kept beside" in stopped.err and not (tmp_path / "out").exists()
    resumed = escala_(*asked, tmp_path / "out")
    assert resumed.status == 0 and len(begun) == 7 and "pieces kept from an interrupted run: 3" in resumed.err
    assert json.loads(resumed.out) == json.loads(whole.out)


def test_wrong_changes_are_one_line(escala_: Escala, log: Path) -> None:
    for more, why in (
        ([], "nothing changes"),
        (["--nodes", "x=1"], "no partition 'x'"),
        (["--limit", "root:max_jobs=1"], "knows no limits of accounts and QOS"),
    ):
        done = escala_("what-if", log, "--platform", "4x1", "--schedulers", "easy", *more)
        assert done.status == 2 and why in done.err and done.err.count("error: ") == 1, done.err
