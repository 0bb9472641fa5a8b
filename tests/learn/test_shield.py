"""A learnt scheduler behind a shield: what it chooses counts as long as a look-ahead by EASY does not find it much worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import escala
from escala.cli.app import run
from escala.envs.shield import shielded
from escala.errors import EscalaError
from escala.workload import generate, write_swf

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return generate.lublin(jobs=250, cores=32, load=1.0, seed=4)


@pytest.fixture(scope="module")
def unlearnt(log: escala.Workload) -> escala.Agent:
    """An agent that acts at random, or nearly so, without a guard."""
    return escala.train("escala/Scheduling-v0", log, "32x1", preset="queue", steps=1, seed=3, guard_s=0.0)


def _slowdown(result: escala.Result) -> float:
    return float(result.summary()["mean_bounded_slowdown"])


def test_a_bad_agent_does_much_better_behind_it(log: escala.Workload, unlearnt: escala.Agent) -> None:
    alone = escala.simulate(log, "32x1", unlearnt.policy(seed=1))
    behind = escala.simulate(log, "32x1", shielded(unlearnt, seed=1))
    easy = escala.simulate(log, "32x1", "easy")
    assert _slowdown(easy) < 0.5 * _slowdown(alone), "it is bad"
    assert _slowdown(behind) < 0.6 * _slowdown(alone)
    assert _slowdown(behind) < 1.5 * _slowdown(easy)
    counts = behind.manifest["counts"]
    assert 0 < counts["overruled"] < counts["unlike"] < counts["choices"]
    again = escala.simulate(log, "32x1", shielded(unlearnt, seed=1))
    assert again.jobs.equals(behind.jobs) and again.manifest["counts"] == counts


def test_a_margin_that_allows_all_changes_nothing(log: escala.Workload, unlearnt: escala.Agent) -> None:
    alone = escala.simulate(log, "32x1", unlearnt.policy(seed=1))
    free = escala.simulate(log, "32x1", shielded(unlearnt, seed=1, margin=1e300))
    assert free.manifest["counts"]["overruled"] == 0
    assert free.jobs["start_s"].equals(alone.jobs["start_s"])


def test_what_cannot_stand_behind_one_is_refused(unlearnt: escala.Agent) -> None:
    with pytest.raises(EscalaError, match="give a share of at least 0"):
        shielded(unlearnt, margin=-0.1)
    with pytest.raises(EscalaError, match="agents of escala/Scheduling-v0"):
        shielded("easy")


def test_by_the_command(log: escala.Workload, unlearnt: escala.Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unlearnt.save(tmp_path / "agent")
    write_swf(log, tmp_path / "log.swf")
    asked = ["compare", str(tmp_path / "log.swf"), "--platform", "32x1", "--schedulers"]
    name = f"shield:easy:agent:{tmp_path / 'agent'}"
    assert run([*asked, f"easy,{name}"]) == 0
    out = capsys.readouterr().out
    assert "shield:easy:agent:" in out and "unlike EASY's" in out
    assert run(["simulate", str(tmp_path / "log.swf"), "--platform", "32x1", "--scheduler", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 0 < told["counts"]["overruled"] < told["counts"]["choices"]
    assert run(["simulate", str(tmp_path / "log.swf"), "--platform", "32x1", "--scheduler", name]) == 0
    assert f"{told['counts']['overruled']:,} overruled." in capsys.readouterr().out
    assert run([*asked, "shield:saf:agent:x"]) == 2
    assert "write shield:easy:agent:DIR" in capsys.readouterr().err
