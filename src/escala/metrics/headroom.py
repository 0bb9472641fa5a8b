"""Head-room: how much of what is possible a policy gains."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from escala.errors import EscalaError
from escala.metrics.bootstrap import Interval, matrix


def headroom(
    values: ArrayLike,
    reference: ArrayLike,
    best: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """(reference - policy) / (reference - best), of means over episodes, with its percentile bootstrap interval.

    values: [episodes] or [training seeds, episodes]; reference, best: [episodes], the same episodes in the same order.
    best: the optimum, or the best that is known, of each episode or (in the shape of values) of each seed too; where it
    is only the best found, the true share is a little smaller. 0: as the reference, 1: the optimum, below 0: worse than
    the reference. Each resample draws episodes with replacement (the same on all sides) and training seeds with
    replacement; resamples in which there is no room are left out. EscalaError: other shapes, values that are not
    finite, no room (the reference is already the best).
    """
    ours, theirs, least = matrix(values, "values"), matrix(reference, "reference"), matrix(best, "best")
    n = ours.shape[1]
    if theirs.shape != (1, n) or least.shape not in ((1, n), ours.shape):
        raise EscalaError(
            f"head-room: {n} episodes against {theirs.shape} of the reference and {least.shape} of the best: give one "
            "of each an episode"
        )
    room = theirs.sum() - least.mean(axis=0).sum()
    if not room > 0.0:
        raise EscalaError("head-room: the reference is as good as the best known, so there is no room to share")
    random = np.random.default_rng(seed)
    weight = random.multinomial(n, np.full(n, 1.0 / n), size=resamples).astype(np.float64)
    picked = random.multinomial(len(ours), np.full(len(ours), 1.0 / len(ours)), size=resamples) / len(ours)
    mine = ((weight @ ours.T) * picked).sum(axis=1)
    found = weight @ (theirs[0] - least[0]) if len(least) == 1 else ((weight @ (theirs - least).T) * picked).sum(axis=1)
    some = found > 1e-9 * np.abs(weight @ theirs[0])  # resamples without room (but for rounding) have no share
    drawn = (weight @ theirs[0] - mine)[some] / found[some]
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(drawn, (tail, 100.0 - tail))
    return Interval(
        float((theirs.sum() - ours.mean(axis=0).sum()) / room), float(low), float(high), level, n, len(ours)
    )
