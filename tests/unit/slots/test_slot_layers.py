"""The compiled layers over slots: values and gradients are those of the formula written with torch over all slots."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from escala.agents.networks.slot_layers import _prefer, mean_embedding, preferences

BATCH, SLOTS, FEATURES, UNITS, REST = 7, 5, 6, 9, 4


def observations(dtype: torch.dtype) -> torch.Tensor:
    """Rows with no, some and only empty slots, and further numbers behind them."""
    seen = 0.05 + torch.rand(BATCH, SLOTS * FEATURES + REST, dtype=dtype)
    for row, empty in enumerate(([], [0], [1, 3], [0, 1, 2, 3, 4], [4], [], [2])):
        seen[row, : SLOTS * FEATURES].reshape(SLOTS, FEATURES)[empty] = 0.0
    return seen


def parameters(dtype: torch.dtype) -> list[torch.Tensor]:
    """weight, bias, context, score."""
    shapes = (UNITS, FEATURES), (UNITS,), (BATCH, UNITS), (UNITS,)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def slots_of(seen: torch.Tensor) -> torch.Tensor:
    return seen[:, : SLOTS * FEATURES].reshape(-1, SLOTS, FEATURES)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_by_differences(seed: int) -> None:
    torch.manual_seed(seed)
    seen = observations(torch.float64)
    weight, bias, context, score = parameters(torch.float64)
    assert torch.autograd.gradcheck(lambda *given: mean_embedding(seen, SLOTS, *given), (weight, bias))
    assert torch.autograd.gradcheck(lambda *given: preferences(seen, SLOTS, *given), (weight, bias, context, score))


@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients_of_the_formula(seed: int) -> None:
    torch.manual_seed(seed)
    seen = observations(torch.float32)
    given = parameters(torch.float32)
    weight, bias, context, score = given
    before = torch.relu(slots_of(seen) @ weight.T + bias)
    hidden = torch.relu(slots_of(seen) @ weight.T + bias + context[:, None])
    ours = mean_embedding(seen, SLOTS, weight, bias), preferences(seen, SLOTS, weight, bias, context, score)
    for mine, formula in zip(ours, (before.mean(dim=1), hidden @ score), strict=True):
        torch.testing.assert_close(mine, formula, rtol=1e-5, atol=1e-5)
        wanted = torch.randn_like(formula)
        slopes = [
            torch.autograd.grad((x * wanted).sum(), given, allow_unused=True, retain_graph=True)
            for x in (mine, formula)
        ]
        for slope, of_formula in zip(*slopes, strict=True):
            assert (slope is None) == (of_formula is None)
            if slope is not None:
                torch.testing.assert_close(slope, of_formula, rtol=1e-4, atol=1e-5)


def test_observations_are_read_as_they_lie() -> None:
    """Rows out of a larger table, in another order of memory, give the same; a batch of nothing gives nothing."""
    torch.manual_seed(0)
    seen = observations(torch.float32)
    weight, bias, context, score = parameters(torch.float32)
    other = torch.as_tensor(np.asfortranarray(seen.numpy()))
    assert torch.equal(mean_embedding(seen, SLOTS, weight, bias), mean_embedding(other, SLOTS, weight, bias))
    assert torch.equal(
        preferences(seen, SLOTS, weight, bias, context, score), preferences(other, SLOTS, weight, bias, context, score)
    )
    assert mean_embedding(seen[:0], SLOTS, weight, bias).shape == (0, UNITS)
    assert preferences(seen[:0], SLOTS, weight, bias, context[:0], score).shape == (0, SLOTS)


def test_sums_do_not_depend_on_where_arrays_lie() -> None:
    """To the last bit, or two trainings with one seed end elsewhere."""
    random = np.random.default_rng(0)
    shapes = {"bias": (32,), "context": (4, 32), "score": (32,), "room": (2, 32)}
    given = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    seen, weight = random.random((4, 60)).astype(np.float32), random.normal(size=(6, 32)).astype(np.float32)
    seen[:, 6:12] = 0.0  # a slot is empty
    found = set()
    for order in itertools.permutations(given):
        heap = np.concatenate([given[name].ravel() for name in order])  # one behind the other
        ends = np.cumsum([given[name].size for name in order])
        lie = {
            name: heap[end - given[name].size : end].reshape(shapes[name])
            for name, end in zip(order, ends, strict=True)
        }
        out = np.empty((4, 10), np.float32)
        _prefer(seen, weight, lie["bias"], lie["context"], lie["score"], lie["room"], out)
        found.add(out.tobytes())
    assert len(found) == 1
