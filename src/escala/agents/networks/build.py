"""Building the network and the learner of a preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from escala.agents.networks.convolutions import CONVOLUTIONS, MaskedImagePolicy, PlainImagePolicy
from escala.agents.networks.extractors import EXTRACTORS
from escala.agents.networks.ordered import MaskedOrderedPolicy, PlainOrderedPolicy
from escala.agents.networks.queue_scorer import QueuePolicy
from escala.agents.networks.slot_scorer import MaskedSlotPolicy, PlainSlotPolicy
from escala.agents.presets import Preset
from escala.envs.core.checks import number, whole_number
from escala.envs.forward import SLOT_SCORER
from escala.envs.rjms.queue_features import QUEUE_SCORER
from escala.envs.slots.options import options_of, shaping
from escala.errors import EscalaError

ALGORITHMS: dict[str, tuple[Any, Any]] = {
    "maskable-ppo": (MaskablePPO, MaskableActorCriticPolicy),
    "ppo": (PPO, ActorCriticPolicy),
    "a2c": (A2C, ActorCriticPolicy),
}
"""Name -> (learner, policy network)."""
RLLIB = ("rllib-ppo",)
"""Algorithms of `escala.agents.rllib`."""
OURS = (
    "policy",
    "env",
    "policy_kwargs",
    "rollout_buffer_class",
    "rollout_buffer_kwargs",
    "seed",
    "device",
    "verbose",
    "_init_setup_model",
)
"""Arguments of learners that Escala sets."""
LEAST = {"n_steps": 1, "batch_size": 2, "n_epochs": 1, "num_env_runners": 0}
NUMBERS = (
    "learning_rate",
    "clip_range",
    "clip_range_vf",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "target_kl",
    "rms_prop_eps",
)


def pin_threads() -> None:
    """One thread for torch: these networks are small, and runs stand side by side."""
    torch.set_num_threads(1)


def check_algorithm(name: str) -> None:
    """EscalaError for an unknown algorithm."""
    if name not in (*ALGORITHMS, *RLLIB):
        raise EscalaError(f"unknown algorithm {name!r}: use one of {', '.join((*ALGORITHMS, *RLLIB))}")


def check_request(steps: Any, seed: Any, num_envs: Any, learn: Mapping[str, Any] | None) -> None:
    """EscalaError where numbers of a training, or names or numbers among the learner's settings, are none. Settings of
    another algorithm than the one chosen are left out later, not refused: presets have them all."""
    whole_number("steps", steps, 0)
    whole_number("seed", seed, 0)
    if num_envs is not None:
        whole_number("num_envs", num_envs, 1)
    if learn is not None and not isinstance(learn, Mapping):
        raise EscalaError(
            f"learn={learn!r}: give the learner's settings by name, for instance {{'learning_rate': 1e-3}}"
        )
    known: dict[str, None] = {
        name: None for learner, _ in ALGORITHMS.values() for name in signature(learner).parameters if name not in OURS
    } | {"num_env_runners": None}
    for name, value in (learn or {}).items():
        if name not in known:
            raise EscalaError(f"learn: no algorithm has a setting {name!r}: use one of {', '.join(known)}")
        if name in LEAST:
            whole_number(f"learn: {name}", value, LEAST[name])
        if name in ("gamma", "gae_lambda") and not (number(value) and 0.0 <= value <= 1.0):
            raise EscalaError(f"learn: {name}={value!r}: give a number from 0 to 1")
        if (
            name in NUMBERS
            and not (number(value) and value >= 0.0)
            and not (value is None and name in ("target_kl", "clip_range_vf"))
        ):
            raise EscalaError(f"learn: {name}={value!r}: give a number of at least 0")


def taken_by(learner: Any, learn: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that this learner has."""
    own = signature(learner).parameters
    return {name: value for name, value in learn.items() if name in own}


