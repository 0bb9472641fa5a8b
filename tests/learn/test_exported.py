"""Exported agents: the choices of torch, without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import escala
from escala.agents.agent import Agent
from escala.agents.networks.build import build_policy
from escala.envs.exported import export, load_exported
from escala.errors import EscalaError

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
KEPT = {
    "dense": "grid2019/agents/published-100-0",
    "slots": "grid2019/agents/fresh-190-0",
    "slots, two kinds": "a2c2020/agents/agent-0.7-0",
    "numbers of holding": "deepshutdown2020/agents/g5k-1-0",
    "scores of the queue": "deepscheduler2020/agents/g5k-0.95-0",
}
ROLE = {"numbers of holding": "shutdown"}
JOBS = "import escala; log = escala.Workload.from_jobs({'submit_s': [0., 1., 2.], 'runtime_s': [3., 2., 2.], 'cores': [4, 8, 2]})"


def exported(agent: Any, folder: Path) -> Any:
    agent.export(folder)
    return load_exported(folder)


def same_choices(agent: Any, other: Any) -> None:
    """On observations of all kinds, with and without masks."""
    random = np.random.default_rng(0)
    n = 400
    seen = random.random((n, *agent.manifest["observation_shape"]), np.float32)
    seen *= random.random((n, *(1 for _ in seen.shape[1:])), np.float32) ** 3
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


def log_shares(preferences: Any) -> Any:
    """Preferences without what is added to all of them."""
    high = preferences.max(axis=1, keepdims=True)
    return preferences - high - np.log(np.exp(preferences - high).sum(axis=1, keepdims=True))


def same_preferences(agent: Any, other: Any) -> None:
    """To 1e-5 of their size."""
    seen = np.random.default_rng(1).random((200, *agent.manifest["observation_shape"]), np.float32)
    ours, theirs = log_shares(agent.logits(seen)), log_shares(other.logits(seen))
    assert np.abs(ours - theirs).max() <= 1e-5 * max(1.0, np.abs(ours).max())


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT.keys())
def test_preferences_are_those_of_torch(name: str, tmp_path: Path) -> None:
    agent = escala.load_agent(STUDIES / name)
    same_preferences(agent, exported(agent, tmp_path / "out"))


@pytest.mark.parametrize("extractor", [None, "hold-features"])
@pytest.mark.parametrize("ordered", [None, 1])
def test_layers_before_ordered_choices_and_others(extractor: str | None, ordered: int | None, tmp_path: Path) -> None:
    """Untrained networks of two hidden layers, as a preset of one's own may have them."""
    manifest = escala.load_agent(STUDIES / KEPT["numbers of holding"]).manifest
    manifest |= {"algorithm": "maskable-ppo", "network": [16, 8], "extractor": extractor, "ordered": ordered}
    seen, choices = spaces.Box(0.0, 1.0, tuple(manifest["observation_shape"])), spaces.Discrete(manifest["actions"])
    agent = Agent(build_policy(manifest, seen, choices), manifest)
    same_preferences(agent, exported(agent, tmp_path / "out"))


@pytest.mark.parametrize("name", ["slots", "numbers of holding", "scores of the queue"])
def test_a_replay_imports_no_torch(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT[name]).export(folder)
    code = (
        f"import sys; {JOBS}; from escala.cli.replay import policy; "
        f"result = escala.simulate(log, '10x1:grid5000', **{{'{ROLE.get(name, 'scheduler')}': policy('agent:{folder}')}}); "
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
    with pytest.raises(EscalaError, match=r"^a network of three-grus cannot be exported"):
        export({"extractor": "three-grus", "actions": 3}, {}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("file", ["weights.npz", "manifest.json"])
def test_a_damaged_folder_is_one_clear_line(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT["dense"]).export(folder)
    path = folder / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(EscalaError):
        load_exported(folder)
