"""Pairs chosen on a log's past, judged on its later weeks: energy and waits beside those of the reference, with
intervals over weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from escala.engines import Each
from escala.engines.again import Share
from escala.metrics.bill import COST, Prices, mean_price
from escala.metrics.bootstrap import paired
from escala.metrics.energy import JOULES_PER_KWH
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.kept_pieces import kept_values
from escala.policies.pairs import Named, play
from escala.policies.run import simulate
from escala.tuning.judge import RESAMPLES, Ratio, ratio
from escala.tuning.measures import Figures, Floats, figures, jobs_of
from escala.tuning.replays import kept_waits
from escala.tuning.split import DAY_S, WEEK_S, Split
from escala.workload import Workload
from escala.writing import Pieces


@dataclass(frozen=True)
class Judged:
    """A pair on the later weeks. energy_j: drawn from the split to the last submission; waits:
    `escala.tuning.measures.FIGURES` of the jobs submitted in that time, s. energy, wait, p95_wait: the ratio to the
    reference's and its 95 % interval over weeks. cost: the same ratio of what is paid, None without prices."""

    energy_j: float
    waits: Figures
    energy: Ratio
    wait: Ratio
    p95_wait: Ratio
    cost: Ratio | None = None


@dataclass(frozen=True)
class Later:
    """The later weeks of a log, `days` long, after `past_days`: the reference, and pairs that were chosen on the past.
    weeks: over how many the intervals are."""

    past_days: float
    days: float
    weeks: int
    pairs: dict[str, Judged]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def weeks_of(split: Split) -> Floats:
    """The ends of the later weeks, s on the log's clock, the split first; the last one ends with the last
    submission."""
    whole = np.arange(split.at_s, split.last_s, WEEK_S)
    return np.append(whole, split.last_s)


def judge(
    log: Workload,
    machine: Platform,
    split: Split,
    pairs: Sequence[Named],
    options: Mapping[str, Any],
    *,
    prices: Prices | None = None,
    keep: Pieces | None = None,
    each: Each | Share | None = None,
) -> Later:
    """Judge pairs, the reference first, each in one replay of the whole log. What a week draws is the difference of the
    energies of two replays that are cut at its ends; it costs that, at the mean price of a kWh drawn in that week.
    prices, keep: see `escala.frontier`; each: see `escala.policies.pairs.play`; options: as of `simulate`."""
    admitted = jobs_of(log, machine, with_options(Options(), **options))
    is_later = admitted.submit_s >= split.at_s
    later, week = admitted.part(is_later), split.later_weeks(admitted.submit_s[is_later])
    ends = weeks_of(split)

    row = admitted.row[is_later]

    def drawn(pair: Named) -> dict[str, Any]:
        cut = [
            simulate(
                log, machine, pair.scheduler, pair.shutdown, record=bool(prices), **{**options, "until_s": float(end)}
            )
            for end in ends
        ]
        found = {"energy_j": np.diff([float(one.summary()["energy_j"]) for one in cut]).tolist()}
        if prices and prices.money is not None:
            found[COST] = [
                energy / JOULES_PER_KWH * mean_price(one.nodes, one.power, prices.money, float(begin))
                for energy, one, begin in zip(found["energy_j"], cut[1:], ends[:-1], strict=True)
            ]
        return found

    def waited(pair: Named) -> Floats:
        jobs_of_run = simulate(log, machine, pair.scheduler, pair.shutdown, record=False, **options).jobs
        return jobs_of_run["wait_s"].to_numpy()[row]

    energies = play(pairs, drawn, kept_values(keep, "later "), each=each)
    energy, cost = (
        {name: np.array(found[figure]) for name, found in energies.items() if figure in found}
        for figure in ("energy_j", COST)
    )
    waits = play(pairs, waited, kept_waits(keep, "waits later "), each=each)
    first = pairs[0].name

    def judged(name: str) -> Judged:
        by_weeks = _over_weeks(energy[name], energy[first])
        paid = _over_weeks(cost[name], cost[first]) if cost else None
        wait, p95 = (
            ratio(later, waits[name], waits[first], figure, week, 0) for figure in ("mean_wait_s", "p95_wait_s")
        )
        return Judged(float(energy[name].sum()), figures(later, waits[name]), by_weeks, wait, p95, paid)

    spans = (split.at_s - split.first_s) / DAY_S, (split.last_s - split.at_s) / DAY_S
    return Later(*spans, len(ends) - 1, {name: judged(name) for name in energy})


def _over_weeks(ours: Floats, base: Floats) -> Ratio:
    change = paired(ours, base, resamples=RESAMPLES)
    return 1.0 + change.value, 1.0 + change.low, 1.0 + change.high
