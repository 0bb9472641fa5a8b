"""RLlib's PPO on native batches with masks; what comes out is an agent of Escala.

Its settings stand under the names of Escala's presets and mean the same; what RLlib does otherwise is its own:
advantages are normalised over a whole rollout, not over each minibatch, and the value loss is not clipped.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from escala.agents.networks.build import begin_at, build_policy, pin_threads
from escala.agents.networks.pair_scorer import MaskedPairPolicy
from escala.agents.presets import preset_of
from escala.agents.rllib.module import MaskedModule, of_each, seen_space
from escala.agents.rllib.runner import NativeEnvRunner
from escala.agents.rllib.timed import TimedLearner
from escala.agents.training.native import native_batch
from escala.agents.training.team.train import shape_of
from escala.agents.training.team.view import NetworksView, parts_of, relative_weights
from escala.agents.vecenv import NativeVecEnv
from escala.envs.slots.team.batch import MultiBatch
from escala.errors import EscalaError

ENDLESS = 1e9
USUAL = {
    "n_epochs": 10,
    "batch_size": 64,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
}
MOST_NORM = 0.5
"""As Escala's own training begins, where a preset says nothing."""


@dataclass(frozen=True)
class Task:
    """What RLlib is to learn. parts: for each network, called with a number of environments and a seed for them as one
    `VecEnv`, and called with the spaces of observations and actions for the network, the same each time; learn:
    settings by the names of presets; decay: the learning rate falls to 0; normalise: see `escala.agents.rllib.runner`;
    timed: steps have discounts of their own."""

    parts: Sequence[tuple[Callable[[int, int], Any], Callable[[Any, Any], Any]]]
    learn: Mapping[str, Any]
    num_envs: int
    steps: int
    seed: int
    decay: bool
    normalise: bool
    timed: bool = False

    @property
    def names(self) -> list[str]:
        """Those of RLlib's modules."""
        return [DEFAULT_MODULE_ID] if len(self.parts) == 1 else [f"agent_{k}" for k in range(len(self.parts))]

    def networks(self) -> list[Any]:
        """As they begin."""
        faces = [face(1, self.seed) for face, _ in self.parts]
        return [
            make(face.observation_space, face.action_space) for face, (_, make) in zip(faces, self.parts, strict=True)
        ]


def of_environment(request: Mapping[str, Any], manifest: Mapping[str, Any], workload: Any, platform: Any) -> Task:
    """The task of a training of one agent."""
    preset = preset_of(request["env_id"], request["preset"])
    return Task(
        [
            (
                partial(_native_face, request["env_id"], workload, platform, request["env_options"]),
                partial(_network, dict(manifest), request["seed"], preset.lean),
            )
        ],
        request["learn"],
        request["num_envs"],
        request["steps"],
        request["seed"],
        preset.decay,
        preset.normalise,
    )


def of_team(first: MultiBatch, options: Mapping[str, Any], request: Mapping[str, Any], preset: Any) -> Task:
    """The task of a training of a team. first: has its job lists; preset: of `escala.agents.training.team.presets`."""
    weight = relative_weights(first) if preset.relative else None
    learn, seed, shared = request["learn"], request["seed"], request["mode"] == "shared"
    shape, gamma = list(shape_of(first)), float(learn["gamma"])
    parts = []
    for k in range(len(parts_of(first, shared))):
        face = partial(_team_face, first.lists, dict(options), weight, gamma, shared, k)
        parts.append((face, partial(_team_network, shape, seed + 1000 * k)))
    return Task(parts, learn, request["num_envs"], request["steps"], seed, preset.decay, True, timed=True)


def _team_face(
    lists: Any,
    options: Mapping[str, Any],
    weight: Any,
    gamma: float,
    shared: bool,
    number: int,
    num_envs: int,
    seed: int,
) -> NetworksView:
    batch = MultiBatch(num_envs, lists, **options)
    made = NetworksView(
        batch, parts_of(batch, shared)[number], weight, gamma, np.random.default_rng([seed, 0x7EA, number])
    )
    made.first_seed = (seed * 64 + number) << 20
    return made


def _team_network(shape: list[int], seed: int, observation_space: Any, action_space: Any) -> Any:
    torch.manual_seed(seed)
    return MaskedPairPolicy(observation_space, action_space, lambda _: 0.0, shape=shape)


def _native_face(
    env_id: str, workload: Any, platform: Any, options: Mapping[str, Any], num_envs: int, seed: int
) -> NativeVecEnv:
    made = NativeVecEnv(native_batch(env_id, num_envs, workload, platform, options))
    made.seed(seed)
    return made


def _network(manifest: Mapping[str, Any], seed: int, lean: Any, observation_space: Any, action_space: Any) -> Any:
    made = build_policy(manifest, observation_space, action_space, seed)
    begin_at(made, manifest["ordered"], lean)
    return made


