"""Steps per second of escala/Slots-v0 under random choices, and of training on it: one core, 256 simulations, resets
included."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np

import escala
import escala.envs
from bench.measure import Case, seconds
from escala.agents.vecenv import NativeVecEnv

NUM_ENVS = 256
STEPS = 1000


def random_steps(**options: Any) -> tuple[float, str]:
    """Valid and invalid choices alike, load 1."""
    env = gymnasium.make_vec("escala/Slots-v0", num_envs=NUM_ENVS, copy=False, load=1.0, **options)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.unwrapped.single_action_space.n, (STEPS, NUM_ENVS))

    def roll() -> None:
        for chosen in actions:
            env.step(chosen)

    return NUM_ENVS * STEPS / seconds(roll, 3) / 1e6, "M steps/s"


def training_steps(preset: str, algorithm: str, steps: int = 200_000, **more: Any) -> tuple[float, str]:
    """Decisions a second of processor time, from the second training of the process on."""
    escala.train("escala/Slots-v0", steps=1, preset=preset, algorithm=algorithm, load=1.0, **more)
    begin = time.process_time()
    agent = escala.train("escala/Slots-v0", steps=steps, preset=preset, algorithm=algorithm, load=1.0, **more)
    return agent.manifest["steps_done"] / (time.process_time() - begin) / 1e3, "k steps/s"


def environment_share(preset: str, algorithm: str, steps: int = 200_000, **more: Any) -> tuple[float, str]:
    """Share of a training's processor time that is spent in the environment, its face for stable-baselines3
    included."""
    escala.train("escala/Slots-v0", steps=1, preset=preset, algorithm=algorithm, load=1.0, **more)
    inside, step = [0.0], NativeVecEnv.step_wait

    def timed(face: NativeVecEnv) -> Any:
        begin = time.process_time()
        out = step(face)
        inside[0] += time.process_time() - begin
        return out

    NativeVecEnv.step_wait = timed  # type: ignore[method-assign]
    try:
        begin = time.process_time()
        escala.train("escala/Slots-v0", steps=steps, preset=preset, algorithm=algorithm, load=1.0, **more)
        return 100.0 * inside[0] / (time.process_time() - begin), "%"
    finally:
        NativeVecEnv.step_wait = step  # type: ignore[method-assign]


LARGE = {"num_envs": NUM_ENVS, "learn": {"batch_size": 2048}}


def one_training(steps: int = 3_000_000) -> tuple[float, str]:
    """Processor time of a whole training of this many decisions on the compact observation."""
    escala.train("escala/Slots-v0", steps=1, preset="reserve", load=1.0)
    begin = time.process_time()
    escala.train("escala/Slots-v0", steps=steps, preset="reserve", load=1.0)
    return time.process_time() - begin, "s"


CASES = [
    Case("Slots, compact, start-now", ">= 1.5 M steps/s", lambda: random_steps()),
    Case("Slots, compact, reserve", ">= 1.5 M steps/s", lambda: random_steps(placement="reserve")),
    Case("Slots, image (uint8), start-now", ">= 0.8 M steps/s", lambda: random_steps(observation="image")),
    Case(
        "Slots, image (uint8), reserve",
        ">= 0.8 M steps/s",
        lambda: random_steps(observation="image", placement="reserve"),
    ),
    Case(
        "Slots, image (float32), reserve",
        ">= 0.8 M steps/s",
        lambda: random_steps(observation="image", placement="reserve", dtype="float32"),
    ),
    Case(
        "PPO on Slots, 20 ReLU, compact", ">= 80 k steps/s", lambda: training_steps("printed-compact", "ppo", **LARGE)
    ),
    Case("3 M decisions of masked PPO on Slots, slot scorer, compact", "<= 90 s", one_training),
    Case(
        "environment's share of PPO on Slots, 20 ReLU, compact",
        "<= 10 %",
        lambda: environment_share("printed-compact", "ppo", **LARGE),
    ),
    Case(
        "environment's share of masked PPO on Slots, slot scorer, compact",
        "<= 10 %",
        lambda: environment_share("tuned", "maskable-ppo"),
    ),
    Case("Masked PPO on Slots, slot scorer, compact", "-", lambda: training_steps("tuned", "maskable-ppo")),
]
