"""A small network for escala/Scheduling-v0: two linear scores for every waiting job, the same weights for all places.

A job whose `release` is above 0 may start; of those that may and fit, the one with the highest `order` does. If there is none, a minute
passes. So the one score says which jobs had better wait for nodes that are on, and the other which go first: a single score for both
cannot hold a job without moving it in the order. Reads the observation with `waits=True`: without the time that a job has waited, a job
that is held for nodes that are on may be held for ever.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from escala.envs.scheduling_step import QUEUED, RUNNING, WIDTH

QUEUE_SCORER = "queue-scorer"
"""How presets and manifests name this network."""
JOB_FEATURES = (
    "always",
    "walltime",
    "cores",
    "confidence in the walltime",
    "walltime x confidence",
    "place in the queue",
    "more cores than idle nodes have",
    "cores beyond those of idle nodes",
    "such a job x length of the queue",
    "such a job x computing nodes",
    "such a job x running jobs that should end within 15 min",
    "such a job x walltime x confidence",
    "such a job x place in the queue",
    "such a job x nodes under way between on and off",
    "such a job x its wait, up to 15 min",
    "such a job x its wait, up to 1 h",
    "such a job x its wait / walltime, up to 1",
)
SCORES = ("order", "release")
SHARPNESS = 200.0  # of the softmax over orders: draws differ from the likeliest choice only where orders nearly tie
NEVER = 50.0  # in preferences, between the released jobs, the void, and those that are held
SOON = (15.0 / 1440.0) ** 0.5  # 15 min on the scale of the observations


def job_features(observations: torch.Tensor, row: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """[batch, places, WIDTH + 1], and where some jobs are in it, row [jobs] and place [jobs] -> [jobs, len(JOB_FEATURES)]."""
    job = observations[row, place]
    cores, wall, confidence = (job[:, k] for k in range(QUEUED))
    waited = job[:, WIDTH].square()  # in days, as walltimes are after squaring
    leaving, by_confidence = observations[:, :, QUEUED], observations[:, :, QUEUED + 2]
    soon = (leaving * (by_confidence < SOON)).sum(dim=1)[row]
    now = observations[:, -1, QUEUED + RUNNING : WIDTH][row]  # given cores, queue length, time of day, nodes in the five states
    queue, computing, idle, under_way = now[:, 1], now[:, 3], now[:, 4], now[:, 6] + now[:, 7]
    expected = wall * confidence.clamp(min=0.0).sqrt()
    beyond = (cores - idle - 1e-6).clamp(min=0.0)
    wakes = (beyond > 0).float()
    rank = place / max(observations.shape[1] - 1, 1)
    columns = [torch.ones_like(cores), wall, cores, confidence, expected, rank, wakes, beyond]
    columns += [wakes * x for x in (queue, computing, soon, expected, rank, under_way)]
    columns += [wakes * (waited * most).clamp(max=1.0) for most in (96.0, 24.0)]
    columns.append(wakes * (waited / wall.square().clamp(min=1e-6)).clamp(max=1.0))
    return torch.stack(columns, dim=1)


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
        """Preferences: the void, then the places: released jobs by their order, all above the void, which is above those that are held."""
        observations = numbers.reshape(-1, self.places, WIDTH + 1)
        row, place = (observations[:, :, 0] > 0.0).nonzero(as_tuple=True)
        order, release = self.score(job_features(observations, row, place)).unbind(dim=1)
        wanted = torch.full(observations.shape[:2], torch.nan, dtype=order.dtype)
        wanted[row, place] = torch.where(release > 0.0, SHARPNESS * order, torch.nan)
        void = wanted.nan_to_num(nan=torch.inf).amin(dim=1, keepdim=True).nan_to_num(posinf=0.0) - NEVER
        return torch.cat([void, torch.where(wanted.isnan(), void - NEVER, wanted)], dim=1)

    def forward_critic(self, numbers: torch.Tensor) -> torch.Tensor:
        """Nothing: the weights are searched, not learnt step by step."""
        return torch.zeros_like(numbers[:, :1])


class QueuePolicy(MaskableActorCriticPolicy):
    """stable-baselines3's policy around the scores."""

    def _build_mlp_extractor(self) -> None:
        space: Any = self.observation_space
        self.mlp_extractor = QueueScorer(int(space.shape[0]))  # type: ignore[assignment]
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # type: ignore[method-assign,misc,assignment]
