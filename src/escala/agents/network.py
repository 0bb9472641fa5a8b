"""Building the network and the learner of a preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from escala.agents.networks import EXTRACTORS
from escala.agents.presets import A2C_ONLY_OUT, Preset
from escala.errors import EscalaError

ALGORITHMS: dict[str, tuple[Any, Any]] = {
    "maskable-ppo": (MaskablePPO, MaskableActorCriticPolicy),
    "ppo": (PPO, ActorCriticPolicy),
    "a2c": (A2C, ActorCriticPolicy),
}
"""Name -> (learner, policy network)."""


def pin_threads() -> None:
    """One thread for torch: these networks are small, and runs stand side by side."""
    torch.set_num_threads(1)


def check_algorithm(name: str) -> None:
    """EscalaError for an unknown algorithm."""
    if name not in ALGORITHMS:
        raise EscalaError(f"unknown algorithm {name!r}: use one of {', '.join(ALGORITHMS)}")


def policy_arguments(network: tuple[int, ...], extractor: str | None, separate: bool) -> dict[str, Any]:
    """Arguments of stable-baselines3's policy classes."""
    out: dict[str, Any] = {"net_arch": {"pi": list(network), "vf": list(network)}}
    if extractor is not None:
        out |= {"features_extractor_class": EXTRACTORS[extractor], "share_features_extractor": not separate}
    return out


def build_policy(manifest: Mapping[str, Any], observation_space: Any, action_space: Any) -> Any:
    """The network that a manifest describes, untrained."""
    arguments = policy_arguments(tuple(manifest["network"]), manifest["extractor"], manifest["separate"])
    return ALGORITHMS[manifest["algorithm"]][1](observation_space, action_space, _never, **arguments)


def _never(_: float) -> float:
    return 0.0


def falling(first: float) -> Callable[[float], float]:
    """A learning rate that falls to 0 with the share of steps left."""

    def rate(left: float) -> float:
        return first * left

    return rate


def build_learner(algorithm: str, preset: Preset, learn: Mapping[str, Any], env: Any, seed: int) -> Any:
    """stable-baselines3's learner."""
    learner, policy = ALGORITHMS[algorithm]
    arguments = {k: v for k, v in learn.items() if algorithm != "a2c" or k not in A2C_ONLY_OUT}
    if preset.decay:
        arguments["learning_rate"] = falling(float(arguments["learning_rate"]))
    model = learner(
        policy,
        env,
        policy_kwargs=policy_arguments(preset.network, preset.extractor, preset.separate),
        seed=seed,
        device="cpu",
        verbose=0,
        **arguments,
    )
    if preset.lean is not None:
        with torch.no_grad():
            model.policy.action_net.bias[preset.lean[0]] += preset.lean[1]
    return model
