"""Environments over the one kernel."""

from typing import TYPE_CHECKING

from escala.envs import multi
from escala.envs.batch import Batch, Turn
from escala.envs.environment import BatchEnv
from escala.envs.vector import BatchVectorEnv
from escala.registry import ENVIRONMENTS

if TYPE_CHECKING:
    from escala.envs import slots  # imported by those who ask for it: it takes longer than all the rest

__all__ = ["ENVIRONMENTS", "Batch", "BatchEnv", "BatchVectorEnv", "Turn", "multi", "slots"]