def configured(task: Task) -> PPOConfig:
    """RLlib's configuration: batches in the same process, or in each of `num_env_runners` further ones."""
    learn = {**USUAL, **task.learn}
    runners = int(learn.get("num_env_runners") or 0)
    envs = task.num_envs * len(task.parts)
    rollout = envs * int(learn["n_steps"]) * max(runners, 1)
    rate, steps = float(learn["learning_rate"]), max(task.steps, 1)
    face = task.parts[0][0](1, task.seed)
    seen, action = seen_space(face.observation_space, face.action_space), face.action_space
    agents = task.names if len(task.parts) > 1 else []
    config = PPOConfig().framework("torch").debugging(seed=task.seed, log_level="ERROR")
    config = config.environment(
        env="escala",
        env_config={
            "faces": {name: face for name, (face, _) in zip(task.names, task.parts, strict=True)},
            "normalise": task.normalise,
        },
        observation_space=of_each(seen, agents),
        action_space=of_each(action, agents),
        disable_env_checking=True,
    )
    config = config.env_runners(
        env_runner_cls=NativeEnvRunner,
        num_env_runners=runners,
        num_envs_per_env_runner=envs,
        rollout_fragment_length=int(learn["n_steps"]),
        create_env_on_local_worker=False,
    )
    specs = [RLModuleSpec(MaskedModule, seen, action, model_config={"network": make}) for _, make in task.parts]
    spec: Any = MultiRLModuleSpec(rl_module_specs=dict(zip(agents, specs, strict=True))) if agents else specs[0]
    config = config.rl_module(rl_module_spec=spec)
    if agents:
        config = config.multi_agent(policies=set(agents), policy_mapping_fn=_same)
    if task.timed:
        config = config.training(learner_class=TimedLearner)
    return config.training(
        train_batch_size=rollout,
        minibatch_size=min(int(learn["batch_size"]), rollout),
        num_epochs=int(learn["n_epochs"]),
        lr=[[0, rate], [steps, 0.0]] if task.decay and steps > rollout else rate,
        gamma=float(learn["gamma"]),
        lambda_=float(learn["gae_lambda"]),
        clip_param=float(learn["clip_range"]),
        entropy_coeff=float(learn["ent_coef"]),
        vf_loss_coeff=float(learn["vf_coef"]),
        vf_clip_param=ENDLESS,
        grad_clip=float(learn.get("max_grad_norm", MOST_NORM)),
        grad_clip_by="global_norm",
        use_kl_loss=False,
    )


def _same(agent: str, *_: Any, **__: Any) -> str:
    return agent


def fit(
    task: Task, progress: Callable[[float], None] | None, minutes: float | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """(the networks as trained, what its manifest says of the training)."""
    pin_threads()
    logging.getLogger("ray").setLevel(logging.ERROR)
    began, done = time.monotonic(), 0
    returns: list[float] = []
    with _ray():
        config = configured(task)
        algorithm = config.build_algo()
        try:
            while done < task.steps and (minutes is None or time.monotonic() - began < 60.0 * minutes):
                told = algorithm.train()["env_runners"]
                done = int(told["num_env_steps_sampled_lifetime"])
                returns += [float(told["episode_return_mean"])] if "episode_return_mean" in told else []
                if progress is not None:
                    progress(min(1.0, done / task.steps))
            weights = [_weights(algorithm, name) for name in task.names]
        finally:
            algorithm.stop()
    networks = task.networks()
    for network, its in zip(networks, weights, strict=True):
        network.load_state_dict(its)
    return networks, {
        "steps_done": done,
        "elapsed_s": round(time.monotonic() - began, 3),
        "mean_return": returns[-1] if returns and np.isfinite(returns[-1]) else None,
        "versions": {
            name: version(name)
            for name in ("escala", "torch", "ray", "stable-baselines3", "sb3-contrib", "gymnasium", "numpy")
        },
    }


def _weights(algorithm: Any, name: str) -> dict[str, torch.Tensor]:
    """Those of the network inside a module."""
    held = algorithm.learner_group.get_state(components=f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}")
    module = held[COMPONENT_LEARNER][COMPONENT_RL_MODULE][name]
    before = "policy."
    return {
        name.removeprefix(before): torch.as_tensor(value) for name, value in module.items() if name.startswith(before)
    }


@contextmanager
def _ray() -> Iterator[None]:
    """Ray as the process has it, or one of its own inside the block."""
    own = not ray.is_initialized()
    if own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            raise EscalaError(f"Ray cannot start here (--algorithm rllib-ppo): {why}") from error
    try:
        yield
    finally:
        if own:
            ray.shutdown()
