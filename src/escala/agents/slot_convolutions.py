"""Networks of R2's table 3 for the image of `escala/Slots-v0`, as feature extractors: one layer of 3 x 3 filters, ReLU, with or without
max-pooling (2 x 2), flattened. Actor and critic have one each; what is flattened goes straight into the action and value layers. The text
gives the number of filters alone: stride 1 and a border of zeros are our reading. Its "FC layer" is a hidden layer on the flat image.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

POOL = 2


class Convolution(BaseFeaturesExtractor):
    """[batch, rows, columns] -> [batch, filters x rows x columns], a quarter of it with pooling."""

    def __init__(self, observation_space: Any, filters: int, pooled: bool) -> None:
        rows, columns = observation_space.shape
        by = POOL if pooled else 1
        super().__init__(observation_space, filters * (rows // by) * (columns // by))
        last: list[nn.Module] = [nn.MaxPool2d(POOL)] if pooled else []
        self.layers = nn.Sequential(nn.Conv2d(1, filters, 3, padding=1), nn.ReLU(), *last, nn.Flatten())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """See the class."""
        out: torch.Tensor = self.layers(observations.unsqueeze(1))
        return out


class Conv3x16(Convolution):
    """16 filters."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 16, False)


class Conv3x32(Convolution):
    """32 filters."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 32, False)


class Conv3x16Pooled(Convolution):
    """16 filters, max-pooling."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 16, True)


class Conv3x32Pooled(Convolution):
    """32 filters, max-pooling."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 32, True)


CONVOLUTIONS: dict[str, type[BaseFeaturesExtractor]] = {
    "conv3-16": Conv3x16,
    "conv3-32": Conv3x32,
    "conv3-16-pool": Conv3x16Pooled,
    "conv3-32-pool": Conv3x32Pooled,
}
"""Names that presets use."""
