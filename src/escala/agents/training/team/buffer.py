"""Advantages where steps last: the discount of a step is that of the units of time that passed in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

from escala.agents.training.team.view import TeamView


class TimedBuffer(MaskableRolloutBuffer):
    """Generalised advantage estimates (Schulman et al. 2015) of a semi-Markov process: delta = r + gamma^units V' - V,
    weighted by (gamma^units lambda). view: tells the discount of each step."""

    def __init__(self, *given: Any, view: TeamView, **more: Any) -> None:
        self.view = view
        super().__init__(*given, **more)

    def reset(self) -> None:
        """Begin a rollout."""
        super().reset()
        self.discounts = np.ones((self.buffer_size, self.n_envs), np.float32)

    def add(self, *given: Any, **more: Any) -> None:
        """Note a step."""
        self.discounts[self.pos] = self.view.passed
        super().add(*given, **more)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        """Fill in advantages and returns [steps, games]."""
        following = last_values.clone().cpu().numpy().flatten()
        going_on = 1.0 - dones.astype(np.float32)
        last = np.zeros(self.n_envs, np.float32)
        for step in reversed(range(self.buffer_size)):
            discount = self.discounts[step] * going_on
            delta = self.rewards[step] + discount * following - self.values[step]
            last = delta + discount * self.gae_lambda * last
            self.advantages[step] = last
            following, going_on = self.values[step], 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values
