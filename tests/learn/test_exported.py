"""Exported agents: the choices of torch, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import escala
from escala.agents import is_team, load_team
from escala.agents.agent import Agent
from escala.agents.networks.build import build_policy
from escala.envs.exported import export, load_exported
from escala.envs.multi import job_lists
from escala.envs.rjms.hold_features import SUMMARY_AT
from escala.envs.rjms.observation import SUMMARY
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
SETS = (SUMMARY_AT + SUMMARY,)
JOBS = (
    "import escala; log = escala.Workload.from_jobs({'submit_s': [0., 1., 2.], 'runtime_s': [3., 2., 2.], 'cores': "
    "[4, 8, 2]})"
)


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


def untrained(extractor: str, shape: tuple[int, ...], **more: Any) -> Any:
    """An agent of a network with weights by chance, biases too."""
    manifest = {
        "env_id": "escala/Slots-v0",
        "env_options": {},
        "algorithm": "maskable-ppo",
        "network": [],
        "separate": True,
        "ordered": None,
    }
    manifest |= {"extractor": extractor, "observation_shape": list(shape), "actions": 7} | more
    network = build_policy(manifest, spaces.Box(0.0, 1.0, shape), spaces.Discrete(manifest["actions"]), seed=3)
    chance = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in network.parameters():
            weights += 0.1 * torch.randn(weights.shape, generator=chance)
    return Agent(network, manifest)


NETWORKS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("history-lstm", (20, 48), {}),
    ("history-lstm", (7, 9), {"separate": False, "algorithm": "a2c", "network": [16], "relu": True}),
    ("three-grus", (32, 14), {}),
    ("three-grus", (5, 20), {"separate": False, "network": [8, 8]}),
    ("conv3-16", (20, 30), {"relu": True}),
    ("conv3-32", (9, 11), {"algorithm": "a2c", "network": [8]}),
    ("conv3-16-pool", (20, 30), {}),
    ("conv3-32-pool", (21, 31), {"separate": False}),
    ("queue-and-running", SETS, {"ordered": 1, "actions": 12}),
    ("queue-and-running", SETS, {"separate": False, "network": [16], "algorithm": "ppo"}),
]


@pytest.mark.parametrize(("extractor", "shape", "more"), NETWORKS)
def test_recurrent_networks_images_and_sets(
    extractor: str, shape: tuple[int, ...], more: dict[str, Any], tmp_path: Path
) -> None:
    agent = untrained(extractor, shape, **more)
    other = exported(agent, tmp_path / "out")
    same_preferences(agent, other)
    same_choices(agent, other)


@pytest.mark.parametrize("extractor", ["history-lstm", "three-grus"])
def test_nothing_is_carried_from_a_decision_to_the_next(extractor: str, tmp_path: Path) -> None:
    """A recurrent network reads what one observation shows, from its first place on: alone, in a batch, in any order,
    again."""
    other = exported(untrained(extractor, (12, 14)), tmp_path / "out")
    seen = np.random.default_rng(2).random((30, 12, 14), np.float32)
    whole = other.logits(seen)
    alone = np.concatenate([other.logits(seen[k : k + 1]) for k in reversed(range(30))])[::-1]
    assert np.abs(whole - alone).max() < 1e-5 and np.array_equal(other.logits(seen), whole)


@pytest.mark.parametrize(
    ("env", "role", "extractor", "shown"),
    [
        ("escala/OffReservation-v0", "shutdown", "history-lstm", {"action": "count", "observation": "snapshots"}),
        ("escala/Scheduling-v0", "scheduler", "three-grus", {}),
    ],
)
def test_episodes_of_recurrent_networks(
    env: str, role: str, extractor: str, shown: dict[str, Any], tmp_path: Path
) -> None:
    """Whole replays, twice by one policy: the second begins as the first did."""
    seen = gymnasium.make_vec(env, num_envs=1, vectorization_mode="vector_entry_point", **shown)
    # of 8 nodes
    shape, actions = seen.single_observation_space.shape, 9 if role == "shutdown" else int(seen.single_action_space.n)
    agent = untrained(extractor, shape, env_id=env, env_options=shown, actions=actions)
    log = escala.Workload.from_jobs(
        {"submit_s": [7.0 * k for k in range(60)], "runtime_s": [90.0] * 60, "cores": [1, 4, 2] * 20}
    )
    policies = [agent.policy(sampled=False), exported(agent, tmp_path / "out").policy(sampled=False)]
    first, other, again = (escala.simulate(log, "8x1:grid5000", **{role: policies[k]}) for k in (0, 1, 1))
    assert first.jobs.equals(other.jobs) and other.jobs.equals(again.jobs)
    assert first.summary()["energy_j"] == other.summary()["energy_j"] == again.summary()["energy_j"]


@pytest.mark.parametrize("name", ["team-2x1-0", "team-3x2-0", "nothing-shared-50-3x1-1"])
def test_a_team_decides_as_with_torch(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    team = load_team(STUDIES / "marl2024" / "agents" / name)
    team.export(folder)
    other = load_exported(folder)
    seen = np.random.default_rng(0).random((200, team.manifest["shape"][4]), np.float32)
    seen *= np.random.default_rng(1).random((200, 1), np.float32) ** 3
    clear = np.ones(200, bool)  # where the best action leads by more than rounding, which differs between processors
    for ask, theirs in zip(team.networks_asked(), other.networks_asked(), strict=True):
        apart = np.abs(ask(seen) - theirs(seen)).max()
        assert apart <= 1e-5 * max(1.0, np.abs(ask(seen)).max())
        clear &= np.diff(np.sort(ask(seen))[:, -2:])[:, 0] > 2.0 * apart
    assert clear.mean() > 0.9
    mask = np.ones((200, team.manifest["actions"]), bool)
    for sampled in (False, True):
        both = (found.members(sampled, 3) for found in (team, other))
        for mine, theirs in zip(*both, strict=True):
            assert np.array_equal(mine(seen, mask)[clear], theirs(seen, mask)[clear])
    lists = job_lists(**team.options | {"lists": 1, "load": 0.9})
    played = [
        escala.simulate(lists.workload(0), lists.platform, scheduler=one.policy(sampled=False)) for one in (team, other)
    ]
    assert played[0].jobs.equals(played[1].jobs)
    assert load_team(folder).members() and is_team(folder)
    with pytest.raises(EscalaError, match="an exported team: use agent:"):
        escala.load_agent(folder)


def test_a_replay_by_a_team_imports_no_torch(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    team = load_team(STUDIES / "marl2024" / "agents" / "team-2x1-0")
    team.export(folder)
    lists = job_lists(**team.options | {"lists": 1, "load": 0.5})
    lists.workload(0).jobs.write_parquet(tmp_path / "log.parquet")
    (tmp_path / "machines.json").write_text(json.dumps(lists.platform.spec()), encoding="utf-8")
    code = (
        "import sys, escala; from escala.registry import trained\n"
        f"names = [{str(tmp_path / 'log.parquet')!r}, {str(tmp_path / 'machines.json')!r}]\n"
        f"done = escala.simulate(escala.read_workload(names[0]), names[1], scheduler=trained('agent:{folder}'))\n"
        "print(done.summary()['mean_wait_s'], [m for m in ('torch', 'stable_baselines3', 'sb3_contrib') if m in "
        "sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    theirs = escala.simulate(lists.workload(0), lists.platform, scheduler=team.policy(sampled=False)).summary()[
        "mean_wait_s"
    ]
    assert outcome.stdout.split(" ", 1) == [str(theirs), "[]\n"]


@pytest.mark.parametrize("name", ["slots", "numbers of holding", "scores of the queue"])
def test_a_replay_imports_no_torch(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT[name]).export(folder)
    code = (
        f"import sys; {JOBS}; from escala.registry import trained; "
        f"result = escala.simulate(log, '10x1:grid5000', **{{'{ROLE.get(name, 'scheduler')}': "
        f"trained('agent:{folder}')}}); print(result.jobs['state'].to_list(), [m for m in ('torch', "
        "'stable_baselines3', 'sb3_contrib') if m in sys.modules])"
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
    with pytest.raises(EscalaError, match=r"^a network of my-own cannot be exported"):
        export({"extractor": "my-own", "actions": 3}, {}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("file", ["weights.npz", "manifest.json"])
def test_a_damaged_folder_is_one_clear_line(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    escala.load_agent(STUDIES / KEPT["dense"]).export(folder)
    path = folder / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(EscalaError):
        load_exported(folder)
