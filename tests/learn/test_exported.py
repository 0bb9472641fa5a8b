"""Exported agents: the choices of torch, without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.envs.exported import load_exported
from escala.errors import EscalaError

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
KEPT = {
    "dense": "grid2019/agents/published-100-0",
    "slots": "grid2019/agents/fresh-190-0",
    "slots, two kinds": "a2c2020/agents/agent-0.7-0",
}
JOBS = "import escala; log = escala.Workload.from_jobs({'submit_s': [0., 1., 2.], 'runtime_s': [3., 2., 2.], 'cores': [4, 8, 2]})"


def exported(agent: Any, folder: Path) -> Any:
    agent.export(folder)
    return load_exported(folder)


def same_choices(agent: Any, other: Any) -> None:
    """On observations of all kinds, with and without masks."""
    random = np.random.default_rng(0)
    n = 400
    seen = random.random((n, *agent.manifest["observation_shape"]), np.float32)
    seen *= random.random((n, 1), np.float32) ** 3
    mask = random.random((n, agent.manifest["actions"])) < 0.7
    mask[:, 0] = True
    assert np.abs(agent.probabilities(seen, mask) - other.probabilities(seen, mask)).max() < 1e-4
    ours, theirs = agent.act(seen, mask, None), other.act(seen, mask, None)
    assert np.array_equal(ours, theirs) and len(set(ours.tolist())) > 1


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT.keys())
def test_the_choices_are_those_of_torch(name: str, tmp_path: Path) -> None:
    agent = escala.load_agent(STUDIES / name)
    other = exported(agent, tmp_path / "out")
    same_choices(agent, other)
    assert other.sampled == agent.sampled and other.name == agent.name


def test_a_replay_imports_no_torch(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT["slots"]).export(folder)
    code = (
        f"import sys; {JOBS}; from escala.cli.replay import policy; "
        f"result = escala.simulate(log, '10x1', scheduler=policy('agent:{folder}')); "
        "print(result.jobs['state'].to_list(), [m for m in ('torch', 'stable_baselines3', 'sb3_contrib') if m in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "['COMPLETED', 'COMPLETED', 'COMPLETED'] []"


def test_python_loads_it_without_torch(tmp_path: Path) -> None:
    """And a trained agent asks there for the extra that it needs."""
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT["slots"]).export(folder)
    code = (
        "import sys; sys.modules.update(torch=None, stable_baselines3=None, sb3_contrib=None)\n"
        f"{JOBS}; policy = escala.load_agent({str(folder)!r}).policy()\n"
        "print(escala.simulate(log, '10x1', scheduler=policy).jobs['state'].to_list())\n"
        f"try: escala.load_agent({str(STUDIES / KEPT['slots'])!r})\n"
        "except escala.EscalaError as error: print(error)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    states, refused = outcome.stdout.splitlines()
    assert states == "['COMPLETED', 'COMPLETED', 'COMPLETED']" and "needs the extra [agents] of Escala" in refused


def test_another_network_is_refused_in_one_line(tmp_path: Path) -> None:
    agent = escala.load_agent(STUDIES / "deepscheduler2020/agents/g5k-0.95-0")
    with pytest.raises(EscalaError, match=r"^a network of queue-scorer cannot be exported"):
        agent.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("file", ["weights.npz", "manifest.json"])
def test_a_damaged_folder_is_one_clear_line(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT["dense"]).export(folder)
    path = folder / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(EscalaError):
        load_exported(folder)
