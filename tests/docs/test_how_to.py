"""The Python of the how-to pages that teach by a short program: it runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from escala.errors import EscalaError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "environments.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.learn
def test_environments_with_gymnasium_and_stable_baselines3() -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    assert len(BLOCKS) == 2
    plain: dict[str, Any] = {}
    exec(BLOCKS[0], plain)
    assert plain["observations"].shape[0] == 64 and plain["env"].observation_space.contains(plain["observation"])
    learnt: dict[str, Any] = {}
    exec(BLOCKS[1], learnt)
    assert learnt["model"].num_timesteps == 2 * 32 * 64
    masks = learnt["venv"].env_method("action_masks")
    assert len(masks) == 64 and all(mask[0] for mask in masks)


def test_only_native_vectors_are_taken() -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    from escala.agents import NativeVecEnv

    with pytest.raises(
        EscalaError, match="NativeVecEnv takes a native vector environment of Escala, not SyncVectorEnv"
    ):
        NativeVecEnv(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))
