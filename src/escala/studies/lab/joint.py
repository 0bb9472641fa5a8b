"""Policies as points of energy waste and wait on the same days, and how far one of them is from what mixtures of others
reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from escala.studies.lab.resampled import Floats, hull_at

USUAL = (10, 90)
"""Percentiles of the days' mean waits between which R3 shows them."""
WAITS = {"mean": "mean wait", "usual": "mean wait of days between the 10th and the 90th percentile"}
RESAMPLES = 1000


class Joint:
    """Sums over days of rules and agents on one part of an input, as they are (first) and over resampled days and
    seeds. waste, wait: name -> [1 + resamples]; wait by the names of WAITS."""

    def __init__(self, tables: Mapping[str, Mapping[str, Floats]], resamples: int = RESAMPLES) -> None:
        random = np.random.default_rng(0x70)
        days = next(iter(tables.values()))["waste_j"].shape[1]
        drawn = np.concatenate([np.arange(days)[None], random.integers(0, days, (resamples, days))])
        self.days, self.waste, self.wait = days, dict[str, Floats](), {way: dict[str, Floats]() for way in WAITS}
        for name, table in tables.items():
            seeds = len(table["waste_j"])
            chance = random.multinomial(seeds, np.full(seeds, 1.0 / seeds), resamples) / seeds
            share = np.concatenate([np.full((1, seeds), 1.0 / seeds), chance])
            waste, wait, jobs = (table[column][:, drawn] for column in ("waste_j", "wait_s", "jobs"))
            self.waste[name] = np.einsum("rs,srd->r", share, waste)
            self.wait["mean"][name] = np.einsum("rs,srd->r", share, wait) / np.einsum("rs,srd->r", share, jobs)
            self.wait["usual"][name] = usual_mean(np.einsum("rs,srd->rd", share, wait / jobs))

    def change(self, what: str, name: str, other: str) -> Floats:
        """Relative change of `waste`, or of a wait by a name of WAITS."""
        values = self.waste if what == "waste" else self.wait[what]
        return values[name] / values[other] - 1.0

    def against_hull(self, name: str, among: Sequence[str], way: str) -> Floats:
        """Relative change of the waste against the lower convex hull of others at the same wait."""
        x, y = (np.array([values[one] for one in among]).T for values in (self.wait[way], self.waste))
        best = [hull_at(p, xs, ys) for p, xs, ys in zip(self.wait[way][name], x, y, strict=True)]
        return self.waste[name] / np.array(best) - 1.0


def usual_mean(values: Floats) -> Floats:
    """Mean along the last axis of what lies between the 10th and the 90th percentile."""
    low, high = np.percentile(values, USUAL, axis=-1, keepdims=True)
    inside = (values >= low) & (values <= high)
    return np.where(inside, values, 0.0).sum(axis=-1) / inside.sum(axis=-1)
