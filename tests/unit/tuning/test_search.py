"""Searched weights: what a search finds, on what it is judged, and the folder in which it stands."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.policies.linear import Linear
from escala.policies.schedulers import Scheduler
from escala.policies.score_files import read_score, written
from escala.tuning import Tuned, judge
from escala.tuning.measures import Jobs
from escala.tuning.split import WEEK_S, split_of
from escala.tuning.weights import FEATURES, scheduler_at, searched, start

MACHINE = "8x1"
PROMISE = "longest-wait<=100*easy"


def _mixed(seed: int = 2) -> escala.Workload:
    """Fourteen weeks in which all ask for the same time; the more cores a job has the shorter it is, and some users'
    jobs are shorter."""
    random = np.random.default_rng(seed)
    n = int(14 * WEEK_S / 4200.0)
    user, cores = random.integers(0, 12, n), random.choice([1, 2, 4, 8], n)
    by_cores = np.array([0.0, 36_000.0, 9_000.0, 0.0, 1_200.0, 0.0, 0.0, 0.0, 240.0])[cores]
    runtime = by_cores * np.where(user < 8, 0.5, 1.2) * random.uniform(0.9, 1.1, n)
    columns: dict[str, Any] = {
        "submit_s": np.sort(random.uniform(0, 14 * WEEK_S, n)),
        "runtime_s": runtime,
        "walltime_s": np.full(n, 50_000.0),
        "cores": cores,
        "user": [f"u{k}" for k in user],
    }
    return escala.Workload.from_jobs(columns, name="mixed")


@functools.cache
def _tuned() -> Tuned:
    return escala.tune(_mixed(), MACHINE, promise=PROMISE, predictors=[], searches=1)


def test_a_search_ends_near_the_least_cost() -> None:
    """The cost is the distance from a known point: no replay is needed to see that a search comes near it."""
    wanted = np.array([0.1, -0.2, 0.0, -0.6, 0.0, 0.1, 0.0, 0.0, 1.8])
    met: list[np.ndarray] = []

    def cost(points: Any, generation: int) -> list[float]:
        met.extend(points)
        return [float(np.abs(point - wanted).sum()) for point in points]

    found = searched(cost, lambda point: point, 0)  # type: ignore[arg-type, return-value]
    begun = min(np.abs(start(score, hours) - wanted).sum() for score in ("xfactor", "wfp3") for hours in (24.0, 100.0))
    assert np.abs(found - wanted).sum() < 0.7 * begun and len(met) == 10 + 8 * 20
    assert all(np.abs(point[:-1]).sum() == pytest.approx(1.0) for point in met)
    again = searched(cost, lambda point: point, 0)  # type: ignore[arg-type, return-value]
    assert (found == again).all()


def test_a_point_is_a_scheduler_with_that_score_and_guard() -> None:
    found = scheduler_at(np.array([0.0, 2.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, np.log10(36.2)]), "last2", "last2")
    assert (
        found.orders[0] == Linear((("log_cores", 0.5), ("log_wait_over_estimate", -0.5)))
        and found.guard_s == 36 * 3600.0
    )
    assert (
        found.order_estimate == "last2" and found.name == "easy:queue=score:score.toml:guard=36h:order_estimate=last2"
    )
    longest = scheduler_at(np.array([1.0, *[0.0] * 7, 9.0]))
    assert longest.guard_s == 400 * 3600.0 and longest.order_estimate is None


def test_searched_weights_are_judged_by_weeks_that_their_search_had_not_seen() -> None:
    tuned, log = _tuned(), _mixed()
    steps = [step for step in tuned.steps if step.part == "weights"]
    assert len(steps) == 1 and "order_estimate" not in steps[0].name
    past = split_of(log, "60%").past(log)
    for step in steps:
        assert not isinstance(step.scheduler, str) and isinstance(score := step.scheduler.orders[0], Linear)
        assert {name for name, _ in score.weights} <= set(FEATURES)
        waits = escala.simulate(past, MACHINE, step.scheduler).jobs["wait_s"]
        assert step.figures[0]["mean_wait_s"] == pytest.approx(waits.mean())
    other = log.jobs.with_columns(
        runtime_s=pl.when(pl.col("submit_s") >= split_of(log, "60%").at_s).then(77.0).otherwise("runtime_s")
    )
    again = escala.tune(log.with_jobs(other), MACHINE, promise=PROMISE, predictors=[], searches=1)
    assert [step.as_dict() for step in again.steps] == [
        step.as_dict() for step in tuned.steps
    ] and again.later != tuned.later


def test_a_policy_with_searched_weights_is_a_folder_to_read_and_run(tmp_path: Path) -> None:
    tuned = _tuned()
    assert tuned.chosen.startswith("easy:queue=score:score.toml:guard="), [step.as_dict() for step in tuned.steps]
    assert [part.part for part in tuned.parts][-2:] == ["weights", "perfect runtimes"]
    assert next(step for step in tuned.steps if step.name == tuned.chosen).ahead
    folder = tuned.save(tmp_path / "policy")
    assert isinstance(tuned.scheduler, Scheduler)
    assert read_score(folder / "score.toml") == tuned.scheduler.orders[0]
    own = escala.simulate(_mixed(), MACHINE, f"policy:{folder}").jobs
    assert own["wait_s"].equals(escala.simulate(_mixed(), MACHINE, tuned.scheduler).jobs["wait_s"])
    later = own.filter(pl.col("submit_s") >= split_of(_mixed(), "60%").at_s)
    assert later["wait_s"].mean() == pytest.approx(tuned.later["policy"]["mean_wait_s"])


def test_a_model_fitted_to_the_past_goes_into_the_folder(tmp_path: Path) -> None:
    tuned = escala.tune(_mixed(), MACHINE, promise=PROMISE, predictors=["model"], searches=0)
    assert tuned.without == "" and tuned.chosen.endswith("order_estimate=model:model"), [
        step.as_dict() for step in tuned.steps
    ]
    folder = tuned.save(tmp_path / "policy")
    assert (folder / "model" / "manifest.json").is_file()
    own = escala.simulate(_mixed(), MACHINE, f"policy:{folder}").jobs["wait_s"]
    assert own.equals(escala.simulate(_mixed(), MACHINE, tuned.scheduler).jobs["wait_s"])


def test_a_log_without_requests_has_no_model_and_says_so() -> None:
    log = _mixed()
    asked = escala.tune(
        log.with_jobs(log.jobs.with_columns(limited=pl.lit(False))), MACHINE, predictors=["model"], searches=0
    )
    assert (
        asked.without.startswith("No model of run times was tried: ")
        and "no job tells the time that it asks for" in asked.without
    )


def test_score_files_are_written_as_they_are_read(tmp_path: Path) -> None:
    score = Linear((("log_wait_over_estimate", -0.5), ("column", 1e-07)), column='a "b"', every_s=300.0)
    path = tmp_path / "score.toml"
    path.write_text(written(score, "one line", "another"), encoding="utf-8")
    assert read_score(path) == score and path.read_text().startswith("# one line\n# another\nform")


def test_a_ratio_by_week_is_the_geometric_mean_over_weeks() -> None:
    n = 30
    jobs = Jobs(
        np.arange(n),
        np.zeros(n),
        np.full(n, 100.0),
        np.ones(n),
        pl.Series(["u"] * n),
        pl.Series([None] * n, dtype=pl.String),
    )
    week, reference = np.repeat([0, 1, 2], 10), np.full(n, 900.0)
    waits = np.where(week == 0, 400.0, np.where(week == 1, 1900.0, 900.0))
    value, low, high = judge.mean_over_logs([judge.weeks_of(jobs, waits, reference, "bounded_slowdown", week)], 0)
    assert value == pytest.approx(1.0) and low is not None and high is not None and 0.5 <= low < 1.0 < high <= 2.0


@pytest.mark.parametrize("searches", [-1, 101, 1.5])
def test_how_often_is_a_small_whole_number(searches: Any) -> None:
    with pytest.raises(escala.EscalaError, match="--searches"):
        escala.tune(_mixed(), MACHINE, searches=searches)


def test_one_score_of_several_logs(tmp_path: Path) -> None:
    from escala.tuning import pooled

    logs = [(_mixed(seed), MACHINE) for seed in (3, 4)]
    found = pooled(logs, estimate="walltime", promise=PROMISE, searches=2, most=300)
    assert found.logs == ["mixed", "mixed"] and len(found.ends) == 2 and found.ends[0] != found.ends[1]
    assert pooled(logs, estimate="walltime", promise=PROMISE, searches=2, most=300) == found
    file = found.save(tmp_path / "pooled.toml")
    assert read_score(file) == found.score
    tuned = escala.tune(_mixed(), MACHINE, promise=PROMISE, predictors=[], scores=[f"score:{file}"], searches=0)
    step = next(step for step in tuned.steps if step.part == "given score")
    assert step.name.startswith("easy:queue=score:given-pooled.toml:guard=") and not isinstance(step.scheduler, str)
    assert step.scheduler.orders[0] == found.score
    with pytest.raises(escala.EscalaError, match="at least one log"):
        pooled([])


def test_the_score_that_comes_with_escala_is_a_scheduler() -> None:
    from tests.unit.tuning.test_tuning import CONGESTED, _log

    log = _log(CONGESTED)
    own, same = (
        escala.simulate(log, MACHINE, name).jobs["wait_s"] for name in ("escala", "easy:queue=escala:guard=24h")
    )
    assert own.equals(same) and not own.equals(escala.simulate(log, MACHINE, "easy").jobs["wait_s"])
    assert escala.simulate(log, MACHINE, "escala:order_estimate=last2").jobs["wait_s"].sum() != own.sum()
    with pytest.raises(escala.EscalaError, match="is no linear score"):
        escala.tune(log, MACHINE, scores=["sjf"])
