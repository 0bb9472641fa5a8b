"""RLlib trains the game of several agents through its PettingZoo face (only where ray is installed)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

pytest.importorskip("ray.rllib", reason="the extra rllib is not installed")

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


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ray.md"


@pytest.mark.slow
@pytest.mark.learn
@pytest.mark.parametrize(("number", "told"), [(0, r"-\d+"), (1, r"sjf +mean slowdown \d.*RLlib +mean slowdown \d")])
def test_the_page_on_ray(number: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its scripts as they stand, but for the length of the training."""
    block = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[number]
    assert "ITERATIONS, BATCH = 10, 4000" in block
    exec(block.replace("ITERATIONS, BATCH = 10, 4000", "ITERATIONS, BATCH = 1, 256").replace("lists=100", "lists=4"), {})
    assert re.search(told, capsys.readouterr().out, re.DOTALL)
