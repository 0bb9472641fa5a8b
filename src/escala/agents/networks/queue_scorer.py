"""A small network for escala/Scheduling-v0: two linear scores for every waiting job, the same weights for all places.

A job whose `release` is above 0 may start; of those that may and fit, the one with the highest `order` does. If there is none, a minute
passes. So the one score says which jobs had better wait for nodes that are on, and the other which go first: a single score for both
cannot hold a job without moving it in the order. Reads the observation with `waits=True`: without the time that a job has waited, a job
that is held for nodes that are on may be held for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from escala.compile import lean
from escala.envs.rjms.scheduling_step import QUEUED, RUNNING, WIDTH
from escala.errors import EscalaError

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
NEVER = 50.0  # in preferences, between the released jobs, the no-op, and those that are held
SOON = (15.0 / 1440.0) ** 0.5  # 15 min on the scale of the observations


@lean
def leaving_soon(seen: Any) -> float:
    """Share of the cores whose jobs should end within 15 min. seen [places, WIDTH + 1]."""
    total = 0.0
    for k in range(seen.shape[0]):
        if seen[k, QUEUED + 2] < SOON:
            total += seen[k, QUEUED]
    return total


@lean
def write_features(seen: Any, place: int, soon: float, out: Any) -> None:
    """The numbers of the job at a place, in the order of JOB_FEATURES. seen [places, WIDTH + 1], of which the snapshots but the newest are
    not read; soon: `leaving_soon` of it."""
    places = seen.shape[0]
    now = QUEUED + RUNNING  # given cores, queue length, time of day, nodes in the five states
    queue, computing, idle = seen[places - 1, now + 1], seen[places - 1, now + 3], seen[places - 1, now + 4]
    cores, wall, confidence = seen[place, 0], seen[place, 1], seen[place, 2]
    day_waited = seen[place, WIDTH] * seen[place, WIDTH]  # in days, as walltimes are after squaring
    beyond = max(cores - idle - 1e-6, 0.0)
    wakes = 1.0 if beyond > 0.0 else 0.0
    out[0] = 1.0
    out[1] = wall
    out[2] = cores
    out[3] = confidence
    out[4] = wall * np.sqrt(max(confidence, 0.0))
    out[5] = place / max(places - 1, 1)
    out[6] = wakes
    out[7] = beyond
    out[8] = wakes * queue
    out[9] = wakes * computing
    out[10] = wakes * soon
    out[11] = wakes * out[4]
    out[12] = wakes * out[5]
    out[13] = wakes * (seen[places - 1, now + 6] + seen[places - 1, now + 7])
    out[14] = wakes * min(day_waited * 96.0, 1.0)
    out[15] = wakes * min(day_waited * 24.0, 1.0)
    out[16] = wakes * min(day_waited / max(wall * wall, 1e-6), 1.0)


@lean
def _features_of(seen: Any, row: Any, place: Any, out: Any) -> None:
    last = -1
    soon = 0.0
    for k in range(out.shape[0]):
        if row[k] != last:
            last = row[k]
            soon = leaving_soon(seen[last])
        write_features(seen[row[k]], place[k], soon, out[k])


def job_features(seen: NDArray[np.float32], row: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.float64]:
    """[batch, places, WIDTH + 1], and where some jobs are in it, row [jobs] and place [jobs] -> [jobs, len(JOB_FEATURES)]."""
    if seen.shape[2] != WIDTH + 1:
        raise EscalaError(f"extractor {QUEUE_SCORER} reads {WIDTH + 1} numbers a place, got {seen.shape[2]}: use waits=True")
    out = np.empty((len(row), len(JOB_FEATURES)))
    _features_of(seen, row, place, out)
    return out


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
        """Preferences: the no-op, then the places: released jobs by their order, above the no-op, and this above the held."""
        observations = np.ascontiguousarray(numbers.detach().cpu().numpy(), np.float32).reshape(-1, self.places, WIDTH + 1)
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
        self.action_dist.proba_distribution_net = lambda latent_dim: nn.Identity()  # type: ignore[method-assign,misc,assignment]
