"""Networks of R3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

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
