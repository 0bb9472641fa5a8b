"""Learnt shutdown policies behind a shield, asked from outside: what they order is what they do in a run inside,
through restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.bridges.answers import Answers
from escala.cli.shields import counted
from escala.envs.shield import shielded
from escala.errors import EscalaError
from escala.live import Desk
from escala.live.state_file import write_state
from tests.live.machine import Machine
from tests.live.test_agents import GRID_S, JOBS, QUICK_JOBS, STUDIES, _moving, _shielded, _twin
from tests.live.twin import KINDS, case_of, platform_of
from tests.oracle.engines import run_kernel


def _shielded_shutdown(base: str = "timeout:90", name: str = "g5k-1-4", **how: Any) -> Any:
    return shielded(
        escala.load_agent(STUDIES / "deepshutdown2020" / "agents" / name), base=base, futures=8, seed=2, **how
    )


@pytest.mark.parametrize("kind", ["one-core", "multi-core"])
@pytest.mark.parametrize("base", ["timeout:90", "hold:0.5", "never"])
def test_a_learnt_shutdown_policy_behind_a_shield(kind: str, base: str) -> None:
    name = {"one-core": "graphite-1-0", "multi-core": "g5k-1-4"}[kind]
    assert _twin("shutdown", lambda: _shielded_shutdown(base, name, price=1.0), "saf", kind, QUICK_JOBS) == []


def test_rows_may_be_given_anew_behind_the_shield_of_a_shutdown_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = _moving(monkeypatch)
    assert _twin("shutdown", lambda: _shielded_shutdown(name="graphite-1-0"), "saf", "one-core", QUICK_JOBS) == []
    assert sum(moved) > 3


@pytest.mark.parametrize("role", ["scheduler", "shutdown"])
def test_what_a_shield_counts_goes_on_after_a_restart(role: str, tmp_path: Path) -> None:
    policies = {"scheduler": "easy", "shutdown": "timeout:90"}
    case = case_of(**policies, kind="one-core", jobs=QUICK_JOBS, grid=GRID_S)
    shield = _shielded if role == "scheduler" else lambda: _shielded_shutdown(name="graphite-1-0", price=1.0)
    case.options[role] = shield()
    counts = run_kernel(case).manifest["counts"]
    made: list[Desk] = []

    def make() -> Desk:
        made.append(Desk(platform_of(case), **policies | {role: shield()}, head="lowest-id"))
        return made[-1]

    Machine(case.platform, case.jobs).run(make, tmp_path / "state.json")
    assert (
        len(made) > 3 and made[-1].counts == counts and 0 < counts["overruled"] < counts["unlike"] < counts["choices"]
    )
    assert json.loads(Answers(made[-1]).answer(b'{"status": true}'))["status"]["counts"] == counts
    assert counted(made[-1].counts, "; ").endswith(f" unlike the base's, {counts['overruled']} overruled")
    made[-1].save(tmp_path / "state.json")
    told = json.loads((tmp_path / "state.json").read_text())
    told["states"][role]["ahead"]["running"] = 5
    del told["sha256"]
    write_state(tmp_path / "state.json", "", told)
    with pytest.raises(EscalaError, match="its state is none of its own"):
        make().restore(tmp_path / "state.json")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheduler", ["saf", "easy", "fcfs", "wfp3-fit"])
@pytest.mark.parametrize(
    "base", ["never", "timeout:90", "timeout:40+2", "proportional:0.5", "hold:0.5", "hold:0.5:if-busy:200"]
)
def test_long_runs_of_shutdown_policies_behind_a_shield(base: str, scheduler: str, kind: str) -> None:
    name = {"one-core": "graphite-1-0"}.get(kind, "g5k-1-4")
    assert _twin("shutdown", lambda: _shielded_shutdown(base, name, margin=0.05), scheduler, kind, JOBS) == []
