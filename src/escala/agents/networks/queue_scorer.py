"""A small network for escala/Scheduling-v0: two linear scores for every waiting job, the same weights for all places.

Its numbers, and what its scores mean: `escala.envs.rjms.queue_features`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from escala.envs.rjms.queue_features import JOB_FEATURES, NEVER, SCORES, SHARPNESS, job_features
from escala.envs.rjms.scheduling_step import WIDTH


class QueueScorer(nn.Module):
    """Takes the place of stable-baselines3's two towers: preferences for the policy, one number for the value."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places
        self.latent_dim_pi, self.latent_dim_vf = places + 1, 1
        self.score = nn.Linear(len(JOB_FEATURES), len(SCORES), bias=False)

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[batch, numbers] -> preferences [batch, 1 + places], hidden layer of the value [batch, 1]."""
        return self.forward_actor(numbers), self.forward_critic(numbers)

    def forward_actor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Preferences: the no-op, then the places: released jobs by their order, above the no-op, and this above the
        held."""
        observations = np.ascontiguousarray(numbers.detach().cpu().numpy(), np.float32).reshape(
            -1, self.places, WIDTH + 1
        )
        row, place = np.nonzero(observations[:, :, 0] > 0.0)
        features = torch.as_tensor(job_features(observations, row, place), dtype=numbers.dtype, device=numbers.device)
        order, release = self.score(features).unbind(dim=1)
        wanted = torch.full(observations.shape[:2], torch.nan, dtype=order.dtype, device=order.device)
        wanted[row, place] = torch.where(release > 0.0, SHARPNESS * order, torch.nan)
        noop = wanted.nan_to_num(nan=torch.inf).amin(dim=1, keepdim=True).nan_to_num(posinf=0.0) - NEVER
        return torch.cat([noop, torch.where(wanted.isnan(), noop - NEVER, wanted)], dim=1)

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """Nothing: the weights are searched, not learnt step by step."""
        return torch.zeros_like(numbers[:, :1])


class QueuePolicy(MaskableActorCriticPolicy):
    """stable-baselines3's policy around the scores."""

    def _build_mlp_extractor(self) -> None:
        space: Any = self.observation_space
        self.mlp_extractor = QueueScorer(int(space.shape[0]))  # type: ignore[assignment]
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # type: ignore[method-assign]
