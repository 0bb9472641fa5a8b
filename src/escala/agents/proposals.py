"""Settings of a learner that are searched for, by Optuna: spans and choices, proposed a round at a time, told how well
each did.

What is proposed depends on the seed and on how well the proposals before did, and on nothing else: gone on with, on
another engine or with other numbers of processes, the same settings are proposed, and what is trained already is not
trained again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from escala.errors import EscalaError, quoted
from escala.extras import need

ROUND = 4
"""Settings that are proposed at once, without knowing of each other how well they do."""
AT_RANDOM = 8
"""The first are drawn alike over their spans; those behind by the Parzen estimators of the good and the bad ones."""
WIDE = 10.0
"""A span whose upper end is so many times its lower one is drawn by its logarithm."""

Figures = Mapping[str, Any]


def span_of(text: str) -> tuple[float, float] | None:
    """The ends of `LOW..HIGH`, whole numbers where both are; None for what is no span. EscalaError for ends that are
    none."""
    if ".." not in text:
        return None
    try:
        low, high = (int(one) if one.strip().isdigit() else float(one) for one in text.split(".."))
    except ValueError:
        raise EscalaError(f"{quoted(text)} is no span: give LOW..HIGH, such as 0.0001..0.01") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise EscalaError(f"{quoted(text)} is no span: the lower end comes first, and both are finite")
    return low, high


def is_span(values: Any) -> bool:
    """Is this a span, in place of a list of values?"""
    return isinstance(values, str) and ".." in values


def ends(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Each setting's ends, or its values as they are: what there is to check."""
    return {name: list(span_of(values) or ()) if is_span(values) else values for name, values in settings.items()}


def check(n: int, settings: Mapping[str, Any], presets: Sequence[str]) -> None:
    """EscalaError where there is nothing to propose."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise EscalaError(f"{quoted(n)} settings to propose (n_trials, --trials): give a whole number of at least 1")
    if not any(len(values) > 1 for values in ends(settings).values()):
        raise EscalaError(
            "settings to propose (n_trials, --trials): say from what, such as --learn learning_rate=0.0001..0.01"
        )
    if len(presets) > 1:
        raise EscalaError(f"presets {', '.join(presets)}: settings are proposed for one of them (n_trials, --trials)")
    need("proposing settings", "optuna")


def proposed(
    settings: Mapping[str, Any], n: int, seed: int, worth: Sequence[float | None]
) -> Iterator[list[dict[str, Any]]]:
    """Rounds of settings, `n` in all. worth: what those proposed so far came to, more is better, None where nothing
    came of it; it has to hold all of a round before the next one is asked for. EscalaError without Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=AT_RANDOM, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    spans = {name: _distribution(optuna.distributions, values) for name, values in settings.items()}
    for first in range(0, n, ROUND):
        asked = [study.ask(spans) for _ in range(min(ROUND, n - first))]
        yield [{name: _shown(value) for name, value in one.params.items()} for one in asked]
        for one, value in zip(asked, worth[first:], strict=True):
            study.tell(one, value, state=None if value is not None else optuna.trial.TrialState.FAIL)


def _distribution(kinds: Any, values: Any) -> Any:
    """Optuna's form of a span or of a choice."""
    span = span_of(values) if is_span(values) else None
    if span is None:
        return kinds.CategoricalDistribution(list(values))
    whole = isinstance(span[0], int) and isinstance(span[1], int)
    log = span[0] > 0 and span[1] >= WIDE * span[0]
    return kinds.IntDistribution(*span, log=log) if whole else kinds.FloatDistribution(*span, log=log)


def _shown(value: Any) -> Any:
    """Three digits of a float: as it is shown, so it is used."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def best(rows: Sequence[Figures], names: Sequence[str], worth: str) -> tuple[dict[str, Any], float] | None:
    """The settings whose agents' mean worth is greatest, over their seeds; None where no agent has any."""

    def of(row: Figures) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    found = {}
    for values, each in groupby(sorted(rows, key=of), of):
        told = [row[worth] for row in each if row.get(worth) is not None]
        if told:
            found[values] = math.fsum(told) / len(told)
    if not found:
        return None
    values = max(found, key=found.__getitem__)
    return dict(zip(names, values, strict=True)), found[values]
