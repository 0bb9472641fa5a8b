"""Entries beside each other: what each has of EASY's, over all logs of a suite, and against the best, with intervals
over paired weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.leaderboard.entry import Entry
from escala.leaderboard.judged import EASY
from escala.leaderboard.suite import Suite, read_suite
from escala.reading import first_twin
from escala.tuning.judge import RESAMPLES
from escala.tuning.tuned import POLICY

Floats = NDArray[np.float64]
Within = tuple[float, float, float]
"""A value, and the ends of its 95 % interval."""
SAME = 1e-6


@dataclass(frozen=True)
class Row:
    """An entry on its suite. value: the geometric mean over logs of its figure over easy's; against: over the best
    honest entry's (1 for that one itself); kept: on how many logs the whole promise is kept; energy: the geometric mean
    over logs of its energy over easy's with all nodes on, None where nothing is switched off."""

    entry: Entry
    value: Within
    against: Within
    kept: int
    energy: float | None


@dataclass(frozen=True)
class Standing:
    """A leaderboard. rows: the best first. best: the first that does not know the future, None without one."""

    suite: Suite
    rows: tuple[Row, ...]
    best: Row | None
    weeks: int
    jobs: int


def standing(entries: Sequence[Entry], seed: int = 0) -> Standing:
    """Entries of one suite, ranked by its objective: the geometric mean over logs of the ratio to EASY. Intervals are
    from 1 000 resamples of whole weeks, on each log apart, the same weeks for every entry. EscalaError: no entries, of
    several suites, two of one name, or whose EASY is not the same."""
    if not entries:
        raise EscalaError("no entries: give at least one")
    suite = read_suite(entries[0].suite)
    _check(entries, suite)
    values, drawn = _logarithms(entries, suite, seed)
    order = sorted(range(len(entries)), key=lambda k: values[k])
    honest = [k for k in order if not entries[k].knows]
    first = honest[0] if honest else order[0]
    rows = {
        k: Row(
            entries[k],
            _within(values[k], drawn[k]),
            _within(values[k] - values[first], drawn[k] - drawn[first]),
            sum(all(clause["kept"] for clause in found["promise"]) for found in entries[k].logs.values()),
            _energy(entries[k]),
        )
        for k in order
    }
    counts = [sum(found[what] for found in entries[0].logs.values()) for what in ("weeks", "jobs")]
    return Standing(suite, tuple(rows.values()), rows[honest[0]] if honest else None, counts[0], counts[1])


def _energy(entry: Entry) -> float | None:
    ratios = [found["energy"]["ratio"][0] for found in entry.logs.values() if found["energy"] is not None]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _check(entries: Sequence[Entry], suite: Suite) -> None:
    if (twin := first_twin([entry.name for entry in entries])) is not None:
        raise EscalaError(f"two entries are called {quoted(twin)}: enter one of them under another name (--name)")
    for entry in entries[1:]:
        if read_suite(entry.suite).digest != suite.digest:
            raise EscalaError(
                f"{quoted(entry.name)} is an entry of another suite than {quoted(entries[0].name)}: compare those of "
                "one suite"
            )
        for log, found in entry.logs.items():
            easy, other = (np.array(each["by_week"][EASY][suite.figure]) for each in (found, entries[0].logs[log]))
            if easy.shape != other.shape or not np.allclose(easy, other, rtol=SAME):
                raise EscalaError(
                    f"EASY itself differs on {log} between {quoted(entries[0].name)} (Escala {entries[0].escala}) and "
                    f"{quoted(entry.name)} (Escala {entry.escala}): enter one of them again with the other's version"
                )


def _logarithms(entries: Sequence[Entry], suite: Suite, seed: int) -> tuple[Floats, Floats]:
    """Of each entry the mean over logs of log(figure / easy's), and the same of each resample, [entries], [entries,
    resamples]."""
    values, drawn = np.zeros(len(entries)), np.zeros((len(entries), RESAMPLES))
    random = np.random.default_rng(seed)
    for log in entries[0].logs:
        own = np.array([entry.logs[log]["by_week"][POLICY][suite.figure] for entry in entries])
        easy = np.array(entries[0].logs[log]["by_week"][EASY][suite.figure])
        weeks = random.multinomial(len(easy), np.full(len(easy), 1.0 / len(easy)), size=RESAMPLES).astype(np.float64)
        values += np.log(own.sum(axis=1) / easy.sum())
        with np.errstate(divide="ignore", invalid="ignore"):  # a draw of weeks in which nobody waits
            drawn += np.log((own @ weeks.T) / (weeks @ easy))
    return values / len(entries[0].logs), drawn / len(entries[0].logs)


def _within(value: float, drawn: Floats) -> Within:
    known = drawn[np.isfinite(drawn)]
    low, high = np.percentile(known, (2.5, 97.5)) if len(known) else (np.nan, np.nan)
    return float(np.exp(value)), float(np.exp(low)), float(np.exp(high))
