"""Paired differences over episodes and training seeds with seeded bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escala.errors import EscalaError

Floats = NDArray[np.float64]
_CHUNK = 2_000_000  # resampled weights held at once


@dataclass(frozen=True)
class Interval:
    """An estimate and its bootstrap interval, with the sizes behind it."""

    value: float
    low: float
    high: float
    level: float
    episodes: int
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0.0 or self.high < 0.0


def paired(
    values: ArrayLike,
    reference: ArrayLike,
    *,
    statistic: str = "ratio",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """A paired difference with its percentile bootstrap interval.

    values, reference: [episodes], or [training seeds, episodes]; both over the same episodes in the same order. statistic: "ratio", the
    relative change of the sum over episodes, sum(values) / sum(reference) - 1; or "difference", the mean of values - reference. Each
    resample draws episodes with replacement (the same for both sides, which keeps the pairs) and training seeds with replacement (each
    side its own). Few training seeds (< 5) make an interval that is too narrow; the number is in the Interval so that it can be printed.
    """
    ours, theirs = matrix(values, "values"), matrix(reference, "reference")
    if ours.shape[1] != theirs.shape[1]:
        raise EscalaError(
            f"{ours.shape[1]} episodes against {theirs.shape[1]} of the reference: pair them, one value per episode on both sides"
        )
    if statistic not in ("ratio", "difference"):
        raise EscalaError(f"unknown statistic {statistic!r}; use 'ratio' or 'difference'")
    episodes = ours.shape[1]
    if statistic == "ratio" and not theirs.sum() > 0.0:
        raise EscalaError("the reference sums to 0 or less, so no ratio exists; use statistic='difference'")
    drawn = np.concatenate([_statistic(a, b, episodes, statistic) for a, b in _resampled(ours, theirs, resamples, seed)])
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(drawn[np.isfinite(drawn)], (tail, 100.0 - tail))
    value = float(_statistic(ours.mean(0).sum(keepdims=True), theirs.mean(0).sum(keepdims=True), episodes, statistic)[0])
    return Interval(value, float(low), float(high), level, episodes, ours.shape[0])


def matrix(values: ArrayLike, what: str) -> Floats:
    x = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if x.ndim != 2 or x.size == 0:
        raise EscalaError(f"{what} must be [episodes] or [seeds, episodes] and not empty, not of shape {np.shape(values)}")
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise EscalaError(
            f"{what} of seed {row}, episode {column} is {x[row, column]}: leave it out for every policy, or count it as unfinished"
        )
    return x


def _statistic(ours: Floats, theirs: Floats, episodes: int, statistic: str) -> Floats:
    """From sums over episodes, [resamples]."""
    if statistic == "difference":
        return (ours - theirs) / episodes
    with np.errstate(divide="ignore", invalid="ignore"):
        return ours / theirs - 1.0


def _resampled(ours: Floats, theirs: Floats, resamples: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Sums over resampled episodes of the means over resampled seeds, in chunks. Drawing with replacement gives multinomial weights."""
    random = np.random.default_rng(seed)
    episodes = ours.shape[1]
    most = max(1, _CHUNK // episodes)
    for begin in range(0, resamples, most):
        n = min(most, resamples - begin)
        if begin == 0:
            weight, random.bit_generator.state = _first(seed, episodes, n)
        else:
            weight = _episodes(random, episodes, n)
        yield _weighted(ours, weight, random), _weighted(theirs, weight, random)


@lru_cache(maxsize=4)
def _first(seed: int, episodes: int, n: int) -> tuple[Floats, Any]:
    """The first chunk of a seed's weights, and the generator's state behind it: drawing them is nearly all of the time, and tables of many
    rows want the same ones."""
    random = np.random.default_rng(seed)
    weight = _episodes(random, episodes, n)
    weight.flags.writeable = False
    return weight, random.bit_generator.state


def _episodes(random: np.random.Generator, episodes: int, n: int) -> Floats:
    """How often each episode is drawn, [n, episodes]."""
    return random.multinomial(episodes, np.full(episodes, 1.0 / episodes), size=n).astype(np.float64)


def _weighted(x: Floats, weight: Floats, random: np.random.Generator) -> Floats:
    seeds = x.shape[0]
    if seeds == 1:
        return weight @ x[0]
    share = random.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=weight.shape[0]) / seeds
    return np.einsum("re,re->r", share @ x, weight)
