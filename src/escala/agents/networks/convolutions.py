"""Networks of R2's table 3 for the image of `escala/Slots-v0`, as feature extractors: one layer of 3 x 3 filters, ReLU,
with or without max-pooling (2 x 2), flattened. Actor and critic have one each; what is flattened goes straight into the
action and value layers. The text gives the number of filters alone: stride 1 and a border of zeros are our reading. Its
"FC layer" is a hidden layer on the flat image.

Filters turn an image of 10 kB into 160 kB or more, so that a whole batch of them leaves the processor's caches and is
new memory each time. Images are therefore taken in parts of PART: several times as fast. Where the last layers lie
right on filters that are not pooled, the two are one (`filters`): 160 kB are then never written.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from escala.agents.networks.filters import add_gradients, add_outputs, scratch_of

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
        self.pooled, self.bare = pooled, False

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """See the class; bare: the images as they are, for a `Filtered` layer."""
        if self.bare:
            return observations
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


class _Through(torch.autograd.Function):
    """Images [batch, rows, columns], kernel [filters, 1, 3, 3], bias [filters], linear [outputs, filters x places] ->
    [batch, outputs]."""

    @staticmethod
    def forward(ctx: Any, images: Any, kernel: Any, bias: Any, linear: Any) -> Any:
        """See the class."""
        weights = linear.view(len(linear), len(bias), -1)
        ctx.save_for_backward(images.contiguous(), kernel.view(-1, 9), bias, weights)
        out = (weights.sum(dim=2) @ bias.clamp(min=0.0)).repeat(len(images), 1)  # of empty images
        seen, below, level, above, found = _arrays(*ctx.to_save, out)
        add_outputs(seen, below, level, above, found, scratch_of(*weights.shape[1:]))
        return out

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """None for the images, and the gradients of the weights."""
        images, kernel, bias, weights = ctx.saved_tensors
        total = given[0].sum(dim=0)
        of_linear = torch.outer(total, bias.clamp(min=0.0)).unsqueeze(2).repeat(1, 1, weights.shape[2])
        into = torch.zeros_like(kernel), (total @ weights.sum(dim=2)) * (bias > 0.0), of_linear
        seen, below, level, above, wanted = _arrays(images, kernel, bias, weights, given[0].contiguous())
        add_gradients(seen, below, level, above, wanted, tuple(_arrays(*into)), scratch_of(*weights.shape[1:]))
        return None, into[0].view(-1, 1, 3, 3), into[1], of_linear.view(len(weights), -1)


def _arrays(*given: torch.Tensor) -> list[Any]:
    """The same memory, as compiled code reads it."""
    return [one.detach().numpy() for one in given]


class Filtered(nn.Linear):
    """A last layer together with the filters below it."""

    filters: tuple[Convolution, ...] = ()
    """One; a tuple, so that its weights are not those of this layer too."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """[batch, rows, columns] -> [batch, outputs]."""
        (below,) = self.filters
        convolution: Any = below.layers[0]
        found: torch.Tensor = _Through.apply(images, convolution.weight, convolution.bias, self.weight)
        return found + self.bias


def _joined(policy: Any) -> None:
    """Make one of the last layers and the filters right below them, where actor and critic have filters of their own
    that are not pooled."""
    if policy.share_features_extractor or policy.net_arch != {"pi": [], "vf": []}:
        return
    for layer, below in (
        (policy.action_net, policy.pi_features_extractor),
        (policy.value_net, policy.vf_features_extractor),
    ):
        if not below.pooled:
            layer.__class__, layer.filters, below.bare = Filtered, (below,), True


class _InParts:
    """Judges actions part by part of a batch; comes before the policy class."""

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        _joined(self)

    def evaluate_actions(self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None) -> Any:
        """Values, log likelihoods and entropies [batch] of observations, actions and (masked policies) masks, as in the
        policy class."""
        given = (obs, actions) if action_masks is None else (obs, actions, action_masks)
        if isinstance(self.action_net, Filtered):  # type: ignore[attr-defined]
            return super().evaluate_actions(*given)
        parts = zip(*(torch.as_tensor(one).split(PART) for one in given), strict=True)
        done = [super(_InParts, self).evaluate_actions(*part) for part in parts]
        return tuple(torch.cat(column) for column in zip(*done, strict=True))


class MaskedImagePolicy(_InParts, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class PlainImagePolicy(_InParts, ActorCriticPolicy):
    """For PPO and A2C, without masks."""
