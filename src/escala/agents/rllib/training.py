"""RLlib's PPO on native batches with masks; what comes out is an agent of Escala.

Its settings stand under the names of Escala's presets and mean the same; what RLlib does otherwise is its own: advantages are normalised
over a whole rollout, not over each minibatch, and the value loss is not clipped.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
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
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from escala.agents.networks.build import begin_at, build_policy, pin_threads
from escala.agents.networks.pair_scorer import MaskedPairPolicy
from escala.agents.presets import preset_of
from escala.agents.rllib.module import MaskedModule, seen_space
from escala.agents.rllib.runner import NativeEnvRunner
from escala.agents.rllib.timed import TimedLearner
from escala.agents.training.native import native_batch
from escala.agents.training.team.train import shape_of
from escala.agents.training.team.view import SharedView, relative_weights
from escala.agents.vecenv import NativeVecEnv
from escala.envs.slots.team.batch import MultiBatch
from escala.errors import EscalaError

ENDLESS = 1e9
USUAL = {"n_epochs": 10, "batch_size": 64, "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2, "ent_coef": 0.0, "vf_coef": 0.5}
MOST_NORM = 0.5
"""As Escala's own training begins, where a preset says nothing."""


@dataclass(frozen=True)
class Task:
    """What RLlib is to learn. face: called with a number of environments and a seed for them as one `VecEnv`; network: called with the
    spaces of observations and actions for the network, the same each time; learn: settings by the names of presets; decay: the learning
    rate falls to 0; normalise: see `escala.agents.rllib.runner`; timed: steps have discounts of their own."""

    face: Callable[[int, int], Any]
    network: Callable[[Any, Any], Any]
    learn: Mapping[str, Any]
    num_envs: int
    steps: int
    seed: int
    decay: bool
    normalise: bool
    timed: bool = False


def of_environment(request: Mapping[str, Any], manifest: Mapping[str, Any], workload: Any, platform: Any) -> Task:
    """The task of a training of one agent."""
    preset = preset_of(request["env_id"], request["preset"])
    return Task(
        partial(_native_face, request["env_id"], workload, platform, request["env_options"]),
        partial(_network, dict(manifest), request["seed"], preset.lean),
        request["learn"],
        request["num_envs"],
        request["steps"],
        request["seed"],
        preset.decay,
        preset.normalise,
    )


def of_team(workload: Any, options: Mapping[str, Any], games: int, settings: Mapping[str, Any], preset: Any, steps: int, seed: int) -> Task:
    """The task of a training of a team with one network for all. preset: of `escala.agents.training.team.presets`."""
    first = MultiBatch(1, workload, **options)
    weight = relative_weights(first) if preset.relative else None
    face = partial(_team_face, first.lists, dict(options), weight, float(settings["gamma"]))
    network = partial(_team_network, list(shape_of(first)), seed)
    return Task(face, network, settings, games, steps, seed, preset.decay, True, timed=True)


def _team_face(lists: Any, options: Mapping[str, Any], weight: Any, gamma: float, num_envs: int, seed: int) -> SharedView:
    made = SharedView(MultiBatch(num_envs, lists, **options), weight, gamma, np.random.default_rng([seed, 0x7EA]))
    made.first_seed = seed << 26
    return made


def _team_network(shape: list[int], seed: int, observation_space: Any, action_space: Any) -> Any:
    torch.manual_seed(seed)
    return MaskedPairPolicy(observation_space, action_space, lambda _: 0.0, shape=shape)


def _native_face(env_id: str, workload: Any, platform: Any, options: Mapping[str, Any], num_envs: int, seed: int) -> NativeVecEnv:
    made = NativeVecEnv(native_batch(env_id, num_envs, workload, platform, options))
    made.seed(seed)
    return made


def _network(manifest: Mapping[str, Any], seed: int, lean: Any, observation_space: Any, action_space: Any) -> Any:
    made = build_policy(manifest, observation_space, action_space, seed)
    begin_at(made, manifest["ordered"], lean)
    return made


def configured(task: Task) -> PPOConfig:
    """RLlib's configuration: a batch in the same process, or in each of `num_env_runners` further ones."""
    learn = {**USUAL, **task.learn}
    runners = int(learn.get("num_env_runners") or 0)
    rollout = task.num_envs * int(learn["n_steps"]) * max(runners, 1)
    rate, steps = float(learn["learning_rate"]), max(task.steps, 1)
    face = task.face(1, task.seed)
    config = PPOConfig().framework("torch").debugging(seed=task.seed, log_level="ERROR")
    config = config.environment(
        env="escala",
        env_config={"face": task.face, "normalise": task.normalise},
        observation_space=seen_space(face.observation_space, face.action_space),
        action_space=face.action_space,
        disable_env_checking=True,
    )
    config = config.env_runners(
        env_runner_cls=NativeEnvRunner,
        num_env_runners=runners,
        num_envs_per_env_runner=task.num_envs,
        rollout_fragment_length=int(learn["n_steps"]),
        create_env_on_local_worker=False,
    )
    config = config.rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"network": task.network}))
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


def fit(task: Task, progress: Callable[[float], None] | None, minutes: float | None = None) -> tuple[Any, dict[str, Any]]:
    """(the network as trained, what its manifest says of the training)."""
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
            weights = _weights(algorithm)
        finally:
            algorithm.stop()
    face = task.face(1, task.seed)
    network = task.network(face.observation_space, face.action_space)
    network.load_state_dict(weights)
    return network, {
        "steps_done": done,
        "elapsed_s": round(time.monotonic() - began, 3),
        "mean_return": returns[-1] if returns and np.isfinite(returns[-1]) else None,
        "versions": {name: version(name) for name in ("escala", "torch", "ray", "stable-baselines3", "sb3-contrib", "gymnasium", "numpy")},
    }


def _weights(algorithm: Any) -> dict[str, torch.Tensor]:
    """Those of the network inside the module."""
    held = algorithm.learner_group.get_state(components=f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}")
    module = held[COMPONENT_LEARNER][COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]
    before = "policy."
    return {name.removeprefix(before): torch.as_tensor(value) for name, value in module.items() if name.startswith(before)}


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
