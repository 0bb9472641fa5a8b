"""From a network's preferences to its choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def probabilities(logits: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probability of each action, [n, actions], by preferences [n, actions]. Masked actions have none."""
    logits = np.where(mask, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    out: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return out


def choose(share: NDArray[np.float64], random: np.random.Generator | None) -> NDArray[np.int64]:
    """Actions [n] by their probabilities [n, actions]: sampled by `random` (one draw an observation), or the greedy
    ones without."""
    if random is None:
        return share.argmax(axis=1)
    drawn = random.random(len(share))
    picked: NDArray[np.int64] = (share.cumsum(axis=1) <= drawn[:, None] * share.sum(axis=1, keepdims=True)).sum(axis=1)
    return np.minimum(picked, share.shape[1] - 1)
