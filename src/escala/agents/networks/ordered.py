"""Networks for the action `hold` of OffReservation: ordered choices, and encoders that treat waiting and running jobs
as sets.

The choices of `hold` are shares of the walltime in rising order. Plain softmax logits explore them as if they were
names: a stray low share releases every job at once, so that a policy which errs once in ten minutes behaves like T(0)
(holding pays only after dozens of equal choices). Here the logits are those of a rounded Gaussian, -(i - mu)^2 / (2
sigma^2): stray choices are neighbours.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from escala.envs.forward import LAGS, LEAST_SPREAD, TRENDS
from escala.envs.rjms.hold_features import HISTORY, JOBS
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT, SUMMARY
from escala.errors import EscalaError


class QueueAndRunning(BaseFeaturesExtractor):
    """Reads the compact observation: the platform now and 5, 10 and 19 snapshots ago, the waiting jobs and the running
    jobs as two sets.

    Each set is encoded job by job by one layer, then summed and maximised; empty places count for nothing.
    """

    def __init__(self, observation_space: Any, features: int = 48, hidden: int = 16) -> None:
        super().__init__(observation_space, features)
        self.jobs_at = HISTORY * SNAPSHOT
        self.running_at = self.jobs_at + JOBS * JOB
        self.summary_at = self.running_at + RUNNING_SHOWN * RUNNING
        if tuple(observation_space.shape) != (self.summary_at + SUMMARY,):
            raise EscalaError(
                "extractor queue-and-running reads observation='compact' with history=20 and jobs=10: give these, or "
                "another preset"
            )
        self.of_waiting, self.of_running = nn.Linear(JOB, hidden), nn.Linear(RUNNING, hidden)
        seen = SNAPSHOT + TRENDS * len(LAGS) + SUMMARY + JOB + 4 * hidden
        self.mix = nn.Sequential(nn.Linear(seen, features), nn.Tanh())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[batch, numbers] -> [batch, features]."""
        past = observations[:, : self.jobs_at].reshape(-1, HISTORY, SNAPSHOT)
        waiting = observations[:, self.jobs_at : self.running_at].reshape(-1, JOBS, JOB)
        running = observations[:, self.running_at : self.summary_at].reshape(-1, RUNNING_SHOWN, RUNNING)
        parts = [past[:, -1], observations[:, self.summary_at :], waiting[:, 0]]
        parts += [past[:, HISTORY - 1 - lag, :TRENDS] for lag in LAGS]
        for jobs, layer in ((waiting, self.of_waiting), (running, self.of_running)):
            encoded = torch.relu(layer(jobs)) * (jobs[:, :, :1] > 0)
            parts += [encoded.sum(dim=1) / 5.0, encoded.amax(dim=1)]
        out: torch.Tensor = self.mix(torch.cat(parts, dim=1))
        return out


class OrderedHead(nn.Module):
    """Latent -> logits of a rounded Gaussian over the choices 0 .. n - 1. `centre`: where mu begins."""

    def __init__(self, latent: int, n: int) -> None:
        super().__init__()
        self.mu = nn.Linear(latent, 1)
        self.centre = nn.Parameter(torch.tensor((n - 1) / 2))
        self.spread = nn.Parameter(torch.tensor(math.log(0.7)))
        self.n = n

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """[batch, latent] -> [batch, n]."""
        sigma = self.spread.exp() + LEAST_SPREAD
        choices = torch.arange(self.n, dtype=torch.float32)
        away = (choices - self.centre - self.mu(latent)) / sigma
        out: torch.Tensor = -0.5 * away.square()
        return out


class _Ordered:
    """What both policy classes share; comes before them."""

    def _build_mlp_extractor(self: Any) -> None:
        super()._build_mlp_extractor()
        n = int(self.action_space.n)
        self.action_dist.proba_distribution_net = lambda latent_dim: OrderedHead(latent_dim, n)


class MaskedOrderedPolicy(_Ordered, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class PlainOrderedPolicy(_Ordered, ActorCriticPolicy):
    """For PPO and A2C, without masks."""
