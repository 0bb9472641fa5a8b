"""Paired differences over episodes and training seeds with seeded bootstrap intervals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
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

    values, reference: [episodes], or [training seeds, episodes]; both over the same episodes in the same order.
    statistic: "ratio", the relative change of the sum over episodes, sum(values) / sum(reference) - 1; or "difference",
    the mean of values - reference. Each resample draws episodes with replacement (the same for both sides, which keeps
    the pairs) and training seeds with replacement (each side its own). Few training seeds (< 5) make an interval that
    is too narrow; the number is in the Interval so that it can be printed.
    """
    ours, theirs = matrix(values, "values"), matrix(reference, "reference")
    if ours.shape[1] != theirs.shape[1]:
        raise EscalaError(
            f"{ours.shape[1]} episodes against {theirs.shape[1]} of the reference: pair them, one value per episode "
            "on both sides"
        )
    if statistic not in ("ratio", "difference"):
        raise EscalaError(f"unknown statistic {statistic!r}; use 'ratio' or 'difference'")
    episodes = ours.shape[1]
    if statistic == "ratio" and not theirs.sum() > 0.0:
        raise EscalaError("the reference sums to 0 or less, so no ratio exists; use statistic='difference'")
    drawn = np.concatenate(
        [_statistic(a, b, episodes, statistic) for a, b in _resampled(ours, theirs, resamples, seed)]
    )
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(drawn[np.isfinite(drawn)], (tail, 100.0 - tail))
    value = float(
        _statistic(ours.mean(0).sum(keepdims=True), theirs.mean(0).sum(keepdims=True), episodes, statistic)[0]
    )
    return Interval(value, float(low), float(high), level, episodes, ours.shape[0])


def matrix(values: ArrayLike, what: str) -> Floats:
    x = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if x.ndim != 2 or x.size == 0:
        raise EscalaError(
            f"{what} must be [episodes] or [seeds, episodes] and not empty, not of shape {np.shape(values)}"
        )
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise EscalaError(
            f"{what} of seed {row}, episode {column} is {x[row, column]}: leave it out for every policy, or count it "
            "as unfinished"
        )
    return x


def _statistic(ours: Floats, theirs: Floats, episodes: int, statistic: str) -> Floats:
    """From sums over episodes, [resamples]."""
    if statistic == "difference":
        return (ours - theirs) / episodes
    with np.errstate(divide="ignore", invalid="ignore"):
        return ours / theirs - 1.0


def _resampled(ours: Floats, theirs: Floats, resamples: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Sums over resampled episodes of the means over resampled seeds, in chunks. Drawing with replacement gives
    multinomial weights."""
    random = np.random.default_rng(seed)
    episodes = ours.shape[1]
    most = max(1, _CHUNK // episodes)
    for begin in range(0, resamples, most):
        n = min(most, resamples - begin)
        weight = _drawn_once(random, episodes, n)
        yield _weighted(ours, weight, random), _weighted(theirs, weight, random)


_KEPT: OrderedDict[tuple[Any, ...], tuple[NDArray[np.unsignedinteger[Any]], Any]] = OrderedDict()
"""Weights drawn last, and the generator's state behind them."""
_MOST_KEPT = 200_000_000  # bytes of weights


def _drawn_once(random: np.random.Generator, episodes: int, n: int) -> Floats:
    """`_episodes`, which is nearly all of the time, done once for each state of the generator: the many rows of a table
    want the same."""
    key = (episodes, n, *random.bit_generator.state["state"].values())
    if key in _KEPT:
        _KEPT.move_to_end(key)
        weight, random.bit_generator.state = _KEPT[key]
        return weight.astype(np.float64)
    drawn = _episodes(random, episodes, n)
    narrow = drawn.astype(np.min_scalar_type(int(drawn.max())))
    _KEPT[key] = narrow, random.bit_generator.state
    while sum(weight.nbytes for weight, _ in _KEPT.values()) > _MOST_KEPT:
        _KEPT.popitem(last=False)
    return drawn


def _episodes(random: np.random.Generator, episodes: int, n: int) -> Floats:
    """How often each episode is drawn, [n, episodes]."""
    return random.multinomial(episodes, np.full(episodes, 1.0 / episodes), size=n).astype(np.float64)


def _weighted(x: Floats, weight: Floats, random: np.random.Generator) -> Floats:
    seeds = x.shape[0]
    if seeds == 1:
        return weight @ x[0]
    share = random.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=weight.shape[0]) / seeds
    return np.einsum("re,re->r", share @ x, weight)
