"""Pairs chosen on a log's past, judged on its later weeks: energies against the states of nodes, waits against one
replay."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.metrics import Prices, Series
from escala.report.frontier import sentences
from escala.tuning.later import weeks_of
from escala.tuning.split import WEEK_S, split_of

PLATFORM = "4x2:grid5000"
WATTS = {"computing": 190.0, "idle": 95.0, "off": 9.0, "switching_off": 101.0, "switching_on": 125.0}
PAIRS: dict[str, Any] = {"schedulers": ["easy", "saf"], "shutdowns": ["never", "timeout:600"]}


def _log(later_cores: int = 2) -> escala.Workload:
    random = np.random.default_rng(3)
    submit = np.sort(random.uniform(0.0, 6 * WEEK_S, 900))
    columns = {
        "submit_s": submit,
        "runtime_s": random.uniform(60.0, 9000.0, 900),
        "cores": np.where(submit < submit[0] + 0.6 * (submit[-1] - submit[0]), random.integers(1, 8, 900), later_cores),
    }
    return escala.Workload.from_jobs(columns)


@functools.cache
def _found() -> escala.Frontier:
    return escala.frontier(_log(), PLATFORM, **PAIRS, after=0.6, jobs=1)


def test_later_energy_is_what_the_nodes_draw_between_the_split_and_the_last_submission() -> None:
    found, split = _found(), split_of(_log(), 0.6)
    assert found.later is not None and len(found.later.pairs) > 1
    for name, judged in found.later.pairs.items():
        scheduler, shutdown = name.split(" + ")
        lives = escala.simulate(_log(), PLATFORM, scheduler, shutdown).nodes
        spent = lives.select(
            (pl.min_horizontal("to_s", pl.lit(split.last_s)) - pl.max_horizontal("from_s", pl.lit(split.at_s))).clip(
                0.0
            )
            * pl.col("state").replace_strict(WATTS)
        )
        assert judged.energy_j == pytest.approx(spent.sum().item(), rel=1e-9)


def test_later_waits_are_those_of_one_replay_of_the_whole_log() -> None:
    found, split = _found(), split_of(_log(), 0.6)
    assert found.later is not None
    for name, judged in found.later.pairs.items():
        jobs = escala.simulate(_log(), PLATFORM, *name.split(" + ")).jobs.filter(pl.col("submit_s") >= split.at_s)
        assert judged.waits["mean_wait_s"] == pytest.approx(jobs["wait_s"].mean())
        assert judged.waits["longest_wait_s"] == pytest.approx(jobs["wait_s"].max())


def test_ratios_are_against_the_reference_with_their_intervals() -> None:
    later = _found().later
    assert later is not None
    base = later.pairs["easy + never"]
    assert base.energy == (1.0, 1.0, 1.0) == base.wait
    for judged in later.pairs.values():
        value, low, high = judged.energy
        assert value == pytest.approx(judged.energy_j / base.energy_j)
        assert value is not None and low is not None and high is not None and low <= value <= high
    assert later.weeks == 3 and later.past_days == pytest.approx(0.6 * 42, abs=0.2)


def test_later_costs_are_those_of_the_prices_of_their_weeks() -> None:
    """Prices that never change give the ratios of energy; ten times as much in the later weeks, the same of them."""
    split = split_of(_log(), 0.6)
    flat, dear = np.array([1.0]), np.array([1.0, 10.0])
    for prices in (Series(np.array([0.0]), flat), Series(np.array([0.0, split.at_s]), dear)):
        found = escala.frontier(_log(), PLATFORM, **PAIRS, after=0.6, jobs=1, prices=Prices(prices))
        assert found.later is not None and _found().later is not None
        for judged in found.later.pairs.values():
            assert judged.cost == pytest.approx(judged.energy, rel=1e-6)
    assert "cost −" in " ".join(sentences(found))


def test_the_choice_does_not_see_the_later_weeks() -> None:
    other = escala.frontier(_log(later_cores=8), PLATFORM, **PAIRS, after=0.6, jobs=1)
    assert other.summaries == _found().summaries and other.later != _found().later


def test_weeks_end_with_the_last_submission() -> None:
    split = split_of(_log(), 0.6)
    ends = weeks_of(split)
    assert (
        ends[0] == split.at_s
        and ends[-1] == split.last_s
        and (np.diff(ends)[:-1] == WEEK_S).all()
        and 0 < np.diff(ends)[-1] <= WEEK_S
    )


def test_the_sentences_say_what_was_chosen_and_what_came_of_it() -> None:
    said = " ".join(sentences(_found()))
    assert "timeout:600, chosen for waits" in said and "in place of" in said and "over 3 weeks" in said
    assert "gains less on the next" not in said


@pytest.mark.parametrize(
    ("figure", "factor"), [("mean_wait_s", 1.2), ("p95_wait_s", 1.2), ("longest_wait_s", 1.3), ("median_wait_s", 9.0)]
)
def test_a_limit_that_is_broken_later_is_told(figure: str, factor: float) -> None:
    found = _found()
    assert found.later is not None
    base = found.later.pairs[found.reference]
    alike = {name: replace(pair, waits=dict(base.waits)) for name, pair in found.later.pairs.items()}
    assert "not kept" not in " ".join(sentences(replace(found, later=replace(found.later, pairs=alike))))
    worse = dict(base.waits, **{figure: factor * base.waits[figure] + 1.0})
    broken = {name: pair if name == found.reference else replace(pair, waits=worse) for name, pair in alike.items()}
    told = " ".join(sentences(replace(found, later=replace(found.later, pairs=broken))))
    assert ("The limit on waits was not kept." in told) == (figure != "median_wait_s")  # on which there is no limit


def test_a_short_log_is_refused() -> None:
    with pytest.raises(EscalaError, match="at least 3 weeks"):
        escala.frontier(_log().window(0.0, 2 * WEEK_S), PLATFORM, **PAIRS, after="60%")
