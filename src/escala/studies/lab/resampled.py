"""Statistics of sums over days, with bootstrap intervals over days and training seeds; days are paired over all
policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = Mapping[str, Floats]
"""Column -> values [seeds, days] of one policy."""


def table_of(columns: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, Floats]:
    """One policy's table from the columns of its seeds."""
    return {name: np.array([one[name] for one in columns], np.float64) for name in columns[0]}


def to_end_of(tables: dict[str, dict[str, Floats]], reference: str, asleep_w: float) -> dict[str, dict[str, Floats]]:
    """The same tables, the energy of each day counted until the reference's end of it, with all nodes off (`asleep_w`)
    between a run's own end and that one: a run that takes longer for the same jobs would else count for more of what
    nodes draw that are off."""
    end = tables[reference]["span_s"]
    return {name: t | {"energy_j": t["energy_j"] + asleep_w * (end - t["span_s"])} for name, t in tables.items()}


class Resampled:
    """Sums of columns over days, as they are (first) and over resampled days and seeds. Each policy's seeds are drawn
    by themselves."""

    def __init__(self, tables: Mapping[str, Table], resamples: int = 2000, seed: int = 0, days: Any = None) -> None:
        self.tables = {
            name: {c: v[:, days] if days is not None else v for c, v in table.items()} for name, table in tables.items()
        }
        self.n = next(iter(next(iter(self.tables.values())).values())).shape[1]
        random = np.random.default_rng(seed)
        drawn = random.multinomial(self.n, np.full(self.n, 1.0 / self.n), size=resamples).astype(np.float64)
        self.weight = np.concatenate([np.ones((1, self.n)), drawn])
        self._random, self._seeds = random, dict[str, Floats]()

    def total(self, policy: str, column: str) -> Floats:
        """Sum over days of the mean over seeds, [1 + resamples]."""
        values = self.tables[policy][column]
        seeds = values.shape[0]
        if seeds == 1:
            return self.weight @ values[0]
        if policy not in self._seeds:
            share = self._random.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=len(self.weight) - 1) / seeds
            self._seeds[policy] = np.concatenate([np.full((1, seeds), 1.0 / seeds), share])
        out: Floats = np.einsum("rs,sd,rd->r", self._seeds[policy], values, self.weight, optimize=True)
        return out

    def change(self, policy: str, reference: str, column: str) -> Floats:
        """Relative change of a sum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.total(policy, column) / self.total(reference, column) - 1.0

    def mean(self, policy: str, column: str, per: str = "jobs") -> Floats:
        """A sum per job."""
        return self.total(policy, column) / self.total(policy, per)

    def against_frontier(
        self, policy: str, frontier: Sequence[str], column: str = "waste_j", by: str = "stretch"
    ) -> Floats:
        """Relative change of a sum against the best that the frontier's policies reach with at most the same mean `by`
        per job, by a broken line through those that no other beats in both; beyond the line's ends its end values
        count."""
        x = np.array([self.mean(name, by) for name in frontier]).T
        y = np.array([self.total(name, column) for name in frontier]).T
        at, ours = self.mean(policy, by), self.total(policy, column)
        order = np.argsort(x, axis=1, kind="stable")
        along = np.take_along_axis(x, order, axis=1)
        least = np.minimum.accumulate(np.take_along_axis(y, order, axis=1), axis=1)
        line = np.array([np.interp(p, xs, ys) for p, xs, ys in zip(at, along, least, strict=True)])
        out: Floats = ours / line - 1.0
        return out

    def against_mixtures(
        self, policy: str, frontier: Sequence[str], column: str = "waste_j", by: str = "stretch"
    ) -> Floats:
        """The same against the best that can be had by tossing a coin for each day between two of the frontier's
        policies: the lower convex hull of their points. Below the least `by` of the frontier its least counts, beyond
        the largest the least sum of all."""
        x = np.array([self.mean(name, by) for name in frontier]).T
        y = np.array([self.total(name, column) for name in frontier]).T
        at, ours = self.mean(policy, by), self.total(policy, column)
        best = np.array([hull_at(p, xs, ys) for p, xs, ys in zip(at, x, y, strict=True)])
        out: Floats = ours / best - 1.0
        return out


def hull_at(p: float, x: Floats, y: Floats) -> float:
    """The least y over all mixtures of two points whose mean x is at most p; the y of the least x where there is
    none."""
    within = x <= p
    if not within.any():
        return float(y[x.argmin()])
    left, right = np.flatnonzero(within), np.flatnonzero(~within)
    least = float(y[left].min())
    if right.size:
        share = (p - x[left][:, None]) / (x[right][None, :] - x[left][:, None])
        least = min(least, float((y[left][:, None] + share * (y[right][None, :] - y[left][:, None])).min()))
    return least


def interval(values: Floats) -> tuple[float, float, float]:
    """(value, low, high): the first is the statistic itself, the others give its 95 % interval."""
    kept = values[1:][np.isfinite(values[1:])]
    low, high = np.percentile(kept, (2.5, 97.5)) if len(kept) else (np.nan, np.nan)
    return float(values[0]), float(low), float(high)
