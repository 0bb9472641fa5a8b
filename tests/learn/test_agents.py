"""Training repeats, resumes exactly, and gives policies that do in `simulate` what they did in the environment."""

from __future__ import annotations

import functools
import json
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import escala
import escala.envs
from escala.agents import Agent, checkpoint, evaluate, load_agent, packed, train
from escala.envs import BatchVectorEnv
from escala.errors import EscalaError
from tests.unit.envs.days import DAY_S, workload

pytestmark = pytest.mark.learn

RUNNING_CORES = 3  # column of a scheduling observation
OFF, SCHEDULING = "escala/OffReservation-v0", "escala/Scheduling-v0"
SMALL: dict[str, Any] = {"num_envs": 8, "learn": {"n_steps": 32, "batch_size": 128}}
PRINTED: dict[str, Any] = {"preset": "printed", "num_envs": 4, "learn": {"n_steps": 16, "batch_size": 32}, "steps": 256}


@functools.cache
def days() -> list[escala.Workload]:
    return escala.workload.generate.grid5000(cluster="orion", days=6, seed=3).split_days()


def small(env_id: str, **more: Any) -> Agent:
    return train(env_id, workload=days(), platform="orion", **{"steps": 1024, "seed": 1, **SMALL, **more})


def weights(agent: Agent) -> dict[str, Any]:
    return {k: v.numpy().copy() for k, v in agent.network.state_dict().items()}


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@functools.cache
def trained(env_id: str, **more: Any) -> Agent:
    return small(env_id, **more)


@pytest.mark.parametrize("env_id", [OFF, SCHEDULING])
def test_training_twice_with_one_seed_gives_equal_weights_and_another_seed_others(env_id: str) -> None:
    assert equal(weights(trained(env_id)), weights(small(env_id)))
    assert not equal(weights(trained(env_id)), weights(small(env_id, seed=2)))


