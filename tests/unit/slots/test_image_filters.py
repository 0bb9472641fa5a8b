"""Filters, ReLU and a linear layer as one, against the same layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escala.agents.networks.filters import NONE, add_gradients, add_outputs, scratch_of, touched


def drawn(seed: int, shares: tuple[float, ...]) -> tuple[Any, ...]:
    """Images of which a share is not empty, and weights."""
    random = np.random.default_rng(seed)
    images = np.stack([random.random((5, 7)) * (random.random((5, 7)) < share) for share in shares])
    kernel, bias, linear = (random.normal(size=shape) for shape in ((4, 9), 4, (3, 4, 35)))
    return tuple(one.astype(np.float32) for one in (images, kernel, bias, linear, random.normal(size=(len(shares), 3))))


def around(images: Any) -> Any:
    """[batch, 9, places]."""
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    return np.stack([wide[:, i : i + 5, j : j + 7] for i in range(3) for j in range(3)], axis=1).reshape(-1, 9, 35)


SHARES = (0.0, 0.05, 0.3, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_and_gradients_are_those_of_the_layers(seed: int) -> None:
    images, kernel, bias, linear, given = drawn(seed, SHARES)
    scratch = scratch_of(4, 35)
    before = kernel @ around(images) + bias[:, None]
    empty, level = linear.sum(axis=2), np.maximum(bias, NONE)

    out = np.repeat((empty @ level)[None], len(images), axis=0)
    add_outputs(images, kernel, bias, linear, out, scratch)
    np.testing.assert_allclose(out, np.einsum("afp,bfp->ba", linear, np.maximum(before, 0.0)), rtol=1e-4, atol=1e-4)

    total = given.sum(axis=0)
    into = np.zeros_like(kernel), (total @ empty) * (bias > 0.0), np.repeat(np.outer(total, level)[..., None], 35, 2)
    add_gradients(images, kernel, bias, linear, given, into, scratch)
    back = np.einsum("ba,afp->bfp", given, linear) * (before > 0.0)
    wanted = (
        np.einsum("bfp,bkp->fk", back, around(images)),
        back.sum(axis=(0, 2)),
        np.einsum("ba,bfp->afp", given, np.maximum(before, 0.0)),
    )
    for found, right in zip(into, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=2e-4)


def test_only_places_at_or_beside_a_number_are_touched() -> None:
    image, mark, places = np.zeros((5, 7), np.float32), np.zeros(35, np.uint8), np.zeros(35, np.int64)
    assert touched(image, mark, places) == 0
    image[0, 6] = image[4, 3] = 1.0
    n = touched(image, mark, places)
    assert sorted(places[:n]) == [5, 6, 12, 13, 23, 24, 25, 30, 31, 32]
    assert not mark.any()  # left as it was found
