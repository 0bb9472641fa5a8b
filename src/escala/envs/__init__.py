"""Environments over the one kernel."""

from escala.envs import multi
from escala.envs.batch import Batch, Turn
from escala.envs.environment import BatchEnv
from escala.envs.vector import BatchVectorEnv
from escala.registry import ENVIRONMENTS

__all__ = ["ENVIRONMENTS", "Batch", "BatchEnv", "BatchVectorEnv", "Turn", "multi"]