def policy_class(algorithm: str, extractor: str | None, ordered: bool = False) -> Any:
    """stable-baselines3's policy network, or the one that scores slots, or the one of ordered choices."""
    # searched agents have a network like that of learners
    usual = ALGORITHMS.get(algorithm, ALGORITHMS["maskable-ppo"])[1]
    masked = usual is MaskableActorCriticPolicy
    if extractor == QUEUE_SCORER:
        return QueuePolicy
    if ordered:
        return MaskedOrderedPolicy if masked else PlainOrderedPolicy
    if extractor == SLOT_SCORER:
        return MaskedSlotPolicy if masked else PlainSlotPolicy
    if extractor in CONVOLUTIONS:
        return MaskedImagePolicy if masked else PlainImagePolicy
    return usual


def policy_arguments(
    network: tuple[int, ...], extractor: str | None, separate: bool, features: int = 0, relu: bool = False
) -> dict[str, Any]:
    """Arguments of the policy classes. features: numbers of a slot, of what scores slots."""
    out: dict[str, Any] = {"net_arch": {"pi": list(network), "vf": list(network)}}
    if relu:
        out |= {"activation_fn": nn.ReLU}
    if extractor == SLOT_SCORER:
        out = {"features": features, "sizes": network}
    elif extractor is not None and extractor != QUEUE_SCORER:
        out |= {"features_extractor_class": EXTRACTORS[extractor], "share_features_extractor": not separate}
    return out


def build_policy(manifest: Mapping[str, Any], observation_space: Any, action_space: Any, seed: int = 0) -> Any:
    """The network that a manifest describes, untrained; with the same weights for the same seed."""
    scored, chosen = manifest["extractor"] == SLOT_SCORER, manifest["env_options"]
    features = options_of(shaping(chosen)).slot_numbers(observation_space.shape) if scored else 0
    relu = bool(manifest.get("relu", False))
    arguments = policy_arguments(
        tuple(manifest["network"]), manifest["extractor"], manifest["separate"], features, relu
    )
    kind = policy_class(manifest["algorithm"], manifest["extractor"], manifest.get("ordered") is not None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # a part that no search sets keeps its first weights
        return kind(observation_space, action_space, _never, **arguments)


def _never(_: float) -> float:
    return 0.0


def falling(first: float) -> Callable[[float], float]:
    """A learning rate that falls to 0 with the share of steps left."""

    def rate(left: float) -> float:
        return first * max(left, 0.0)  # the last rollout may overshoot, and a rate below 0 would unlearn

    return rate


def silence(model: Any) -> None:
    """No log of stable-baselines3: its default one leaves an empty folder in the temporary folder for every
    training."""
    model.set_logger(Logger(None, []))


def build_learner(algorithm: str, preset: Preset, learn: Mapping[str, Any], env: Any, seed: int, steps: int) -> Any:
    """stable-baselines3's learner. steps: decisions to learn from; what is a single rollout is learnt at the full rate,
    as one that falls is 0 at the last."""
    learner = ALGORITHMS[algorithm][0]
    policy = policy_class(algorithm, preset.extractor, preset.ordered is not None)
    scored = preset.extractor == SLOT_SCORER
    features = env.get_attr("batch")[0].options.slot_numbers(env.observation_space.shape) if scored else 0
    arguments = taken_by(learner, learn)
    if preset.decay and steps > env.num_envs * arguments.get(
        "n_steps", signature(learner).parameters["n_steps"].default
    ):
        arguments["learning_rate"] = falling(float(arguments["learning_rate"]))
    shape = policy_arguments(preset.network, preset.extractor, preset.separate, features, preset.relu)
    model = learner(policy, env, policy_kwargs=shape, seed=seed, device="cpu", verbose=0, **arguments)
    silence(model)
    begin_at(model.policy, preset.ordered, preset.lean)
    return model


def begin_at(policy: Any, ordered: int | None, lean: tuple[int, float] | None) -> None:
    """First preferences as a preset has them."""
    with torch.no_grad():
        if ordered is not None:
            policy.action_net.centre.fill_(float(ordered))
        elif lean is not None:
            policy.action_net.bias[lean[0]] += lean[1]
