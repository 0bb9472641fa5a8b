"""An RLModule with masks: the same network that Escala's own training has, so that what RLlib learns is an agent of
Escala.

Observations are {"observations": [batch, ...], "action_mask": bool [batch, actions]}. Logits of actions that the mask
forbids are -1e8, as in sb3-contrib, so that they are never drawn and carry no gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule

OBSERVATIONS, MASK = "observations", "action_mask"


def seen_space(observation_space: Any, action_space: Any) -> spaces.Dict:
    """The space of what the module is shown."""
    mask = spaces.Box(0, 1, (int(action_space.n),), bool)
    return spaces.Dict({OBSERVATIONS: observation_space, MASK: mask})


def of_each(space: spaces.Space[Any], agents: Sequence[str]) -> spaces.Space[Any]:
    """The space of all agents, which are alike; the one that is given where there are no names."""
    return spaces.Dict(dict.fromkeys(agents, space)) if agents else space


class MaskedModule(TorchRLModule, ValueFunctionAPI):
    """model_config: `network`, called with the spaces of observations and actions for the network (a policy of
    sb3-contrib)."""

    def setup(self) -> None:
        """Build the network."""
        self.policy = self.model_config["network"](self.observation_space[OBSERVATIONS], self.action_space)

    def _forward(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        drawn = self.policy.get_distribution(seen[OBSERVATIONS], action_masks=seen[MASK].bool())
        return {Columns.ACTION_DIST_INPUTS: drawn.distribution.logits}

    def compute_values(self, batch: Mapping[str, Any], embeddings: Any = None) -> torch.Tensor:
        """The value of each observation, [batch]."""
        values: torch.Tensor = self.policy.predict_values(batch[Columns.OBS][OBSERVATIONS])
        return values.flatten()
