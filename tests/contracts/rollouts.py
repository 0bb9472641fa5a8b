"""What the contract tests need: small arguments for every registered environment, and rollouts by a fixed rule."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np

import escala
import escala.envs

NAMES = sorted(escala.envs.ENVIRONMENTS)


@functools.cache
def days() -> list[escala.Workload]:
    """A few small days for four nodes of twelve cores."""
    return escala.workload.generate.grid5000(cluster="orion", days=6, seed=3).split_days()


def arguments(name: str) -> dict[str, Any]:
    """Small arguments for an environment."""
    return {} if name == "escala/Slots-v0" else {"workload": days(), "platform": "orion"}


def single(name: str, **options: Any) -> Any:
    return gymnasium.make(name, **arguments(name), **options)


def vector(name: str, n: int, **options: Any) -> Any:
    return gymnasium.make_vec(name, num_envs=n, **arguments(name), **options)


def valid_action(mask: np.ndarray, step: int) -> int:
    """An action that the mask allows, another one at each step."""
    allowed = np.flatnonzero(mask)
    return int(allowed[(step * 2654435761 % 2**32 >> 9) % len(allowed)])


def roll_single(name: str, seed: int, steps: int) -> list[tuple[Any, ...]]:
    """(observation, mask, reward, terminated, truncated) of each step; episodes follow one another."""
    env = single(name)
    observation, info = env.reset(seed=seed)
    out: list[tuple[Any, ...]] = [(observation, info["action_mask"], 0.0, False, False)]
    for k in range(steps):
        observation, reward, terminated, truncated, info = env.step(valid_action(info["action_mask"], k))
        mask = info["action_mask"]
        if terminated or truncated:
            observation, info = env.reset()
            mask = info["action_mask"]
        out.append((observation, mask, reward, terminated, truncated))
    return out


def roll_vector(name: str, n: int, seed: int, steps: int, **options: Any) -> list[tuple[Any, ...]]:
    """The same for n rows at once."""
    env = vector(name, n, **options)
    observation, info = env.reset(seed=seed)
    out: list[tuple[Any, ...]] = [
        (observation.copy(), info["action_mask"].copy(), np.zeros(n), np.zeros(n, bool), np.zeros(n, bool))
    ]
    for k in range(steps):
        actions = np.array([valid_action(mask, k) for mask in info["action_mask"]])
        observation, reward, terminated, truncated, info = env.step(actions)
        out.append((observation.copy(), info["action_mask"].copy(), reward.copy(), terminated.copy(), truncated.copy()))
    return out


def same(a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> None:
    """Are two rollouts equal to the last bit?"""
    assert len(a) == len(b)
    for step, (x, y) in enumerate(zip(a, b, strict=True)):
        for p, q in zip(x, y, strict=True):
            assert np.array_equal(p, q), f"step {step}"
