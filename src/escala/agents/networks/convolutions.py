"""Networks of R2's table 3 for the image of `escala/Slots-v0`, as feature extractors: one layer of 3 x 3 filters, ReLU,
with or without max-pooling (2 x 2), flattened. Actor and critic have one each; what is flattened goes straight into the
action and value layers. The text gives the number of filters alone: stride 1 and a border of zeros are our reading. Its
"FC layer" is a hidden layer on the flat image.

Filters turn an image of 10 kB into 160 kB or more, so that a whole batch of them leaves the processor's caches and is
new memory each time. Images are therefore taken in parts of PART: several times as fast.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

POOL = 2
PART = 16


class Convolution(BaseFeaturesExtractor):
    """[batch, rows, columns] -> [batch, filters x rows x columns], a quarter of it with pooling."""

    def __init__(self, observation_space: Any, filters: int, pooled: bool) -> None:
        rows, columns = observation_space.shape
        by = POOL if pooled else 1
        super().__init__(observation_space, filters * (rows // by) * (columns // by))
        last: list[nn.Module] = [nn.MaxPool2d(POOL)] if pooled else []
        # pooling is many times as fast with filters innermost
        self.format = torch.channels_last if pooled else torch.contiguous_format
        self.layers = nn.Sequential(nn.Conv2d(1, filters, 3, padding=1), *last, nn.ReLU(), nn.Flatten())
        self.layers.to(memory_format=self.format)  # type: ignore[call-overload]  # torch names it for tensors only

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """See the class."""
        images = observations.unsqueeze(1).contiguous(memory_format=self.format)
        if torch.is_grad_enabled():
            out: torch.Tensor = self.layers(images)
            return out
        return torch.cat([self.layers(part) for part in images.split(PART)])


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


class _InParts:
    """Judges actions part by part of a batch; comes before the policy class."""

    def evaluate_actions(self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None) -> Any:
        """Values, log likelihoods and entropies [batch] of observations, actions and (masked policies) masks, as in the
        policy class."""
        given = (obs, actions) if action_masks is None else (obs, actions, action_masks)
        parts = zip(*(torch.as_tensor(one).split(PART) for one in given), strict=True)
        done = [super(_InParts, self).evaluate_actions(*part) for part in parts]
        return tuple(torch.cat(column) for column in zip(*done, strict=True))


class MaskedImagePolicy(_InParts, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class PlainImagePolicy(_InParts, ActorCriticPolicy):
    """For PPO and A2C, without masks."""
