"""Networks of R3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from escala.agents.networks.build import build_policy
from escala.agents.networks.extractors import EXTRACTORS, PART

pytestmark = pytest.mark.learn


@pytest.mark.parametrize("name", ["history-lstm", "three-grus"])
def test_a_batch_in_parts_is_the_same_as_its_sequences_one_by_one(name: str) -> None:
    torch.manual_seed(1)
    network = EXTRACTORS[name](Box(-1.0, 1.0, (20, 14), np.float32))
    seen = torch.randn(2 * PART + 7, 20, 14)
    with torch.no_grad():
        whole = network(seen)
        one_by_one = torch.cat([network(seen[k : k + 1]) for k in range(len(seen))])
    torch.testing.assert_close(whole, one_by_one, rtol=1e-5, atol=1e-6)
    network(seen).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in network.parameters())


@pytest.mark.parametrize("preset", ["conv3-16", "conv3-32"])
def test_filters_and_the_last_layers_are_one_where_nothing_lies_between(preset: str) -> None:
    """They give what the layers give one by one, and so do their gradients."""
    manifest = {"extractor": preset, "env_options": {}, "network": [], "separate": True, "algorithm": "maskable-ppo"}
    policy = build_policy(manifest, Box(0.0, 1.0, (20, 30), np.float32), Discrete(6), seed=1)
    torch.manual_seed(1)
    seen, wanted = torch.rand(7, 20, 30) * (torch.rand(7, 20, 30) < 0.1), torch.randn(7, 6)
    for below, last in (
        (policy.pi_features_extractor, policy.action_net),
        (policy.vf_features_extractor, policy.value_net),
    ):
        with torch.no_grad():
            below.layers[0].bias.uniform_(-0.3, 0.3)
        found, gradients = last(seen), []
        usual = torch.nn.functional.linear(below.layers(seen.unsqueeze(1)), last.weight, last.bias)
        torch.testing.assert_close(found, usual, rtol=1e-4, atol=1e-5)
        weights = [*below.parameters(), *last.parameters()]
        for out in (found, usual):
            gradients.append(torch.autograd.grad((out * wanted[:, : out.shape[1]]).sum(), weights))
        torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)
    assert len(list(policy.parameters())) == 8  # no weight twice


def test_filters_with_a_layer_between_or_pooled_stay_as_they_are() -> None:
    space, actions = Box(0.0, 1.0, (20, 30), np.float32), Discrete(6)
    for preset, network in (("conv3-16", [8]), ("conv3-16-pool", [])):
        manifest = {"extractor": preset, "env_options": {}, "network": network, "separate": True, "algorithm": "a2c"}
        policy = build_policy(manifest, space, actions)
        assert type(policy.action_net) is torch.nn.Linear
        assert policy(torch.rand(3, 20, 30))[0].shape == (3,)
