"""RLlib trains the game of several agents through its PettingZoo face (only where ray is installed)."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("ray.rllib", reason="the extra ray is not installed")

from escala.envs import multi


@pytest.mark.slow
@pytest.mark.learn
def test_rllib_trains_one_iteration() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
    from ray.tune.registry import register_env

    register_env("escala_multi", lambda _: ParallelPettingZooEnv(multi.parallel(agents=2, load=0.9, limit=50, lists=8)))
    config = (
        PPOConfig()
        .environment("escala_multi")
        .multi_agent(policies={"agent_0", "agent_1"}, policy_mapping_fn=lambda agent, *_, **__: agent)
        .env_runners(num_env_runners=0)
        .training(train_batch_size=400, minibatch_size=64, num_epochs=1)
    )
    learner = config.build_algo()
    try:
        found = learner.train()
    finally:
        learner.stop()
    assert math.isfinite(found["env_runners"]["episode_return_mean"])
