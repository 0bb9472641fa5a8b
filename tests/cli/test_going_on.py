"""bound, evaluate and demo that are interrupted keep what they finished, and the same command goes on with it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import escala
from tests.cli.program import Escala


def interrupted(simulate: Callable[..., Any], at: int, begun: list[str]) -> Callable[..., Any]:
    """`simulate`, of which the call of this number, from 0, is interrupted. begun: gets the policies of each call."""

    def counted(log: Any, machine: Any, *pair: Any, **options: Any) -> Any:
        begun.append(
            " + ".join(
                str(getattr(policy, "name", policy)) for policy in (*pair, *(options.get(k) for k in ROLES)) if policy
            )
        )
        if len(begun) == at + 1:
            raise KeyboardInterrupt
        return simulate(log, machine, *pair, **options)

    return counted


ROLES = ("scheduler", "shutdown")


def test_bound_goes_on_with_the_runs_of_policies(
    escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds, begun = import_module("escala.bounds.schedule_bound"), list[str]()
    verb = ["bound", log, "--platform", "4x1", "--schedulers", "fcfs,easy,saf", "--limit", "0.1", "--json"]
    whole = escala_(*verb, "--out", tmp_path / "whole")
    assert whole.status == 0, whole.err
    monkeypatch.setattr(bounds, "simulate", interrupted(bounds.simulate, 2, begun))
    stopped = escala_(*verb, "--out", tmp_path / "out")
    assert stopped.status == 130 and "pieces: 2" in stopped.err and "the same command goes on" in stopped.err
    assert not (tmp_path / "out").exists()
    resumed = escala_(*verb, "--out", tmp_path / "out")
    assert (
        resumed.status == 0
        and begun[:5] == ["fcfs", "easy", "saf", "saf", "sjf-fit"]
        and "interrupted run: 2" in resumed.err
    )
    assert json.loads(resumed.out)["policies"] == json.loads(whole.out)["policies"]
    assert sorted(os.listdir(tmp_path)) == ["out", "small.swf", "whole"]
    assert sorted(os.listdir(tmp_path / "out")) == sorted(os.listdir(tmp_path / "whole"))


def test_pieces_of_another_request_are_not_taken(
    escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds, begun = import_module("escala.bounds.schedule_bound"), list[str]()
    verb = [
        "bound",
        log,
        "--platform",
        "4x1",
        "--schedulers",
        "fcfs,easy,saf",
        "--limit",
        "0.1",
        "--out",
        tmp_path / "out",
    ]
    monkeypatch.setattr(bounds, "simulate", interrupted(bounds.simulate, 2, begun))
    assert escala_(*verb).status == 130
    log.write_text(log.read_text().replace(" 400 ", " 410 "))
    assert escala_(*verb).status == 0 and begun[3:6] == ["fcfs", "easy", "saf"]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated week for the cluster orion."""
    path = tmp_path_factory.mktemp("log") / "week.swf"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=6, seed=2), path)
    return path


@pytest.mark.learn
def test_evaluate_goes_on_with_the_days_of_policies(
    escala_: Escala, week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3")
    days, begun = escala.read_workload(week).split_days(), list[str]()
    escala.agents.search(
        days[:2],
        "orion",
        generations=1,
        population=4,
        seed=0,
        stretch_cost=0.15,
        window="drain",
        out=tmp_path / "agent",
    )
    verb = [
        "evaluate",
        tmp_path / "agent",
        week,
        "--after",
        "2",
        "--days",
        "2",
        "--runs",
        "2",
        "--baselines",
        "timeout:0,never",
        "--json",
    ]
    whole = escala_(*verb, "--out", tmp_path / "whole")
    assert whole.status == 0, whole.err
    judge = import_module("escala.agents.evaluate")
    monkeypatch.setattr(judge, "simulate", interrupted(judge.simulate, 6, begun))
    stopped = escala_(*verb, "--out", tmp_path / "out")
    assert stopped.status == 130 and "pieces: 3" in stopped.err, "two fixed policies and the first run of the agent"
    resumed = escala_(*verb, "--out", tmp_path / "out")
    assert resumed.status == 0 and len(begun) == 7 + 4 and resumed.out == whole.out
    for name in ("days.csv", "judged.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.learn
def test_the_demo_goes_on_with_all_that_it_finished(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3")
    joint, replays = import_module("escala.tuning.joint"), import_module("escala.tuning.replays")
    weeks, begun = tmp_path / "weeks.swf", list[str]()
    drawn = escala.workload.generate.grid5000(cluster="orion", days=24, seed=2)
    escala.workload.write_swf(drawn.with_jobs(drawn.jobs.gather_every(3)), weeks)
    verb = ["demo", "--workload", weeks, "--platform", "orion", "--minutes", "0.01", "--out", tmp_path / "out"]
    monkeypatch.setattr(joint, "simulate", interrupted(joint.simulate, 6, begun))
    stopped = escala_(*verb)
    assert stopped.status == 130 and not (tmp_path / "out").exists(), stopped.err
    kept = re.search(r"pieces: (\d+)", stopped.err)
    assert kept is not None and int(kept[1]) >= 53 + 1 + 5, "53 rules on the past, the later weeks, and five pairs"
    monkeypatch.setattr(escala, "train", None)
    monkeypatch.setattr(replays, "simulate", None)
    resumed = escala_(*verb)
    assert resumed.status == 0 and f"pieces kept from an interrupted run: {kept[1]}" in resumed.err, resumed.err
    assert escala.load_agent(tmp_path / "out" / "agent").env_id == "escala/OffReservation-v0"
    assert sorted(os.listdir(tmp_path)) == ["out", "weeks.swf"]
