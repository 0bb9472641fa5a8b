"""Networks of R3 (and, from `networks.convolutions`, R2), as feature extractors of stable-baselines3. Flat observations
need none."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from escala.agents.networks.convolutions import CONVOLUTIONS
from escala.agents.networks.ordered import QueueAndRunning
from escala.envs.rjms.hold_features import FEATURES, HOLD_FEATURES, check_shape, hold_features

QUEUED, RUNNING = 3, 3  # columns of a Scheduling observation before the snapshots
PART = 64
"""Sequences that a recurrent network takes at once: more leave the processor's caches between its forward and backward
steps (a whole batch of 1 440 through LSTM(128) takes 1.6 times as long)."""


def _last(network: nn.LSTM | nn.GRU, observations: torch.Tensor) -> torch.Tensor:
    """[batch, places, numbers] -> the last hidden state [batch, hidden]."""
    lstm = isinstance(network, nn.LSTM)
    hidden = [network(part)[1] for part in observations.split(PART)]
    return torch.cat([(one[0] if lstm else one)[-1] for one in hidden])


class HistoryLSTM(BaseFeaturesExtractor):
    """R3's DeepShutdown: LSTM(128) over the snapshots, then 64 (leaky ReLU)."""

    def __init__(self, observation_space: Any, hidden: int = 128, features: int = 64) -> None:
        super().__init__(observation_space, features)
        self.lstm = nn.LSTM(observation_space.shape[1], hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, features), nn.LeakyReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[batch, snapshots, numbers] -> [batch, features]."""
        out: torch.Tensor = self.head(_last(self.lstm, observations))
        return out


class ThreeGRUs(BaseFeaturesExtractor):
    """R3's DeepScheduler: GRU(64) over the waiting jobs, the running jobs and the snapshots, concatenated into 128."""

    def __init__(self, observation_space: Any, hidden: int = 64, features: int = 128) -> None:
        super().__init__(observation_space, features)
        platform = observation_space.shape[1] - QUEUED - RUNNING
        self.widths = (QUEUED, RUNNING, platform)
        self.grus = nn.ModuleList(nn.GRU(width, hidden, batch_first=True) for width in self.widths)
        self.head = nn.Sequential(nn.Linear(3 * hidden, features), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[batch, places, numbers] -> [batch, features]."""
        parts = torch.split(observations, self.widths, dim=2)
        last = [_last(gru, part) for gru, part in zip(self.grus, parts, strict=True)]
        out: torch.Tensor = self.head(torch.cat(last, dim=1))
        return out


class HoldFeatures(BaseFeaturesExtractor):
    """The compact observation as the numbers of `FEATURES`; nothing to learn."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, len(FEATURES))
        check_shape(tuple(observation_space.shape))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[batch, numbers] -> [batch, features]."""
        seen = np.ascontiguousarray(observations.detach().cpu().numpy(), np.float32)
        return torch.as_tensor(hold_features(seen), dtype=observations.dtype, device=observations.device)


EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    "history-lstm": HistoryLSTM,
    "three-grus": ThreeGRUs,
    "queue-and-running": QueueAndRunning,
    HOLD_FEATURES: HoldFeatures,
    **CONVOLUTIONS,
}
"""Extractors by the names that presets use."""
