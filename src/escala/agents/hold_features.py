"""A small network for the action `hold`: one linear score of what is seen, rounded to the nearest choice.

Few weights, so that a direct search (`escala.agents.search`) can find them, and so that they can be read: a positive weight means that
jobs are held back longer when the number is large.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from escala.agents.ordered_networks import HISTORY, JOBS
from escala.envs.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT, SUMMARY
from escala.errors import EscalaError

FEATURES = (
    "walltime of the first job",
    "cores of the first job",
    "jobs of its user in the system",
    "longest stretch so far among the waiting",
    "mean walltime of the waiting",
    "length of the queue",
    "demand of the queue",
    "computing nodes",
    "change of the computing nodes in 10 min",
    "nodes under way between on and off",
    "free cores on nodes that are on",
    "cores that no job holds",
    "some job runs",
    "youth of the youngest running job",
    "time left, by walltime, of the running job that ends first",
    "running cores, in first jobs",
    "cores of running jobs younger than 15 min, in first jobs",
    "time of day",
)
YOUNG = (15.0 / 1440.0) ** 0.5  # 15 min on the scale of the observations


class HoldFeatures(BaseFeaturesExtractor):
    """The compact observation as the numbers of `FEATURES`; nothing to learn."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, len(FEATURES))
        self.jobs_at = HISTORY * SNAPSHOT
        self.running_at = self.jobs_at + JOBS * JOB
        self.summary_at = self.running_at + RUNNING_SHOWN * RUNNING
        if tuple(observation_space.shape) != (self.summary_at + SUMMARY,):
            raise EscalaError("extractor hold-features reads observation='compact' with history=20 and jobs=10: give these")

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[batch, numbers] -> [batch, features]."""
        past = observations[:, : self.jobs_at].reshape(-1, HISTORY, SNAPSHOT)
        now, summary = past[:, -1], observations[:, self.summary_at :]
        cores, wall, stretch, users = (observations[:, self.jobs_at + k : self.running_at : JOB] for k in range(JOB))
        held, left, age = (observations[:, self.running_at + k : self.summary_at : RUNNING] for k in range(RUNNING))
        waits, runs = cores > 0, held > 0
        first = cores[:, 0].clamp(min=1e-6)
        numbers = [
            wall[:, 0] - 0.3,
            cores[:, 0] - 0.1,
            users[:, 0],
            stretch.amax(dim=1),
            (wall * waits).sum(dim=1) / waits.sum(dim=1).clamp(min=1) - 0.3,
            now[:, 5],
            summary[:, 3],
            now[:, 0],
            now[:, 0] - past[:, HISTORY - 11, 0],
            now[:, 3] + now[:, 4],
            summary[:, 0],
            summary[:, 2],
            runs.any(dim=1).float(),
            1.0 - torch.where(runs, age, 1.0).amin(dim=1),
            torch.where(runs, left, 1.0).amin(dim=1),
            (held.sum(dim=1) / first).clamp(max=1.0),
            ((held * (age < YOUNG)).sum(dim=1) / first).clamp(max=1.0),
            now[:, 7] - 0.5,
        ]
        return torch.stack(numbers, dim=1)
