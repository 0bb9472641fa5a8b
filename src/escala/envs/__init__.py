"""Environments over the one kernel."""

from typing import TYPE_CHECKING

from escala.envs import multi
from escala.envs.core.batch import Batch, Turn
from escala.envs.core.environment import BatchEnv
from escala.envs.core.vector import BatchVectorEnv
from escala.registry import ENVIRONMENTS

if TYPE_CHECKING:
    from escala.envs.slots import slots  # imported by those who ask for it: it takes longer than all the rest

__all__ = ["ENVIRONMENTS", "Batch", "BatchEnv", "BatchVectorEnv", "Turn", "multi", "slots"]
