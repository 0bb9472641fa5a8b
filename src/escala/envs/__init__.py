"""Environments over the one kernel, registered with Gymnasium when this package is imported."""

from escala.envs import multi
from escala.envs.batch import Batch, Turn
from escala.envs.environment import BatchEnv
from escala.envs.registry import ENVIRONMENTS, register
from escala.envs.vector import BatchVectorEnv

__all__ = ["ENVIRONMENTS", "Batch", "BatchEnv", "BatchVectorEnv", "Turn", "multi", "register"]

register()