@pytest.mark.parametrize("algorithm", ["maskable-ppo", "a2c"])
def test_training_leaves_nothing_in_the_temporary_folder(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small(OFF, algorithm=algorithm, steps=256)
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """Stands for a kill: nothing in Escala catches it."""


KILLED: dict[str, tuple[str, dict[str, Any]]] = {
    "off-reservation": (OFF, {}),
    "scheduling": (SCHEDULING, {}),
    "a2c": (OFF, {"algorithm": "a2c"}),
    "ppo": (OFF, {"algorithm": "ppo"}),
    "printed LSTM": (OFF, PRINTED),
    "printed GRUs": (SCHEDULING, PRINTED),
}


@pytest.mark.parametrize("case", KILLED)
def test_a_killed_and_resumed_training_equals_an_uninterrupted_one(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    env_id, how = KILLED[case]
    whole = small(env_id, **how)

    def kill(share: float) -> None:
        if share > 0.6:
            raise Killed

    with pytest.raises(Killed):
        small(env_id, **how, out=tmp_path / "run", progress=kill)
    with (tmp_path / "run" / checkpoint.FILE).open("rb") as stream:
        left = packed.read(stream)
    assert 0 < left["steps"] < whole.manifest["steps_done"]
    np.random.seed(12345)  # noqa: NPY002  the state of the global generators must not matter
    torch.manual_seed(54321)
    resumed = small(env_id, **how, out=tmp_path / "run", resume=True)
    assert equal(weights(whole), weights(resumed))
    assert not equal(weights(whole), {name: value.numpy() for name, value in left["policy"].items()})
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["manifest.json", "weights.pt"]


def _gradients(network: Any, part: str) -> list[bool]:
    """Of each weight of a part: did the last backward pass reach it?"""
    return [p.grad is not None and bool(p.grad.any()) for p in getattr(network, part).parameters()]


def _recurrent(part: Any) -> list[tuple[str, int, int]]:
    """Recurrent layers of a part: kind, numbers in, hidden numbers."""
    layers = [layer for layer in part.modules() if isinstance(layer, torch.nn.LSTM | torch.nn.GRU)]
    return [(type(layer).__name__, layer.input_size, layer.hidden_size) for layer in layers if layer.num_layers == 1]


def _dense(part: Any) -> list[tuple[int, int]]:
    """Dense layers of a part: numbers in, numbers out."""
    return [(layer.in_features, layer.out_features) for layer in part.modules() if isinstance(layer, torch.nn.Linear)]


@pytest.mark.parametrize(
    ("env_id", "actions", "recurrent", "dense"),
    [
        (OFF, 5, [("LSTM", 8 + 4 * 10, 128)], [(128, 64)]),
        (SCHEDULING, 21, [("GRU", 3, 64), ("GRU", 3, 64), ("GRU", 8, 64)], [(3 * 64, 128)]),
    ],
)
def test_the_printed_networks_are_r3s_and_every_layer_learns(
    env_id: str, actions: int, recurrent: list[tuple[str, int, int]], dense: list[tuple[int, int]]
) -> None:
    """R3: LSTM(128) and 64, three GRU(64) and 128, over 20 places; actor and critic each with their own."""
    agent = small(env_id, **PRINTED)
    network = agent.network
    for part in (network.pi_features_extractor, network.vf_features_extractor):
        assert _recurrent(part) == recurrent and _dense(part) == dense
    behind = [_dense(part) for part in (network.mlp_extractor, network.action_net, network.value_net)]
    assert behind == [[], [(dense[0][1], actions)], [(dense[0][1], 1)]]
    assert agent.manifest["observation_shape"][0] == 20
    seen = torch.rand(8, *agent.manifest["observation_shape"])
    for told, reached, not_reached in (("value", "vf", "pi"), ("choice", "pi", "vf")):
        network.zero_grad()
        out = (
            network.predict_values(seen)
            if told == "value"
            else network.get_distribution(seen).distribution.logits[:, 0]
        )
        out.sum().backward()
        assert all(_gradients(network, f"{reached}_features_extractor"))
        assert not any(_gradients(network, f"{not_reached}_features_extractor"))
    earlier, later = weights(small(env_id, **{**PRINTED, "steps": 64})), weights(agent)
    assert all(not np.array_equal(earlier[name], later[name]) for name in later)


@pytest.mark.parametrize(("env_id", "options"), [(SCHEDULING, {}), (OFF, {"action": "wake"})])
def test_the_printed_networks_take_no_masked_action(
    env_id: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training and after it, whatever they prefer. (The action `count` masks none, so the LSTM plays `wake`.)"""
    plain = BatchVectorEnv.step
    masked, taken = [], []

    def step(self: Any, actions: Any) -> Any:
        mask = self.action_masks()
        masked.append(int((~mask).sum()))
        taken.append(bool(mask[np.arange(len(actions)), actions].all()))
        return plain(self, actions)

    monkeypatch.setattr(BatchVectorEnv, "step", step)
    agent = small(env_id, **PRINTED, **options)
    assert len(taken) == 64 and sum(masked) > 0 and all(taken)
    with torch.no_grad():
        agent.network.action_net.bias[-1] = 1e3
    last = agent.manifest["actions"] - 1
    seen = np.random.default_rng(0).random((6, *agent.manifest["observation_shape"]), np.float32)
    mask = np.ones((6, last + 1), bool)
    assert (agent.act(seen, mask, None) == last).all()
    mask[:, last] = False
    assert not agent.probabilities(seen, mask)[:, last].any()
    assert (agent.act(seen, mask, None) < last).all() and (agent.act(seen, mask, np.random.default_rng(1)) < last).all()


def test_resuming_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)

    def interrupt(share: float) -> None:
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(OFF, out=tmp_path / "run", progress=interrupt)
    with pytest.raises(escala.EscalaError, match="seed=1"):
        small(OFF, out=tmp_path / "run", resume=True, seed=7)
    with pytest.raises(escala.EscalaError, match="holds a training already"):
        small(OFF, out=tmp_path / "run")
    with pytest.raises(escala.EscalaError, match="no checkpoint"):
        small(OFF, out=tmp_path / "other", resume=True)


def test_a_kill_among_the_files_of_the_agent_leaves_it_or_a_training_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that is too short for a checkpoint while it learns."""

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checkpoint, "write_manifest", killed)
        small(OFF, out=tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [checkpoint.FILE, "weights.pt"]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(import_module("escala.agents.training.train"), "remove", killed)
        small(OFF, out=tmp_path / "run", resume=True)
    whole = load_agent(tmp_path / "run")
    assert equal(weights(whole), weights(trained(OFF)))
    with pytest.raises(escala.EscalaError, match="this training has ended"):
        small(OFF, out=tmp_path / "run", resume=True)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["manifest.json", "weights.pt"]


def test_a_saved_agent_is_the_same_agent(tmp_path: Path) -> None:
    agent = trained(OFF)
    agent.save(tmp_path / "agent")
    loaded = load_agent(tmp_path / "agent")
    assert equal(weights(agent), weights(loaded))
    manifest = json.loads((tmp_path / "agent" / "manifest.json").read_text())
    assert manifest["env_options"]["action"] == "hold"
    assert manifest["seed"] == 1
    with pytest.raises(escala.EscalaError, match="no trained agent"):
        load_agent(tmp_path)
    (tmp_path / "agent" / "manifest.json").write_text(json.dumps(manifest | {"actions": manifest["actions"] + 1}))
    with pytest.raises(escala.EscalaError, match="another version of escala"):
        load_agent(tmp_path / "agent")
    for content in (
        [1],
        None,
        *({k: v for k, v in manifest.items() if k != name} for name in ("kind", "actions", "network", "env_options")),
    ):
        (tmp_path / "agent" / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(
            escala.EscalaError, match=r"not the manifest of an agent|not a whole description of a network"
        ):
            load_agent(tmp_path / "agent")
    (tmp_path / "agent" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "agent" / "weights.pt").write_bytes(b"broken")
    with pytest.raises(escala.EscalaError, match="weights"):
        load_agent(tmp_path / "agent")


def rolled(agent: Agent, day: escala.Workload, seed: int | None) -> dict[str, float]:
    """Waste of one day in the environment, the agent's draws by seed (None: its greedy actions)."""
    env = gymnasium.make(agent.env_id, workload=[day], platform="orion", **agent.env_options)
    observation, info = env.reset(seed=0)
    random = None if seed is None else np.random.default_rng(seed)
    waste, over = 0.0, False
    while not over:
        mask = info["action_mask"].copy()
        if random is None and agent.env_id == SCHEDULING and mask[1:].any() and not observation[:, RUNNING_CORES].any():
            mask[0] = False  # as the policy does: greedy actions may not idle for ever
        action = agent.act(observation[None], mask[None], random)[0]
        observation, _, terminated, truncated, info = env.step(action)
        waste, over = waste + info["waste_j"], terminated or truncated
    return waste


@pytest.mark.parametrize(
    "options",
    [
        {"action": "hold"},
        {"action": "wake"},
        {"action": "count", "observation": "snapshots"},
        {"action": "hold", "window": "drain"},
        {"action": "hold", "ask": "periods"},
        {"action": "count", "ask": "periods"},
    ],
)
@pytest.mark.parametrize("seed", [None, 3])
def test_a_shutdown_agent_does_in_simulate_what_it_did_in_the_environment(
    options: dict[str, Any], seed: int | None
) -> None:
    agent = trained(OFF) if options == {"action": "hold"} else trained(OFF, steps=256, **options)
    limit = {} if options.get("window") == "drain" else {"until_s": DAY_S}
    for day in days()[:1]:
        policy = agent.policy(sampled=seed is not None, seed=seed or 0)
        result = escala.simulate(day, "orion", scheduler="saf", shutdown=policy, start_off=True, **limit)
        assert result.summary()["waste_j"] == pytest.approx(rolled(agent, day, seed), rel=1e-12)


def test_greedy_actions_serve_every_job_of_an_agent_that_would_rather_wait() -> None:
    agent = small(SCHEDULING, steps=64)
    with torch.no_grad():
        agent.network.action_net.bias[0] = 1e3  # the no-op
    for day in days()[:1]:
        jobs = escala.simulate(day, "orion", scheduler=agent.policy(sampled=False), shutdown="timeout:300").jobs
        assert jobs["finish_s"].null_count() == 0


@pytest.mark.parametrize(("seed", "options"), [(None, {}), (3, {}), (3, {"confidence": "submitted"})])
def test_a_scheduling_agent_does_in_simulate_what_it_did_in_the_environment(
    seed: int | None, options: dict[str, Any]
) -> None:
    agent = small(SCHEDULING, steps=256, **options) if options else trained(SCHEDULING)
    for day in days()[:3]:
        policy = agent.policy(sampled=seed is not None, seed=seed or 0)
        result = escala.simulate(day, "orion", scheduler=policy, shutdown="timeout:300", start_off=True, until_s=DAY_S)
        assert result.summary()["waste_j"] == pytest.approx(rolled(agent, day, seed), rel=1e-12)


@pytest.mark.parametrize("env_id", [OFF, SCHEDULING])
def test_an_agent_of_another_version_is_refused(env_id: str) -> None:
    """Compiled code writes what the environment shows into the agent's arrays: they must be of that size."""
    agent = trained(env_id)
    with pytest.raises(EscalaError, match="another version"):
        Agent(agent.network, {**agent.manifest, "observation_shape": [7]}).policy()


def test_an_agent_is_a_policy_by_itself_and_in_tables() -> None:
    result = escala.simulate(days()[0], "orion", scheduler="saf", shutdown=trained(OFF), start_off=True)
    assert result.manifest["shutdown"] == "agent (maskable-ppo)"
    table = evaluate(trained(OFF), days()[:2], "orion", baselines=("timeout:0", "hold:0.25"), runs=2)
    assert table["policy"].unique(maintain_order=True).to_list() == [
        "timeout:0",
        "hold:0.25",
        "agent",
        "agent (argmax)",
    ]
    assert len(table) == 2 * (2 + 2 + 1)


def test_an_agent_learns_that_waiting_for_company_saves_energy() -> None:
    """Pairs of short jobs, the second 4 min after the first ends, with walltimes that allow to wait. Serving both with
    one boot wastes half as much; the best
    policy holds. Its known best: every pair on one boot."""
    jobs = [job for k in range(20) for job in ((k * 4000.0, 60.0, 3600.0, 1), (k * 4000.0 + 420.0, 60.0, 3600.0, 1))]
    day = workload(*jobs)
    agent = train(
        OFF,
        workload=[day],
        platform="1x1:grid5000",
        steps=20_000,
        seed=0,
        num_envs=16,
        action="hold",
        holds=(0.0, 0.25),
        learn={"ent_coef": 0.0},
    )
    how: dict[str, Any] = {"scheduler": "saf", "start_off": True, "until_s": DAY_S}
    eager = escala.simulate(day, "1x1:grid5000", shutdown="timeout:0", **how).summary()["waste_j"]
    best = escala.simulate(day, "1x1:grid5000", shutdown="hold:0.25:uncapped", **how).summary()["waste_j"]
    learnt = escala.simulate(day, "1x1:grid5000", shutdown=agent.policy(sampled=False), **how).summary()["waste_j"]
    assert best < 0.6 * eager
    assert learnt <= 1.05 * best


def test_unknown_names_are_told_in_one_line() -> None:
    for arguments, what in (
        ({"algorithm": "dqn"}, "algorithm"),
        ({"preset": "best"}, "preset"),
        ({"steps": 0}, "steps"),
    ):
        with pytest.raises(escala.EscalaError, match=what):
            small(OFF, **arguments)
    with pytest.raises(escala.EscalaError, match="unknown environment"):
        train("escala/Nothing-v0")
