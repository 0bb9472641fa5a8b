"""The native batch that a training plays in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

from escala.envs import ENVIRONMENTS, BatchVectorEnv
from escala.errors import EscalaError


def native_batch(
    env_id: str, num_envs: int, workload: Any, platform: Any, options: Mapping[str, Any]
) -> BatchVectorEnv:
    """So many environments of a registered id as one; arrays are overwritten by the step after next. EscalaError for an
    unknown id."""
    if env_id not in ENVIRONMENTS:
        raise EscalaError(f"unknown environment {env_id!r}: use one of {', '.join(ENVIRONMENTS)}")
    given = {"workload": workload, "platform": platform}
    made = gymnasium.make_vec(
        env_id, num_envs=num_envs, copy=False, **{k: v for k, v in given.items() if v is not None}, **options
    )
    native = made.unwrapped
    assert isinstance(native, BatchVectorEnv)
    return native
